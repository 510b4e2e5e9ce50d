"""Every error headrace raises, as one tree.

    HeadraceError
    ├── DefinitionError          refused when a task, an option or a setting is declared
    │   ├── OptionError          an option's value, or two options that contradict each other
    │   └── SettingsError        App(...) or HEADRACE_* says something impossible
    ├── EnqueueError             refused before anything was written
    │   ├── PayloadError         a value that is not JSON: NaN, huge integers, naive datetimes, unknown objects
    │   ├── ArgumentError        arguments that do not fit the task's signature
    │   ├── GraphError           a graph that cannot be: a circle, an edge to nowhere, a result nobody takes
    │   ├── UnknownTask          no task of that name is registered
    │   ├── EntrypointError      a dotted path that cannot be imported
    │   ├── DuplicateTask        a unique key is taken and the caller asked to be refused
    │   ├── UniqueBusy           an open transaction holds the key for longer than the wait
    │   ├── MovedAway            the holder of the key went to another database with `db move`
    │   └── ForeignConnection    the connection belongs to another database than the app's store
    ├── StoreError
    │   ├── StoreUnavailable     cannot be reached now; safe to try again
    │   ├── SchemaError          no schema, an older one, or one newer than this code
    │   └── MissingExtra         the driver for this URL is not installed
    ├── DataError                a table cannot be made, sliced or read as asked
    │   └── ObjectExists         an object of that id is there already
    ├── MoveError                `db move` cannot begin, or found a difference
    ├── ResultError
    │   ├── TaskFailed           with the remote traceback
    │   ├── TaskCancelled
    │   └── ResultExpired
    ├── NotFound                 no task, job, worker, queue or object of that id
    ├── WrongState               the act is not allowed in the state the thing is in
    ├── LeaseLost                this worker's lease is gone; it stops and starts anew
    ├── RunningLoop              a blocking call on a thread that runs an event loop
    ├── NoCurrentTask            `current` used outside a running task
    ├── NotAllowed               this person may not decide that
    ├── WaitTimeout              `current.wait`: the event did not come in time
    ├── DurableError             durable calls that cannot be told apart, or were made to go on after a suspension
    └── control raised inside tasks
        ├── Permanent            never retry this
        ├── Transient            retry this even where the policy would not
        ├── BreakerOpen          goes back uncharged until the breaker may close
        └── SoftTimeLimitExceeded

An error's message says what happened, to which id, and what to do.
"""

from datetime import datetime


class HeadraceError(Exception):
    """Base of everything headrace raises."""


class DefinitionError(HeadraceError):
    """Refused when a task, an option or a setting is declared."""


class OptionError(DefinitionError, ValueError):
    """An option has an impossible value, or contradicts another."""


class SettingsError(DefinitionError, ValueError):
    """A setting is impossible."""


class EnqueueError(HeadraceError):
    """Refused before anything was written."""


class PayloadError(EnqueueError, ValueError):
    """A value cannot be stored as JSON."""


class ArgumentError(EnqueueError, TypeError):
    """Arguments do not fit the signature of the task."""

    surplus = False  # one more was given than the task has room for


class GraphError(EnqueueError, ValueError):
    """A graph of tasks cannot be: a circle, an edge to a task that is not there, a result that nobody takes."""


class UnknownTask(EnqueueError, LookupError):
    """No task of that name is registered."""


class EntrypointError(EnqueueError, ImportError):
    """A dotted path does not lead to a function."""


class DuplicateTask(EnqueueError):
    """The unique key is held by another task, and the caller asked to be refused."""

    def __init__(self, key: str, task_id: int) -> None:
        super().__init__(
            f"key {key!r} is held by task {task_id}; use on_conflict='return' to get its handle instead of this error"
        )
        self.key = key
        self.task_id = task_id

    def __reduce__(self) -> tuple[type["DuplicateTask"], tuple[str, int]]:
        return (DuplicateTask, (self.key, self.task_id))


class UniqueBusy(EnqueueError):
    """A transaction that is still open holds the key; nothing was written, try again."""


