"""What waits for others moves with them: a graph with its job, a caller with whom it called, a wait with its event."""

import asyncio

import pytest

from headrace.core.limits import Gate
from headrace.core.states import JobState
from headrace.core.task import After, ClaimedTask, EdgeKind, NewJob
from headrace.core.task import Received as ReceivedEvent
from headrace.store.base import RELEASED_AT_ONCE
from headrace.testing.store_conformance.drawing import Graph, Wait, done, draw, failure, node
from headrace.testing.store_conformance.ledger import Ledger, completed, ref, suspended, task
from tests.support.moving import ledger_of, moved, mover_of
from tests.support.waiting import eventually


async def _sound(*ledgers: Ledger) -> None:
    for ledger in ledgers:
        assert [found for found in await ledger.store.check() if found.rule != "rescue-pending"] == []


@pytest.mark.postgres
async def test_a_graph_goes_on_where_it_was(sqlite_url: str, postgres_url: str):
    """Freed, blocked, handled, skipped and waiting for an approval: edges, barriers and results came along."""
    async with ledger_of(sqlite_url) as here:
        graph = await draw(
            here,
            a=node(),
            bad=node(),
            handler=node(failure("bad")),
            b=node(Wait("a", EdgeKind.ON_SUCCESS, 0), "handler"),
            skipped=node(failure("a")),
            asked=node("a", approval=True),
            both=node("b", done("asked")),
            later=node("both", approval=True),
        )
        await graph.take()
        await here.finish("a", completed(graph.held.pop("a"), '"of a"'))
        await graph.fail("bad")
        before, edges = await graph.states(), await here.store.edges(list(graph.ids.values()))
        assert set(before.values()) >= {"pending", "blocked", "pending_approval", "completed", "failed"}
    await moved(sqlite_url, postgres_url)
    async with ledger_of(postgres_url) as there, ledger_of(sqlite_url) as here:
        await _sound(here, there)
        graph = Graph(there, graph.job, graph.ids)
        assert await graph.states() == before
        assert await there.store.edges(list(graph.ids.values())) == edges
        await graph.complete("handler")
        assert await graph.take() == {"b"}
        assert [found.result for found in await there.store.inputs(graph.ids["b"])] == ['"of a"']
        await graph.complete("b")
        await there.store.decide(graph.ids["asked"], approved=True, by="ann")
        await graph.each(graph.complete, ["asked", "both"])
        await there.store.decide(graph.ids["later"], approved=True, by="ann")
        await graph.complete("later")
        await graph.sound()
        assert (await graph.fate(), await graph.hooks()) == (JobState.COMPLETED, ["hook.success"])


@pytest.mark.postgres
async def test_a_fan_that_is_being_released_goes_on_there(sqlite_url: str, postgres_url: str):
    async with ledger_of(sqlite_url) as here:
        many = RELEASED_AT_ONCE + 50
        leaves = [task("leaf", after=(After(task=0, local=True),)) for _ in range(many)]
        job, _ = await here.store.create_job(NewJob(name="fan", tasks=[task("root"), *leaves]))
        assert (await here.finish("a", completed(await here.claim_one()))).releasing
        await here.store.release(limit=10)
    await moved(sqlite_url, postgres_url)
    async with ledger_of(postgres_url) as there:
        await _sound(there)
        while await there.store.release():
            pass
        await _sound(there)
        ended = 0
        while claims := await there.claim(n=500):
            await there.finish("a", *[completed(claim) for claim in claims])
            ended += len(claims)
            await there.let_pass(0.002)
        assert ended == many
        assert (await there.job(job)).state == "completed"


async def _call(here: Ledger, caller: ClaimedTask, **options: object) -> int:
    child = await here.store.spawn("a", ref(caller), "child", task("child", **options))
    assert child is not None
    await here.finish("a", suspended(caller, task=child))
    return child


