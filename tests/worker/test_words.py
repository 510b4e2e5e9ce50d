"""What running tasks say."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from headrace.core.errors import StoreUnavailable
from headrace.core.task import NewTask, Ref
from headrace.executors.context import LogLine
from headrace.worker.services.words import Words
from headrace.worker.worker import worker_record
from tests.worker.bench import Bench, opened


async def test_what_is_said_after_the_end_leaves_nothing_behind(bench: Bench) -> None:
    """The number of a line goes on while the attempt is held; afterwards it is forgotten, and starts anew."""
    held = True
    async with opened(bench):
        await bench.store.register(worker_record("w", bench.options(), pid=1))
        (task,) = await bench.store.enqueue([NewTask(name="talks")])
        words = Words(store=bench.store, worker=lambda: "w", holds=lambda _: held)
        ref = Ref(task.id, 1)
        for text in ("one", "two"):
            words.log(ref, LogLine(at=0.0, message=text))
            await words.run_once()
        held = False
        await words.run_once()
        words.log(ref, LogLine(at=0.0, message="too late"))
        await words.run_once()
        lines = await bench.store.logs(task.id)
        assert [line.line for line in lines] == ["one", "two"], "a line of a number that is there is kept once"


async def test_a_message_that_is_too_long_is_cut_before_it_is_searched(bench: Bench) -> None:
    """Between two words: half a URL would show its password."""
    async with opened(bench):
        await bench.store.register(worker_record("w", bench.options(), pid=1))
        (task,) = await bench.store.enqueue([NewTask(name="talks")])
        words = Words(store=bench.store, worker=lambda: "w", holds=lambda _: True)
        words.log(Ref(task.id, 1), LogLine(at=0.0, message="redis://:hunter2@host/0," * 200_000))
        await words.run_once()
        (line,) = await bench.store.logs(task.id)
        assert len(line.line) < 200_000
        assert "hunter" not in line.line
        assert line.line.endswith(" characters left out")


async def test_what_is_interrupted_may_say_something_on_its_way_out(bench: Bench) -> None:
    """Its outcome is settled before its code is stopped; what it says then has the numbers that follow."""
    async with opened(bench):
        await bench.store.register(worker_record("w", bench.options(), pid=1))
        (task,) = await bench.store.enqueue([NewTask(name="talks")])
        words = Words(store=bench.store, worker=lambda: "w", holds=lambda _: True)
        ref = Ref(task.id, 1)
        words.log(ref, LogLine(at=0.0, message="at work"))
        await words.run_once()
        assert words.finished(ref)
        words.log(ref, LogLine(at=0.0, message="cleaned up"))
        await words.run_once()
        assert [line.line for line in await bench.store.logs(task.id)] == ["at work", "cleaned up"]


class Reluctant:
    """A store that takes lines only when it wants to."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.lines: list[tuple[int, str, str]] = []

    async def append_logs(self, lines: Sequence[tuple[Ref, int, str, str]]) -> None:
        if self.error is not None:
            raise self.error
        if any(text == "poison" for _, _, _, text in lines):
            raise ValueError("no such text")
        self.lines += [(seq, stream, text) for _, seq, stream, text in lines]


def talking(store: Reluctant) -> Words:
    return Words(store=cast("Any", store), worker=lambda: "w", holds=lambda _: True, interval=0.01)


@pytest.mark.requirement("R87")
async def test_lines_that_cannot_be_written_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    """R87: the failure is a warning, once; the task's code and its end go on; the lines come when the store is back."""
    store = Reluctant()
    words, ref = talking(store), Ref(1, 1)
    store.error = StoreUnavailable("away")
    for n in range(3):
        words.log(ref, LogLine(at=0.0, message=f"line {n}"))
    await words.run_once()
    await words.run_once()
    assert words.finished(ref)
    await words.written(ref)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert words.owes(ref)
    store.error = None
    await words.run_once()
    assert [text for _, _, text in store.lines] == ["line 0", "line 1", "line 2"]
    assert not words.owes(ref)


async def test_one_line_that_is_refused_takes_no_other_with_it(caplog: pytest.LogCaptureFixture) -> None:
    store = Reluctant()
    words = talking(store)
    for text in ("a", "b", "poison", "c"):
        words.log(Ref(1, 1), LogLine(at=0.0, message=text))
    await words.run_once()
    assert store.lines == [(0, "info", "a"), (1, "info", "b"), (3, "info", "c")]
    assert "cannot be stored" in caplog.text


async def test_memory_is_bounded_while_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.worker.services.words._KEPT_BYTES", 1000)
    store = Reluctant()
    store.error = StoreUnavailable("away")
    words = talking(store)
    for n in range(100):
        words.log(Ref(n, 1), LogLine(at=0.0, message="x" * 100))
        await words.run_once()
    store.error = None
    await words.run_once()
    assert 10 <= len(store.lines) <= 12


