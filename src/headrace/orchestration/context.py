"""Which app and which job the functions of this package mean."""

from collections.abc import Sequence
from contextvars import ContextVar, Token
from typing import Self
from weakref import WeakKeyDictionary

from headrace.app import App
from headrace.core.errors import NoCurrentTask
from headrace.executors.context import running

_app: App | None = None
_entered: ContextVar["Context | None"] = ContextVar("headrace_job", default=None)


def configure(app: App | None) -> None:
    """Use this app from now on; None goes back to the settings of the environment."""
    global _app
    _app = app


def current_app() -> App:
    global _app
    if _app is None:
        _app = App()
    return _app


class Context:
    """`with Context(job_id=7):` makes `get_current_job_id` answer 7; a task of a job runs inside its own."""

    def __init__(self, job_id: int) -> None:
        self.job_id = job_id
        self._token: Token[Context | None] | None = None

    def __enter__(self) -> Self:
        self._token = _entered.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _entered.reset(self._token)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()


def get_current_job_id() -> int:
    """The job of the task that runs here. NoCurrentTask outside a task, or in one that belongs to no job."""
    entered = _entered.get()
    if entered is not None:
        return entered.job_id
    context = running.get()
    if context is None:
        raise NoCurrentTask("there is no current job: this is not inside a task; use add_task_to_job(job_id, …)")
    if context.job_id is None:
        raise NoCurrentTask(f"there is no current job: task {context.task_id} ({context.name}) belongs to none")
    return context.job_id


# The tasks that a running task, or a `with Context(…)`, added to a job, in that order: what a collector waits for.
_added: WeakKeyDictionary[object, dict[int, list[int]]] = WeakKeyDictionary()


def remember(job_id: int, task_id: int) -> None:
    if (where := _here()) is not None:
        _added.setdefault(where, {}).setdefault(job_id, []).append(task_id)


def remembered(job_id: int) -> Sequence[int]:
    """The tasks that were added to the job here."""
    where = _here()
    return () if where is None else _added.get(where, {}).get(job_id, ())


def _here() -> object | None:
    return _entered.get() or running.get()
