"""What an act goes by that was decided on a moment ago: tasks that are otherwise by then are left alone."""

from dataclasses import dataclass
from datetime import datetime

from headrace.core.states import TaskState


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The states in which tasks are acted on, of those runs that had begun, or had ended, by an instant: whoever runs
    one again, or sees it end, later than that has changed it.

    Looked at by the statement that holds the task still, so that nothing comes between.
    """

    states: tuple[TaskState, ...]
    until: datetime
