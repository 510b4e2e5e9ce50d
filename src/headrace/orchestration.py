"""Jobs of tasks that are named by dotted path: `create_job("import", [{"entrypoint": "shop.load", "kwargs": {…}}])`.

The functions of one specification, under its names. They work on the app that `configure` was given, or on one that is
made from the settings of the environment.
"""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self, cast

from headrace._version import __version__
from headrace.app import App
from headrace.client.options import Options
from headrace.client.preparing import effective_max_age, effective_retry, stored_options
from headrace.core import payload
from headrace.core.errors import ArgumentError, NoCurrentTask, NotFound, PayloadError
from headrace.core.states import JobState, TaskState
from headrace.core.task import JobRecord, NewTask, TaskRecord, WorkerRecord
from headrace.executors.context import running

_app: App | None = None
_job: ContextVar[int | None] = ContextVar("headrace_job", default=None)


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
        self._token: Token[int | None] | None = None

    def __enter__(self) -> Self:
        self._token = _job.set(self.job_id)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _job.reset(self._token)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job and how far it is."""

    id: int
    name: str
    description: str | None
    status: JobState
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    total_tasks: int
    completed_tasks: int
    failed_tasks: int
    cancelled_tasks: int

    @property
    def progress(self) -> float:
        """Completed tasks of all, from 0 to 1; a job without tasks has nothing left to do."""
        return self.completed_tasks / self.total_tasks if self.total_tasks else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task of a job."""

    id: int
    job_id: int | None
    entrypoint: str
    kwargs: Mapping[str, Any]
    status: TaskState
    result: Any
    result_table_id: str | None
    error_message: str | None
    retry_count: int
    max_retries: int
    worker_id: str | None
    created_at: datetime
    claimed_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None


def get_current_job_id() -> int:
    """The job of the task that runs here. NoCurrentTask outside a task, or in one that belongs to no job."""
    explicit = _job.get()
    if explicit is not None:
        return explicit
    context = running.get()
    if context is None:
        raise NoCurrentTask("there is no current job: this is not inside a task; use add_task_to_job(job_id, …)")
    if context.job_id is None:
        raise NoCurrentTask(f"there is no current job: task {context.task_id} ({context.name}) belongs to none")
    return context.job_id


async def create_job(
    name: str, tasks: Sequence[Mapping[str, Any]] = (), *, description: str | None = None, timeout: float | None = None
) -> Job:
    """A job and its first tasks, in one transaction.

    Each task is {"entrypoint": "package.module.function", "kwargs": {…}}, with max_retries, priority, queue, critical.
    """
    app = current_app()
    prepared = [_prepared(app, **_checked_spec(spec)) for spec in tasks]
    limit = app.settings.job_timeout if timeout is None else timeout
    return _job_of(await app.jobs.acreate(name, prepared, description=description, timeout=limit))


async def get_job(job_id: int) -> Job:
    """Its status and progress. NotFound when there is none."""
    return _job_of(await current_app().jobs.aget(job_id))


async def list_jobs(status: JobState | str | None = None, *, limit: int = 100, before: int | None = None) -> list[Job]:
    """Jobs, newest first."""
    states = () if status is None else (JobState(status),)
    return [_job_of(job) for job in await current_app().jobs.alist(states=states, limit=limit, before=before)]


async def cancel_job(job_id: int) -> Job:
    """Cancel its pending tasks and tell the running ones to stop. NotFound, or WrongState when it is over."""
    return _job_of(await current_app().jobs.acancel(job_id))


async def retry_failed_tasks(job_id: int) -> list[int]:
    """Its failed tasks become pending with a fresh budget, and the job is open again; their ids."""
    return await current_app().jobs.aretry_failed(job_id)


async def add_task_to_job(job_id: int, entrypoint: str, kwargs: Mapping[str, Any] | None = None, **options: Any) -> int:
    """Add a task to a job that is not over; its id. NotFound, or WrongState when it is over."""
    app = current_app()
    (added,) = await app.jobs.aadd(job_id, _prepared(app, entrypoint, kwargs or {}, **options))
    return added.id


async def add_task_to_current_job(entrypoint: str, kwargs: Mapping[str, Any] | None = None, **options: Any) -> int:
    """Inside a task: add another to the same job. NoCurrentTask elsewhere."""
    return await add_task_to_job(get_current_job_id(), entrypoint, kwargs, **options)


async def get_task(task_id: int) -> Task:
    """One task as it is now. NotFound when there is none."""
    return _task_of(await current_app().tasks.aget(task_id))


