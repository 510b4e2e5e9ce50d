"""The hub by itself: what it reads, when, and what it holds."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from headrace import App
from headrace.core.errors import StoreUnavailable
from headrace.server.live.hub import Hub
from headrace.server.live.pace import Pace
from headrace.server.live.sources import JobLogs, JobStatus, TaskSource
from headrace.server.live.watchers import Dropped, Ended, Watcher
from headrace.server.options import ServerOptions
from tests.server.live.watching import CEILING
from tests.server.live.writing import Writer, store_of
from tests.support.waiting import eventually


@asynccontextmanager
async def hub_of(url: str, pace: Pace, **options: str) -> AsyncGenerator[Hub]:
    app = App(url)
    try:
        async with Hub(app, ServerOptions(auth=False, **options), pace) as hub:
            yield hub
    finally:
        await app.aclose()


async def numbers_of(watcher: Watcher, last: int) -> list[int]:
    """What a watcher takes that comes late, up to the message of that number."""
    async with asyncio.timeout(CEILING), watcher.sending():
        found = await _joined(watcher, None)
        return found if found[-1:] == [last] else found + await _taken(watcher, last)


async def _joined(watcher: Watcher, after: int | None) -> list[int]:
    pages = [page async for page in watcher.join(None if after is None else (after,))]
    return [message.position[0] for page in pages for message in page if message.position is not None]


async def _taken(watcher: Watcher, last: int) -> list[int]:
    found: list[int] = []
    while not found or found[-1] < last:
        message = watcher.take()
        if message is None:
            await watcher.wait()
        elif message.position is not None:
            found.append(message.position[0])
    return found


async def test_without_hints_it_looks_by_itself(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hints may be lost; one look each second finds everything, jobs and tasks."""

    async def deaf(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("headrace.server.live.hub.listen_to_store", deaf)
    app = App(store_url)
    async with hub_of(store_url, Pace(poll=0.1)) as hub, store_of(app) as store:
        writer = await Writer.begin(store)
        async with (
            hub.watching(JobLogs(writer.job), ping=60) as lines,
            hub.watching(JobStatus(writer.job), ping=60) as status,
            hub.watching(TaskSource(writer.task), ping=60) as task,
        ):
            running = [
                asyncio.create_task(numbers_of(lines, 1)),
                asyncio.create_task(numbers_of(status, 2)),
                asyncio.create_task(_states(task, "completed")),
            ]
            await writer.say(2)
            await writer.finish()
            seen, changes, states = await asyncio.gather(*running)
    assert (seen, changes[-1], states[-1]) == ([0, 1], 2, "completed")


async def _states(watcher: Watcher, last: str) -> list[str]:
    found: list[str] = []
    async with asyncio.timeout(CEILING), watcher.sending():
        async for page in watcher.join(None):
            found += [message.text for message in page]
        while f'"status":"{last}"' not in "".join(found[-1:]):
            message = watcher.take()
            if message is None:
                await watcher.wait()
            elif message.position is None:
                found.append(message.text)
    return [*found, last]


async def test_with_hints_it_does_not_wait_for_its_next_look(store_url: str) -> None:
    app = App(store_url)
    async with hub_of(store_url, Pace(poll=600)) as hub, store_of(app) as store:
        writer = await Writer.begin(store)
        async with hub.watching(JobLogs(writer.job), ping=60) as watcher:
            running = asyncio.create_task(numbers_of(watcher, 19))
            for _ in range(20):
                await writer.say()
            assert await running == list(range(20))


async def test_a_database_that_fails_is_asked_again(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Watchers stay, and see everything once it is back. Whoever reads the server's log is told once."""
    app, failing = App(sqlite_url), False
    read = JobLogs.behind

    async def behind(self: JobLogs, *arguments: object) -> list[object]:
        if failing:
            raise StoreUnavailable("it is gone")
        return await read(self, *arguments)

    monkeypatch.setattr(JobLogs, "behind", behind)
    with caplog.at_level(logging.WARNING, "headrace.live"):
        async with hub_of(sqlite_url, Pace(poll=0.1)) as hub, store_of(app) as store:
            writer = await Writer.begin(store)
            async with hub.watching(JobLogs(writer.job), ping=60) as watcher:
                running = asyncio.create_task(numbers_of(watcher, 5))
                failing = True
                for _ in range(3):
                    await writer.say(2)
                await eventually(lambda: "it is gone" in caplog.text)
                failing = False
                assert await running == list(range(6))
    assert caplog.text.count("it is gone") == 1


async def test_whoever_is_ahead_of_a_server_is_not_sent_it_again(sqlite_url: str) -> None:
    """They come from another server that was faster."""
    app = App(sqlite_url)
    async with hub_of(sqlite_url, Pace()) as hub, store_of(app) as store:
        writer = await Writer.begin(store)
        await writer.say(5)
        async with hub.watching(JobLogs(writer.job), ping=60) as watcher, watcher.sending():
            assert await _joined(watcher, 7) == []
            await writer.say(2)
            await writer.say(4)
            assert await asyncio.wait_for(_taken(watcher, 10), CEILING) == [8, 9, 10]


async def test_what_is_no_longer_in_memory_is_read_back(store_url: str) -> None:
    """Lines that are too large to be kept: a late watcher gets them from the ledger, and goes on without a gap."""
    app, long = App(store_url), "{} " + "x" * 40_000
    async with hub_of(store_url, Pace(most_bytes=1000)) as hub, store_of(app) as store:
        writer = await Writer.begin(store)
        async with hub.watching(JobLogs(writer.job), ping=60) as early:
            running = asyncio.create_task(numbers_of(early, 59))
            for _ in range(30):
                await writer.say(2, text=long)
                await eventually(lambda: early.messages_behind == 0 or running.done())
            with contextlib.suppress(Dropped):  # it may have been too slow for so little memory
                await running
            async with hub.watching(JobLogs(writer.job), ping=60) as late:
                running = asyncio.create_task(numbers_of(late, 60))
                await writer.say()
                assert await running == list(range(61))


async def test_nobody_watches_and_nothing_is_kept(sqlite_url: str) -> None:
    app = App(sqlite_url)
    async with hub_of(sqlite_url, Pace()) as hub, store_of(app) as store:
        writer = await Writer.begin(store)
        async with hub.watching(JobLogs(writer.job), ping=60):
            async with hub.watching(JobLogs(writer.job), ping=60):
                assert hub.topics == {f"job/{writer.job}/logs"}
                assert hub.watchers == 2
            assert hub.topics == {f"job/{writer.job}/logs"}
        assert (hub.topics, hub.watchers) == (frozenset(), 0)


async def test_a_server_that_stops_lets_everybody_go(sqlite_url: str) -> None:
    app = App(sqlite_url)
    async with hub_of(sqlite_url, Pace()) as hub, store_of(app) as store:
        writer = await Writer.begin(store)
        async with hub.watching(JobLogs(writer.job), ping=60) as watcher:
            running = asyncio.create_task(numbers_of(watcher, 0))
            await asyncio.sleep(0)
            hub.end()
            with pytest.raises(Ended):
                await running
        with pytest.raises(Ended):
            async with hub.watching(JobLogs(writer.job), ping=60):
                raise AssertionError("nobody comes in any more")