@pytest.mark.postgres
async def test_a_caller_goes_with_whom_it_called(sqlite_url: str, postgres_url: str):
    """Neither goes while the other is held; then both do, also where one is of a job."""
    async with ledger_of(sqlite_url) as here, ledger_of(postgres_url) as there:
        await here.register("a", "b")
        loose = await here.enqueue_one("caller")
        called = await _call(here, await here.claim_one())
        work = await here.claim_one("b")
        assert work.id == called
        job, (member,) = await here.store.create_job(NewJob(name="j", tasks=(task("caller"),)))
        called_too = await _call(here, await here.claim_one())
        work_too = await here.claim_one("b")
        assert work_too.id == called_too
        alone = await here.enqueue_one("alone", queue="other")
        async with mover_of(sqlite_url, postgres_url, follow=True, until_idle=False) as mover:
            running = asyncio.create_task(mover.run())
            try:

                async def others() -> bool:
                    return set(await there.store.get([alone])) == {alone}

                await eventually(others, message="what waits for nobody has gone")
                assert await there.store.get([loose, called, member.id, called_too]) == {}
                assert await there.store.get_job(job) is None
                await here.finish("b", completed(work), completed(work_too))

                async def all_there() -> bool:
                    return len(await there.store.get([loose, called, member.id, called_too])) == 4

                await eventually(all_there, message="callers and those they called have gone")
            finally:
                running.cancel()
                await asyncio.wait([running])
        await _sound(here, there)
        assert await there.state(loose) == await there.state(member.id) == "pending"
        await there.finish("c", *[completed(claim) for claim in await there.claim("c")])
        assert (await there.job(job)).state == "completed"


@pytest.mark.postgres
async def test_nobody_is_held_and_callers_wait_there(sqlite_url: str, postgres_url: str):
    """Caller and called arrive together, the one blocked by the other; an order key of one holds neither back for
    good."""
    line = (Gate(kind="order", key="k"),)
    async with ledger_of(sqlite_url) as here:
        job, (member,) = await here.store.create_job(NewJob(name="j", tasks=(task("caller"),)))
        child = await _call(here, await here.claim_one(), gates=line)
        other = await here.enqueue_one("caller", priority=9)
        grandchild = await _call(here, await here.claim_one())
        await _sound(here)
    await moved(sqlite_url, postgres_url)
    async with ledger_of(postgres_url) as there, ledger_of(sqlite_url) as here:
        assert await here.store.get([member.id, child, other, grandchild]) == {}
        await _sound(here, there)
        assert await there.state(member.id) == await there.state(other) == "blocked"
        claims = await there.claim("c")
        assert {claim.id for claim in claims} == {child, grandchild}
        await there.store.admit("c", [claim for claim in claims if claim.gated])
        await there.finish("c", *[completed(claim) for claim in claims])
        await there.let_pass(0.002)
        await there.finish("c", *[completed(claim) for claim in await there.claim("c")])
        assert await there.state(other) == "completed"
        assert (await there.job(job)).state == "completed"


@pytest.mark.postgres
async def test_waits_and_events_meet_there(sqlite_url: str, postgres_url: str):
    """An event that was sent here before the move, one that is sent here after it, and one that is sent there."""
    async with ledger_of(sqlite_url) as here, ledger_of(postgres_url) as there:
        waiting: dict[str, int] = {}
        for key in ("here", "there", "taken"):
            waiting[key] = await here.enqueue_one()
            claim = await here.claim_one()
            if key == "taken":
                await here.store.send("payment", key, "0")
            await here.store.receive("a", ref(claim), "paid", event="payment", key=key, timeout=600.0)
            step = "again" if key == "taken" else "paid"
            if key == "taken":
                await here.store.receive("a", ref(claim), step, event="payment", key=key, timeout=None)
            await here.finish("a", suspended(claim, step=step))
        await moved(sqlite_url, postgres_url)
        await _sound(here, there)
        assert {await there.state(id) for id in waiting.values()} == {"blocked"}
        await there.store.deliver()
        assert await there.state(waiting["taken"]) == "blocked", "one wait of it took that event already"
        await there.store.send("payment", "there", "2")
        await here.store.send("payment", "here", "1")  # by a program that still has the old URL
        await moved(sqlite_url, postgres_url)
        assert await there.store.deliver() == 1
        claims = {claim.id: claim for claim in await there.claim()}
        assert claims.keys() == {waiting["here"], waiting["there"]}
        for key, payload in (("here", "1"), ("there", "2")):
            asked = there.store.receive("a", ref(claims[waiting[key]]), "paid", event="payment", key=key, timeout=600.0)
            assert await asked == ReceivedEvent(payload=payload)
        await _sound(here, there)
