"""Hints that there may be work: a Unix datagram to every listener, and a look at the file for those who send none.

A user's own transaction, or a process of another user, wakes nobody by datagram; the version number that SQLite keeps
of the file shows that something was written.
"""

import asyncio
import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import orjson

from headrace.store.base import RETRIES
from headrace.store.sqlite.connection import Part, Transaction
from headrace.store.sqlite.sockets import bound, remove_forgotten, send, socket_folder, unbound

CANCEL = "cancel"

_POLL = 0.010
_IDLE_POLL = 0.050
_IDLE_AFTER = 10.0
_LONGEST_MESSAGE = 4096


class Listener:
    """The hints for one worker: an endless iterator."""

    def __init__(self, folder: Path | None, worker: str, queues: Sequence[str]) -> None:
        self._folder = folder
        self._worker = worker
        self._queues = frozenset(queues)
        self._wanted = orjson.dumps(sorted(self._queues)).decode()
        self._pending: dict[str, None] = {}
        self._came = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._socket: socket.socket | None = None

    def open(self) -> None:
        if self._folder is not None and (receiver := bound(self._folder)) is not None:
            self._socket = receiver
            self._loop.add_reader(receiver.fileno(), self._receive)

    def close(self) -> None:
        receiver, self._socket = self._socket, None
        if receiver is not None:
            self._loop.remove_reader(receiver.fileno())
            unbound(receiver)

    @property
    def pending(self) -> tuple[str, ...]:
        """What has been heard and not yet been asked for."""
        return tuple(self._pending)

    def note(self, names: Iterable[str]) -> None:
        """From the listener's own loop."""
        for name in names:
            if name == CANCEL or name.removeprefix(RETRIES) in self._queues:
                self._pending[name] = None
                self._came.set()

    def note_from_thread(self, names: Iterable[str]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody listens any more
            self._loop.call_soon_threadsafe(self.note, tuple(names))

    def _receive(self) -> None:
        assert self._socket is not None
        with suppress(BlockingIOError):
            while True:
                self.note((self._socket.recv(_LONGEST_MESSAGE).decode(errors="replace"),))

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        while not self._pending:
            self._came.clear()
            await self._came.wait()
        name = next(iter(self._pending))
        del self._pending[name]
        return name

    def look(self, transaction: Transaction) -> list[str]:
        """What there is to do. On the reading thread."""
        ready = transaction.rows("queues_with_work", (self._wanted,))
        found = [queue if new else f"{RETRIES}{queue}" for queue, new in ready]
        due = transaction.rows("next_due")[0][0]
        if due is not None and due <= transaction.now:
            # In a storm of retries something always is, and the next of their claims readies it, new or not.
            found += [f"{RETRIES}{queue}" for queue in sorted(self._queues)]
        if transaction.rows("cancelling_of_worker", (self._worker,)):
            found.append(CANCEL)
        return found


class Waking(Part):
    _listeners: set[Listener]
    _folder: Path | None
    _version: int | None
    _changed_at: float

    def prepare_wakeups(self) -> None:
        """Told by the store once its database exists."""
        self._listeners = set()
        self._folder = None if self.database.in_memory else socket_folder(self.database.path)
        self._version, self._changed_at = None, 0.0
        self.database.committed = self._wake
        self.database.watch = self._watch

    def _wake(self, names: set[str]) -> None:
        if self._folder is not None:
            send(self._folder, names)
            return
        for listener in tuple(self._listeners):
            listener.note_from_thread(names)

    def _watch(self, transaction: Transaction) -> float | None:
        """On the reading thread, while somebody listens: did anyone write, and is there something to do?"""
        listeners = tuple(self._listeners)
        if not listeners:
            return None
        version, now = transaction.rows("data_version")[0][0], time.monotonic()
        if version != self._version:
            self._version, self._changed_at = version, now
            for listener in listeners:
                if found := listener.look(transaction):
                    listener.note_from_thread(found)
        return _POLL if now - self._changed_at < _IDLE_AFTER else _IDLE_POLL

    @asynccontextmanager
    async def listen(self, worker: str, queues: Sequence[str]) -> AsyncGenerator[AsyncIterator[str]]:
        if self._folder is not None:
            await asyncio.to_thread(remove_forgotten)
        listener = Listener(self._folder, worker, queues)
        listener.open()
        self._listeners.add(listener)
        try:
            # What came before it listened; and from this read on the thread watches.
            self._version = None
            listener.note(await self.database.read(listener.look))
            yield listener
        finally:
            self._listeners.discard(listener)
            listener.close()

    async def wake(self, queues: Iterable[str]) -> None:
        self._wake(set(queues))
