"""Claims what is ready and runs it, one task after the other, in this process: a worker without processes.

Everything that it writes goes through the verbs that workers use, and every decision is theirs: what a failure leads to
is settled by the same pure function, limits and rates are admitted by the store.
"""

import random
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from headrace.client.bridge import on_store
from headrace.client.engine import Engine
from headrace.core.clock import MovableClock
from headrace.core.lanes import Lane
from headrace.core.outcome import Cancelled, Outcome, Released
from headrace.core.settlement import Settlement
from headrace.core.states import Reason, TaskState
from headrace.core.task import ClaimedTask, Pool, Ref, TaskFilter, TaskRecord, Want
from headrace.executors.base import Launch, Ran
from headrace.store.base import Started, Store
from headrace.testing.application import TestedApp
from headrace.testing.attempts import EXECUTOR, Place, run
from headrace.testing.errors import TooManyRuns
from headrace.testing.rooms import Rooms
from headrace.testing.tally import Tally
from headrace.worker.execution import Pipeline
from headrace.worker.holding import Held
from headrace.worker.identity import new_worker_id
from headrace.worker.inputs import OPTION as INPUTS
from headrace.worker.inputs import Inputs
from headrace.worker.keeping import result_keeper
from headrace.worker.options import WorkerOptions
from headrace.worker.services.words import Words
from headrace.worker.worker import worker_record

POOLS: tuple[Pool, ...] = ("coroutine", "child", "thread", "command")
_LANES = (Lane.PRIMARY, Lane.RETRY)
# Of so many waiting tasks the best is found exactly; among more, each pool and queue has its own order.
_LOOKED_AT = 20
_PAGE = 500


