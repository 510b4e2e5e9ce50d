"""The words of states in a query: headrace's own, and those of AsyncTaskFlow, in whatever case."""

from collections.abc import Iterable

from headrace.core.states import HELD, TaskState
from headrace.server.problems import Problem

DEAD = "dlq"
_THEIRS: dict[str, tuple[TaskState, ...]] = {"active": tuple(sorted(HELD))}


def states_of(words: Iterable[str]) -> tuple[tuple[TaskState, ...], bool | None]:
    """The states that were asked for, and whether only dead letters were. Problem(422)."""
    found: dict[TaskState, None] = {}
    asked = [word.strip().lower() for text in words for word in text.split(",") if word.strip()]
    if DEAD in asked:
        if set(asked) != {DEAD}:
            raise Problem(422, "Bad filter", "DLQ is asked for alone: dead letters are failed tasks that are kept")
        return (TaskState.FAILED,), True
    for word in asked:
        if word in _THEIRS:
            found.update(dict.fromkeys(_THEIRS[word]))
        elif word in TaskState:
            found[TaskState(word)] = None
        else:
            known = ", ".join([*TaskState, "ACTIVE", "DLQ"])
            raise Problem(422, "Bad filter", f"there is no status {word[:60]!r}; there are {known}")
    return tuple(found), None
