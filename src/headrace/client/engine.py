"""What an app's tasks and handles work with: its settings, its store (one per process) and what is shared around it."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

from headrace.client.bridge import BRIDGE, must_block, on_store
from headrace.client.coalescing import Coalescer, Waiting
from headrace.client.counting import Counting
from headrace.client.following import Following
from headrace.client.middleware import Middleware
from headrace.client.nearby import Nearby
from headrace.client.options import Queue
from headrace.client.polling import Poller
from headrace.client.transactions import enqueue_in, transaction_of
from headrace.client.watching import Hub
from headrace.core.batch import is_plain
from headrace.core.clock import Clock
from headrace.core.errors import StoreUnavailable
from headrace.core.payload import CodecRegistry
from headrace.core.retry import Retry
from headrace.core.task import Enqueued, NewTask, TaskRecord
from headrace.settings import Settings
from headrace.store.base import Store, StoreClosed, StoreOptions
from headrace.store.blobs.base import Blobs
from headrace.store.blobs.opening import open_blobs
from headrace.store.connect import connect

if TYPE_CHECKING:
    from headrace.client.declaring import Declaration
    from headrace.client.flows import Flows
    from headrace.client.subscribing import Subscription

# Callers who come together again and again share commits best when all of them stand in one line.
_ALONE_AFTER = 0.05
# Between two looks for something that may have grown; hints mostly come before.
_SHORTEST_LOOK, _LONGEST_LOOK = 0.05, 0.5
# What an engine keeps whatever database it is pointed to.
_OF_THE_APP = ("queues", "codecs", "middleware", "results", "policies", "counting", "flows")


class ResultLoader(Protocol):
    def load(self, text: str | None, /) -> Any: ...


class _Identified(Protocol):
    """What a store on a server can say of itself."""

    async def identity(self) -> tuple[str, ...]: ...


class Inline(Protocol):
    """What a test puts in a worker's place (headrace.testing.inline): it runs what is ready, in this process."""

    async def readied(self, ids: Sequence[int]) -> None:
        """Something was written that may run, these new tasks among it; returns when what can run has run."""
        ...

    async def wanted(self, task: int) -> None:
        """Somebody is about to wait for the end of this task. Raises where nothing would ever bring it about."""
        ...


@dataclass(slots=True)
class _Connected:
    """The store of one process, and what lives beside it on the background loop."""

    forks: int  # the process, as the bridge counts them
    store: Store
    following: Following
    poller: Poller
    hub: Hub
    users: int = 0
    unused: asyncio.Event = field(default_factory=asyncio.Event)


