"""Hints that there may be work: a Unix datagram to every listener, and a look at the file for those who send none.

A user's own transaction, or a process of another user, wakes nobody by datagram; the version number that SQLite keeps
of the file shows that something was written.
"""

import asyncio
import os
import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import orjson

from headrace.store.sqlite.connection import Part, Transaction
from headrace.store.sqlite.sockets import addresses, bound, is_refusal, remove, remove_forgotten, socket_folder, unbound

CANCEL = "cancel"

_POLL = 0.010
_IDLE_POLL = 0.050
_IDLE_AFTER = 10.0
_LONGEST_MESSAGE = 4096


class Sender:
    """Tells every listener of the file, after a commit. Never blocks and never fails."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket: socket.socket | None = None
        self._pid = -1

    def send(self, names: Iterable[str]) -> None:
        listening = addresses(self._folder)
        if not listening:
            return
        if self._socket is None or self._pid != os.getpid():
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
            self._pid = os.getpid()
        for name in names:
            for address in listening:
                self._send_one(self._socket, name.encode(errors="replace"), address)

    def _send_one(self, sender: socket.socket, message: bytes, address: str) -> None:
        try:
            sender.sendto(message, address)
        except OSError as error:
            # Nobody reads there any more. A full buffer is as good as delivered: its reader has enough to wake up for.
            if is_refusal(error):
                remove(address)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


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
            if name == CANCEL or name in self._queues:
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
        found = [queue for (queue,) in transaction.rows("queues_with_work", (self._wanted,))]
        due = transaction.rows("next_due")[0][0]
        if due is not None and due <= transaction.now:
            found = sorted(self._queues)
        if transaction.rows("cancelling_of_worker", (self._worker,)):
            found.append(CANCEL)
        return found


class Waking(Part):
    _listeners: set[Listener]
    _sender: Sender | None
    _version: int | None
    _changed_at: float

    def prepare_wakeups(self) -> None:
        """Told by the store once its database exists."""
        self._listeners = set()
        self._sender = None if self.database.in_memory else Sender(socket_folder(self.database.path))
        self._version, self._changed_at = None, 0.0
        self.database.committed = self._wake
        self.database.watch = self._watch

    def close_wakeups(self) -> None:
        """Once the writing thread is gone; a later wake-up opens anew."""
        if self._sender is not None:
            self._sender.close()

    def _wake(self, names: set[str]) -> None:
        if self._sender is not None:
            self._sender.send(names)
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
        folder = None if self.database.in_memory else socket_folder(self.database.path)
        if folder is not None:
            await asyncio.to_thread(remove_forgotten)
        listener = Listener(folder, worker, queues)
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
