"""Bounded chores of the ledger; each is safe in many processes at once."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from headrace.core.errors import StoreUnavailable
from headrace.runtime.service import Pace, Service
from headrace.store.base import Store
from headrace.store.blobs.base import Blobs
from headrace.store.blobs.base import remove as remove_blobs
from headrace.store.blobs.orphans import Orphans

logger = logging.getLogger("headrace.worker")
_GLANCE = 0.005


class Promoter(Service):
    """Makes due tasks ready at the moment they are due, and pokes the claimer.

    Every claim does that, too. While they go back and forth (`claims`), as in a storm of retries, this would be a
    transaction more for each of theirs: it looks only now and then, in case none of them has room for anything.
    """

    name = "promoter"

    def __init__(
        self,
        *,
        store: Store,
        poke: Callable[[], None],
        claims: Callable[[], bool] = lambda: False,
        longest: float = 1.0,
        beside: float = 0.05,
    ) -> None:
        super().__init__(Pace(interval=longest, jitter=0.0))
        self._store = store
        self._poke = poke
        self._claims = claims
        self._beside = beside
        self._looked_at = 0.0
        self._due: float | None = None

    async def run_once(self) -> float:
        now = time.monotonic()
        if self._claims() and now < self._looked_at + self._beside:
            return _GLANCE  # they may end any moment
        self._looked_at = now
        was_due = self._due is not None and self._due <= self.pace.interval
        self._due = await self._store.promote()
        if was_due or self._due == 0:
            self._poke()
        # A hair later than due, so that one round suffices.
        return self.pace.interval if self._due is None else min(self.pace.interval, self._due + 0.001)


class Expirer(Service):
    """Fails what grew too old waiting, and jobs past their deadline."""

    name = "expirer"

    def __init__(self, *, store: Store, interval: float = 5.0) -> None:
        super().__init__(Pace(interval=interval, jitter=0.2))
        self._store = store

    async def run_once(self) -> float | None:
        return 0.0 if await self._store.expire() >= 500 else None


class Unparker(Service):
    """Readies tasks whose gate has room but whom nobody woke."""

    name = "unparker"

    def __init__(self, *, store: Store, interval: float = 1.0) -> None:
        super().__init__(Pace(interval=interval, jitter=0.2))
        self._store = store

    async def run_once(self) -> float | None:
        return 0.0 if await self._store.unpark() >= 500 else None


class CancellingSweeper(Service):
    """Ends tasks whose worker was told to cancel them and never answered."""

    name = "cancelling sweeper"

    def __init__(self, *, store: Store, grace: float, interval: float = 2.0) -> None:
        super().__init__(Pace(interval=interval, jitter=0.2))
        self._store = store
        self._grace = grace

    async def run_once(self) -> float | None:
        return 0.0 if await self._store.end_cancelling(grace=self._grace) >= 500 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Finished tasks are kept for `keep` seconds."""

    keep: float
    batch: int = 5000


class Releaser(Service):
    """Goes on with the dependents of ended tasks that were too many for one transaction."""

    name = "releaser"

    def __init__(self, *, store: Store, interval: float = 1.0) -> None:
        super().__init__(Pace(interval=interval, jitter=0.2))
        self._store = store

    async def run_once(self) -> float | None:
        return 0.0 if await self._store.release() else None


class Deliverer(Service):
    """Resumes tasks whose event came in somebody's own transaction, or whose wait is over."""

    name = "deliverer"

    def __init__(self, *, store: Store, interval: float = 1.0) -> None:
        super().__init__(Pace(interval=interval, jitter=0.2))
        self._store = store

    async def run_once(self) -> float | None:
        return 0.0 if await self._store.deliver() >= 500 else None


class Pruner(Service):
    """Removes what has been kept long enough, a bounded batch at a time, and the blobs that nobody has any more."""

    name = "pruner"

    def __init__(
        self, *, store: Store, retention: Retention, blobs: Blobs | None = None, interval: float = 60.0
    ) -> None:
        super().__init__(Pace(interval=interval, jitter=0.5))
        self._store = store
        self._retention = retention
        self._blobs = blobs
        self._orphans = None if blobs is None else Orphans(store, blobs)

    async def run_once(self) -> float | None:
        pruned = await self._store.prune(keep=self._retention.keep, limit=self._retention.batch)
        if self._blobs is not None and self._orphans is not None:
            # The ledger does not wait for the result store: what is in its way today is found again tomorrow.
            try:
                if pruned.blobs:
                    await remove_blobs(self._blobs, pruned.blobs)
                await self._orphans.collect()
            except StoreUnavailable:
                raise
            except Exception:
                logger.exception("the result store %s could not be tidied", self._blobs.place)
        # More waits: go on soon, but leave the database some air.
        most = max(pruned.tasks, pruned.results, pruned.keys, pruned.runs, pruned.job_events)
        return 1.0 if most >= self._retention.batch else None
