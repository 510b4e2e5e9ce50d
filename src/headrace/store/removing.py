"""Removal of single tasks by their ids, whatever became of them."""

from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from typing import Protocol

from headrace.store.expecting import Expected


class DeleteAnswer(StrEnum):
    DELETED = "deleted"  # with everything that belonged to it
    HELD = "held"  # a worker has it: cancel it first
    NEEDED = "needed"  # its job is not over, or a task that has not ended waits for it, or called it
    UNKNOWN = "unknown"
    CHANGED_MEANWHILE = "changed_meanwhile"  # it is not as it was expected any more: nothing was done


class Removal(Protocol):
    async def delete(self, ids: Sequence[int], *, expected: Expected | None = None) -> dict[int, DeleteAnswer]:
        """Remove tasks that nobody holds, ended or not, with everything that belongs to them: attempts, logs,
        checkpoints, waits, edges and all their keys. One transaction; an answer for each id. What is not as `expected`
        is left alone.

        What is kept elsewhere (a large result) is for whoever keeps blobs, as with `purge`.
        """
        ...


def removable(candidates: Iterable[int], waiting: Collection[tuple[int, int]]) -> set[int]:
    """Of these, what nobody who stays waits for. `waiting` are pairs of a task and a live one that waits for it."""
    going = set(candidates)
    while needed := {task for task, waiter in waiting if task in going and waiter not in going}:
        going -= needed
    return going
