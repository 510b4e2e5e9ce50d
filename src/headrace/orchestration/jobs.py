"""Jobs, and tasks that are named by dotted path."""

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.app import App
from headrace.client.options import Options
from headrace.client.preparing import effective_max_age, effective_retry, stored_options
from headrace.core import payload
from headrace.core.errors import ArgumentError, PayloadError
from headrace.core.states import JobState
from headrace.core.task import NewTask
from headrace.orchestration.context import current_app, get_current_job_id, remember
from headrace.orchestration.records import Job, Task, job_of, task_of


async def create_job(
    name: str, tasks: Sequence[Mapping[str, Any]] = (), *, description: str | None = None, timeout: float | None = None
) -> Job:
    """A job and its first tasks, in one transaction.

    Each task is {"entrypoint": "package.module.function", "kwargs": {…}}, with max_retries, priority, queue, critical.
    """
    app = current_app()
    made = [prepared(app, **_checked_spec(spec)) for spec in tasks]
    limit = app.settings.job_timeout if timeout is None else timeout
    return job_of(await app.jobs.acreate(name, made, description=description, timeout=limit))


async def get_job(job_id: int) -> Job:
    """Its status and progress. NotFound when there is none."""
    return job_of(await current_app().jobs.aget(job_id))


async def list_jobs(status: JobState | str | None = None, *, limit: int = 100, before: int | None = None) -> list[Job]:
    """Jobs, newest first."""
    states = () if status is None else (JobState(status),)
    return [job_of(job) for job in await current_app().jobs.alist(states=states, limit=limit, before=before)]


async def cancel_job(job_id: int) -> Job:
    """Cancel its pending tasks and tell the running ones to stop. NotFound, or WrongState when it is over."""
    return job_of(await current_app().jobs.acancel(job_id))


async def retry_failed_tasks(job_id: int) -> list[int]:
    """Its failed tasks become pending with a fresh budget, and the job is open again; their ids."""
    return list(await current_app().jobs.aretry_failed(job_id))


async def add_task_to_job(job_id: int, entrypoint: str, kwargs: Mapping[str, Any] | None = None, **options: Any) -> int:
    """Add a task to a job that is not over; its id. NotFound, or WrongState when it is over."""
    app = current_app()
    (added,) = await app.jobs.aadd(job_id, prepared(app, entrypoint, kwargs or {}, **options))
    remember(job_id, added.id)
    return added.id


async def add_task_to_current_job(
    entrypoint: str, kwargs: Mapping[str, Any] | None = None, *, job_id: int | None = None, **options: Any
) -> int:
    """Inside a task: add another to the same job. NoCurrentTask elsewhere. `job_id` may say which job that is; another
    one than that is refused."""
    current = get_current_job_id()
    if job_id is not None and job_id != current:
        raise ArgumentError(f"job {job_id} is not the current job, which is {current}; use add_task_to_job")
    return await add_task_to_job(current, entrypoint, kwargs, **options)


async def get_task(task_id: int) -> Task:
    """One task as it is now. NotFound when there is none."""
    return task_of(await current_app().tasks.aget(task_id))


def _checked_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(spec) - {"entrypoint", "kwargs", "max_retries", "priority", "queue", "critical"})
    if unknown or "entrypoint" not in spec:
        what = f"has no use for {unknown[0]!r}" if unknown else "needs an 'entrypoint'"
        raise ArgumentError(f"a task of create_job {what}: {dict(spec)!r}")
    return {"kwargs": {}, **spec}


def prepared(
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
