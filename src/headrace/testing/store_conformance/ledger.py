"""The bench on which the cases work: a store, workers, and time."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from headrace.core.clock import FakeClock
from headrace.core.lanes import Lane
from headrace.core.outcome import Cancelled, Completed, Expired, Failed, Lost, Outcome, Released, Snoozed, Suspended
from headrace.core.retry import ErrorSignature, Retry
from headrace.core.settlement import Execution, Settlement, settle
from headrace.core.task import (
    AttemptRecord,
    ClaimedTask,
    ErrorInfo,
    JobRecord,
    NewTask,
    Pool,
    Ref,
    TaskRecord,
    Want,
    WorkerRecord,
)
from headrace.store.base import FinishReport, Store

ERROR = ErrorInfo(error_class="builtins.ValueError", message="no", traceback="Traceback: no")
RAN = Execution(ran_for=0.0)  # entered user code; a fake clock has not moved meanwhile

_CEILING = 30.0
_RNG = random.Random(7)


def task(name: str = "conformance.work", **options: Any) -> NewTask:
    return NewTask(name=name, **options)


def ref(claim: ClaimedTask) -> Ref:
    return Ref(claim.id, claim.claim_no)


def settled(
    claim: ClaimedTask, outcome: Outcome, *, policy: Retry | None = None, execution: Execution = RAN
) -> Settlement:
    """By the decision that workers use. The default policy retries at once."""
    policy = policy or Retry(max_attempts=1000, backoff="fixed", base=0, jitter=0)
    return settle(claim, outcome, policy, rng=_RNG, execution=execution)


def completed(claim: ClaimedTask, result: str | None = "null") -> Settlement:
    return settled(claim, Completed(result=result))


def failed(
    claim: ClaimedTask, error: ErrorInfo = ERROR, *, delay: float = 0.0, dead_letter: bool = False
) -> Settlement:
    """Retried after `delay` while attempts remain."""
    policy = Retry(max_attempts=1000, backoff="fixed", base=delay, jitter=0, dead_letter=dead_letter)
    return settled(claim, Failed(error=error, signature=ErrorSignature()), policy=policy)


def failed_for_good(claim: ClaimedTask, error: ErrorInfo = ERROR, *, dead_letter: bool = False) -> Settlement:
    policy = Retry(dead_letter=dead_letter)
    return settled(claim, Failed(error=error, signature=ErrorSignature(verdict="permanent")), policy=policy)


def snoozed(claim: ClaimedTask, delay: float) -> Settlement:
    return settled(claim, Snoozed(delay=delay))


def stopped(claim: ClaimedTask, reason: str = "user") -> Settlement:
    """The worker obeyed a cancellation."""
    return settled(claim, Cancelled(reason=reason))


def released(claim: ClaimedTask, delay: float = 0.0, *, suspect: bool = False) -> Settlement:
    return settled(claim, Released(delay=delay, suspect=suspect), execution=Execution())


def suspended(
    claim: ClaimedTask, *, delay: float | None = None, step: str | None = None, task: int | None = None
) -> Settlement:
    """A durable step gave the slot back."""
    return settled(claim, Suspended(delay=delay, step=step, task=task))


def lost(claim: ClaimedTask) -> Settlement:
    error = ErrorInfo(error_class="headrace.Lost", message="its process died")
    return settled(claim, Lost(error=error), execution=replace(RAN, recorded_by="rescuer"))


def expired(claim: ClaimedTask) -> Settlement:
    return settled(claim, Expired(), execution=Execution())


async def refused[E: Exception](act: Awaitable[object], error: type[E]) -> E:
    """The error that the act must raise."""
    try:
        await act
    except error as raised:
        return raised
    raise AssertionError(f"{error.__name__} was not raised")


class Ledger:
    def __init__(self, make_store: Callable[[], Store], clock: FakeClock | None) -> None:
        self._make_store = make_store
        self._clock = clock
        self._stores: list[Store] = []

    @property
    def store(self) -> Store:
        return self._stores[0]

    async def open(self) -> None:
        await self.another_store()

    async def another_store(self) -> Store:
        """One more store on the same database, as another process would have."""
        store = self._make_store()
        await store.open()
        self._stores.append(store)
        return store

    async def close(self) -> None:
        for store in reversed(self._stores):
            await store.close()

    # Time.

    async def let_pass(self, seconds: float) -> None:
        """Let at least `seconds` pass on the store's clock."""
        if self._clock is not None:
            self._clock.advance(seconds)
            return
        until = await self.store.now() + timedelta(seconds=seconds)
        # The database's clock and the event loop's are not the same: one sleep may end a little early.
        while (left := (until - await self.store.now()).total_seconds()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(left)

    # Acts, in short.

    async def enqueue(self, *tasks: NewTask) -> list[int]:
        answers = await self.store.enqueue(tasks)
        assert all(answer.created for answer in answers)
        return [answer.id for answer in answers]

    async def enqueue_one(self, name: str = "conformance.work", **options: Any) -> int:
        (task_id,) = await self.enqueue(task(name, **options))
        return task_id

    async def register(self, *workers: str, **fields: Any) -> None:
        for worker in workers:
            await self.store.register(await self.worker_record(worker, **fields))

    async def worker_record(self, worker: str, **fields: Any) -> WorkerRecord:
        now = await self.store.now()
        record = WorkerRecord(
            id=worker, kind="worker", hostname="host", pid=1, state="active", beat=0, lease=30.0, queues=("default",),
            version="0.1.0", started_at=now, last_heartbeat=now, stopped_at=None, tasks_completed=0, tasks_failed=0,
        )  # fmt: skip
        return replace(record, **fields)

    async def claim(
        self,
        worker: str = "a",
        n: int = 100,
        *,
        queue: str = "default",
        pool: Pool = "coroutine",
        lanes: Sequence[Lane] = (Lane.PRIMARY, Lane.RETRY),
    ) -> list[ClaimedTask]:
        """Up to `n` of each lane."""
        return await self.store.claim(worker, [Want(queue=queue, pool=pool, lane=lane, n=n) for lane in lanes])

    async def claim_one(self, worker: str = "a", **options: Any) -> ClaimedTask:
        claims = await self.claim(worker, 1, **options)
        assert len(claims) == 1, f"expected one task to claim, got {claims}"
        return claims[0]

    async def claim_due(self, worker: str = "a", **options: Any) -> ClaimedTask:
        """Claim one task that is due about now; its instant may still be microseconds ahead of the store's clock."""
        for _ in range(int(_CEILING / 0.01)):
            if claims := await self.claim(worker, 1, **options):
                return claims[0]
            await self.let_pass(0.01)
        raise AssertionError(f"nothing became claimable in {_CEILING:g} s")

    async def finish(self, worker: str, *settlements: Settlement) -> FinishReport:
        """Finish, expecting that every settlement is accepted."""
        report = await self.store.finish(worker, settlements)
        expected = {Ref(s.task, s.claim_no) for s in settlements}
        assert report.accepted == expected, f"not accepted: {report}"
        assert not report.refused
        return report

    async def get(self, task_id: int) -> TaskRecord:
        return (await self.store.get([task_id]))[task_id]

    async def state(self, task_id: int) -> str:
        return (await self.get(task_id)).state.value

    async def attempts(self, task_id: int) -> list[AttemptRecord]:
        return sorted(await self.store.attempts(task_id), key=lambda attempt: attempt.claim_no)

    async def job(self, job: int) -> JobRecord:
        found = await self.store.get_job(job)
        assert found is not None, f"job {job} is gone"
        return found