async def register_worker(hostname: str, pid: int, *, queues: Sequence[str] = ("default",)) -> WorkerRecord:
    """Make a worker known: `hostname:pid:timestamp` is its id. It must send heartbeats within its lease."""
    app = current_app()

    async def register(store: Any) -> WorkerRecord:
        now = await store.now()
        worker = WorkerRecord(
            id=f"{hostname}:{pid}:{int(now.timestamp() * 1_000_000)}",
            kind="worker",
            hostname=hostname,
            pid=pid,
            state="active",
            beat=0,
            lease=app.settings.lease,
            queues=tuple(queues),
            version=__version__,
            started_at=now.astimezone(UTC),
            last_heartbeat=now.astimezone(UTC),
            stopped_at=None,
            tasks_completed=0,
            tasks_failed=0,
        )
        await store.register(worker)
        return worker

    return await app.engine.run(register)


async def worker_heartbeat(worker_id: str) -> None:
    """Renew the lease. NotFound when nobody knows the worker, or it was stopped: register again."""
    alive = await current_app().engine.run(lambda store: store.heartbeat([worker_id]))
    if worker_id not in alive:
        raise NotFound(
            f"worker {worker_id!r} is unknown or was stopped, and its tasks may run elsewhere: "
            "stop what it does and register again"
        )


async def deregister_worker(worker_id: str) -> int:
    """Mark it stopped; what it still held goes back. The row stays. How many tasks it gave back."""
    app = current_app()
    await app.workers.aget(worker_id)
    return await app.engine.run(lambda store: store.deregister(worker_id))


async def list_workers(status: str | None = None) -> list[WorkerRecord]:
    return list(await current_app().workers.alist(states=() if status is None else (status,)))


def _checked_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(spec) - {"entrypoint", "kwargs", "max_retries", "priority", "queue", "critical"})
    if unknown or "entrypoint" not in spec:
        what = f"has no use for {unknown[0]!r}" if unknown else "needs an 'entrypoint'"
        raise ArgumentError(f"a task of create_job {what}: {dict(spec)!r}")
    return {"kwargs": {}, **spec}


def _prepared(
    app: App, entrypoint: str, kwargs: Mapping[str, Any], *, max_retries: int | None = None, **options: Any
) -> NewTask:
    """An entrypoint is not imported here: the program that creates a job need not have the code of its tasks."""
    if "\0" in entrypoint:
        raise ArgumentError(f"entrypoint {entrypoint!r} holds NUL, which no store keeps")
    checked = Options().changed(entrypoint, options)
    retry = effective_retry(app.engine, checked)
    codec = app.codecs.default
    try:
        text = payload.dumps(dict(kwargs))
    except PayloadError as error:
        raise ArgumentError(f"entrypoint {entrypoint}: kwargs {error}") from None
    return NewTask(
        name=entrypoint,
        arguments=codec.encode(text),
        codec=codec.name,
        queue=checked.queue,
        pool="child",  # runs both kinds of functions, and is known without importing this one
        priority=checked.priority,
        delay=checked.delay,
        run_at=checked.run_at,
        max_attempts=retry.max_attempts if max_retries is None else max_retries + 1,
        max_age=effective_max_age(app.engine, checked, retry),
        options=stored_options(
            app.engine, checked, retry=None if retry == app.settings.retry else retry, codec=codec, entrypoint=True
        ),
        critical=checked.critical,
        dead_letter=retry.dead_letter,
    )


def _job_of(record: JobRecord) -> Job:
    return Job(
        id=record.id,
        name=record.name,
        description=record.description,
        status=record.state,
        created_at=record.created_at,
        started_at=record.started_at,
        completed_at=record.completed_at,
        total_tasks=record.total,
        completed_tasks=record.completed,
        failed_tasks=record.failed,
        cancelled_tasks=record.cancelled,
    )


def _task_of(record: TaskRecord) -> Task:
    codec = current_app().codecs.get(record.codec)
    result: Any = None if record.result is None else payload.loads(codec.decode(record.result))
    table_id = cast("dict[str, Any]", result).get("table_id") if isinstance(result, dict) else None
    return Task(
        id=record.id,
        job_id=record.job,
        entrypoint=record.name,
        kwargs=payload.loads(codec.decode(record.arguments)),
        status=record.state,
        result=result,
        result_table_id=None if table_id is None else str(table_id),
        error_message=record.error_message,
        # Charged executions beyond the first; a task that waits for its first has none.
        retry_count=max(0, record.attempt - 1),
        max_retries=record.max_attempts - 1,
        worker_id=record.worker,
        created_at=record.created_at,
        claimed_at=record.claimed_at,
        started_at=record.started_at,
        completed_at=record.finished_at,
    )
