"""`app.jobs`: sets of tasks with one fate."""

import asyncio
import dataclasses
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from headrace.client.bridge import on_store, sync_form
from headrace.client.engine import Engine
from headrace.client.options import UNSET
from headrace.core import payload
from headrace.core.durations import Duration, seconds
from headrace.core.errors import NotFound
from headrace.core.states import JobState
from headrace.core.task import Enqueued, JobRecord, NewJob, NewTask
from headrace.store.base import Store

_SHORTEST, _LONGEST = 0.01, 0.25


class Jobs:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def acreate(
        self,
        name: str,
        tasks: Iterable[NewTask] = (),
        *,
        description: str | None = None,
        timeout: Duration | None = UNSET,
        on_success: NewTask | None = None,
        on_failure: NewTask | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> JobRecord:
        """Make a job and its first tasks in one transaction: `tasks=[welcome.prepare(7), …]`."""
        default = self._engine.settings.job_timeout
        job = NewJob(
            name=name,
            description=description,
            tasks=tuple(tasks),
            timeout=default if timeout is UNSET else None if timeout is None else seconds(timeout, name="timeout"),
            on_success=on_success,
            on_failure=on_failure,
            metadata=payload.dumps(dict(metadata or {})),
        )

        async def create(store: Store) -> int:
            id, answers = await store.create_job(job)
            self._engine.counting.job_created(job.tasks, answers)
            return id

        with self._engine.around(job.tasks) as changed:
            job = dataclasses.replace(job, tasks=tuple(changed))
            id = await self._engine.run(create)
        await self._engine.readied()
        return await self.aget(id)

    async def aget(self, id: int) -> JobRecord:
        """The job with its counters. NotFound when there is none."""
        record = await self._engine.follow(lambda ledger: ledger.get_job(id))
        if record is None:
            raise NotFound(f"no job {id}")
        return record

    async def alist(
        self, *, states: Iterable[JobState | str] = (), limit: int = 100, before: int | None = None
    ) -> Sequence[JobRecord]:
        """Jobs, newest first; `before` is the id of the last one seen."""
        wanted = tuple(JobState(state) for state in states)
        return await self._engine.run(lambda store: store.list_jobs(states=wanted, limit=limit, before=before))

    async def acancel(self, id: int) -> JobRecord:
        """Cancel its pending tasks and tell the running ones to stop. NotFound, or WrongState when it is over."""
        return await self._engine.follow(lambda ledger: ledger.with_job(id, lambda store: store.cancel_job(id)))

    async def aretry_failed(self, id: int) -> list[int]:
        """Open the job again with its failed tasks pending; their ids."""
        again = await self._engine.follow(lambda ledger: ledger.with_job(id, lambda store: store.retry_failed(id)))
        await self._engine.readied()
        return again

    async def aadd(self, id: int, *tasks: NewTask) -> list[Enqueued]:
        """Add tasks to a job that is not over, also from inside your own transaction."""
        return await self._engine.enqueue([dataclasses.replace(task, job=id) for task in tasks])

    async def await_(self, id: int, timeout: Duration | None = None) -> JobRecord:
        """The job once it is over; TimeoutError when it is not within `timeout`."""
        limit = None if timeout is None else seconds(timeout, name="timeout")
        deadline = None if limit is None else time.monotonic() + limit
        pause = _SHORTEST
        while not (record := await self.aget(id)).state.terminal:
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"job {id} is {record.state} after {limit:g} s; it goes on")
            await on_store(partial(asyncio.sleep, pause))
            pause = min(pause * 1.5, _LONGEST)
        return record

    create = sync_form(acreate)
    get = sync_form(aget)
    list = sync_form(alist)
    cancel = sync_form(acancel)
    retry_failed = sync_form(aretry_failed)
    add = sync_form(aadd)
    wait = sync_form(await_)
