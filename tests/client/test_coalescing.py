"""Concurrent callers share a commit, and nothing else."""

import asyncio
import contextlib
from collections.abc import Sequence

import pytest

from headrace import App
from headrace.client.coalescing import MOST_TASKS, Coalescer
from headrace.core.errors import EnqueueError, StoreUnavailable
from headrace.core.lanes import Lane
from headrace.core.task import Enqueued, NewTask, Want
from headrace.store.base import Store
from tests.support.waiting import eventually


class Writer:
    """A store's enqueue that can be held up, and that refuses tasks called «bad»."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.one_by_one = False  # whoever passes the gate shuts it
        self.down = False
        self.under_way = self.most_under_way = 0

    async def __call__(self, tasks: Sequence[NewTask]) -> list[Enqueued]:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await self.gate.wait()
        if self.one_by_one:
            self.gate.clear()
        self.under_way -= 1
        self.batches.append([task.name for task in tasks])
        if self.down:
            raise StoreUnavailable("gone")
        if any(task.name == "bad" for task in tasks):
            raise EnqueueError("bad")
        return [Enqueued(int(task.name), created=True) for task in tasks]


def tasks(*names: object) -> list[NewTask]:
    return [NewTask(name=str(name)) for name in names]


async def test_a_single_caller_waits_for_nobody():
    writer = Writer()
    answers = await Coalescer(writer).enqueue(tasks(1, 2))
    assert [answer.id for answer in answers] == [1, 2]
    assert writer.batches == [["1", "2"]]


async def test_those_who_come_during_a_commit_share_the_next():
    writer = Writer()
    coalescer = Coalescer(writer)
    writer.gate.clear()
    first = asyncio.create_task(coalescer.enqueue(tasks(0)))
    await eventually(lambda: bool(coalescer._commits))
    others = [asyncio.create_task(coalescer.enqueue(tasks(number))) for number in range(1, 101)]
    await asyncio.sleep(0)
    writer.gate.set()
    answers = [(await task)[0].id for task in (first, *others)]
    assert answers == list(range(101))
    assert [len(batch) for batch in writer.batches] == [1, 100]


async def test_a_batch_has_a_ceiling():
    writer = Writer()
    coalescer = Coalescer(writer)
    await asyncio.gather(*(coalescer.enqueue(tasks(*range(400))) for _ in range(6)))
    assert max(len(batch) for batch in writer.batches) <= MOST_TASKS
    await coalescer.enqueue(tasks(*range(MOST_TASKS + 5)))
    assert len(writer.batches[-1]) == MOST_TASKS + 5


async def test_a_bad_task_fails_alone():
    writer = Writer()
    coalescer = Coalescer(writer)
    answers = await asyncio.gather(
        *(coalescer.enqueue(tasks(name)) for name in (1, 2, "bad", 3)), return_exceptions=True
    )
    assert [answer[0].id for index, answer in enumerate(answers) if index != 2] == [1, 2, 3]
    assert isinstance(answers[2], EnqueueError)


async def test_an_outage_is_told_to_everyone_and_not_repeated():
    """A write that may have happened must not be sent again: it could become two tasks."""
    writer = Writer()
    writer.down = True
    coalescer = Coalescer(writer)
    answers = await asyncio.gather(*(coalescer.enqueue(tasks(n)) for n in range(5)), return_exceptions=True)
    assert all(isinstance(answer, StoreUnavailable) for answer in answers)
    assert len({id(answer) for answer in answers}) == 5, "to each its own: callers write notes on it"
    assert sum(len(batch) for batch in writer.batches) == 5
    writer.down = False
    assert (await coalescer.enqueue(tasks(9)))[0].id == 9


async def test_ctrl_c_in_an_enqueue_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch):
    """It strikes between the flag and the wake-up: nothing of that call is written, and later ones are not held up."""
    writer = Writer()
    coalescer = Coalescer(writer)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(coalescer._loop, "call_soon", interrupted)
        with pytest.raises(KeyboardInterrupt):
            coalescer.begin(tasks(1))
    async with asyncio.timeout(10):
        assert (await coalescer.enqueue(tasks(2)))[0].id == 2
    assert writer.batches == [["2"]]


async def test_a_caller_that_gave_up_before_the_write_writes_nothing():
    writer = Writer()
    coalescer = Coalescer(writer)
    writer.gate.clear()
    first = asyncio.create_task(coalescer.enqueue(tasks(1)))
    await eventually(lambda: bool(coalescer._commits))
    second = asyncio.create_task(coalescer.enqueue(tasks(8)))
    third = asyncio.create_task(coalescer.enqueue(tasks(9)))
    await eventually(lambda: len(coalescer._line) == 2)
    second.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await second
    writer.gate.set()
    assert (await third)[0].id == 9
    assert (await first)[0].id == 1
    assert writer.batches == [["1"], ["9"]]


async def test_a_caller_that_gives_up_while_each_is_written_apart_writes_nothing():
    """The shared write failed, so nothing of it is there when it gives up; the others are answered."""
    writer = Writer()
    coalescer = Coalescer(writer)
    writer.one_by_one = True
    calls = [asyncio.create_task(coalescer.enqueue(tasks(name))) for name in ("bad", 1, 2)]
    await eventually(lambda: len(writer.batches) == writer.under_way == 1)  # the first of them, apart
    calls[1].cancel()
    writer.one_by_one = False
    writer.gate.set()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(answer) for answer in answers] == [EnqueueError, asyncio.CancelledError, list]
    assert writer.batches == [["bad", "1", "2"], ["bad"], ["2"]]


async def test_a_commit_that_is_cancelled_while_each_is_written_apart_leaves_nobody_waiting():
    writer = Writer()
    coalescer = Coalescer(writer)
    writer.one_by_one = True
    calls = [asyncio.create_task(coalescer.enqueue(tasks(name))) for name in (1, "bad", 2)]
    await eventually(lambda: len(writer.batches) == writer.under_way == 1)
    (commit,) = coalescer._commits
    commit.cancel()
    async with asyncio.timeout(10):
        answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(answer) for answer in answers] == [asyncio.CancelledError] * 3
    writer.gate.set()
    assert (await coalescer.enqueue(tasks(3)))[0].id == 3


async def test_calls_are_written_in_the_order_in_which_they_began():
    """One commit at a time: a second on another connection could be faster than the first."""
    writer = Writer()
    coalescer = Coalescer(writer)
    writer.gate.clear()
    calls = [asyncio.create_task(coalescer.enqueue(tasks(*range(number, number + 7)))) for number in range(0, 4900, 7)]
    await eventually(lambda: bool(coalescer._commits))
    writer.gate.set()
    await asyncio.gather(*calls)
    assert writer.most_under_way == 1
    assert [name for batch in writer.batches for name in batch] == [str(number) for number in range(4900)]


async def test_whole_chunks_of_different_callers_are_written_two_at_a_time():
    """They have no order among them; what stands between them keeps its place."""
    writer = Writer()
    coalescer = Coalescer(writer)
    writer.gate.clear()
    chunk = range(MOST_TASKS)
    sizes = [1, MOST_TASKS, MOST_TASKS, MOST_TASKS, 1, 1, MOST_TASKS]
    calls = [asyncio.create_task(coalescer.enqueue(tasks(*chunk[:size]))) for size in sizes]
    await eventually(lambda: writer.under_way == 1)
    assert len(coalescer._line) == 6, "the chunk waits for the one that began before it"
    writer.one_by_one = True
    writer.gate.set()
    await eventually(lambda: writer.under_way == 2)
    writer.one_by_one = False
    writer.gate.set()
    await asyncio.gather(*calls)
    assert writer.most_under_way == 2
    assert [len(batch) for batch in writer.batches] == [1, MOST_TASKS, MOST_TASKS, MOST_TASKS, 2, MOST_TASKS]


async def test_flushed_waits_for_those_before_it_and_for_nobody_else():
    writer = Writer()
    coalescer = Coalescer(writer)
    writer.gate.clear()
    before = [coalescer.begin(tasks(number)) for number in range(3)]
    flushed = asyncio.create_task(coalescer.flushed())
    await eventually(lambda: writer.under_way == 1)
    over = False

    async def go_on() -> None:
        while not over:
            await coalescer.enqueue(tasks(9))

    others = asyncio.create_task(go_on())
    assert not flushed.done()
    writer.gate.set()
    async with asyncio.timeout(10):
        await flushed
    assert all(waiting.future.done() for waiting in before)
    over = True
    await others


async def test_concurrent_callers_on_a_real_store(app: App):
    """Three hundred at once, in far fewer transactions; keyed ones go alone and still arrive."""

    @app.task(name="welcome")
    async def welcome(user_id: int) -> None: ...

    engine = app.engine
    coalescer = engine._line()
    write, alone, commits = coalescer._write, engine._enqueue_alone, list[int]()

    async def counted(new: Sequence[NewTask]) -> list[Enqueued]:
        commits.append(len(new))
        return list(await write(new))

    async def counted_alone(store: Store, new: Sequence[NewTask]) -> list[Enqueued]:
        commits.append(len(new))
        return await alone(store, new)

    coalescer._write = counted
    engine._enqueue_alone = counted_alone  # on SQLite, one that finds nobody to share with
    keyed = [welcome.using(unique=f"k{number}").aenqueue(number) for number in range(10)]
    handles = await asyncio.gather(*(welcome.aenqueue(number) for number in range(300)), *keyed)
    assert len({handle.id for handle in handles}) == 310
    assert sum(commits) == 300
    assert len(commits) < 150
    records = {record.id: record.arguments for record in await app.tasks.alist(limit=1000)}
    assert all(records[handle.id] == f'{{"user_id":{number}}}' for number, handle in enumerate(handles[:300]))


async def test_tasks_of_calls_that_began_together_are_claimed_in_the_order_of_the_calls(app: App):
    @app.task(name="welcome")
    async def welcome(user_id: int) -> None: ...

    await asyncio.gather(*(welcome.aenqueue(number) for number in range(3000)))
    store = app.new_store()
    await store.open()
    try:
        claimed: list[str] = []
        want = Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=500)
        while found := await store.claim("w", [want]):
            claimed += [task.arguments for task in found]
    finally:
        await store.close()
    assert claimed == [f'{{"user_id":{number}}}' for number in range(3000)]


async def test_one_callers_wrong_arguments_do_not_touch_the_others(app: App):
    @app.task(name="welcome")
    async def welcome(user_id: int) -> None: ...

    answers = await asyncio.gather(
        *(welcome.aenqueue("x" if number == 5 else number) for number in range(20)),
        return_exceptions=True,
    )
    assert [isinstance(answer, Exception) for answer in answers].count(True) == 1
    assert len(await app.tasks.alist()) == 19


@pytest.mark.parametrize("hostile", ["\0", "a\0b"])
async def test_text_with_nul_reaches_the_ledger_or_is_refused_alone(app: App, hostile: str):
    @app.task(name="say")
    async def say(text: str) -> None: ...

    answers = await asyncio.gather(*(say.aenqueue(text) for text in ("x", hostile, "y")), return_exceptions=True)
    assert not isinstance(answers[0], Exception)
    assert not isinstance(answers[2], Exception)
    if not isinstance(answers[1], Exception):
        record = await app.tasks.aget(answers[1].id)
        assert say.load_arguments(record.arguments) == ((), {"text": hostile})
