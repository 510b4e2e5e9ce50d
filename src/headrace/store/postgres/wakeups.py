"""Wake-ups by LISTEN/NOTIFY: hints on a connection of their own, never a promise."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import Context
from secrets import token_hex

import asyncpg

from headrace.core.errors import HeadraceError
from headrace.store.postgres.connection import Database
from headrace.store.postgres.listening import listen_for_ever

# NOTIFY takes a lock that serialises commits (9.9k -> 3.8k commits/s with 32 clients), so it is sent at the first sign
# of work, and then at most once per queue in this time.
_QUIET = 0.005
# After this time without a hint of ours, whatever we announced has been heard of, and is claimed or waits for a place.
_SETTLED = 0.01


class Waker:
    """Decides which queues are notified now; the rest follows when the quiet time is over."""

    def __init__(self, database: Database, queries: Mapping[str, str]) -> None:
        self._database = database
        self._queries = queries
        self._last: dict[str, float] = {}
        self._late: dict[str, asyncio.TimerHandle] = {}
        self._sending: set[asyncio.Task[None]] = set()

    def due(self, queues: Iterable[str]) -> list[str]:
        """Those to notify in this very transaction; the others are promised for later."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        first: list[str] = []
        for queue in queues:
            wait = self._last.get(queue, 0.0) + _QUIET - now
            if wait <= 0:
                self._last[queue] = now
                first.append(queue)
                wait = _QUIET
                if queue not in self._late:
                    continue
                # What was promised may commit after this one, so the promise stays; in a stream it is always the next
                # hint, and costs no transaction of its own.
                self._late[queue].cancel()
            elif queue in self._late:
                continue
            # A little later than needed: the transaction that this hint is about has to commit first.
            self._late[queue] = loop.call_later(wait + _QUIET, self._send_late, queue)
        return first

    def is_settled(self, queue: str) -> bool:
        """Nothing that this process wrote there of late may still be unheard of: what comes now overtakes nothing."""
        if queue in self._late:
            return False
        return asyncio.get_running_loop().time() - self._last.get(queue, -_SETTLED) >= _SETTLED

    def spared(self, queue: str) -> None:
        """The hint that was due was not sent: what it was about is in somebody's hands, who was told alone. That is a
        notification, too: the next of these not before the quiet time is over."""
        self._last[queue] = asyncio.get_running_loop().time() - _SETTLED + _QUIET

    async def wake(self, queues: Iterable[str]) -> None:
        if first := self.due(sorted(set(queues))):
            await self._database.fetch(self._queries["notify"], first)

    def close(self) -> None:
        for handle in self._late.values():
            handle.cancel()
        self._late.clear()

    def _send_late(self, queue: str) -> None:
        self._late.pop(queue, None)
        if not self._database.is_open:
            return
        self._last[queue] = asyncio.get_running_loop().time()
        task = asyncio.create_task(self._send(queue), name=f"headrace-notify-{queue}")
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, queue: str) -> None:
        # A hint that is lost costs a poll.
        with contextlib.suppress(HeadraceError, asyncpg.PostgresError):
            await self._database.fetch(self._queries["notify"], [queue])


class _Subscriber:
    """Hints for one listener; the same hint twice before it is read is one."""

    def __init__(self, worker: str, queues: Sequence[str]) -> None:
        self.worker = worker
        self.queues = frozenset(queues)
        self._pending: dict[str, None] = {}
        self._arrived = asyncio.Event()

    def offer(self, hint: str) -> None:
        self._pending[hint] = None
        self._arrived.set()

    def offer_all(self) -> None:
        for hint in (*sorted(self.queues), "cancel"):
            self.offer(hint)

    async def hints(self) -> AsyncIterator[str]:
        while True:
            await self._arrived.wait()
            hint = next(iter(self._pending))
            del self._pending[hint]
            if not self._pending:
                self._arrived.clear()
            yield hint


class Listener:
    """One LISTEN connection for all subscribers of this store; it comes back by itself after an outage."""

    def __init__(self, database: Database, handed: Callable[[str], None]) -> None:
        self._database = database
        self._handed = handed
        self._subscribers: set[_Subscriber] = set()
        self._task: asyncio.Task[None] | None = None
        self.channel = f"{database.name}_{token_hex(8)}"  # for what is said to this process alone
        self.hears = False  # now

    @asynccontextmanager
    async def listen(self, worker: str, queues: Sequence[str]) -> AsyncGenerator[AsyncIterator[str]]:
        subscriber = _Subscriber(worker, queues)
        self._subscribers.add(subscriber)
        if self._task is None or self._task.done():
            name = self._database.name
            channels = {
                name: self._queue_has_work,
                f"{name}_cancel": self._worker_is_told,
                self.channel: self._handed,
            }
            served = listen_for_ever(self._database, channels, self._connected, self._cut)
            self._task = asyncio.create_task(served, name="headrace-listen", context=Context())
        try:
            yield subscriber.hints()
        finally:
            self._subscribers.discard(subscriber)
            if not self._subscribers:
                await self.close()

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _cut(self) -> None:
        self.hears = False

    def _connected(self) -> None:
        self.hears = True
        # Whatever was notified while nobody listened is made up for by looking at once.
        for subscriber in self._subscribers:
            subscriber.offer_all()

    def _queue_has_work(self, queue: str) -> None:
        for subscriber in self._subscribers:
            if queue in subscriber.queues:
                subscriber.offer(queue)

    def _worker_is_told(self, worker: str) -> None:
        for subscriber in self._subscribers:
            if worker == subscriber.worker:
                subscriber.offer("cancel")
