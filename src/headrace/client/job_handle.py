"""What `enqueue` of a composition gives back: the job's id, and ways to ask after it."""

import time
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast, override

from headrace.client.bridge import sync_form
from headrace.client.engine import Engine
from headrace.client.feeds import Feed, job_events, job_lines
from headrace.client.flows import Ids, existing, ids_in
from headrace.client.handles import failure_of, value_of
from headrace.client.job_graph import JobGraph
from headrace.core.durations import Duration, seconds
from headrace.core.errors import ResultError, TaskCancelled, TaskFailed
from headrace.core.live import JobEvent, JobLine
from headrace.core.states import JobState, TaskState
from headrace.core.task import JobRecord, TaskFilter, TaskRecord
from headrace.workflows.base import Reference
from headrace.workflows.value import Output

if TYPE_CHECKING:
    from headrace.client.jobs import Jobs
    from headrace.workflows.plan import Planner

_PAGE = 500


class JobHandle[R](Reference):
    """A job in the ledger, and what its composition gives: `result()` has its shape.

    The async forms start with `a`. The one of `wait` is `await_`, because `await` is a keyword; `await handle` is
    `await handle.aresult()`.
    """

    __slots__ = ("_jobs", "_value", "id", "name")

    def __init__(self, jobs: "Jobs", id: int, *, name: str | None = None, value: Ids | None = None) -> None:
        self._jobs = jobs
        self._value = value  # None: made of an id alone, which does not say what the result is
        self.id = id
        self.name = name

    @property
    def task_ids(self) -> Sequence[int]:
        """The tasks whose results make the result, in order."""
        return [] if self._value is None else list(ids_in(self._value))

    async def arecord(self) -> JobRecord:
        """The job with its counters: total, completed, failed, cancelled, running. NotFound when there is none."""
        return await self._jobs.aget(self.id)

    async def astate(self) -> JobState:
        return (await self.arecord()).state

    async def aresult(self, timeout: Duration | None = None) -> R:
        """What the composition gives, as soon as that is known: other tasks of the job may still run.

        Raises TaskFailed of the task that failed first, TaskCancelled or ResultExpired, and TimeoutError when it is
        not known within `timeout`.
        """
        if self._value is None:
            raise ResultError(
                f"this handle of job {self.id} was made of its id, which does not say whose result is the job's; "
                "handle.tasks() lists its tasks"
            )
        limit = None if timeout is None else seconds(timeout, name="timeout")
        deadline = None if limit is None else time.monotonic() + limit
        values = list[Any]()
        ids = self.task_ids
        for first in range(0, len(ids), _PAGE):
            values += await self._page(ids[first : first + _PAGE], deadline, limit)
        return cast("R", _shaped(self._value, iter(values)))

    async def await_(self, timeout: Duration | None = None) -> JobState:
        """The state in which the job ended; TimeoutError when it has not ended within `timeout`."""
        return (await self._jobs.await_(self.id, timeout)).state

    async def acancel(self) -> JobRecord:
        """Cancel what waits and tell what runs to stop. WrongState when the job is over."""
        return await self._jobs.acancel(self.id)

    async def aretry_failed(self) -> list[int]:
        """Open the job again: what failed, and what was cancelled because of it, with a fresh budget; their ids."""
        return await self._jobs.aretry_failed(self.id)

    async def agraph(self, *, limit: int = 1000) -> JobGraph:
        """Its tasks and what waits for what."""
        return await self._jobs.agraph(self.id, limit=limit)

    async def atasks(self, *, limit: int = 1000) -> Sequence[TaskRecord]:
        """Its tasks, newest first."""
        return await self._engine.run(lambda store: store.list(TaskFilter(job=self.id, limit=limit)))

    def events(self, follow: bool = False) -> Feed[JobEvent]:
        """What it was after each change of its state or its counts, in order; with `follow` what it will be as well,
        until it is over. `for` blocks where it has to wait, `async for` does not.
        """
        return job_events(self._engine, self.id, follow=follow)

    def logs(self, follow: bool = False) -> Feed[JobLine]:
        """The lines that its tasks logged, in the order in which they were written; with `follow` those to come as
        well, until it is over.
        """
        return job_lines(self._engine, self.id, follow=follow)

    record = sync_form(arecord)
    state = sync_form(astate)
    result = sync_form(aresult)
    wait = sync_form(await_)
    cancel = sync_form(acancel)
    retry_failed = sync_form(aretry_failed)
    graph = sync_form(agraph)
    tasks = sync_form(atasks)

    @override
    def output(self, planner: "Planner") -> Output:
        if self._value is None:
            raise ResultError(f"job {self.id}: this handle was made of an id and has no result to pass on")
        return Output(value=existing(self._value), name=f"job {self.id}")

    def __await__(self) -> Generator[Any, Any, R]:
        return self.aresult().__await__()

    def __repr__(self) -> str:
        return f"<JobHandle {self.id}{f' of {self.name}' if self.name else ''}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobHandle) and (other.id, other._engine, other._value) == (
            self.id,
            self._engine,
            self._value,
        )

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def _engine(self) -> Engine:
        return self._jobs.engine

    async def _page(self, ids: Sequence[int], deadline: float | None, limit: float | None) -> list[Any]:
        values: list[Any] = []
        records: dict[int, TaskRecord] = {}
        for id in ids:
            if id not in records:
                # While one is waited for, others end: those behind it are looked at again, all at once.
                left = ids[len(values) :]
                found = await self._engine.follow(lambda ledger, left=left: ledger.get(left))
                records |= {record.id: record for record in found.values() if record.state.terminal}
            record = records.get(id) or await self._ended(id, deadline, limit)
            if record.state is not TaskState.COMPLETED:
                raise await self._failure(record)
            values.append(await value_of(self._engine, record))
        return values

    async def _ended(self, id: int, deadline: float | None, limit: float | None) -> TaskRecord:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        try:
            return await self._engine.ended(id, timeout=left)
        except TimeoutError:
            raise TimeoutError(f"job {self.id} has no result within {limit:g} s; it goes on") from None

    async def _failure(self, record: TaskRecord) -> ResultError:
        """A task that was cancelled says less than the failure that it was cancelled for."""
        if record.state is TaskState.CANCELLED:
            states = (TaskState.FAILED, TaskState.REJECTED)
            failed = await self._engine.run(
                lambda store: store.list(TaskFilter(job=self.id, states=states, limit=_PAGE))
            )
            record = min(failed, key=lambda one: (one.finished_at or one.created_at, one.id), default=record)
        error = await failure_of(self._engine, record)
        job = await self.arecord()
        if record.state is TaskState.CANCELLED and job.state is JobState.FAILED:
            return TaskFailed(f"job {self.id} failed ({job.reason})", task_id=record.id, reason=job.reason)
        if isinstance(error, TaskCancelled | TaskFailed):
            error.add_note(
                f"It is a task of job {self.id}{f' ({job.name})' if job.name else ''}, which is {job.state}."
            )
        return error


def _shaped(value: Ids, values: Iterator[Any]) -> Any:
    if isinstance(value, int):
        return next(values)
    return [_shaped(part, values) for part in value]
