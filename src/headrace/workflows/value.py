"""What a part of a plan gives to the next one: the tasks whose results make its value, and how they make it."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from headrace.core.task import After, EdgeKind

if TYPE_CHECKING:
    from headrace.workflows.plan import Planner


class Existing(NamedTuple):
    """A task that is in the ledger already."""

    id: int


type Source = int | Existing
"""A task: its place in the plan, or its id."""
type Value = Source | array[int] | Sequence[Value]
"""One result, or a list of values. A flat list of places is an array: there may be a hundred thousand."""


def sources(value: Value) -> Iterator[Source]:
    """Its tasks, in order."""
    if isinstance(value, int | Existing):
        yield value
    elif isinstance(value, array):
        yield from cast("array[int]", value)
    else:
        for part in value:
            yield from sources(part)


def count(value: Value) -> int:
    if isinstance(value, int | Existing):
        return 1
    return len(cast("array[int]", value)) if isinstance(value, array) else sum(count(part) for part in value)


def shape(value: Value) -> Any:
    """How results make the value (see `inputs`)."""
    if isinstance(value, int | Existing):
        return "one"
    if isinstance(value, array):
        return {"n": len(cast("array[int]", value))}
    if all(isinstance(part, int | Existing) for part in value):
        return {"n": len(value)}
    return [shape(part) for part in value]


def skeleton(value: Value) -> Any:
    """The value where no task is in it: lists of nothing."""
    assert not isinstance(value, int | Existing)
    return [skeleton(part) for part in value]


class Listed:
    """A list of values while it grows: an array for as long as they are places."""

    __slots__ = ("_nested", "_places")

    def __init__(self) -> None:
        self._places = array("q")
        self._nested: list[Value] | None = None

    def append(self, value: Value) -> None:
        if self._nested is not None:
            self._nested.append(value)
        elif isinstance(value, int):
            self._places.append(value)
        else:
            self._nested = [*self._places, value]

    def value(self) -> Value:
        return self._places if self._nested is None else self._nested


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    value: Value
    # To be waited for as well, although their results are in nobody's hands: what came before an empty group.
    waits: tuple[Source, ...] = ()
    name: str = ""  # what it is called in an error

    @property
    def width(self) -> int:
        return count(self.value) + len(self.waits)

    def tasks(self) -> Iterator[Source]:
        yield from sources(self.value)
        yield from self.waits


def edge(source: Source, kind: EdgeKind = EdgeKind.ON_SUCCESS, input: int | None = None) -> After:
    if isinstance(source, Existing):
        return After(task=source.id, kind=kind, input=input)
    return After(task=source, kind=kind, input=input, local=True)


@dataclass(slots=True, kw_only=True)
class Upstream:
    """What a part comes after. Where many come after many, they share one task in between: else there would be an edge
    from each to each."""

    output: Output
    kind: EdgeKind = EdgeKind.ON_SUCCESS
    passes: bool = True  # its result, to those that take it
    shared: bool = False
    _joins: dict[bool, Output] = field(default_factory=dict[bool, Output])

    def for_many(self) -> "Upstream":
        if self.shared or self.output.width <= 1:
            return self
        return Upstream(output=self.output, kind=self.kind, passes=self.passes, shared=True)

    def resolved(self, planner: "Planner", *, passing: bool) -> tuple[Output, EdgeKind]:
        """What one part has its edges to, and of which kind they are."""
        if not self.shared:
            return self.output, self.kind
        if not passing and True in self._joins:
            passing = True  # one that is there already serves those, too, that take nothing from it
        if passing not in self._joins:
            self._joins[passing] = planner.join(self.output, kind=self.kind, passing=passing)
        return self._joins[passing], EdgeKind.ON_SUCCESS
