"""A breaker around calls to a service, for sync and async code: `with app.breaker("mail").call():`, `async with`, or
`@app.breaker("mail")` above a function.

While it is open the block is not entered: `BreakerOpen` sends the task back uncharged, eligible again when the breaker
may be probed. What the service did wrong (5xx, 429, timeouts, lost connections) counts; what the caller did wrong
(400, 404, a bug) does not. Calls are counted in each process; what opens or closes is shared (client.circuits).
"""

import asyncio
import concurrent.futures
import contextlib
import inspect
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import replace
from functools import wraps
from types import TracebackType
from typing import Any, Protocol, Self, cast

from headrace.client.bridge import running_loop
from headrace.core.breaker import (
    Admission,
    Allow,
    BreakerPolicy,
    BreakerRecord,
    BreakerState,
    BreakerStatus,
    Refuse,
    abandon_probe,
    allow,
    record,
    status_at,
)
from headrace.core.classification import classify_exception
from headrace.core.errors import BreakerOpen, DefinitionError
from headrace.telemetry.events import BreakerMoved

_PATIENCE = 1.0  # seconds that a call waits for the word of others
_BUSY = 5.0  # seconds at most after which whoever met a probe under way asks again


class Others(Protocol):
    """What the breakers of other processes say, and how they are told. Nothing here blocks, and no future fails."""

    def news(self) -> Future[None] | None:
        """Under way, where what is known is too old to go by."""
        ...

    def probe(self, breaker: "Breaker", revision: int) -> Future[bool | None]:
        """Whether this process has the one probe; None when nobody can say."""
        ...

    def opened(self, breaker: "Breaker") -> None: ...

    def closed(self, breaker: "Breaker", revision: int) -> None: ...