async def test_values_and_lines_share_their_numbers_and_have_limits_of_their_own() -> None:
    store = Reluctant()
    words, ref = talking(store), Ref(1, 1)
    words.log(ref, LogLine(at=0.0, message="a"))
    words.stream(ref, '"password=hunter2"')
    words.log(ref, LogLine(at=0.0, message="b"))
    await words.flush()
    assert store.lines == [(0, "info", "a"), (1, "value", '"password=hunter2"'), (2, "info", "b")]
    for _ in range(10_010):
        words.log(ref, LogLine(at=0.0, message="x"))
    words.stream(ref, "1")
    await words.flush()
    assert [stream for _, stream, _ in store.lines].count("info") == 10_000
    assert store.lines[-1] == (10_001, "value", "1")


async def test_values_are_written_within_a_moment() -> None:
    """By the service, whose interval is long: nobody waits for it."""
    store = Reluctant()
    words = Words(store=cast("Any", store), worker=lambda: "w", holds=lambda _: True, interval=600.0)
    await words.start()
    try:
        await asyncio.sleep(0)  # it has begun to rest
        for n in range(3):
            words.stream(Ref(1, 1), str(n))
            async with asyncio.timeout(30):
                while len(store.lines) <= n:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
    finally:
        await words.stop()
    assert [text for _, _, text in store.lines] == ["0", "1", "2"]


class Slow(Reluctant):
    """It takes lines when it is let, one call after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.tries = 0
        self.let = asyncio.Event()

    async def append_logs(self, lines: Sequence[tuple[Ref, int, str, str]]) -> None:
        self.tries += 1
        await self.let.wait()
        await super().append_logs(lines)

    async def asked(self, tries: int) -> None:
        async with asyncio.timeout(30):
            while self.tries < tries:  # noqa: ASYNC110
                await asyncio.sleep(0.005)


async def test_lines_on_their_way_are_owed_until_they_are_in() -> None:
    """An outcome that went out beside them could be in the ledger first, and whoever follows would miss them."""
    store = Slow()
    words, ref = talking(store), Ref(1, 1)
    words.log(ref, LogLine(at=0.0, message="the last"))
    writing = asyncio.create_task(words.flush())
    await store.asked(1)
    assert words.finished(ref)
    assert words.owes(ref), "it is being written, which is not yet written"
    waiting = asyncio.create_task(words.written(ref))
    await asyncio.sleep(0)
    assert not waiting.done()
    store.let.set()
    await asyncio.gather(writing, waiting)
    assert [text for _, _, text in store.lines] == ["the last"]
    assert not words.owes(ref)
    assert store.tries == 1, "whoever waited found its lines written"


async def test_an_outcome_waits_for_one_try_of_its_own_and_no_longer() -> None:
    store = Slow()
    store.error = StoreUnavailable("away")
    words, ref = talking(store), Ref(1, 1)
    words.log(ref, LogLine(at=0.0, message="the last"))
    writing = asyncio.create_task(words.flush())
    await store.asked(1)
    assert words.finished(ref)
    waiting = asyncio.create_task(words.written(ref))
    store.let.set()
    await asyncio.gather(writing, waiting)
    assert store.tries == 2
    assert words.owes(ref), "they are tried again"
    store.error = None
    await words.flush()
    assert [text for _, _, text in store.lines] == ["the last"]
    assert not words.owes(ref)


async def test_a_store_that_hangs_holds_no_outcome_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.worker.services.words._PATIENCE", 0.05)
    store = Slow()
    words, ref = talking(store), Ref(1, 1)
    words.log(ref, LogLine(at=0.0, message="the last"))
    writing = asyncio.create_task(words.flush())
    await store.asked(1)
    async with asyncio.timeout(30):
        await words.written(ref)
    assert words.owes(ref)
    store.let.set()
    await writing
    assert not words.owes(ref)


async def test_values_of_one_attempt_are_bounded_while_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """As its lines are. Where they can be written nothing is left out, however many they are."""
    monkeypatch.setattr("headrace.worker.services.words._MOST_BYTES", 1000)
    store = Reluctant()
    words, ref, other = talking(store), Ref(1, 1), Ref(2, 1)
    for _ in range(100):
        words.stream(ref, "x" * 100)
    await words.flush()
    assert len(store.lines) == 100
    store.error = StoreUnavailable("away")
    for n in range(100):
        words.stream(ref, f"{n:0100}")
        await words.flush()
    words.stream(other, "its own")
    store.error = None
    await words.flush()
    assert [int(text) for _, _, text in store.lines[100:-1]] == list(range(10))
    assert store.lines[-1][2] == "its own", "one attempt takes no room from another"
    words.stream(ref, "again")
    await words.flush()
    assert store.lines[-1][2] == "again"


async def test_values_do_not_wake_a_store_that_fails() -> None:
    store = Slow()
    store.let.set()
    store.error = StoreUnavailable("away")
    words = Words(store=cast("Any", store), worker=lambda: "w", holds=lambda _: True, interval=600.0)
    words.pace = replace(words.pace, longest=600.0)
    await words.start()
    try:
        await asyncio.sleep(0)
        words.stream(Ref(1, 1), "0")
        await store.asked(1)
        for n in range(30):
            words.stream(Ref(1, 1), str(n))
            await asyncio.sleep(0.01)
    finally:
        await words.stop()
    assert store.tries == 1
