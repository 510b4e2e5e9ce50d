"""`app.tasks`, `app.queues`, `app.workers`: look at the ledger and act on what is there."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Unpack

from headrace.client.bridge import sync_form
from headrace.client.bulk import Filters, cancel_where, delete_where, drop_results, retry_where
from headrace.client.engine import Engine
from headrace.client.handles import Handle
from headrace.client.options import check_queue
from headrace.client.orphans import requeue_orphaned
from headrace.core.durations import Duration
from headrace.core.errors import ArgumentError, NotAllowed, NotFound
from headrace.core.lanes import retry_ratio
from headrace.core.limits import Limit, Rate
from headrace.core.payload import loads
from headrace.core.states import TaskState
from headrace.core.task import AttemptRecord, QueueRecord, TaskFilter, TaskRecord, WorkerRecord, read_log_ref
from headrace.store.base import CancelAnswer, LogLine
from headrace.store.removing import DeleteAnswer


class Tasks:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def handle(self, id: int) -> Handle[Any]:
        """A handle to a task whose id was kept elsewhere."""
        return Handle(self._engine, int(id), created=False)

    async def aget(self, id: int) -> TaskRecord:
        """The task as it is now, live or done. NotFound when there is none."""
        record = (await self._engine.follow(lambda ledger: ledger.get([id]))).get(id)
        if record is None:
            raise NotFound(f"no task {id}: it never existed, or it ended longer ago than history is kept")
        return record

    async def alist(
        self,
        *,
        states: Iterable[TaskState | str] = (),
        queues: Iterable[str] = (),
        names: Iterable[str] = (),
        job: int | None = None,
        worker: str | None = None,
        dead_letter: bool | None = None,
        owner: str | None = None,
        limit: int = 100,
        before: tuple[datetime, int] | None = None,
    ) -> list[TaskRecord]:
        """Tasks, newest first. For the next page give `before` the (instant, id) of the last one seen."""
        criteria = TaskFilter(
            states=tuple(TaskState(state) for state in states),
            queues=tuple(queues),
            names=tuple(names),
            job=job,
            worker=worker,
            dead_letter=dead_letter,
            owner=owner,
            limit=limit,
            before=before,
        )
        return await self._engine.run(lambda store: store.list(criteria))

    async def acancel(self, *ids: int, reason: str = "user") -> dict[int, CancelAnswer]:
        """Cancel tasks, or tell their workers to stop them; an answer for each."""
        answers = await self._engine.follow(lambda ledger: ledger.cancel(ids, reason=reason))
        return {id: answers.get(id, CancelAnswer.UNKNOWN) for id in ids}

    async def aretry(self, *ids: int) -> list[int]:
        """Run tasks that ended once more, with a fresh budget; the ids that went back."""
        again = await self._engine.follow(lambda ledger: ledger.retry(ids))
        await self._engine.readied()
        return again

    async def adelete(self, *ids: int) -> dict[int, DeleteAnswer]:
        """Remove tasks that no worker has, whatever became of them, with all that belongs to them; an answer for each.

        What is held has to be cancelled first. What its job, or another task, still needs stays.
        """
        records = await self._engine.follow(lambda ledger: ledger.get(ids))
        answers = await self._engine.follow(lambda ledger: ledger.delete(ids))
        await drop_results(self._engine, records.values(), answers)
        return {id: answers.get(id, DeleteAnswer.UNKNOWN) for id in ids}

    async def aretry_where(self, *, limit: int | None = None, **filters: Unpack[Filters]) -> dict[str, int]:
        """Run everything once more that matches and has ended, by itself what has failed; how many were `retried` and
        how many `refused`. What ends from now on is not taken. A page of tasks is one transaction."""
        return await retry_where(self._engine, filters, limit)

    async def acancel_where(
        self, *, reason: str = "user", limit: int | None = None, **filters: Unpack[Filters]
    ) -> dict[str, int]:
        """Cancel everything that matches and has not ended; how many had which answer. What comes from now on is not
        taken. A page of tasks is one transaction."""
        return await cancel_where(self._engine, filters, limit, reason)

    async def adelete_where(self, *, limit: int | None = None, **filters: Unpack[Filters]) -> dict[str, int]:
        """Delete everything that matches; how many had which answer. What comes from now on is not taken. A page of
        tasks is one transaction."""
        return await delete_where(self._engine, filters, limit)

    async def arequeue_orphaned(self, *, watch: Duration | None = None) -> dict[str, int]:
        """Rescue the tasks of workers that are gone, as workers do for each other, without waiting for one to do so:
        how many tasks were `requeued`, `failed` and `cancelled`, of how many `workers`.

        A worker whose lease is over is watched for half a lease, or for `watch`, before it is taken over.
        """
        return await requeue_orphaned(self._engine, watch)

    async def aapprove(self, id: int, *, by: str, role: str | None = None, note: str | None = None) -> TaskRecord:
        """Let a task go on that waits for it (`approve()` in a workflow); `by` is who decided.

        NotAllowed when it asks for another role than yours; NotFound; WrongState when it does not wait (any more).
        """
        return await self._decide(id, True, by, role, note)

    async def areject(self, id: int, *, by: str, role: str | None = None, note: str | None = None) -> TaskRecord:
        """Refuse a task that waits for approval: it has ended, and what waits for it is cancelled. As `approve`."""
        return await self._decide(id, False, by, role, note)

    async def aattempts(self, id: int) -> list[AttemptRecord]:
        """Every execution of the task, and every report that was refused."""
        return await self._engine.follow(lambda ledger: ledger.attempts(id))

    async def alogs(self, id: int | str, *, after: int = -1, limit: int = 1000) -> list[LogLine]:
        """What the task logged in all its executions; with the `log_ref` of an attempt, what that one did."""
        task, claim_no = read_log_ref(id) if isinstance(id, str) else (id, None)
        return await self._engine.follow(lambda ledger: ledger.logs(task, claim_no=claim_no, after=after, limit=limit))

    async def acounts(self) -> dict[str, int]:
        """How many tasks are in each live state, and how many had each outcome."""
        return await self._engine.run(lambda store: store.counts())

    async def _decide(self, id: int, approved: bool, by: str, role: str | None, note: str | None) -> TaskRecord:
        if not by.strip():
            raise ArgumentError(f"task {id}: say who decides, by='…'")
        record = await self.aget(id)
        # What it asks for was written with it and never changes: this cannot race with the decision.
        wanted = loads(record.options).get("approval", {}).get("role")
        if wanted is not None and role != wanted:
            yours = "no role was given" if role is None else f"this is {role!r}"
            raise NotAllowed(f"task {id} is decided by who has the role {wanted!r}, and {yours}; nothing changed")
        decided = await self._engine.follow(
            lambda ledger: ledger.with_task(id, lambda store: store.decide(id, approved=approved, by=by, note=note))
        )
        await self._engine.readied()
        return decided

    get = sync_form(aget)
    list = sync_form(alist)
    cancel = sync_form(acancel)
    retry = sync_form(aretry)
    delete = sync_form(adelete)
    retry_where = sync_form(aretry_where)
    cancel_where = sync_form(acancel_where)
    delete_where = sync_form(adelete_where)
    requeue_orphaned = sync_form(arequeue_orphaned)
    approve = sync_form(aapprove)
    reject = sync_form(areject)
    attempts = sync_form(aattempts)
    logs = sync_form(alogs)
    counts = sync_form(acounts)


class Queues:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def alist(self) -> Sequence[QueueRecord]:
        """Every queue with its depths."""
        return await self._engine.run(lambda store: store.queues())

    async def apause(self, queue: str) -> None:
        """No worker claims from it until it is resumed; what runs goes on."""
        await self._engine.run(lambda store: store.pause(queue))

    async def aresume(self, queue: str) -> None:
        await self._engine.run(lambda store: store.resume(queue))
        await self._engine.readied()

    async def alimit(self, queue: str, n: int | None) -> None:
        """At most `n` of its tasks run at once, over all workers, those that wait already included; None lifts it.

        What its code asks for holds beside that: the smaller of both. What runs now goes on, and counts.
        """
        check_queue(queue)
        limit = None if n is None else Limit(n).n
        await self._engine.run(lambda store: store.limit_queue(queue, limit))
        await self._engine.readied()

    async def arate(
        self, queue: str, n: int | None, per: Duration = timedelta(seconds=1), *, burst: int | None = None
    ) -> None:
        """At most `n` of its tasks start in each `per`, over all workers, those that wait already included; None lifts
        it. After a quiet time `burst` tasks (by default `n`) start at once."""
        check_queue(queue)
        rate = None if n is None else Rate(n, per, burst=burst)
        await self._engine.run(lambda store: store.rate_queue(queue, rate))
        await self._engine.readied()

    async def aratio(self, queue: str) -> float:
        """The share of its starts that retries get while both lanes have work, at the present depth of retries."""
        settings = self._engine.settings
        warning, critical = settings.retry_queue_warning, settings.retry_queue_critical
        depth = await self._engine.run(lambda store: store.retry_depth(queue, cap=critical + 1))
        return retry_ratio(depth, default=settings.retry_ratio, warning=warning, critical=critical)

    list = sync_form(alist)
    pause = sync_form(apause)
    resume = sync_form(aresume)
    limit = sync_form(alimit)
    rate = sync_form(arate)
    ratio = sync_form(aratio)


class Workers:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def alist(self, *, states: Iterable[str] = ()) -> Sequence[WorkerRecord]:
        """Workers, those that stopped included unless `states` leaves them out."""
        wanted = tuple(states)
        return await self._engine.run(lambda store: store.workers(states=wanted))

    async def aget(self, id: str) -> WorkerRecord:
        for worker in await self.alist():
            if worker.id == id:
                return worker
        raise NotFound(f"no worker {id!r}")

    list = sync_form(alist)
    get = sync_form(aget)
