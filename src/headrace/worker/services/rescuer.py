"""Takes over from the dead: what they had started is charged as lost, what they had not goes back.

Every worker runs one. Who is dead is judged in `worker.death`; one conditional update decides which rescuer acts.
"""

import random
import time
from collections import deque
from collections.abc import Callable

from headrace.core.clock import Clock
from headrace.runtime.service import Pace, Service
from headrace.store.base import Store
from headrace.telemetry.events import Bus
from headrace.worker.death import Beat, Observation, judge, next_look, observe, wall_clock_stepped
from headrace.worker.rescuing import ALIVE, Policies, rescue


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
        pipeline: Policies,
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
        await rescue(self._store, verdicts, policies=self._pipeline, rng=self._rng, bus=self._bus, by=self._by())
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


def keep_beats() -> deque[float]:
    """The instants of one's own successful heartbeats; enough of them to look back over more than a lease."""
    return deque([time.monotonic()], maxlen=64)