class Engine:
    def __init__(self, settings: Settings, *, url: str, queues: Mapping[str, Queue], codecs: CodecRegistry) -> None:
        self.settings = settings
        self.queues = queues
        self.codecs = codecs
        self.middleware: list[Middleware] = []
        self.results: dict[str, ResultLoader] = {}  # by task name
        self.policies: dict[str, Retry] = {}  # by task name
        self.declared: dict[str, Declaration] = {}  # schedules that code declares, by name
        self.subscribed: dict[str, Subscription] = {}  # that code declares, by name
        self.counting = Counting()
        self.flows: Flows | None = None  # made when the first workflow is
        # Of tests: a clock in place of the store's own, and what runs tasks in place of a worker.
        self.clock: Clock | None = None
        self.inline: Inline | None = None
        self.is_overridden = False  # it was pointed to a database that a test named or made
        self._connect_to(url)

    def _connect_to(self, url: str) -> None:
        """What belongs to one database, as it is before the first use of it."""
        self.url = url
        # SQLite writes what it is given in that order whoever waits, and a second commit keeps its thread busy.
        # PostgreSQL would write the second on another connection, perhaps before the first.
        self._commits_at_once = 2 if url.startswith("sqlite") else 1
        # SQLite has a thread of its own to go to, from whatever loop.
        self.nearby = None if url.startswith("sqlite") else Nearby(lambda: self.new_store(connections=1))
        self._one_is_alone = False  # and goes straight to the store
        self._company_at = 0.0  # when a caller last met another
        # By the number of forks that led here: the parent's are not ours to use, nor to destroy.
        self._coalescers: dict[int, Coalescer] = {}
        self._connected: _Connected | None = None
        self._opening: asyncio.Lock | None = None
        self._forks = -1  # that led to the process of these two
        self._abandoned: list[object] = []
        self._blobs: tuple[Blobs | None] | None = None  # once it was asked for

    def put_aside(self, url: str, settings: Settings, clock: Clock | None) -> Callable[[], None]:
        """For tests: another database from here on. What this returns brings the one of before back, with whatever
        was open there; close the other one first.
        """
        kept = {name: value for name, value in vars(self).items() if name not in _OF_THE_APP}
        self.settings, self.clock, self.inline, self.is_overridden = settings, clock, None, True
        self._connect_to(url)

        def bring_back() -> None:
            vars(self).update(kept)

        return bring_back

    def new_store(self, *, connections: int | None = None, url: str | None = None) -> Store:
        """A store of its own for a worker or a command, or where the ledger has moved; it is not opened."""
        settings = self.settings
        options = StoreOptions(
            name=settings.name,
            lease=settings.lease,
            # The pool grows on demand up to both together.
            pool_size=connections or settings.pool_size + settings.pool_overflow,
            synchronous=settings.synchronous,
            extra={"echo": settings.echo, "clock": self.clock, "token": settings.token},
        )
        return connect(url or self.url, options)

    @property
    def blobs(self) -> Blobs | None:
        """Where results are that are too large for the ledger."""
        if self._blobs is None:
            settings = self.settings
            self._blobs = (open_blobs(settings.results_url, database=self.url, name=settings.name),)
        return self._blobs[0]

    async def run[T](self, act: Callable[[Store], Coroutine[Any, Any, T]], *, may_block: bool = False) -> T:
        """Do something with the store, from any thread or loop."""
        return await on_store(lambda: self._use(act), may_block=may_block)

    async def follow[T](self, act: Callable[[Following], Coroutine[Any, Any, T]]) -> T:
        """Do something with a task or a job, wherever it is by now."""

        async def work() -> T:
            following = (await self._open()).following
            return await self._use(lambda _: act(following))

        return await on_store(work)

    async def opened_store(self) -> Store:
        """The store, for building statements; it was opened, so its schema is there."""
        connected = self._connected
        if connected is not None and connected.forks == BRIDGE.forks:
            return connected.store
        return (await on_store(self._open, may_block=True)).store

    async def enqueue(self, tasks: Sequence[NewTask], *, connection: Any = None) -> list[Enqueued]:
        """Write tasks: in the user's transaction when there is one, else durable when this returns."""
        if self.middleware:
            with self.around(tasks) as changed:
                answers = await self._enqueue(changed, connection)
        else:
            answers = await self._enqueue(tasks, connection)
        # What is part of the user's transaction cannot run before they commit.
        if self.inline is not None and connection is None and transaction_of(self) is None:
            await self.inline.readied([answer.id for answer in answers if answer.created])
        return answers

    async def readied(self) -> None:
        """Something else than an enqueue made tasks ready: a job, a retry by hand, a queue that goes on."""
        if self.inline is not None:
            await self.inline.readied(())

    @contextmanager
    def around(self, tasks: Sequence[NewTask]) -> Generator[Sequence[NewTask]]:
        """The middleware around a write of tasks: yields those to write."""
        with ExitStack() as stack:
            for middleware in self.middleware:
                changed = stack.enter_context(middleware.enqueue(tasks))
                tasks = tasks if changed is None else changed
            yield tasks

    async def enqueue_each(
        self, chunks: Iterator[Sequence[NewTask]], *, connection: Any = None
    ) -> AsyncGenerator[list[Enqueued]]:
        """Write chunk after chunk: one is prepared while the last is written, and handed over once that one is."""
        apart = bool(self.middleware or self.inline) or connection is not None or transaction_of(self) is not None
        chunk: Sequence[NewTask] | None = None
        written: Waiting | None = None
        while True:
            failure: Exception | None = None
            last, chunk = chunk, None
            try:
                chunk = next(chunks, None)
            except Exception as error:  # what was handed over before is still the caller's to know
                failure = error
            if written is not None and last is not None:
                answers = await written.answers()
                self.counting.tasks_created(last, answers)
                yield answers
                written = None
            if failure is not None:
                raise failure
            if chunk is None:
                return
            if apart or not is_plain(chunk):
                yield await self.enqueue(chunk, connection=connection)
            else:
                written = self._coalescer().begin(chunk)

    async def ended(self, task: int, *, timeout: float | None) -> TaskRecord:
        """The record of a task that has ended. TimeoutError when it has not within `timeout` seconds."""
        if self.inline is not None:
            await self.inline.wanted(task)

        async def work() -> TaskRecord:
            connected = await self._open()
            async with asyncio.timeout(timeout):
                return await connected.poller.ended(task)

        return await on_store(work)

    def deadline(self, timeout: float | None) -> float | None:
        """An instant for `some_ended`."""
        return None if timeout is None else time.monotonic() + timeout

    async def some_ended(self, tasks: Sequence[int], deadline: float | None) -> list[int]:
        """Those that have ended, as soon as one has: one query for all of them. TimeoutError after the deadline."""
        if self.inline is not None:
            for task in tasks:
                await self.inline.wanted(task)

        async def work() -> list[int]:
            connected = await self._open()
            async with asyncio.timeout(None if deadline is None else max(0.0, deadline - time.monotonic())):
                return await connected.poller.some_ended(tasks)

        return await on_store(work)

    async def watched[T](self, topics: Sequence[str], look: Callable[[Following], Coroutine[Any, Any, T | None]]) -> T:
        """The first answer of `look` that is not None. It is asked at once, at every hint, and every now and then."""

        async def work() -> T:
            connected = await self._open()
            pause = _SHORTEST_LOOK
            with connected.hub.listening(topics) as signal:
                while True:
                    signal.clear()
                    with suppress(StoreUnavailable):  # it may be back before long; whoever waits can give up
                        found = await self._use(lambda _: look(connected.following))
                        if found is not None:
                            return found
                    await connected.hub.wait(signal, pause)
                    pause = min(pause * 2, _LONGEST_LOOK)

        return await on_store(work)

    async def aclose(self) -> None:
        """Close the store, once what was begun before is written. The next use opens it again."""
        must_block()  # says no where it would stop a loop, before anything is closed
        try:
            if self.nearby is not None:
                await self.nearby.aclose()
        finally:
            if BRIDGE.running:  # else nobody in this process has begun anything there
                await on_store(self.close_here)

    async def _enqueue(self, tasks: Sequence[NewTask], connection: Any) -> list[Enqueued]:
        connection = transaction_of(self) if connection is None else connection
        if connection is not None:
            answers = await enqueue_in(connection, await self.opened_store(), tasks, asking=self.identity)
            self.counting.tasks_created(tasks, answers)
            return answers
        if is_plain(tasks):
            line = self._line()
            if (store := self._store_for_one(line)) is None:
                answers = await line.begin(tasks).answers()
            else:
                answers = await self._enqueue_alone(store, tasks)
        else:
            answers = await self.follow(lambda ledger: ledger.enqueue(tasks))
        self.counting.tasks_created(tasks, answers)
        return answers

    def _line(self) -> Coalescer:
        """Where a call with a few tasks stands: on the caller's own loop where it can, else with the rest. What is
        counted is sent from the background loop, which has to be there for it.
        """
        nearby = None if self.nearby is None or self.counting.wanted else self.nearby.coalescer()
        return nearby or self._coalescer()

    def _store_for_one(self, coalescer: Coalescer) -> Store | None:
        """An SQLite store serves any thread and loop: a caller that is alone goes straight to its line, because by the
        background loop it would be two more changes of threads. None where others are about, and for who blocks.
        """
        if self.nearby is not None:
            return None
        now, connected = time.monotonic(), self._connected
        if self._one_is_alone or coalescer.has_a_line:
            self._company_at = now
        alone = now - self._company_at > _ALONE_AFTER and coalescer.idle and not must_block()
        return connected.store if alone and connected is not None and connected.forks == BRIDGE.forks else None

    async def _enqueue_alone(self, store: Store, tasks: Sequence[NewTask]) -> list[Enqueued]:
        """Whoever comes meanwhile stands in line behind it."""
        self._one_is_alone = True
        try:
            return await store.enqueue(tasks)
        except StoreClosed:  # by another thread, at this moment; the way through the line opens it again
            return await self._coalescer().begin(tasks).answers()
        finally:
            self._one_is_alone = False

    def _coalescer(self) -> Coalescer:
        """From any thread, without waiting: a call that has begun stands in line before anything else happens."""
        forks = BRIDGE.forks
        found = self._coalescers.get(forks)
        if found is None:
            made = Coalescer(self._write, BRIDGE.loop, at_once=self._commits_at_once)
            found = self._coalescers.setdefault(forks, made)  # two threads may come first
        return found

    async def _write(self, tasks: Sequence[NewTask]) -> list[Enqueued]:
        return await self._use(lambda store: store.enqueue(tasks))

    async def identity(self) -> tuple[str, ...]:
        """Which database it is, as far as a server can say."""
        return await self.run(lambda store: cast("_Identified", store).identity(), may_block=True)

    # On the background loop only.

    async def use_here[T](self, act: Callable[[Store], Coroutine[Any, Any, T]]) -> T:
        """For what runs there beside its callers."""
        return await self._use(act)

    async def _use[T](self, act: Callable[[Store], Coroutine[Any, Any, T]]) -> T:
        """The store stays open until the act is over."""
        connected = await self._open()
        connected.users += 1
        try:
            return await act(connected.store)
        finally:
            connected.users -= 1
            if not connected.users:
                connected.unused.set()

    async def _open(self) -> _Connected:
        """Nothing happens between its end and the caller's next line."""
        if self._connected is not None and self._connected.forks == BRIDGE.forks:
            return self._connected
        if self._forks != BRIDGE.forks:
            # After a fork: the parent's sockets are not ours to use, nor to close.
            self._abandoned.append(self._connected)
            self._connected, self._opening, self._forks = None, asyncio.Lock(), BRIDGE.forks
            BRIDGE.at_exit(self.aclose)
        assert self._opening is not None
        async with self._opening:
            if self._connected is None:
                store = self.new_store()
                self.counting.open(asyncio.get_running_loop(), store)
                try:
                    await store.open()
                except BaseException:
                    await store.close()
                    raise
                following = Following(store, lambda url: self.new_store(url=url))
                self._connected = _Connected(BRIDGE.forks, store, following, Poller(following.get), Hub(store))
            return self._connected

    async def close_here(self) -> None:
        """Without the lines of other loops."""
        coalescer = self._coalescers.get(BRIDGE.forks)
        if coalescer is not None:
            await coalescer.flushed()
        if self._opening is None or self._forks != BRIDGE.forks:
            return
        # Whoever was about to open it is before us here; whoever comes from now on opens it anew.
        async with self._opening:
            connected, self._connected = self._connected, None
            if connected is None:
                return
            await connected.hub.stop()
            connected.unused.clear()
            if connected.users:
                await connected.unused.wait()
            self.counting.close()
            connected.poller.stop()
            try:
                await connected.following.close()
            finally:
                await connected.store.close()