class MovedAway(EnqueueError):
    """The task that holds the key has gone to another database with `headrace db move`; there it is decided."""

    def __init__(self, key: str, task_id: int) -> None:
        super().__init__(
            f"key {key!r} is held by task {task_id}, which has moved to another database (headrace db move): enqueue "
            "there, or outside your own transaction. Nothing was written"
        )
        self.key = key
        self.task_id = task_id

    def __reduce__(self) -> tuple[type["MovedAway"], tuple[str, int]]:
        return (MovedAway, (self.key, self.task_id))


class ForeignConnection(EnqueueError):
    """The given connection belongs to another database than the app's store."""


class StoreError(HeadraceError):
    """The ledger refused or failed."""


class StoreUnavailable(StoreError, ConnectionError):
    """The database cannot be reached now; the act was not acknowledged and is safe to repeat."""


class SchemaError(StoreError):
    """The database has no schema, an older one, or one that is newer than this code."""


class MissingExtra(StoreError, ImportError):
    """An optional package is needed for this and is not installed."""


class DataError(HeadraceError, ValueError):
    """A table cannot be made of this, or has no such rows or columns; nothing was written."""


class ObjectExists(DataError):
    """An object of that id is there already, and nothing changed."""


class MoveError(HeadraceError):
    """A ledger cannot be moved, or a row did not arrive as it was."""


class ResultError(HeadraceError):
    """A task has no result to give."""


class TaskFailed(ResultError):
    """The task failed for good. `remote_traceback` is the traceback of its last attempt."""

    def __init__(
        self,
        message: str,
        *,
        task_id: int | None = None,
        reason: str | None = None,
        error_class: str | None = None,
        remote_traceback: str | None = None,
    ) -> None:
        super().__init__(message)
        self.task_id = task_id
        self.reason = reason
        self.error_class = error_class
        self.remote_traceback = remote_traceback
        if remote_traceback:
            self.add_note("Traceback in the worker:\n" + remote_traceback)


class TaskCancelled(ResultError):
    """The task was cancelled; `reason` says by what."""

    def __init__(self, message: str, *, task_id: int | None = None, reason: str | None = None) -> None:
        super().__init__(message)
        self.task_id = task_id
        self.reason = reason


class ResultExpired(ResultError):
    """The result was kept for its time to live and has been removed."""


class NotFound(HeadraceError, LookupError):
    """No task, job, worker, queue or object of that id."""


class WrongState(HeadraceError):
    """The act is not allowed in the state the thing is in; nothing changed."""


class LeaseLost(HeadraceError):
    """This worker's lease is gone: others may already run its tasks."""


class RunningLoop(HeadraceError, RuntimeError):
    """A blocking call on a thread that runs an event loop; use the form that starts with `a`."""


class NoCurrentTask(HeadraceError, RuntimeError):
    """`current` was used outside a running task."""


class NotAllowed(HeadraceError, PermissionError):
    """Whoever decided has not the role that the decision asks for; nothing changed."""


class WaitTimeout(HeadraceError, TimeoutError):
    """`current.wait` waited as long as it was told, and the event did not come."""


class DurableError(HeadraceError, RuntimeError):
    """A durable call that cannot be: two of one name in a task, or one after a suspension that the task caught."""


class Permanent(HeadraceError):
    """Raise inside a task: it fails at once, whatever its policy says."""


class Transient(HeadraceError):
    """Raise inside a task: it is retried while attempts remain. `retry_after` is a lower bound of the delay."""

    def __init__(self, *args: object, retry_after: float | None = None) -> None:
        super().__init__(*args)
        self.retry_after = retry_after


class BreakerOpen(HeadraceError):
    """The breaker of a service is open; the task goes back uncharged until `until`."""

    def __init__(self, service: str, *, until: datetime | None = None, delay: float | None = None) -> None:
        super().__init__(f"the breaker of {service!r} is open; the task goes back and is not charged")
        self.service = service
        self.until = until
        self.delay = delay


class SoftTimeLimitExceeded(HeadraceError):
    """Raised inside a task at its soft limit, so that it can clean up before the hard limit kills it."""
