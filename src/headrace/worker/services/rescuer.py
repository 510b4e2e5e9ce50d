"""Takes over from the dead: what they had started is charged as lost, what they had not goes back.

Every worker runs one. Who is dead is judged in `worker.death`; one conditional update decides which rescuer acts.
"""

import contextlib
import random
import time
from collections import deque
from collections.abc import Callable, Sequence

from headrace.core.clock import Clock
from headrace.core.errors import StoreUnavailable
from headrace.core.outcome import Cancelled, Lost, Outcome, Released
from headrace.core.settlement import Execution, Settlement, settle
from headrace.core.states import Reason, TaskState
from headrace.core.task import ClaimedTask, ErrorInfo
from headrace.runtime.faults import reached
from headrace.runtime.service import Pace, Service
from headrace.store.base import Store
from headrace.telemetry.events import Bus, Rescued, TasksFinished
from headrace.worker.death import Beat, Observation, judge, next_look, observe, wall_clock_stepped
from headrace.worker.execution import Pipeline
from headrace.worker.services.outcomes import count_for, counted

_BATCH = 500
ALIVE = ("active", "idle", "stopping")


def settle_dead(
    claim: ClaimedTask,
    *,
    worker: str,
    pipeline: Pipeline,
    rng: random.Random,
    silent_for: float = 0.0,
    recorded_by: str = "rescuer",
) -> Settlement:
    """What becomes of one task of a dead worker: charged where its start was written, else given back as a suspect."""
    started = claim.state in (TaskState.RUNNING, TaskState.PAUSED)
    outcome: Outcome
    if claim.state == TaskState.CANCELLING:
        outcome = Cancelled(reason=Reason.USER, message=f"its worker {worker} died while it was being cancelled")
    elif started:
        outcome = Lost(error=lost_error(worker), ago=silent_for)
    else:
        outcome = Released(suspect=True)
    execution = Execution(recorded_by=recorded_by, cancelling=claim.state == TaskState.CANCELLING)
    return settle(claim, outcome, pipeline.policy(claim), rng=rng, execution=execution)


def lost_error(worker: str, *, exit_code: int | None = None) -> ErrorInfo:
    how = "" if exit_code is None else f" ({describe_exit(exit_code)})"
    return ErrorInfo(
        error_class="headrace.WorkerLost",
        message=f"the process of worker {worker} ended{how} while it ran this task; the attempt is charged",
        exit_code=exit_code,
    )


def describe_exit(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


async def empty_hands(
    store: Store,
    worker: str,
    decide: Callable[[ClaimedTask], Settlement],
    *,
    stages: Sequence[str] = (),
    bus: Bus | None = None,
) -> tuple[int, int]:
    """Settle everything that `worker` holds, 500 a transaction; (charged, given back). Safe to repeat and to share."""
    charged = released = 0
    while True:
        claims = await store.held(worker, limit=_BATCH)
        if not claims:
            return charged, released
        settlements = [decide(claim) for claim in claims]
        reached("rescue.before_commit")
        report = await store.finish(worker, settlements)
        reached("rescue.after_commit")
        finished = [
            (claim, settlement)
            for claim, settlement in zip(claims, settlements, strict=True)
            if (settlement.task, settlement.claim_no) in report.accepted
        ]
        charged += sum(settlement.charged for _, settlement in finished)
        released += sum(not settlement.charged for _, settlement in finished)
        if bus is not None and finished:
            bus.emit(TasksFinished(finished=finished, worker=worker))
        if counts := counted(finished):
            with contextlib.suppress(StoreUnavailable):  # what was settled stays so, counted or not
                await count_for(store, worker, counts)
        if not report.accepted and not report.repeated:
            return charged, released  # others were faster with all of them


class Rescuer(Service):
    name = "rescuer"

    def __init__(
        self,
        *,
        store: Store,
        by: Callable[[], str],
        lease: float,
        heartbeat: float,
        own_beats: deque[float],
        pipeline: Pipeline,
        bus: Bus,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        super().__init__(Pace(interval=lease / 10, jitter=0.2), rng=rng)
        self._store = store
        self._by = by
        self._lease = lease
        self._heartbeat = heartbeat
        self._own_beats = own_beats
        self._pipeline = pipeline
        self._bus = bus
        self._clock = clock
        self._observations: tuple[Observation, ...] = ()
        self._clocks = (clock.now().timestamp(), clock.monotonic())
        self._suspended_until = 0.0

    async def run_once(self) -> float | None:
        beats = [
            Beat(worker=worker.id, beat=worker.beat, lease=worker.lease)
            for worker in await self._store.workers(states=ALIVE)
        ]
        now = self._clock.monotonic()
        self._observations = observe(self._observations, beats, now=now)
        if self._suspended(now):
            return None
        verdicts = judge(self._observations, tuple(self._own_beats), now=now, interval=self._heartbeat)
        for verdict in verdicts:
            reached("rescue.before_take_over")
            if await self._store.take_over(verdict.worker, beat=verdict.beat):
                reached("rescue.after_take_over")
                await self._rescue(verdict.worker, silent_for=verdict.silent_for)
        for worker in await self._store.stopped_holders():
            await self._rescue(worker)
        judged = {verdict.worker for verdict in verdicts}
        return next_look(
            [observation for observation in self._observations if observation.worker not in judged],
            tuple(self._own_beats),
            now=self._clock.monotonic(),
            interval=self._heartbeat,
            sweep=self.pace.interval,
        )

    def _suspended(self, now: float) -> bool:
        """SQLite's instants come from the host: while its clock jumps, nobody is declared dead."""
        wall = self._clock.now().timestamp()
        before_wall, before_monotonic = self._clocks
        self._clocks = (wall, now)
        if self._store.dialect == "sqlite" and wall_clock_stepped(
            wall_before=before_wall,
            wall_now=wall,
            monotonic_before=before_monotonic,
            monotonic_now=now,
            lease=self._lease,
        ):
            self._suspended_until = now + self._lease
        return now < self._suspended_until

    async def _rescue(self, worker: str, *, silent_for: float = 0.0) -> None:
        def decide(claim: ClaimedTask) -> Settlement:
            return settle_dead(claim, worker=worker, pipeline=self._pipeline, rng=self._rng, silent_for=silent_for)

        charged, released = await empty_hands(self._store, worker, decide, bus=self._bus)
        self._bus.emit(Rescued(worker=worker, by=self._by(), charged=charged, released=released))


def keep_beats() -> deque[float]:
    """The instants of one's own successful heartbeats; enough of them to look back over more than a lease."""
    return deque([time.monotonic()], maxlen=64)
