"""Hints on their way to whoever watches: names of what has grown, many in one message."""

import asyncio
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Self

EVERYTHING = "*"
_BETWEEN = "\n"
_AT_MOST = 10_000  # that wait for one watcher: more of them say no more than that everything may have grown


def job_topic(job: int) -> str:
    return f"job/{job}"


def task_topic(task: int) -> str:
    return f"task/{task}"


def packed(topics: Collection[str], *, limit: int) -> Iterator[str]:
    """Few messages of at most `limit` bytes. A topic that no message can carry becomes a hint at everything."""
    message: list[str] = []
    size = 0
    for topic in sorted({topic if _is_fit(topic, limit) else EVERYTHING for topic in topics}):
        needed = len(topic.encode()) + 1
        if message and size + needed > limit:
            yield _BETWEEN.join(message)
            message, size = [], 0
        message.append(topic)
        size += needed
    if message:
        yield _BETWEEN.join(message)


def unpacked(message: str) -> list[str]:
    return [topic for topic in message.split(_BETWEEN) if topic]


def _is_fit(topic: str, limit: int) -> bool:
    try:
        return bool(topic) and _BETWEEN not in topic and "\0" not in topic and len(topic.encode()) < limit
    except UnicodeEncodeError:
        return False


class Hints:
    """An endless iterator for one watcher, on its own loop; the same hint twice before it is read is one."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pending: dict[str, None] = {}
        self._came = asyncio.Event()

    def offer(self, topics: Iterable[str]) -> None:
        self._pending.update(dict.fromkeys(topics))
        if len(self._pending) > _AT_MOST:
            self._pending = {EVERYTHING: None}
        if self._pending:
            self._came.set()

    def offer_from_thread(self, topics: Iterable[str]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody watches any more
            self._loop.call_soon_threadsafe(self.offer, tuple(topics))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        while not self._pending:
            self._came.clear()
            await self._came.wait()
        topic = next(iter(self._pending))
        del self._pending[topic]
        return topic
