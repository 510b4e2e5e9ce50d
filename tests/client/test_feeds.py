"""Following a task while it runs: its lines, its values, its job, and many tasks as they end. On both stores."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from headrace import App, Handle, Permanent, Retry, as_completed, current, group
from headrace.core.errors import NotFound, PayloadError, RunningLoop, StoreError, TaskFailed
from headrace.core.states import JobState
from headrace.testing import inline, override
from headrace.testing.background import BackgroundWorker

CEILING = 60.0
AT_ONCE = Retry(max_attempts=3, backoff="fixed", base=0, jitter=0)


class Works:
    """An app with tasks that go on when the test says so, and a worker beside the test."""

    def __init__(self, url: str) -> None:
        self.app = app = App(url)
        self.go = threading.Event()
        self.fails = 0

        @app.task(name="counts")
        async def counts(n: int) -> int:
            for number in range(n):
                current.stream({"number": number})
                current.log(f"line {number}")
            await asyncio.to_thread(self.go.wait, CEILING)
            current.stream("last")
            return n

        @app.task(executor="thread", name="waits")
        def waits(number: int) -> int:
            assert self.go.wait(CEILING)
            return number

        @app.task(name="doubles")
        async def doubles(number: int) -> int:
            return 2 * number

        @app.task(name="says")
        async def says(text: str) -> None:
            current.log(text)

        @app.task(retry=AT_ONCE, name="twice")
        async def twice() -> None:
            current.stream(f"attempt {current.attempt}")
            if current.attempt == 1:
                raise ValueError("again")

        @app.task(retry=AT_ONCE, name="streams_a_set")
        async def streams_a_set() -> None:
            try:
                current.stream({1, 2})
            except PayloadError as error:
                raise Permanent(str(error)) from None

        self.counts, self.waits, self.doubles, self.says = counts, waits, doubles, says
        self.twice, self.streams_a_set = twice, streams_a_set


@pytest.fixture
def works(store_url: str) -> Iterator[Works]:
    made = Works(store_url)
    with ExitStack() as stack:
        stack.callback(made.app.close)
        stack.enter_context(override(made.app, url=store_url))
        stack.enter_context(BackgroundWorker(made.app))
        stack.callback(made.go.set)
        yield made


@pytest.fixture
def idle(sqlite_url: str) -> Iterator[Works]:
    """Without a worker, on one store: for what nobody runs."""
    made = Works(sqlite_url)
    yield made
    made.app.close()


def test_values_come_while_the_task_runs(works: Works) -> None:
    """The first ones are here before the task has ended, each once and in order."""
    handle = works.counts.enqueue(3)
    values: list[Any] = []
    for value in handle.stream():
        values.append(value)
        if len(values) == 3:
            assert not handle.state().terminal
            works.go.set()
    assert values == [{"number": 0}, {"number": 1}, {"number": 2}, "last"]
    assert handle.result(timeout=CEILING) == 3
    assert list(handle.stream()) == values, "who comes late gets them, too"


def test_values_by_async_for_for_many_at_once(works: Works) -> None:
    async def follow(handle: Handle[int]) -> list[Any]:
        return [value async for value in handle.stream()]

    async def main() -> list[list[Any]]:
        handles = [await works.counts.aenqueue(n) for n in range(4)]
        works.go.set()
        async with asyncio.timeout(CEILING):
            return await asyncio.gather(*[follow(handle) for handle in handles])

    assert asyncio.run(main()) == [[{"number": n} for n in range(count)] + ["last"] for count in range(4)]


def test_a_new_attempt_starts_over(works: Works) -> None:
    handle = works.twice.enqueue()
    handle.wait(timeout=CEILING)
    assert list(handle.stream()) == ["attempt 2"], "of the present attempt"
    followed = works.twice.enqueue()
    pairs = list(followed.stream(with_attempt=True))
    assert pairs in ([(1, "attempt 1"), (2, "attempt 2")], [(2, "attempt 2")])


def test_what_is_no_json_is_refused_where_it_is_said(works: Works) -> None:
    handle = works.streams_a_set.enqueue()
    with pytest.raises(TaskFailed, match="JSON"):
        handle.result(timeout=CEILING)
    assert list(handle.stream()) == []


def test_lines_are_there_when_the_task_has_ended(works: Works) -> None:
    """What a task said is in the ledger no later than its end: nothing is waited for after `wait`, which is
    shorter than the second in which lines are flushed."""
    for text in ("one", "two", "three"):
        handle = works.says.enqueue(text)
        handle.wait(timeout=CEILING)
        assert [line.line for line in handle.logs()] == [text]


def test_lines_are_followed_until_the_end(works: Works) -> None:
    handle = works.counts.enqueue(2)

    async def follow() -> list[str]:
        found: list[str] = []
        async for line in handle.alogs(follow=True):
            found.append(line.line)
            if len(found) == 2:
                assert not (await handle.astate()).terminal
                works.go.set()
        return found

    assert asyncio.run(asyncio.wait_for(follow(), CEILING)) == ["line 0", "line 1"], "values are no lines"
    assert [line.line for line in handle.logs()] == ["line 0", "line 1"]


def test_a_job_is_followed_by_its_events_and_lines(works: Works) -> None:
    job = group(works.says.s("a"), works.says.s("b"), works.waits.s(1)).enqueue()
    works.go.set()
    events = list(job.events(follow=True))
    assert [event.seq for event in events] == list(range(len(events)))
    assert (events[0].state, events[0].total) == (JobState.PENDING, 3)
    assert (events[-1].state, events[-1].completed) == (JobState.COMPLETED, 3)
    assert list(job.events()) == events
    lines = list(job.logs(follow=True))
    assert [line.seq for line in lines] == [0, 1]
    assert sorted(line.line for line in lines) == ["a", "b"]


def test_handles_come_as_they_end(works: Works) -> None:
    """The one that waits for the test comes last, though it was given first."""
    slow = works.waits.enqueue(0)
    handles = [slow, *[works.doubles.enqueue(n) for n in range(1, 6)]]
    seen: list[Handle[int]] = []
    for handle in as_completed(handles, timeout=CEILING):
        seen.append(handle)
        if len(seen) == 5:
            assert slow not in seen
            works.go.set()
    assert seen[-1] is slow
    assert sorted(handle.result() for handle in seen) == [0, 2, 4, 6, 8, 10]

    async def again() -> list[Handle[int]]:
        return [handle async for handle in as_completed(handles)]

    assert sorted(handle.id for handle in asyncio.run(again())) == sorted(handle.id for handle in handles)


def test_what_never_ends(idle: Works) -> None:
    """One that is not there comes at once; the other is waited for as long as it was said."""
    waits, gone = idle.waits.enqueue(1), idle.app.tasks.handle(987_654_321)
    seen: list[Handle[Any]] = []
    with pytest.raises(TimeoutError, match="1 of 2 tasks have not ended"):
        seen.extend(as_completed([waits, gone], timeout=5))
    assert seen == [gone]


def test_what_is_not_there(works: Works) -> None:
    gone = works.app.tasks.handle(987_654_321)
    assert list(as_completed([gone], timeout=CEILING)) == [gone]
    with pytest.raises(NotFound):
        gone.result()
    with pytest.raises(NotFound):
        list(gone.logs())
    with pytest.raises(NotFound):
        list(gone.stream())
    with pytest.raises(NotFound):
        list(works.app.jobs.handle(987_654_321).events())
    assert list(as_completed([])) == []
    with pytest.raises(TypeError, match="handles of tasks"):
        as_completed([1])  # pyright: ignore[reportArgumentType]


def test_a_blocking_loop_is_refused_on_a_running_loop(works: Works) -> None:
    handle = works.says.enqueue("x")

    async def main() -> None:
        for feed in (handle.stream(), handle.logs(), as_completed([handle])):
            with pytest.raises(RunningLoop, match="async for"):
                list(feed)

    asyncio.run(main())


def test_who_follows_learns_that_the_store_was_closed(works: Works) -> None:
    handle = works.waits.enqueue(1)
    began = threading.Event()

    async def follow() -> None:
        began.set()
        async for _ in handle.stream():
            pass

    async def main() -> None:
        following = asyncio.create_task(follow())
        await asyncio.to_thread(began.wait, CEILING)
        async with asyncio.timeout(CEILING):
            while works.app.engine._connected is None or not works.app.engine._connected.hub._signals:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await works.app.aclose()
        with pytest.raises(StoreError, match="closed"):
            await asyncio.wait_for(following, CEILING)

    asyncio.run(main())


def test_streams_and_lines_inline(sqlite_url: str) -> None:
    """The test kit runs the task in the enqueue: its values and lines are there."""
    works = Works(sqlite_url)
    works.go.set()
    with inline(works.app):
        handle = works.counts.enqueue(2)
        assert list(handle.stream()) == [{"number": 0}, {"number": 1}, "last"]
        assert [line.line for line in handle.logs(follow=True)] == ["line 0", "line 1"]

        async def main() -> list[Any]:
            made = await works.counts.aenqueue(1)
            return [value async for value in made.stream()]

        assert asyncio.run(main()) == [{"number": 0}, "last"]
    works.app.close()


def test_the_level_of_a_line_cannot_be_that_of_values(works: Works, caplog: pytest.LogCaptureFixture) -> None:
    @works.app.task(retry=Retry(max_attempts=1), name="pretends")
    async def pretends() -> None:
        current.log("x", level="value")  # pyright: ignore[reportArgumentType]

    caplog.set_level(logging.CRITICAL)
    with pytest.raises(TaskFailed, match=r"current\.stream"):
        pretends.enqueue().result(timeout=CEILING)
