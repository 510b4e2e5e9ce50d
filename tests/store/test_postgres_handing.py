"""A new task goes to a worker that stands by, in the transaction of its enqueue; and only where that is right."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from headrace.core.limits import Gate
from headrace.core.states import TaskState
from headrace.core.task import ClaimedTask, Key, NewTask, Ref
from headrace.store.offering import HandingOver
from headrace.store.postgres import PostgresStore, enqueueing, wakeups
from headrace.worker.options import WorkerOptions
from headrace.worker.worker import worker_record
from tests.store.test_postgres_connection import WANTS, broken_rules, cut, done, execute, opened
from tests.store.test_postgres_wakeups import ready
from tests.support.postgres import PostgresServer
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def _announcements_are_heard_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else every enqueue of a test but the first would come too soon after the one before."""
    monkeypatch.setattr(wakeups, "_SETTLED", 0.0)


async def registered(store: PostgresStore, worker: str) -> None:
    await store.register(worker_record(worker, WorkerOptions()))


@asynccontextmanager
async def standing(
    store: PostgresStore, worker: str = "w", *, queues: tuple[str, ...] = ("default",)
) -> AsyncGenerator[list[ClaimedTask]]:
    """A worker of this store that stands by; what it was handed."""
    await registered(store, worker)
    handed: list[ClaimedTask] = []
    async with store.listen(worker, queues) as hints:
        await ready(hints)
        assert await store.stand_by(worker, queues, ["coroutine"], handed.append)
        yield handed
        store.leave(worker)


async def state_of(store: PostgresStore, task: int) -> tuple[TaskState, str | None, int]:
    record = (await store.get([task]))[task]
    return record.state, record.worker, record.claim_no


def part_of(verb: Any) -> Any:
    """The part of a store whose verb this is."""
    return verb.__self__


async def one(store: PostgresStore, **parts: Any) -> int:
    [answer] = await store.enqueue([NewTask(**{"name": "t", **parts})])
    assert answer.created
    return answer.id


async def test_an_enqueue_hands_its_task_to_a_worker_that_stands_by(postgres_url: str) -> None:
    """Claimed by the commit that made it, by another process's store; and what arrives is what a claim would bring."""
    async with opened(postgres_url) as ours, opened(postgres_url) as theirs, standing(ours) as handed:
        assert isinstance(ours, HandingOver)
        task = await one(theirs, arguments='{"n":"ä\\"1"}', priority=3, max_attempts=7, options='{"a":1}', version=2)
        assert await state_of(theirs, task) == (TaskState.CLAIMED, "w", 1)
        await eventually(lambda: handed)
        [held] = await ours.held("w")
        assert handed == [held._replace(waited=0.0)]
        report = await ours.finish("w", [done(held)])
        assert report.accepted == {Ref(task, 1)}
        assert await broken_rules(ours) == []


async def test_it_stands_for_one_task(postgres_url: str) -> None:
    async with opened(postgres_url) as store, standing(store) as handed:
        first, second = await one(store), await one(store)
        await eventually(lambda: handed)
        assert [await state_of(store, task) for task in (first, second)] == [
            (TaskState.CLAIMED, "w", 1),
            (TaskState.PENDING, None, 0),
        ]
        assert not await store.still_stands("w")
        assert [claim.id for claim in await store.claim("v", WANTS)] == [second]


async def test_two_enqueues_at_once_do_not_take_the_same_worker(postgres_url: str) -> None:
    async with opened(postgres_url) as store, standing(store) as handed:
        holder = await asyncpg.connect(postgres_url)
        try:
            async with holder.transaction():
                taken = "SELECT headrace.hand_over_v1('default', 'coroutine', 0)"
                assert await holder.fetchval(taken) == "w"
                task = await asyncio.wait_for(one(store), 10)  # it does not wait for the other one's end, either
                assert await state_of(store, task) == (TaskState.PENDING, None, 0)
        finally:
            await holder.close()
        assert handed == []


@pytest.mark.parametrize(
    "parts",
    [
        {"queue": "other"},
        {"pool": "child"},
        {"delay": 5.0},
        {"approval": True},
        {"gates": (Gate(kind="limit", key="k", n=1),)},
        {"keys": (Key(scope="unique", key="k"),)},
        {"arguments": '{"text":"' + "x" * enqueueing._LONGEST_WORD + '"}'},
    ],
    ids=lambda parts: next(iter(parts)),
)
async def test_what_cannot_start_there_at_once_is_not_handed_over(postgres_url: str, parts: dict[str, Any]) -> None:
    async with opened(postgres_url) as store, standing(store):
        state, worker, claim_no = await state_of(store, await one(store, **parts))
        assert (state.held, worker, claim_no) == (False, None, 0)
        assert await store.still_stands("w")


async def test_the_longest_task_that_is_handed_over_fits_in_a_notification(postgres_url: str) -> None:
    """Of characters that need the most room: four bytes each, and none can be left out."""
    async with opened(postgres_url) as store, standing(store) as handed:
        length = enqueueing._LONGEST_WORD - len("t" + "default" + "json/1" + "{}")
        text = '{"a":"' + "\N{GRINNING FACE}" * (length - 8) + '"}'
        task = await one(store, arguments=text)
        await eventually(lambda: handed)
        assert (handed[0].id, handed[0].arguments) == (task, text)


