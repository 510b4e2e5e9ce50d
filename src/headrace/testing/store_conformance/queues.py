"""Queues: a pause stops claims, nothing else."""

from headrace.core.lanes import Lane
from headrace.core.limits import Gate
from headrace.core.task import Want
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, completed, failed, ref, task

cases = Cases("queues")


@cases.add()
async def a_paused_queue_gives_nothing_and_takes_everything(ledger: Ledger) -> None:
    await ledger.enqueue(task(queue="mail"), task(queue="mail"), task())
    (running,) = await ledger.claim(n=1, queue="mail")
    await ledger.store.pause("mail")
    assert await ledger.claim(queue="mail") == []
    assert len(await ledger.claim()) == 1
    await ledger.enqueue_one(queue="mail")
    await ledger.finish("a", completed(running))
    assert await ledger.claim(queue="mail") == []
    await ledger.store.resume("mail")
    assert len(await ledger.claim(queue="mail")) == 2


@cases.add()
async def a_claim_with_a_finish_heeds_the_pause_too(ledger: Ledger) -> None:
    await ledger.enqueue(task(), task())
    claim = await ledger.claim_one()
    await ledger.store.pause("default")
    wants = [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=5)]
    report = await ledger.store.finish("a", [completed(claim)], wants=wants)
    assert report.claimed == ()


@cases.add()
async def pausing_twice_and_resuming_what_is_not_paused(ledger: Ledger) -> None:
    await ledger.store.resume("mail")
    await ledger.store.pause("mail")
    await ledger.store.pause("mail")
    assert {q.name: q.paused for q in await ledger.store.queues()}["mail"] is True
    await ledger.store.resume("mail")
    await ledger.store.resume("mail")
    await ledger.enqueue_one(queue="mail")
    assert len(await ledger.claim(queue="mail")) == 1


@cases.add()
async def retries_of_a_paused_queue_wait_too(ledger: Ledger) -> None:
    await ledger.enqueue_one()
    await ledger.finish("a", failed(await ledger.claim_one()))
    await ledger.store.pause("default")
    await ledger.let_pass(0.01)
    assert await ledger.claim() == []
    await ledger.store.resume("default")
    assert len(await ledger.claim()) == 1


@cases.add()
async def queues_are_listed_with_their_depths(ledger: Ledger) -> None:
    await ledger.enqueue(*[task(queue="mail") for _ in range(4)], task(queue="mail", delay=600), task(queue="web"))
    await ledger.claim(n=1, queue="mail")
    (retried,) = await ledger.claim(n=1, queue="mail")
    await ledger.finish("a", failed(retried))
    await ledger.let_pass(0.01)
    await ledger.store.promote()
    found = {queue.name: queue for queue in await ledger.store.queues()}
    assert {"mail", "web"} <= set(found)
    depths = found["mail"].depths
    assert (depths.get("primary", 0), depths.get("retry", 0), depths.get("scheduled", 0)) == (2, 1, 1)
    assert (depths.get("claimed", 0), depths.get("running", 0)) == (1, 0)
    assert found["web"].depths.get("primary") == 1
    assert not found["mail"].paused


@cases.add()
async def names_of_queues_with_work_or_a_row(ledger: Ledger) -> None:
    """Those with ready tasks in any pool and lane, and those that were paused; sorted, each once."""
    assert await ledger.store.queue_names() == []
    await ledger.enqueue(task(queue="b"), task(queue="b", pool="child"), task(queue="a", priority=-5), task(queue="ä"))
    await ledger.enqueue(task(queue="retried"), task(queue="done"))
    await ledger.finish("a", failed(await ledger.claim_one(queue="retried")))
    await ledger.finish("a", completed(await ledger.claim_one(queue="done")))
    await ledger.store.pause("b")
    await ledger.store.pause("silent")
    await ledger.let_pass(0.01)
    await ledger.store.promote()
    names = await ledger.store.queue_names()
    assert sorted(names) == sorted(["a", "b", "retried", "silent", "ä"])


@cases.add()
async def a_queue_is_found_once_its_tasks_are_due(ledger: Ledger) -> None:
    await ledger.enqueue_one(queue="later", delay=0.1)
    await ledger.let_pass(0.2)
    await ledger.store.promote()
    assert await ledger.store.queue_names() == ["later"]


@cases.add()
async def depths_of_what_waits_or_is_held(ledger: Ledger) -> None:
    """Also in queues that have nothing ready."""
    gate = (Gate(kind="limit", key="k", n=1),)
    await ledger.enqueue(task(queue="gated", gates=gate), task(queue="gated", gates=gate), task(queue="gated"))
    claims = await ledger.claim(queue="gated")
    await ledger.store.admit("a", [claim for claim in claims if claim.gated])
    await ledger.store.start("a", [ref(claim) for claim in claims if not claim.gated])
    await ledger.enqueue(task(queue="asked", approval=True), task(queue="asked", delay=600))
    found = {queue.name: {depth: n for depth, n in queue.depths.items() if n} for queue in await ledger.store.queues()}
    assert found == {"gated": {"waiting": 1, "claimed": 1, "running": 1}, "asked": {"waiting": 1, "scheduled": 1}}
    counts = await ledger.store.counts()
    assert counts == {"pending": 2, "claimed": 1, "running": 1, "pending_approval": 1}
