"""How the counts of many processes meet in their supervisor: datagrams of what was added since the last one.

Every process below a supervisor that shows metrics finds the address in its environment, those that tasks start, too.
A datagram between processes of one machine is not lost; what cannot be sent now is kept and goes with the next. The
last half second of a process that is killed is all that can be missing.
"""

import asyncio
import contextlib
import json
import os
import socket
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from headrace.telemetry.events import Bus
from headrace.telemetry.tally import Entry, Tally

VARIABLE = "HEADRACE_METRICS_RELAY"
INTERVAL = 0.5
_ENTRIES = 50  # in one datagram: far below what the kernel takes
_PATIENCE = 1.0
_MOST = 1 << 20


_RELAYS: "weakref.WeakSet[Relay]" = weakref.WeakSet()


def flush_before_exit() -> None:
    """For a process that leaves without the interpreter's own end. Nobody counts any more."""
    for relay in list(_RELAYS):
        relay.flush(patience=_PATIENCE)


def relay_address() -> str | None:
    """Where this process should send its counts; None when nobody asked for them."""
    return os.environ.get(VARIABLE) or None


def set_relay_address(address: str | None) -> None:
    """For this process and all that it will start."""
    if address is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = address


def tell(address: str, entry: Entry) -> None:
    """Send one entry now, from any thread: what happens rarely, and in processes that count nothing else."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.settimeout(_PATIENCE)
        made.connect(address)
        made.send(_encoded([entry]))


def _encoded(entries: Sequence[Entry]) -> bytes:
    return json.dumps(entries, separators=(",", ":")).encode()


class Relay:
    """Sends what its tally gathered. It belongs to the thread of its event loop; `lock` is for a tally to which other
    threads add.
    """

    def __init__(self, address: str, *, lock: AbstractContextManager[Any] | None = None) -> None:
        self.tally = Tally()
        self._address = address
        self._lock: AbstractContextManager[Any] = lock or contextlib.nullcontext()
        self._socket: socket.socket | None = None
        self._timer: asyncio.TimerHandle | None = None
        _RELAYS.add(self)

    def forget(self, lock: AbstractContextManager[Any]) -> None:
        """After a fork: what is here is the parent's to send."""
        self.tally.rows, self._socket, self._timer, self._lock = {}, None, None, lock

    def attach(self, bus: Bus) -> "Relay":
        bus.subscribe(self.tally.observe, *self.tally.handlers)
        return self

    async def run(self) -> None:
        """For a process that counts all the time."""
        while True:
            await asyncio.sleep(INTERVAL)
            self.flush()

    def soon(self, loop: asyncio.AbstractEventLoop) -> None:
        """For one that counts now and then: send within the interval, on this loop."""
        if self._timer is None:
            self._timer = loop.call_later(INTERVAL, self._due)

    def _due(self) -> None:
        self._timer = None
        self.flush()

    def flush(self, *, patience: float = 0.0) -> None:
        """Send what there is; what the supervisor has no room for stays, and so does all when it is gone."""
        with self._lock:
            entries = self.tally.take()
        while entries:
            try:
                self._send(entries[:_ENTRIES], patience)
            except OSError:
                with self._lock:
                    self.tally.add(entries)
                return
            del entries[:_ENTRIES]

    def close(self) -> None:
        """The orderly end: nothing of what was counted is left behind."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.flush(patience=_PATIENCE)
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, entries: Sequence[Entry], patience: float) -> None:
        if self._socket is None:
            made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                made.connect(self._address)
            except OSError:
                made.close()
                raise
            self._socket = made
        self._socket.settimeout(patience)
        self._socket.send(_encoded(entries))


class Meeting:
    """The supervisor's end: adds what arrives to one tally."""

    def __init__(self, path: Path, tally: Tally) -> None:
        self.address = str(path)
        self._tally = tally
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            self._socket.bind(self.address)
        except OSError:
            self._socket.close()
            raise

    def open(self, loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
        """Begin to receive; the answer ends it."""
        loop.add_reader(self._socket, self.receive)

        def close() -> None:
            loop.remove_reader(self._socket)
            self.receive()
            self._socket.close()

        return close

    def receive(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                self._add(self._socket.recv(_MOST))

    def _add(self, data: bytes) -> None:
        # Whatever a task of the user's sends here by mistake must not end the supervisor.
        with contextlib.suppress(ValueError, TypeError):
            self._tally.add([_entry(entry) for entry in json.loads(data)])


def _entry(value: Any) -> Entry:
    key, row = value
    return [str(part) for part in key], [float(number) for number in row]
