"""The answers to a call of very many tasks: their ids, and little more."""

from array import array
from collections.abc import Collection, Sequence
from typing import overload

from headrace.core.task import Enqueued


class Answers(Sequence[Enqueued]):
    """As a list of `Enqueued`, each of which is made when it is asked for."""

    __slots__ = ("_existing", "_ids")

    def __init__(self, ids: "array[int]", existing: Collection[int] = ()) -> None:
        self._ids = ids
        self._existing = frozenset(existing)  # the places whose task was there before

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, index: int) -> Enqueued: ...
    @overload
    def __getitem__(self, index: slice) -> list[Enqueued]: ...
    def __getitem__(self, index: int | slice) -> Enqueued | list[Enqueued]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self._ids)))]
        place = range(len(self._ids))[index]
        return Enqueued(self._ids[place], place not in self._existing)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return repr(list(self))