class Runner:
    def __init__(self, app: TestedApp, *, queues: Sequence[str] | None = None, seed: int = 0) -> None:
        self.app = app
        self.worker = new_worker_id()
        self.rooms = Rooms(app)
        self.in_hand: dict[int, Future[None]] = {}
        self._engine = app.engine
        self._queues = None if queues is None else tuple(queues)
        self._pipeline = Pipeline(app, rng=random.Random(seed))  # the jitter of retries is the same in every run
        self._place = Place(source=app, rooms=self.rooms, worker=self.worker)
        self._registered = False

    # --- what is ready ------------------------------------------------------------------------------------------------

    async def run_ready(self, tally: Tally, *, limit: int) -> None:
        """Run until nothing is ready. TooManyRuns when that takes more than `limit` runs in all."""
        while (claim := await self._claim_best()) is not None:
            if tally.runs >= limit:
                await self._finish(self._settled(Held(claim, since=time.monotonic()), Ran(outcome=Released()), None))
                raise TooManyRuns(
                    f"{limit} tasks were run and there is still work (the last one was {tally.last!r}, the next is "
                    f"{claim.name!r}): does a task enqueue itself, or snooze for ever? Else give a higher limit"
                )
            await self._run(claim, tally)

    async def _claim_best(self) -> ClaimedTask | None:
        return await self._engine.run(self._look_and_claim)

    async def _look_and_claim(self, store: Store) -> ClaimedTask | None:
        if not self._registered:
            await store.register(worker_record(self.worker, WorkerOptions(lease=86_400.0)))
            self._registered = True
        for queue, pool, lane in await self._candidates(store):
            if claims := await store.claim(self.worker, [Want(queue=queue, pool=pool, lane=lane, n=1)]):
                return claims[0]
        return None

    async def _candidates(self, store: Store) -> Iterable[tuple[str, Pool, Lane]]:
        """Where to claim, best first: by priority, then by the instant from which on a task may run."""
        pending = await store.list(TaskFilter(states=(TaskState.PENDING,), queues=self._queues or (), limit=_LOOKED_AT))
        now = await store.now()
        due = [record for record in pending if record.eligible_at <= now and record.waiting_on is None]
        due.sort(key=lambda record: (-record.priority, record.eligible_at, record.id))
        found: dict[tuple[str, Pool, Lane], None] = {(record.queue, record.pool, record.lane): None for record in due}
        if len(pending) == _LOOKED_AT:
            names = self._queues or await store.queue_names()
            found |= {(queue, pool, lane): None for queue in names for pool in POOLS for lane in _LANES}
        return found

    # --- one task -----------------------------------------------------------------------------------------------------

    async def _run(self, claim: ClaimedTask, tally: Tally) -> None:
        held, launch = Held(claim, since=time.monotonic()), None
        done = self.in_hand[claim.id] = Future[None]()
        done.set_running_or_notify_cancel()  # whoever waits for it and gives up does not end it for the others
        words = Words(store=cast("Store", _Through(self._engine)), worker=lambda: self.worker, holds=lambda _: True)
        tally.tasks[claim.id] = None
        tally.last = claim.name
        try:
            if claim.gated:
                admission = await self._engine.run(lambda store: store.admit(self.worker, [claim]))
                if held.ref not in admission.admitted:
                    return
            prepared = self._pipeline.prepare(claim)
            if isinstance(prepared, Launch) and INPUTS in prepared.options:
                prepared = await self._filled(prepared)
            if isinstance(prepared, Launch):
                launch = prepared
                ran = await self._entered(launch, tally, words)
                if ran is None:
                    return
            else:
                ran = Ran(outcome=prepared)
            if isinstance(ran.outcome, Released) and (ran.unknown or launch is None):
                tally.unknown[claim.id] = claim.name
            await words.flush()
            await self._finish(self._settled(held, await self._kept(held.ref, ran), launch))
        except BaseException:
            # Interrupted: by Ctrl-C, or because the test was cancelled. Nobody would ever finish it.
            await self._finish(self._settled(held, Ran(outcome=Released()), launch))
            raise
        finally:
            del self.in_hand[claim.id]
            done.set_result(None)

    async def _entered(self, launch: Launch, tally: Tally, words: Words) -> Ran | None:
        """None when the claim no longer holds."""
        ref = launch.ref
        answers = await self._engine.run(lambda store: store.start(self.worker, [ref], executor=EXECUTOR))
        match answers.get(ref, Started.REFUSED):
            case Started.STARTED:
                tally.runs += 1
                return await run(launch, self._place, words, tally)
            case Started.CANCELLING:
                return Ran(outcome=Cancelled(reason=Reason.USER))
            case Started.REFUSED:
                return None

    async def _kept(self, ref: Ref, ran: Ran) -> Ran:
        keeper = result_keeper(self.app)
        return ran if keeper is None or not keeper.wants(ran) else await on_store(lambda: keeper.kept(ref, ran))

    def _settled(self, held: Held, ran: Ran, launch: Launch | None) -> Settlement:
        executor = EXECUTOR if ran.ran_for is not None else None
        return self._pipeline.settle(held, ran.outcome, launch=launch, ran_for=ran.ran_for, executor=executor)

    async def _finish(self, settlement: Settlement) -> None:
        report = await self._engine.run(lambda store: store.finish(self.worker, [settlement]))
        while report.releasing and await self._engine.run(lambda store: store.release()):
            pass

    async def _filled(self, launch: Launch) -> Launch | Outcome:
        """On the loop of the store: whoever blocks has none on which it could read several results at once."""
        engine = self._engine

        async def fill(store: Store) -> Launch | Outcome:
            return await Inputs(read=store.inputs, codecs=engine.codecs, blobs=lambda: engine.blobs).filled(launch)

        return await engine.run(fill)

    # --- time ---------------------------------------------------------------------------------------------------------

    async def skip_wait(self, tally: Tally, *, retries: bool, scheduled: bool) -> bool:
        """Move the clock to the next instant at which a task of that kind is due; False when none waits."""
        now = await self._engine.run(lambda store: store.now())
        due = [
            record.eligible_at
            for record in await self.pending()
            if record.waiting_on is None
            and record.eligible_at > now
            and record.id not in tally.unknown
            # A task that was claimed before waits after an attempt; one that never was, for the time it was given.
            and (retries if record.claim_no > 0 else scheduled)
        ]
        if not due:
            return False
        self._movable_clock().move_to(min(due))
        # What a worker does on the side, in case somebody's time has come.
        await self.deliver()
        await self._engine.run(lambda store: store.expire())
        await self._engine.run(lambda store: store.unpark())
        return True

    async def deliver(self) -> None:
        """Resume those whose wait is over, or whose event came by somebody's own transaction."""
        await self._engine.run(lambda store: store.deliver())

    def _movable_clock(self) -> MovableClock:
        clock: Any = self._engine.clock
        if not hasattr(clock, "move_to"):
            raise TypeError(
                "to skip a wait, the clock of the database must be one that can be moved: use override(app), a fixture "
                "of the pytest plugin, or override(app, clock=FakeClock())"
            )
        return cast("MovableClock", clock)

    # --- the ledger ---------------------------------------------------------------------------------------------------

    async def pending(self) -> list[TaskRecord]:
        return await listed(self.app, TaskFilter(states=(TaskState.PENDING,), queues=self._queues or ()))

    async def records(self, ids: Sequence[int]) -> list[TaskRecord]:
        found: dict[int, TaskRecord] = {}
        for start in range(0, len(ids), _PAGE):
            part = ids[start : start + _PAGE]
            found |= await self._engine.run(lambda store, part=part: store.get(part))
        return [found[id] for id in ids if id in found]

    async def deregister(self) -> None:
        if self._registered:
            self._registered = False
            await self._engine.run(lambda store: store.deregister(self.worker))


async def listed(app: TestedApp, criteria: TaskFilter, *, may_block: bool = False) -> list[TaskRecord]:
    """Every task that fits, the oldest first."""
    found: list[TaskRecord] = []
    criteria = replace(criteria, limit=_PAGE)
    while True:
        page = await app.engine.run(lambda store, asked=criteria: store.list(asked), may_block=may_block)
        found += page
        if len(page) < _PAGE:
            return sorted({record.id: record for record in found}.values(), key=lambda record: record.id)
        criteria = replace(criteria, before=_last_seen(page[-1]))


def _last_seen(record: TaskRecord) -> tuple[datetime, int]:
    return (record.finished_at or record.created_at, record.id)


class _Through:
    """What `Words` needs of a store, from whatever loop or thread the test is on."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def append_logs(self, lines: Sequence[tuple[Ref, int, str, str]]) -> None:
        await self._engine.run(lambda store: store.append_logs(lines))

    async def progress(self, worker: str, values: Sequence[tuple[Ref, str]]) -> None:
        await self._engine.run(lambda store: store.progress(worker, values))
