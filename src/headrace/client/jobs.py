"""`app.jobs`: sets of tasks with one fate."""

import asyncio
import dataclasses
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from headrace.client.bridge import on_store, sync_form
from headrace.client.engine import Engine
from headrace.client.flows import Flows, flows_of, with_ids
from headrace.client.handles import Handle
from headrace.client.job_graph import JobGraph, edge_of, node_of
from headrace.client.job_handle import JobHandle
from headrace.client.options import UNSET
from headrace.client.transactions import transaction_of
from headrace.core import payload
from headrace.core.durations import Duration, seconds
from headrace.core.errors import EnqueueError, GraphError, NotFound
from headrace.core.states import JobState
from headrace.core.task import Edge, Enqueued, JobRecord, NewJob, NewTask, TaskFilter
from headrace.store.base import Store
from headrace.workflows.base import Flow
from headrace.workflows.compose import Part
from headrace.workflows.plan import Plan, Planner, planned
from headrace.workflows.signatures import Signature
from headrace.workflows.value import Existing, Output, Source, Upstream

type Added = Handle[Any] | JobHandle[Any]
"""What was added: the handle of a task, or of what a composition gives."""
type Waited = int | Handle[Any] | JobHandle[Any] | Iterable[Waited]
"""Tasks that are in the ledger already: ids or handles."""
type Hook = Signature[Any] | NewTask

_SHORTEST, _LONGEST = 0.01, 0.25
_PAGE = 500


