"""Outcomes on their way to the ledger: gathered for a moment, landed together, kept until they are in."""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from headrace.core.errors import StoreUnavailable
from headrace.core.settlement import Settlement
from headrace.core.task import Want
from headrace.runtime.faults import reached
from headrace.store.base import FinishReport, Store
from headrace.telemetry.events import Bus, StoreBack, StoreLost
from headrace.worker.claiming import Claimer

# Outcomes that are written together. What a statement costs by itself is shared by more of them on PostgreSQL (a finish
# with its claim: 28.2 us a task by 500, 25.7 by 1,000); on SQLite others wait until the one writer is done.
_BATCH = {"postgresql": 1000}
_OTHERS_BATCH = 500
# Characters of results that are written together, at most, but for one result: they go as one parameter, of which
# PostgreSQL takes a gigabyte, and the line breaks where it is more.
_LONGEST = 64 * 1024 * 1024
_AT_ONCE = 2
_WORTHWHILE = 100
_LONGEST_PAUSE = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """What the ledger said to one batch."""

    settlements: Sequence[Settlement]
    report: FinishReport


class Finisher:
    """What ends while a finish is under way goes with the next, together with the next claim. A full batch does not
    wait: it is written beside the one before it, so that the database has something to do while this process runs
    tasks, and the other way round.

    While the store cannot be reached the same batch is tried again for ever and nothing new is claimed, so what waits
    here is bounded by what the worker held when the store went away.
    """

    def __init__(
        self,
        *,
        store: Store,
        worker: Callable[[], str],
        claimer: Callable[[], Claimer],
        landed: Callable[[Landed], None],
        expecting: Callable[[], bool],
        gather: float,
        bus: Bus,
        rng: random.Random,
    ) -> None:
        self._store = store
        self._batch = _BATCH.get(store.dialect, _OTHERS_BATCH)
        self._worker = worker
        self._claimer = claimer
        self._landed = landed
        self._expecting = expecting
        self._gather = gather
        self._bus = bus
        self._rng = rng
        self._waiting: list[Settlement] = []
        self._coming: set[asyncio.Task[None]] = set()  # outcomes whose attempts have words that are not written yet
        self._landing = 0
        self._writing = 0  # batches of those that the store has not answered
        self._wrote_at = 0.0  # when it was asked to write the last
        self._failing = 0  # batches that could not be written at their first try, and are not yet
        self._due = asyncio.Event()
        self._full = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def busy(self) -> bool:
        """Outcomes wait or are being written: the finish that carries them carries the next claim too."""
        return bool(self._waiting or self._landing)

    def writes_for(self, now: float) -> float | None:
        """Seconds since the store was asked to write something that it has not answered yet."""
        return now - self._wrote_at if self._writing else None

    def add(self, settlement: Settlement) -> None:
        self._waiting.append(settlement)
        count = len(self._waiting)
        if count == 1 or count == self._batch:
            self._look()

    def add_after(self, settlement: Settlement, words: Callable[[], Awaitable[None]]) -> None:
        """Once its last words are written, so that they are in the ledger no later than it."""

        async def wait() -> None:
            await words()
            self.add(settlement)

        task = asyncio.create_task(wait(), name="headrace.last-words")
        self._coming.add(task)
        task.add_done_callback(self._came)
        self._look()

    def _came(self, task: asyncio.Task[None]) -> None:
        self._coming.discard(task)
        self._look()

    def ran_dry(self) -> None:
        """Nothing runs any more, so nothing more comes for now."""
        if len(self._waiting) >= _WORTHWHILE:
            self._look()

    def _look(self) -> None:
        """Whether it is time to write: for a full batch always, for less when nothing else is being written, or when
        there will be no more of it and it is worth a statement."""
        count = len(self._waiting)
        full = count >= self._batch
        _switch(self._full, full)
        need_not_wait = not self._landing or (count >= _WORTHWHILE and not self._expecting())
        _switch(self._due, full or (count > 0 and need_not_wait))
        _switch(self._idle, not count and not self._landing and not self._coming)

    def forget(self) -> None:
        """The lease is gone: none of this may be reported any more."""
        self._waiting.clear()
        for task in self._coming:
            task.cancel()
        self._look()

    async def flushed(self) -> None:
        """Returns when everything that was added has landed."""
        await self._idle.wait()

    async def run(self) -> None:
        landers = [asyncio.create_task(self._land_batches(), name="headrace.lander") for _ in range(_AT_ONCE)]
        try:
            await asyncio.gather(*landers)
        finally:
            for task in (*landers, *self._coming):
                task.cancel()
            await asyncio.gather(*landers, return_exceptions=True)

    async def _land_batches(self) -> None:
        while True:
            await self._due.wait()
            await self._company()
            if not self._due.is_set():
                continue  # another one took it
            count = _fitting(self._waiting, self._batch)
            batch, self._waiting = self._waiting[:count], self._waiting[count:]
            self._landing += 1
            self._look()
            try:
                await self._land(batch)
            finally:
                self._landing -= 1
                self._look()
            if self._idle.is_set():
                self._claimer().hungry()

    async def _company(self) -> None:
        """Wait a moment for others, unless nothing else runs that could end soon."""
        if len(self._waiting) < self._batch and self._expecting():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._full.wait(), self._gather)

    async def _land(self, batch: list[Settlement]) -> None:
        claimer = self._claimer()
        wants = claimer.begin(riding=True)
        asked_at = self._wrote_at = time.monotonic()
        self._writing += 1
        try:
            report = await self._insist(batch, wants)
        except BaseException:
            if wants:
                claimer.end(wants, None, asked_at=asked_at)
            raise
        finally:
            self._writing -= 1
        if wants:
            claimer.end(wants, report.claimed, asked_at=asked_at)
        self._landed(Landed(settlements=batch, report=report))

    async def _insist(self, batch: list[Settlement], wants: Sequence[Want]) -> FinishReport:
        worker, failures, began = self._worker(), 0, time.monotonic()
        while True:
            try:
                reached("finish.before_commit")
                report = await self._store.finish(worker, batch, wants=wants if not failures else ())
                reached("finish.after_commit")
            except StoreUnavailable as error:
                # A repeat asks for no tasks: the first try's claim may have been committed, and the keeper of the
                # buffer looks for what it took.
                failures += 1
                self._claimer().uncertain = self._claimer().uncertain or bool(wants)
                if failures == 1:
                    self._failing += 1
                    if self._failing == 1:
                        self._claimer().suspend(True)
                        self._bus.emit(StoreLost(what="finish", error=str(error)))
                pause = min(_LONGEST_PAUSE, 0.05 * 2 ** min(failures, 10))
                await asyncio.sleep(pause * (0.5 + self._rng.random() / 2))
                continue
            if failures:
                self._failing -= 1
                if not self._failing:
                    self._claimer().suspend(False)
                    self._bus.emit(StoreBack(what="finish", after=time.monotonic() - began))
            return report


def _fitting(waiting: Sequence[Settlement], most: int) -> int:
    """How many of them go together; one at least."""
    length = 0
    for count, settlement in enumerate(waiting[:most]):
        length += len(settlement.result or "")
        if length > _LONGEST and count:
            return count
    return min(most, len(waiting))


def _switch(event: asyncio.Event, on: bool) -> None:
    if on:
        event.set()
    else:
        event.clear()
