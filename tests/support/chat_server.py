"""A local server that speaks the chat protocol and fails on request.

with ChatServer() as server:
    server.then(status(429, retry_after="90"), text("a summary"))

Answers are given in order, one for each request; after the last of them, `server.otherwise` for each. An answer is a
function that writes to the connection of the handler.
"""

import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

type Answer = Callable[["_Handler"], None]


@dataclass(frozen=True, slots=True)
class Asked:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """What was to be summarised, with the words around it."""
        return self.body["messages"][-1]["content"]


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        answer = self.server.of.next_answer(asked)
        self.close_connection = True
        with suppress(BrokenPipeError, ConnectionResetError):  # the caller may have had enough
            answer(self)

    def log_message(self, *_: object) -> None:
        pass

    def start_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()

    def event(self, data: str) -> None:
        self.wfile.write(f"data: {data}\n\n".encode())
        self.wfile.flush()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    of: "ChatServer"


@dataclass(slots=True)
class ChatServer:
    otherwise: Answer = field(default_factory=lambda: text("a summary"))
    asked: list[Asked] = field(default_factory=list[Asked])
    released: threading.Event = field(default_factory=threading.Event)  # ends the answers that hang
    _answers: deque[Answer] = field(default_factory=deque[Answer])
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _server: _Server | None = None

    def then(self, *answers: Answer) -> None:
        with self._lock:
            self._answers.extend(answers)

    def next_answer(self, asked: Asked) -> Answer:
        with self._lock:
            self.asked.append(asked)
            return self._answers.popleft() if self._answers else self.otherwise

    @property
    def base_url(self) -> str:
        assert self._server is not None, "use it as a context manager"
        return f"http://127.0.0.1:{self._server.server_address[1]}/api/v1"

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.of = self
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="chat-server", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server is not None
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


def delta(content: str, *, finish: str | None = None) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": finish}]})


def text(summary: str | Sequence[str]) -> Answer:
    """A stream of these pieces, as a service sends it: comments between, usage figures without choices, [DONE]."""
    pieces = [summary] if isinstance(summary, str) else list(summary)

    def answer(handler: _Handler) -> None:
        handler.start_stream()
        handler.wfile.write(b": OPENROUTER PROCESSING\n\n")
        for piece in pieces:
            handler.event(delta(piece))
        handler.event(delta("", finish="stop"))
        handler.event(json.dumps({"choices": [], "usage": {"total_tokens": 7}}))
        handler.event("[DONE]")

    return answer


def whole(summary: str) -> Answer:
    """Not streamed, whatever was asked."""
    return body(json.dumps({"choices": [{"message": {"role": "assistant", "content": summary}}]}))


def body(content: str, *, content_type: str = "application/json", status: int = 200) -> Answer:
    def answer(handler: _Handler) -> None:
        data = content.encode()
        handler.send_response(status)
        handler.send_header("content-type", content_type)
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def status(code: int, *, retry_after: str | None = None, message: str | None = None, quote_key: bool = False) -> Answer:
    """A refusal. With `quote_key` the message repeats the key that came, as some services do."""

    def answer(handler: _Handler) -> None:
        said = message or f"you get {code}"
        if quote_key:
            said += f": {handler.headers['authorization']}"
        data = json.dumps({"error": {"code": code, "message": said}}).encode()
        handler.send_response(code)
        handler.send_header("content-type", "application/json")
        if retry_after is not None:
            handler.send_header("retry-after", retry_after)
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def cut(pieces: Sequence[str] = ("half a",)) -> Answer:
    """The connection is closed in the middle of the stream."""

    def answer(handler: _Handler) -> None:
        handler.start_stream()
        for piece in pieces:
            handler.event(delta(piece))
        handler.wfile.flush()

    return answer


def cut_at_once() -> Answer:
    """Not even a status."""
    return lambda handler: None


def malformed(data: str = '{"choices": [{"delta": ') -> Answer:
    def answer(handler: _Handler) -> None:
        handler.start_stream()
        handler.event(data)
        handler.event("[DONE]")

    return answer


def empty() -> Answer:
    """A stream that is complete and says nothing."""
    return malformed('{"choices": []}')


def error_in_stream(code: int, *, quote_key: bool = False) -> Answer:
    """After the status 200, as gateways report what is behind them."""

    def answer(handler: _Handler) -> None:
        handler.start_stream()
        handler.event(delta("half a"))
        said = f"upstream said {code}" + (f": {handler.headers['authorization']}" if quote_key else "")
        handler.event(json.dumps({"error": {"code": code, "message": said}, "choices": []}))

    return answer


def silence(server: ChatServer, *, comments: bool = False) -> Answer:
    """Nothing comes until the server is closed; with `comments`, only what keeps a connection alive."""

    def answer(handler: _Handler) -> None:
        if comments:
            handler.start_stream()
        while not server.released.wait(0.05):
            if comments:
                handler.wfile.write(b": still working\n\n")
                handler.wfile.flush()

    return answer
