"""Fan-outs of more than one transaction frees, fan-ins of as many, and whoever works on them at the same time."""

import asyncio
from itertools import count

from headrace.core.states import JobState
from headrace.core.task import After, EdgeKind, NewJob, NewTask
from headrace.store.base import RELEASED_AT_ONCE, Store
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.drawing import draw, node
from headrace.testing.store_conformance.ledger import Ledger, completed, failed_for_good, released, task

cases = Cases("fan_in")

MANY = RELEASED_AT_ONCE + 150
HELD_AT_ONCE = 400


def _fan(*, kind: EdgeKind = EdgeKind.ON_SUCCESS, critical: bool = True, last: bool = True) -> list[NewTask]:
    """A root, MANY that wait for it, and one that waits for all of them."""
    root = After(task=0, kind=kind, local=True)
    tasks = [task("root", critical=critical), *[task("leaf", after=(root,)) for _ in range(MANY)]]
    if last:
        leaves = tuple(After(task=place, kind=EdgeKind.ON_DONE, local=True) for place in range(1, MANY + 1))
        tasks.append(task("last", after=leaves))
    return tasks


async def _release_all(store: Store) -> int:
    looked = 0
    for turn in count():
        n = await store.release(limit=400)
        if n == 0:
            return looked
        looked += n
        assert turn < 100
    return looked


async def _sound(ledger: Ledger) -> None:
    assert [found for found in await ledger.store.check() if found.rule != "rescue-pending"] == []


async def _complete_all(ledger: Ledger, name: str) -> int:
    """What can be claimed of that name; the rest goes back."""
    ended = 0
    while claims := await ledger.claim(n=HELD_AT_ONCE):
        mine = [claim for claim in claims if claim.name == name]
        await ledger.finish("a", *[completed(c) if c.name == name else released(c) for c in claims])
        ended += len(mine)
        if len(mine) < len(claims):
            break
        await ledger.let_pass(0.002)
    return ended


@cases.add("R80")
async def more_than_one_transaction_frees(ledger: Ledger) -> None:
    """R80, for a group of more than a thousand: the finish says that there is more, `release` goes on where it left
    off, each is freed once, and the continuation is claimed after the last of them, once."""
    job, answers = await ledger.store.create_job(NewJob(name="fan", tasks=_fan()))
    report = await ledger.finish("a", completed(await ledger.claim_one()))
    assert report.releasing
    await _sound(ledger)
    await ledger.store.release(limit=100)
    await _sound(ledger)
    await _release_all(ledger.store)
    assert await ledger.store.release() == 0
    await _sound(ledger)
    await ledger.let_pass(0.01)
    assert await _complete_all(ledger, "leaf") == MANY
    await _sound(ledger)
    claim = await ledger.claim_due()
    assert (claim.name, claim.id) == ("last", answers[-1].id)
    await ledger.finish("a", completed(claim))
    record = await ledger.job(job)
    assert (record.state, record.completed, record.total) == (JobState.COMPLETED, MANY + 2, MANY + 2)


@cases.add()
async def a_small_fan_is_freed_by_the_finish(ledger: Ledger) -> None:
    graph = await draw(ledger, root=node(), a=node("root"), b=node("root"))
    await graph.take()
    report = await ledger.finish("a", completed(graph.held.pop("root")))
    assert not report.releasing
    assert await ledger.store.release() == 0
    assert await graph.take() == {"a", "b"}


@cases.add()
async def more_than_one_transaction_frees_are_cancelled(ledger: Ledger) -> None:
    """The closure of a failure is one transaction, however wide."""
    job, answers = await ledger.store.create_job(NewJob(name="fan", tasks=_fan(critical=False)))
    await ledger.finish("a", failed_for_good(await ledger.claim_one()))
    await _sound(ledger)
    await _release_all(ledger.store)
    await _sound(ledger)
    record = await ledger.job(job)
    assert (record.total, record.failed, record.cancelled) == (MANY + 2, 1, MANY)
    last = await ledger.get(answers[-1].id)
    assert last.state == "pending", "it waits for their end, whatever it is"


@cases.add()
async def two_release_at_once(ledger: Ledger) -> None:
    other = await ledger.another_store()
    await ledger.store.create_job(NewJob(name="fan", tasks=_fan(last=False)))
    await ledger.finish("a", completed(await ledger.claim_one()))

    async def release(store: Store) -> None:
        # One that finds the row taken by the other has nothing to do at that moment.
        for _ in range(40):
            await store.release(limit=50)

    await asyncio.gather(release(ledger.store), release(other), release(other))
    await _release_all(ledger.store)
    await _sound(ledger)
    await ledger.let_pass(0.01)
    assert await _complete_all(ledger, "leaf") == MANY


