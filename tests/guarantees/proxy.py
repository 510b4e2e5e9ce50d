"""A PostgreSQL proxy that loses a connection exactly at a COMMIT.

It reads both directions of the protocol. When a transaction that ran a matching statement is about to commit, it
either drops the connection before the server hears of it, or lets the server commit and drops the answer. A statement
outside BEGIN commits by itself and counts as its own transaction.
"""

import contextlib
import re
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

type Moment = Literal["before", "after"]

_SSL, _GSS = 80877103, 80877104
_LENGTH = struct.Struct("!I")


class _Gone(Exception):
    """One of the two sides closed."""


class Proxy:
    """Listens on the loopback; `url` is the server's through it. Use as a context manager."""

    def __init__(self, url: str) -> None:
        self._upstream = urlsplit(url)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._links: list[_Link] = []
        self._armed: tuple[re.Pattern[str], Moment] | None = None
        self._left = 0
        self.cuts: list[str] = []
        port = self._listener.getsockname()[1]
        self.url = urlunsplit(self._upstream._replace(netloc=f"{self._upstream.username}@127.0.0.1:{port}"))

    def __enter__(self) -> "Proxy":
        threading.Thread(target=self._accept, daemon=True, name="proxy").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        for link in self._links:
            link.close()

    def arm(self, pattern: str, moment: Moment, *, times: int = 1) -> None:
        """Cut the next `times` transactions that run a statement like this."""
        with self._lock:
            self._armed = (re.compile(pattern, re.IGNORECASE | re.DOTALL), moment)
            self._left = times

    def asked(self, statements: list[str]) -> Moment | None:
        with self._lock:
            if self._armed is None or self._left == 0:
                return None
            pattern, moment = self._armed
            matching = [statement for statement in statements if pattern.search(statement)]
            if not matching:
                return None
            self._left -= 1
            self.cuts.append(matching[0])
            return moment

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                server = socket.create_connection((self._upstream.hostname, self._upstream.port))
                server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                link = _Link(self, client, server)
                self._links.append(link)
                link.start()


class _Link:
    """One connection: two pumps."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._swallow = False
        self._named: dict[str, str] = {}
        self._bound: list[str] = []
        self._transaction: list[str] | None = None  # statements since BEGIN; None outside

    def start(self) -> None:
        for pump in (self._to_server, self._to_client):
            threading.Thread(target=self._guarded, args=(pump,), daemon=True, name="proxy").start()

    def close(self) -> None:
        for side in (self._client, self._server):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
            side.close()

    def _guarded(self, pump: "object") -> None:
        with contextlib.suppress(OSError, _Gone):
            pump()  # type: ignore[operator]
        self.close()

    def _to_server(self) -> None:
        self._startup()
        waiting = bytearray()
        for kind, body in _messages(self._client):
            waiting += kind + _LENGTH.pack(len(body) + 4) + body
            if kind == b"P":
                name, statement = body.split(b"\0")[:2]
                self._named[name.decode()] = statement.decode(errors="replace")
            elif kind == b"B":
                self._bound.append(self._named.get(body.split(b"\0")[1].decode(), ""))
            if kind in b"QS":
                statements = [body[:-1].decode(errors="replace")] if kind == b"Q" else self._bound
                self._bound = []
                match self._commits(statements):
                    case "before":
                        raise _Gone
                    case "after":
                        self._swallow = True
                    case None:
                        pass
            if kind not in b"PBDEC":
                self._server.sendall(waiting)
                waiting.clear()

    def _commits(self, statements: list[str]) -> Moment | None:
        """What to do when these statements end a transaction."""
        for statement in statements:
            word = statement.lstrip().upper()
            if word.startswith("BEGIN"):
                self._transaction = []
            elif word.startswith("ROLLBACK"):
                self._transaction = None
            elif word.startswith("COMMIT"):
                ran, self._transaction = self._transaction or [], None
                return self._proxy.asked(ran)
            elif self._transaction is not None:
                self._transaction.append(statement)
            elif asked := self._proxy.asked([statement]):
                return asked
        return None

    def _startup(self) -> None:
        while True:
            length = _exactly(self._client, 4)
            body = _exactly(self._client, _LENGTH.unpack(length)[0] - 4)
            if _LENGTH.unpack(body[:4])[0] not in (_SSL, _GSS):
                self._server.sendall(length + body)
                return
            self._client.sendall(b"N")

    def _to_client(self) -> None:
        for kind, body in _messages(self._server):
            if not self._swallow:
                self._client.sendall(kind + _LENGTH.pack(len(body) + 4) + body)
            elif kind == b"Z":
                raise _Gone  # it is committed, and nobody will say so


def _messages(side: socket.socket) -> Iterator[tuple[bytes, bytes]]:
    while True:
        head = _exactly(side, 5)
        yield head[:1], _exactly(side, _LENGTH.unpack(head[1:])[0] - 4)


def _exactly(side: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = side.recv(min(size - len(data), 1 << 16))
        if not piece:
            raise _Gone
        data += piece
    return bytes(data)