async def test_a_paused_queue_hands_nothing_over(postgres_url: str) -> None:
    async with opened(postgres_url) as store, standing(store):
        await store.pause("default")
        assert await state_of(store, await one(store)) == (TaskState.PENDING, None, 0)
        await store.resume("default")
        await store.limit_queue("default", 1)
        assert await state_of(store, await one(store)) == (TaskState.PENDING, None, 0)
        assert await store.still_stands("w")


async def test_nothing_goes_past_a_task_of_which_word_is_on_its_way(postgres_url: str) -> None:
    """Of this process, or of any other: in a user's transaction, say."""
    async with opened(postgres_url) as store, standing(store):
        mine = await asyncpg.connect(postgres_url)
        statement = next(store.enqueue_program([NewTask(name="t")]))
        await mine.fetch(statement.sql, *statement.parameters)
        await mine.close()
        assert await state_of(store, await one(store)) == (TaskState.PENDING, None, 0)


async def test_nothing_goes_past_what_this_process_announced_of_late(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakeups, "_SETTLED", 60.0)
    async with opened(postgres_url) as store, standing(store, queues=("default", "other")):
        await store.enqueue([NewTask(name="t"), NewTask(name="t")])
        await store.claim("v", WANTS)
        assert await state_of(store, await one(store)) == (TaskState.PENDING, None, 0)
        assert await state_of(store, await one(store, queue="other")) == (TaskState.CLAIMED, "w", 1)


@pytest.mark.parametrize("ending", ["stand_down", "deregister", "take_over"])
async def test_nothing_is_handed_to_one_that_left(postgres_url: str, ending: str) -> None:
    async with opened(postgres_url) as store, standing(store):
        if ending == "take_over":
            assert await store.take_over("w", beat=0)
        elif ending == "stand_down":
            assert await store.stand_down("w")
            assert not await store.stand_down("w")
        else:
            await store.deregister("w")
        assert await state_of(store, await one(store)) == (TaskState.PENDING, None, 0)
        if ending != "stand_down":
            assert not await store.stand_by("w", ["default"], ["coroutine"], print), "a stopped worker"
            assert await state_of(store, await one(store)) == (TaskState.PENDING, None, 0)


async def test_a_worker_that_is_silent_is_not_believed(postgres_url: str) -> None:
    async with opened(postgres_url) as store, standing(store):
        await execute(postgres_url, "UPDATE headrace.standbys SET renewed_at = renewed_at - interval '4 seconds'")
        assert await state_of(store, await one(store)) == (TaskState.PENDING, None, 0)
        assert await store.still_stands("w")
        await store.claim("v", WANTS)
        assert await state_of(store, await one(store)) == (TaskState.CLAIMED, "w", 1)


async def test_what_was_handed_to_a_worker_that_leaves_goes_back(postgres_url: str) -> None:
    async with opened(postgres_url) as store, standing(store):
        task = await one(store)
        assert await store.deregister("w") == 1
        assert await state_of(store, task) == (TaskState.PENDING, None, 1)
        [claim] = await store.claim("v", WANTS)
        assert (claim.id, claim.claim_no, claim.attempt, claim.losses) == (task, 2, 0, 0)


async def test_an_enqueue_that_fails_leaves_the_worker_standing(postgres_url: str) -> None:
    async with opened(postgres_url) as store, standing(store) as handed:
        part_of(store.enqueue)._ids.appendleft(task := await one(store, queue="other"))
        with pytest.raises(asyncpg.UniqueViolationError):
            await one(store)
        assert await store.still_stands("w")
        assert handed == []
        assert await state_of(store, task) == (TaskState.PENDING, None, 0)


async def test_nobody_stands_by_who_would_not_hear_of_it(postgres_server: PostgresServer, postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        await registered(store, "w")
        assert not await store.stand_by("w", ["default"], ["coroutine"], print)
        async with standing(store, "v"):
            await cut(postgres_server, postgres_url)
            await eventually(lambda: not part_of(store.stand_by).listener.hears)
            assert not await store.still_stands("v")


async def test_word_of_a_task_that_was_given_back_as_stranded_is_not_believed(postgres_url: str) -> None:
    """A claim of the same worker was in doubt, and word of the task came after what is stranded was given back."""
    async with opened(postgres_url) as ours, opened(postgres_url) as theirs:
        told: list[Callable[[], None]] = []
        handing = part_of(ours.stand_by)
        handing.listener._handed = lambda text: told.append(lambda: handing._told(text))
        async with standing(ours) as handed:
            task = await one(theirs)
            await eventually(lambda: told)
            part_of(ours.claim)._claims.doubt("w")
            claims = await ours.claim("w", WANTS)  # what was stranded goes back before it asks
            assert [(claim.id, claim.claim_no) for claim in claims] == [(task, 2)]
            for word in told:
                word()
            assert handed == []