class Jobs:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def handle(self, id: int) -> JobHandle[Any]:
        """A handle to a job whose id was kept elsewhere."""
        return JobHandle(self, int(id))

    async def acreate(
        self,
        name: str,
        tasks: Part | Iterable[Part] = (),
        *,
        description: str | None = None,
        timeout: Duration | None = UNSET,
        on_success: Hook | None = None,
        on_failure: Hook | None = None,
        metadata: Mapping[str, Any] | None = None,
        owner: str | None = None,
    ) -> JobRecord:
        """Make a job and its first tasks in one transaction: signatures, compositions, graphs, `welcome.prepare(7)`.

        One that is given alone is the job; several are side by side. `owner` is the user in whose name all of it runs.
        """
        planner = Planner(self.origin)
        for part in _listed(tasks):
            planner.expand(part)
        id, _ = await self._create(
            NewJob(
                name=name,
                description=description,
                tasks=planner.tasks,
                timeout=self._timeout(timeout),
                on_success=self.origin.hook(on_success),
                on_failure=self.origin.hook(on_failure),
                metadata=payload.dumps(dict(metadata or {})),
                owner=owner,
            )
        )
        return await self.aget(id)

    async def aenqueue[R](
        self,
        flow: Flow[R],
        *,
        name: str | None = None,
        description: str | None = None,
        timeout: Duration | None = UNSET,
        on_success: Hook | None = None,
        on_failure: Hook | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> JobHandle[R]:
        """As `flow.enqueue(…)`, also for one that names no task of its own, and so no app."""
        plan = self._planned(flow)
        job = NewJob(
            name=name or plan.title,
            description=description,
            tasks=plan.tasks,
            timeout=self._timeout(timeout),
            on_success=self.origin.hook(on_success),
            on_failure=self.origin.hook(on_failure),
            metadata=payload.dumps(dict(metadata or {})),
        )
        id, answers = await self._create(job)
        return JobHandle(self, id, name=job.name, value=with_ids(plan.value, answers))

    async def aget(self, id: int) -> JobRecord:
        """The job with its counters. NotFound when there is none."""
        record = await self.engine.follow(lambda ledger: ledger.get_job(id))
        if record is None:
            raise NotFound(f"no job {id}")
        return record

    async def alist(
        self,
        *,
        states: Iterable[JobState | str] = (),
        owner: str | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> Sequence[JobRecord]:
        """Jobs, newest first; `before` is the id of the last one seen. `owner`: only those of one user."""
        wanted = tuple(JobState(state) for state in states)
        return await self.engine.run(
            lambda store: store.list_jobs(states=wanted, owner=owner, limit=limit, before=before)
        )

    async def acancel(self, id: int) -> JobRecord:
        """Cancel its pending tasks and tell the running ones to stop. NotFound, or WrongState when it is over."""
        return await self.engine.follow(lambda ledger: ledger.with_job(id, lambda store: store.cancel_job(id)))

    async def aretry_failed(self, id: int) -> list[int]:
        """Open the job again with what failed, and with what was cancelled because of that; their ids."""
        again = await self.engine.follow(lambda ledger: ledger.with_job(id, lambda store: store.retry_failed(id)))
        await self.engine.readied()
        return again

    async def aclear(self, task_id: int) -> list[int]:
        """Run a task that ended once more, and everything below it, whatever became of that; their ids. Its steps and
        theirs start over. NotFound; WrongState while one of them runs."""
        again = await self.engine.follow(lambda ledger: ledger.with_task(task_id, lambda store: store.clear(task_id)))
        await self.engine.readied()
        return again

    async def aadd(self, id: int, *parts: Part, after: Waited | None = None) -> Sequence[Added]:
        """Add to a job that is not over, in one transaction, also from inside your own: tasks, signatures,
        compositions, graphs. All of them wait for the tasks of `after`, which are of this job. A handle for each.
        """
        planner = Planner(self.origin, job=id)
        waits = tuple(dict.fromkeys(_waited(() if after is None else after)))
        outputs: list[Output] = []
        before = Upstream(output=Output(value=(), waits=waits), passes=False) if waits else None
        if before is not None and len(parts) > 1:
            before = before.for_many()
        for part in parts:
            first = len(planner.tasks)
            output = planner.expand(part, before)
            if len(planner.tasks) == first:
                raise GraphError(f"{part!r} has no tasks: there is nothing to add to job {id}")
            outputs.append(output)
        answers = await self.engine.enqueue(planner.tasks)
        return [self._added(id, part, output, answers) for part, output in zip(parts, outputs, strict=True)]

    async def agraph(self, id: int, *, limit: int = 1000) -> JobGraph:
        """Its tasks and what waits for what, of up to `limit` tasks, the newest. NotFound."""
        job = await self.aget(id)
        records = await self.engine.run(lambda store: store.list(TaskFilter(job=id, limit=limit + 1)))
        complete = len(records) <= limit
        nodes = {record.id: node_of(record) for record in records[:limit]}
        ids = sorted(nodes)
        edges: list[Edge] = []
        for first in range(0, len(ids), _PAGE):
            page = ids[first : first + _PAGE]
            edges += await self.engine.run(lambda store, page=page: store.edges(page))
        drawn = tuple(edge_of(edge) for edge in edges if edge.upstream in nodes)
        return JobGraph(job=job, nodes=tuple(nodes[id] for id in ids), edges=drawn, complete=complete)

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

    @property
    def origin(self) -> Flows:
        """What compositions of this app's tasks have in common (workflows.base.Origin)."""
        return flows_of(self.engine)

    def _planned(self, flow: Flow[Any]) -> Plan:
        origin = flow.origin()
        if origin is None:
            return planned(flow, origin=self.origin)
        if origin is not self.origin:
            raise GraphError(f"{flow.title} belongs to another app; nothing was written")
        return flow.prepare()

    def _timeout(self, given: Duration | None) -> float | None:
        if given is UNSET:
            return self.engine.settings.job_timeout
        return None if given is None else seconds(given, name="timeout")

    async def _create(self, job: NewJob) -> tuple[int, Sequence[Enqueued]]:
        if transaction_of(self.engine) is not None:
            # Silently beside it would be worse: it would be there without what you wrote before it.
            raise EnqueueError(
                f"job {job.name!r} was not written: a job has a transaction of its own and cannot be part of yours; "
                "enqueue a task there that makes the job"
            )

        async def create(store: Store) -> tuple[int, Sequence[Enqueued]]:
            id, answers = await store.create_job(job)
            self.engine.counting.job_created(tasks, answers)
            return id, answers

        with self.engine.around(cast("Sequence[NewTask]", job.tasks)) as tasks:
            job = dataclasses.replace(job, tasks=tasks)
            made = await self.engine.run(create)
        await self.engine.readied()
        return made

    def _added(self, id: int, part: Part, output: Output, answers: Sequence[Enqueued]) -> Added:
        value = with_ids(output.value, answers)
        if isinstance(value, int) and isinstance(part, NewTask | Signature):
            created = answers[cast("int", output.value)].created
            return Handle(self.engine, value, created=created, name=_task_name(part))
        return JobHandle(self, id, value=value)

    create = sync_form(acreate)
    enqueue = sync_form(aenqueue)
    get = sync_form(aget)
    list = sync_form(alist)
    cancel = sync_form(acancel)
    retry_failed = sync_form(aretry_failed)
    clear = sync_form(aclear)
    add = sync_form(aadd)
    graph = sync_form(agraph)
    wait = sync_form(await_)


def _task_name(part: NewTask | Signature[Any]) -> str:
    return part.name if isinstance(part, NewTask) else part.task.name


def _listed(tasks: Part | Iterable[Part]) -> Iterable[Part]:
    return (tasks,) if isinstance(tasks, Flow | NewTask) else tasks


def _waited(after: Waited) -> Iterable[Source]:
    if isinstance(after, int):
        yield Existing(after)
    elif isinstance(after, Handle):
        yield Existing(after.id)
    elif isinstance(after, JobHandle):
        yield from (Existing(id) for id in after.task_ids)
    else:
        for one in after:
            yield from _waited(one)
