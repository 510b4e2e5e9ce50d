"""A breaker around calls to a service, for sync and async code: `with app.breaker("mail").call():` or `async with`.

While it is open the block is not entered: `BreakerOpen` sends the task back uncharged, eligible again when the breaker
may be probed. What the service did wrong (5xx, 429, timeouts, lost connections) counts; what the caller did wrong
(400, 404, a bug) does not.
"""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from headrace.core.breaker import (
    Allow,
    BreakerPolicy,
    BreakerState,
    BreakerStatus,
    Probe,
    Refuse,
    abandon_probe,
    allow,
    record,
    status_at,
)
from headrace.core.classification import classify_exception
from headrace.core.errors import BreakerOpen
from headrace.telemetry.events import BreakerMoved


class Breaker:
    """The breaker of one service in this process. One instance serves any number of threads and coroutines."""

    def __init__(
        self,
        service: str,
        policy: BreakerPolicy | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        moved: Callable[[BreakerMoved], None] | None = None,
    ) -> None:
        self.service = service
        self._state = BreakerState(policy=policy or BreakerPolicy())
        self._clock = clock
        self._moved = moved
        self._lock = threading.Lock()
        self._told: BreakerStatus | None = None
        self._tell()

    @property
    def status(self) -> BreakerStatus:
        with self._lock:
            return status_at(self._state, self._clock())

    def call(self) -> "_Call":
        """One guarded call, as a context manager for sync and async code."""
        return _Call(self)

    def reset(self) -> None:
        """Close it by hand, with fresh counts."""
        with self._lock:
            self._state = BreakerState(policy=self._state.policy)
        self._tell()

    def enter(self) -> bool:
        """Ask to call the service; True when this call is the probe. Raises BreakerOpen."""
        with self._lock:
            now = self._clock()
            admission, self._state = allow(self._state, now)
        if not isinstance(admission, Allow):
            self._tell()
        if isinstance(admission, Refuse):
            raise BreakerOpen(self.service, delay=max(0.0, admission.until - now))
        return isinstance(admission, Probe)

    def leave(self, error: BaseException | None, *, probe: bool) -> None:
        """Count how the call ended."""
        self._record(error, probe=probe)
        if self._state.status is not self._told:
            self._tell()

    def _tell(self) -> None:
        """Outside of the lock: it may write to a socket."""
        state = self._state
        if self._moved is not None and state.status is not self._told:
            self._told = state.status
            self._moved(BreakerMoved(service=self.service, state=state.status, lasts=state.policy.timeout_seconds))

    def _record(self, error: BaseException | None, *, probe: bool) -> None:
        with self._lock:
            if error is not None and not isinstance(error, Exception):
                # Cancelled or stopping: nobody learned anything about the service.
                self._state = abandon_probe(self._state) if probe else self._state
                return
            ok = error is None or classify_exception(error).verdict != "transient"
            self._state = record(self._state, ok, self._clock(), probe=probe)


class _Call:
    """One passage through a breaker."""

    __slots__ = ("_breaker", "_probe")

    def __init__(self, breaker: Breaker) -> None:
        self._breaker = breaker
        self._probe = False

    def __enter__(self) -> Self:
        self._probe = self._breaker.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._breaker.leave(error, probe=self._probe)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)