class Breaker:
    """The breaker of one service in this process. One instance serves any number of threads and coroutines."""

    def __init__(
        self,
        service: str,
        policy: BreakerPolicy | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        moved: Callable[[BreakerMoved], None] | None = None,
        others: Others | None = None,
    ) -> None:
        self.service = service
        self._state = BreakerState(policy=policy or BreakerPolicy())
        self._clock = clock
        self._moved = moved
        self._others = others
        self._lock = threading.Lock()
        self._told: BreakerStatus | None = None
        self._revision = 0  # of the shared one, as it was last heard of
        self._probing = 0  # the revision whose one probe this process has
        self._forced = False
        self._asked: Future[bool | None] | None = None  # for the probe, by code that could not wait for the answer
        self.unwritten = False  # it opened, and the others were not told yet
        self._tell()

    @property
    def status(self) -> BreakerStatus:
        with self._lock:
            return BreakerStatus.OPEN if self._forced else status_at(self._state, self._clock())

    @property
    def state(self) -> BreakerState:
        return self._state

    def call(self) -> "_Call":
        """One guarded call, as a context manager for sync and async code."""
        return _Call(self)

    def __call__[F: Callable[..., Any]](self, function: F) -> F:
        """Guard every call of a function; of an `async def` what it comes to is counted, not that it was called."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise DefinitionError(
                f"the breaker of {self.service!r} cannot guard {function!r}: what a generator does happens after "
                "it was called; put `with breaker.call():` around that"
            )
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                async with self.call():
                    return await function(*args, **kwargs)

            return cast("F", awaited)

        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            with self.call():
                return function(*args, **kwargs)

        return cast("F", called)

    def reset(self) -> None:
        """Close it by hand in this process, with fresh counts; `app.breakers.reset` does so everywhere."""
        with self._lock:
            self._state = BreakerState(policy=self._state.policy)
            self._forced = self.unwritten = False
        self._tell()

    def enter(self) -> bool:
        """Ask to call the service; True when this call is the probe. Raises BreakerOpen.

        A thread that runs an event loop is not kept waiting: it goes by what is known.
        """
        may_wait = running_loop() is None
        with contextlib.closing(self._passing()) as passing:
            try:
                asked = next(passing)
                while True:
                    if may_wait:
                        concurrent.futures.wait([asked], timeout=_PATIENCE)
                    asked = passing.send(may_wait)
            except StopIteration as done:
                return done.value

    async def aenter(self) -> bool:
        """The same for code that can wait."""
        with contextlib.closing(self._passing()) as passing:
            try:
                asked = next(passing)
                while True:
                    await asyncio.wait([asyncio.wrap_future(asked)], timeout=_PATIENCE)
                    asked = passing.send(True)
            except StopIteration as done:
                return done.value

    def leave(self, error: BaseException | None, *, probe: bool) -> None:
        """Count how the call ended."""
        with self._lock:
            before = self._state.status
            self._state = self._after(error, probe)
            after = self._state.status
            opened = after is BreakerStatus.OPEN and before is not after and not _is_unknown(error)
            # One that closed again while nobody could be told is nothing to tell.
            told_later = opened or (self.unwritten and after is not BreakerStatus.CLOSED)
            self.unwritten = told_later and self._others is not None
        if after is not self._told:
            self._tell()
        if self._others is None:
            return
        if opened:
            self._others.opened(self)
        elif probe and self._probing and before is BreakerStatus.HALF_OPEN and after is BreakerStatus.CLOSED:
            self._others.closed(self, self._probing)

    def heard(self, shared: BreakerRecord, left: float) -> None:
        """What another process did, or somebody by hand; `left` are the seconds for which it refuses."""
        is_open = shared.status is not BreakerStatus.CLOSED
        with self._lock:
            # What is older than what is known says nothing; nor does a close from before we opened.
            if shared.revision <= self._revision or (self.unwritten and not is_open):
                return
            self._revision = shared.revision
            self._forced = shared.forced
            self.unwritten = False
            self._asked = None
            policy = self._state.policy
            if is_open:
                opened_at = self._clock() + left - policy.timeout_seconds
                self._state = replace(self._state, status=BreakerStatus.OPEN, opened_at=opened_at, probe_at=None)
            else:
                self._state = BreakerState(policy=policy)
        self._tell()

    def closed_at(self, revision: int) -> None:
        """The others know of our close under this number."""
        with self._lock:
            self._revision = max(self._revision, revision)

    def forget(self) -> None:
        """What was heard came from another ledger."""
        with self._lock:
            self._revision, self._asked = 0, None

    def _passing(self) -> Generator[Future[Any], bool, bool]:
        """Yields what is to be waited for; sent back is whether somebody could wait."""
        if self._others is not None and (news := self._others.news()) is not None:
            yield news
        admission, now = self._ask()
        match admission:
            case Allow():
                return False
            case Refuse(until):
                self._refuse(until - now)
            case _:
                self._tell()
        if self._others is None or not self._revision:
            self._probing = 0
            return True
        # One probe over all processes.
        revision = self._revision
        asked = self._asked = self._asked or self._others.probe(self, revision)
        try:
            waited = yield asked
        except GeneratorExit:  # cancelled while it waited
            self._give_back()
            raise
        if not asked.done() and not waited:
            self._give_back()
            self._refuse(_PATIENCE)
        self._asked = None
        granted = asked.result() if asked.done() else None
        if granted is False:
            self._give_back()
            self._refuse(min(_BUSY, self._state.policy.timeout_seconds))
        # Where nobody can say it goes by its own, as if there were no others.
        self._probing = revision if granted else 0
        return True

    def _ask(self) -> tuple[Admission, float]:
        with self._lock:
            now = self._clock()
            if self._forced:
                return Refuse(now + self._state.policy.timeout_seconds), now
            was = self._state.status
            admission, self._state = allow(self._state, now)
            if isinstance(admission, Refuse) and was is BreakerStatus.HALF_OPEN:
                # What the probe finds is known soon.
                admission = Refuse(min(admission.until, now + _BUSY))
        return admission, now

    def _refuse(self, delay: float) -> None:
        self._tell()
        raise BreakerOpen(self.service, delay=max(0.0, delay))

    def _give_back(self) -> None:
        with self._lock:
            self._state = abandon_probe(self._state)

    def _tell(self) -> None:
        """Outside of the lock: it may write to a socket."""
        state = self._state
        if self._moved is not None and state.status is not self._told:
            self._told = state.status
            self._moved(BreakerMoved(service=self.service, state=state.status, lasts=state.policy.timeout_seconds))

    def _after(self, error: BaseException | None, probe: bool) -> BreakerState:
        if _is_unknown(error):
            return abandon_probe(self._state) if probe else self._state
        ok = error is None or classify_exception(error).verdict != "transient"
        return record(self._state, ok, self._clock(), probe=probe)


def _is_unknown(error: BaseException | None) -> bool:
    """Cancelled or stopping: nobody learned anything about the service."""
    return error is not None and not isinstance(error, Exception)


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
        self._probe = await self._breaker.aenter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._breaker.leave(error, probe=self._probe)
