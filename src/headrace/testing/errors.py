"""What the test kit itself raises."""

from collections.abc import Sequence

from headrace.core.errors import HeadraceError
from headrace.core.task import TaskRecord


class NotOverridden(HeadraceError):
    """The test kit was to run tasks of the app's own database, which may be the one of production. Nothing was done."""


class StillWaiting(HeadraceError):
    """A result was asked for that nothing would bring about: without a worker nobody waits for the task's time."""


class TooManyRuns(HeadraceError):
    """Work went on beyond the limit of runs: a task that enqueues itself, or snoozes for ever."""


class TasksFailed(HeadraceError, AssertionError):
    """Tasks failed, or wait for another attempt after a failed one. `records` are they."""

    def __init__(self, message: str, records: Sequence[TaskRecord] = ()) -> None:
        super().__init__(message)
        self.records = tuple(records)