@cases.add()
async def adding_to_a_fan_that_is_being_released(ledger: Ledger) -> None:
    """A new dependent has a higher id than those that were looked at: the release comes to it, or it needs none."""
    job, answers = await ledger.store.create_job(NewJob(name="fan", tasks=_fan(last=False)))
    await ledger.finish("a", completed(await ledger.claim_one()))
    await ledger.store.release(limit=10)
    edges = (After(task=answers[0].id), After(task=answers[-1].id))
    (one,), (two,) = (
        await ledger.store.enqueue([task("late", job=job, after=edges[:1])]),
        await ledger.store.enqueue([task("later", job=job, after=edges)]),
    )
    await _sound(ledger)
    await _release_all(ledger.store)
    await _sound(ledger)
    assert (await ledger.get(one.id)).state == "pending"
    assert (await ledger.get(two.id)).state == "blocked"
    await ledger.let_pass(0.01)
    ended = 0
    while (n := await _complete_all(ledger, "leaf")) > 0:
        ended += n
        await ledger.let_pass(0.002)
    assert ended == MANY
    assert (await ledger.get(two.id)).state == "pending"
    await _sound(ledger)


@cases.add()
async def running_a_root_again_whose_fan_is_being_released(ledger: Ledger) -> None:
    """Nobody counts its first end twice."""
    job, answers = await ledger.store.create_job(NewJob(name="fan", tasks=_fan(last=False)))
    await ledger.finish("a", completed(await ledger.claim_one()))
    await ledger.store.release(limit=10)
    assert await ledger.store.retry([answers[0].id]) == [answers[0].id]
    await _sound(ledger)
    await _release_all(ledger.store)
    await _sound(ledger)
    await ledger.let_pass(0.01)
    ended = 0
    while not (await ledger.job(job)).state.terminal:
        n = await _complete_all(ledger, "leaf")
        ended += n
        await ledger.let_pass(0.01)
        if not n:
            await _complete_all(ledger, "root")
            await _release_all(ledger.store)
            await _sound(ledger)
    assert ended == MANY
    assert (await ledger.job(job)).state is JobState.COMPLETED


@cases.add()
async def clearing_a_root_whose_fan_is_being_released(ledger: Ledger) -> None:
    job, answers = await ledger.store.create_job(NewJob(name="fan", tasks=_fan()))
    await ledger.finish("a", completed(await ledger.claim_one()))
    await ledger.store.release(limit=10)
    assert len(await ledger.store.clear(answers[0].id)) == MANY + 2
    await _sound(ledger)
    await _release_all(ledger.store)
    await _sound(ledger)
    await ledger.finish("a", completed(await ledger.claim_due()))
    await _release_all(ledger.store)
    await ledger.let_pass(0.01)
    assert await _complete_all(ledger, "leaf") == MANY
    await ledger.finish("a", completed(await ledger.claim_due()))
    assert (await ledger.job(job)).state is JobState.COMPLETED


@cases.add()
async def cancelling_a_job_whose_fan_is_being_released(ledger: Ledger) -> None:
    job, answers = await ledger.store.create_job(NewJob(name="fan", tasks=_fan()))
    await ledger.finish("a", completed(await ledger.claim_one()))
    await ledger.store.cancel_job(job)
    await _release_all(ledger.store)
    await _sound(ledger)
    assert await ledger.claim() == []
    assert (await ledger.job(job)).cancelled == MANY + 1
    assert len(await ledger.store.retry_failed(job)) == MANY + 1
    await _sound(ledger)
    assert (await ledger.get(answers[1].id)).state == "pending", "its root has completed"


@cases.add()
async def a_fan_in_by_many_hands(ledger: Ledger) -> None:
    """Finishes of three stores at once lower one barrier: it is free after the last, once."""
    stores = [ledger.store, await ledger.another_store(), await ledger.another_store()]
    for _ in range(5):
        leaves = [task("leaf") for _ in range(60)]
        edges = tuple(After(task=place, local=True) for place in range(60))
        job, answers = await ledger.store.create_job(NewJob(name="fan", tasks=[*leaves, task("last", after=edges)]))
        claims = await ledger.claim(n=60)
        parts = [claims[start : start + 7] for start in range(0, 60, 7)]
        await asyncio.gather(
            *[stores[n % 3].finish("a", [completed(claim) for claim in part]) for n, part in enumerate(parts)]
        )
        await _sound(ledger)
        claim = await ledger.claim_due()
        assert claim.id == answers[-1].id
        assert await ledger.claim() == []
        await ledger.finish("a", completed(claim))
        assert (await ledger.job(job)).state is JobState.COMPLETED


@cases.add()
async def crossing_fans_do_not_stand_in_each_others_way(ledger: Ledger) -> None:
    """Many barriers, lowered by many finishes in every order: no deadlock comes to the surface, nobody is forgotten."""
    stores = [ledger.store, await ledger.another_store(), await ledger.another_store()]
    width = 12
    tops = [task("top") for _ in range(width)]
    edges = tuple(After(task=place, local=True) for place in range(width))
    bottoms = [task("bottom", after=edges[n:] + edges[:n]) for n in range(width)]
    for _ in range(4):
        job, _ = await ledger.store.create_job(NewJob(name="grid", tasks=[*tops, *bottoms]))
        for _layer in range(2):
            await ledger.let_pass(0.005)
            claims = await ledger.claim(n=width)
            assert len(claims) == width
            orders = [claims[n::4] for n in range(4)]
            await asyncio.gather(
                *[stores[n % 3].finish("a", [completed(c) for c in part[::-1]]) for n, part in enumerate(orders)]
            )
            await _sound(ledger)
        assert (await ledger.job(job)).state is JobState.COMPLETED
