"""How the breakers of many processes agree: a row a service in the ledger, read each second by whoever calls services.

A process that opens its breaker writes that, and the others refuse from their next look on: a second later while they
use breakers, and before the first call where they have not for a while. The one probe is taken there, too. All of it
happens on the background loop; while the ledger cannot be reached each process goes by its own breakers.
"""

import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Any

from headrace.client.breakers import Breaker
from headrace.client.bridge import BRIDGE, sync_form
from headrace.client.engine import Engine
from headrace.core.breaker import BreakerRecord
from headrace.core.durations import Duration, seconds
from headrace.store.base import Store

INTERVAL = 1.0
_STALE = 2.0  # seconds after which what is known is not gone by, if there is a way to wait
_UNUSED = 30.0  # seconds after the last call in which the others are still listened to

logger = logging.getLogger("headrace.client")


class Sharing:
    """The breakers of this process, and what it heard of those of others (client.breakers.Others)."""

    def __init__(self, engine: Engine) -> None:
        self.breakers: dict[str, Breaker] = {}
        self._engine = engine
        self._forks = BRIDGE.forks
        self._url = engine.url
        self._is_down = False
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.by = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
        self._read_at = self._used_at = self._began_at = float("-inf")
        self._reading: Future[None] | None = None
        # What was last heard, with the instant of the monotonic clock until which it refuses.
        self._known: dict[str, tuple[BreakerRecord, float]] = {}

    def join(self, breaker: Breaker) -> Breaker:
        """The breaker of its service in this process; one that comes late is told what the others know."""
        found = self.breakers.setdefault(breaker.service, breaker)
        known = self._known.get(breaker.service)
        if known is not None:
            record, until = known
            found.heard(record, max(0.0, until - time.monotonic()))
        return found

    @property
    def in_use(self) -> bool:
        """Whether this process called a service lately, or has something to tell."""
        used = time.monotonic() - self._used_at < _UNUSED
        return bool(self.breakers) and (used or any(breaker.unwritten for breaker in list(self.breakers.values())))

    def news(self) -> Future[None] | None:
        if self._forks != BRIDGE.forks or self._url != self._engine.url:
            # Another process, or another ledger: what was heard does not count here.
            self._forks, self._url = BRIDGE.forks, self._engine.url
            self._begin_anew()
            for breaker in list(self.breakers.values()):
                breaker.forget()
        self._used_at = now = time.monotonic()
        age = now - self._read_at
        if age < INTERVAL:
            return None
        reading = self.look()
        # One that others waited for in vain is not waited for again: a ledger that hangs must not slow every call.
        is_late = now - self._began_at > INTERVAL
        return reading if age > _STALE and not self._is_down and not is_late else None

    def look(self) -> Future[None]:
        """Read what the others did, and tell what they do not know yet; the one under way, where there is one."""
        reading = self._reading
        if reading is None or reading.done():
            self._began_at = time.monotonic()
            reading = self._reading = self._begin(self._read)
        return reading

    def probe(self, breaker: Breaker, revision: int) -> Future[bool | None]:
        patience = breaker.state.policy.timeout_seconds
        return self._begin(
            lambda store: store.probe_breaker(breaker.service, by=self.by, revision=revision, patience=patience)
        )

    def opened(self, breaker: Breaker) -> None:
        self._begin(lambda store: self._write_open(store, breaker))

    def closed(self, breaker: Breaker, revision: int) -> None:
        async def close(store: Store) -> None:
            if await store.close_breaker(breaker.service, by=self.by, revision=revision):
                breaker.closed_at(revision + 1)

        self._begin(close)

    def heard(self, records: Sequence[BreakerRecord], now: datetime) -> None:
        """`now` is by the clock of the ledger, like the instants of the records."""
        for record in records:
            left = 0.0 if record.until is None else max(0.0, (record.until - now).total_seconds())
            known = self._known.get(record.service)
            if known is None or known[0].revision <= record.revision:
                self._known[record.service] = record, time.monotonic() + left
            breaker = self.breakers.get(record.service)
            if breaker is not None:
                breaker.heard(record, left)

    def _begin[T](self, act: Callable[[Store], Coroutine[Any, Any, T]]) -> Future[T | None]:
        """In the background; None where it could not be done."""

        async def careful() -> T | None:
            try:
                answer = await self._engine.use_here(act)
            except Exception as error:  # a service must not be out of reach because the ledger is
                if not self._is_down:
                    logger.warning("breakers go by their own process while the ledger cannot be reached: %s", error)
                self._is_down = True
                self._read_at = time.monotonic()  # asked again after the interval, not by every call
                return None
            if self._is_down:
                logger.info("breakers are shared again")
            self._is_down = False
            return answer

        return BRIDGE.submit(careful())

    async def _read(self, store: Store) -> None:
        try:
            for breaker in [each for each in list(self.breakers.values()) if each.unwritten]:
                await self._write_open(store, breaker)
            records = await store.breakers()
            if records:
                self.heard(records, await store.now())
        finally:
            self._read_at = time.monotonic()

    async def _write_open(self, store: Store, breaker: Breaker) -> None:
        state = breaker.state
        record = await store.open_breaker(
            breaker.service,
            by=self.by,
            timeout=state.policy.timeout_seconds,
            calls=state.calls,
            failures=state.failures,
        )
        self.heard([record], await store.now())
        breaker.unwritten = False


class Breakers:
    """`app.breakers`: what the services of all processes look like, and how to close and open them by hand."""

    def __init__(self, engine: Engine, sharing: Sharing) -> None:
        self._engine = engine
        self._sharing = sharing

    async def alist(self) -> Sequence[BreakerRecord]:
        """Every breaker that ever opened, or was touched by hand, by service. One that nobody opened is closed."""
        return await self._engine.run(lambda store: store.breakers())

    async def areset(self, service: str, *, by: str | None = None) -> BreakerRecord:
        """Close it for every process, forced or not; they see it within seconds. `by` is who does so."""
        who = by or self._sharing.by

        async def reset(store: Store) -> BreakerRecord:
            record = await store.reset_breaker(service, by=who)
            self._sharing.heard([record], record.changed_at)
            return record

        return await self._engine.run(reset)

    async def aopen(self, service: str, *, timeout: Duration | None = None, by: str | None = None) -> BreakerRecord:
        """Open it for every process: until it is reset, or for a while after which it is probed.

        With a `timeout` one that is open already stays as it is.
        """
        who = by or self._sharing.by
        lasts = self._engine.settings.circuit_timeout if timeout is None else seconds(timeout, name="timeout")

        async def open(store: Store) -> BreakerRecord:
            record = await store.open_breaker(service, by=who, timeout=lasts, forced=timeout is None)
            self._sharing.heard([record], await store.now())
            return record

        return await self._engine.run(open)

    list = sync_form(alist)
    reset = sync_form(areset)
    open = sync_form(aopen)
