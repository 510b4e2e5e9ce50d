"""What one drain, or one enqueue in inline mode, has done so far."""

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(slots=True, kw_only=True)
class Tally:
    runs: int = 0  # attempts that entered user code
    tasks: dict[int, None] = field(default_factory=dict[int, None])  # every task that was claimed, in that order
    unknown: dict[int, str] = field(default_factory=dict[int, str])  # those whose name the app does not define
    last: str = ""  # the name of the task that was run last


class Around(NamedTuple):
    """What is going on around the code of a task."""

    level: int  # how many tasks are being run, one inside the other
    tally: Tally  # of the outermost


around: ContextVar[Around | None] = ContextVar("headrace_testing_around", default=None)
