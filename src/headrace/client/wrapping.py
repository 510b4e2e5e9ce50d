"""What stands around a task in a worker: the app's middleware, and the codec its payload was written with.

A task without either is run as it is.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import wraps
from typing import Any

from headrace.client.middleware import Middleware
from headrace.core.payload import Codec, dumps, loads
from headrace.executors.base import Entry
from headrace.executors.context import running_context


class WrappedEntry:
    """An entry whose calls pass through middleware and whose payloads pass through a codec."""

    def __init__(self, entry: Entry, *, middleware: Sequence[Middleware], codec: Codec | None) -> None:
        self.name = entry.name
        self.is_async = entry.is_async
        self.retry = entry.retry
        self.function = _around(entry, middleware) if middleware else entry.function
        self._entry = entry
        self._codec = codec

    def load_arguments(self, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self._entry.load_arguments(text if self._codec is None else self._codec.decode(text))

    def dump_result(self, value: Any) -> str:
        text = self._entry.dump_result(value)
        return text if self._codec is None else self._codec.encode(text)

    def inject(self, context: Any, resources: Mapping[str, Any]) -> dict[str, Any]:
        return self._entry.inject(context, resources)


class EventEntry(WrappedEntry):
    """An entry that an event enqueued: its arguments are plain, and its payload is as the sender wrote it."""

    def __init__(
        self, entry: Entry, *, middleware: Sequence[Middleware], codec: Codec | None, read: Callable[[Any], Any]
    ) -> None:
        super().__init__(entry, middleware=middleware, codec=codec)
        self._read = read

    def load_arguments(self, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if '"$codec"' in text:
            given = loads(text)
            text = dumps({**given, "payload": self._read(given.get("payload"))})
        return self._entry.load_arguments(text)


def _around(entry: Entry, middleware: Sequence[Middleware]) -> Callable[..., Any]:
    function = entry.function

    def entered(stack: ExitStack) -> None:
        context = running_context()
        for each in middleware:
            stack.enter_context(each.attempt(context))

    @wraps(function)
    async def call_async(*args: Any, **kwargs: Any) -> Any:
        with ExitStack() as stack:
            entered(stack)
            return await function(*args, **kwargs)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with ExitStack() as stack:
            entered(stack)
            return function(*args, **kwargs)

    return call_async if entry.is_async else call
