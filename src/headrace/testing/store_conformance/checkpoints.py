"""Checkpoints: the first value stands, and only the holder stores one; the same of tasks that a task makes."""

import asyncio

from headrace.core.states import JobState
from headrace.core.task import NewJob, Ref
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, completed, failed, lost, ref, released, task

cases = Cases("checkpoints")


@cases.add()
async def the_first_value_stands(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    assert await ledger.store.save_checkpoint("a", ref(claim), "charge", "1") == "1"
    assert await ledger.store.save_checkpoint("a", ref(claim), "charge", "2") == "1"
    assert await ledger.store.save_checkpoint("a", ref(claim), "ship", "[3]") == "[3]"
    assert await ledger.store.checkpoints(task_id) == {"charge": "1", "ship": "[3]"}
    assert await ledger.store.checkpoint(task_id, "charge") == "1"
    assert await ledger.store.checkpoint(task_id, "nothing") is None
    assert await ledger.store.checkpoints(987_654_321) == {}


@cases.add()
async def a_retry_finds_them(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.save_checkpoint("a", ref(claim), "charge", "1")
    await ledger.finish("a", failed(claim))
    again = await ledger.claim_due("b")
    assert await ledger.store.checkpoints(task_id) == {"charge": "1"}
    assert await ledger.store.save_checkpoint("b", ref(again), "charge", "2") == "1"


@cases.add()
async def strangers_store_nothing(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one("a")
    assert await ledger.store.save_checkpoint("b", ref(claim), "x", "1") is None
    assert await ledger.store.save_checkpoint("a", Ref(claim.id, claim.claim_no + 1), "x", "1") is None
    await ledger.finish("a", released(claim))
    assert await ledger.store.save_checkpoint("a", ref(claim), "x", "1") is None
    second = await ledger.claim_due("b")
    await ledger.finish("b", completed(second))
    assert await ledger.store.save_checkpoint("b", ref(second), "x", "1") is None
    assert await ledger.store.checkpoints(task_id) == {}


# What a task makes once.


@cases.add()
async def spawned_once(ledger: Ledger) -> None:
    """However often it is asked, by whichever attempt; the checkpoint says which task it is."""
    await ledger.enqueue_one()
    claim = await ledger.claim_one()
    child = await ledger.store.spawn("a", ref(claim), "child", task("child"))
    assert child is not None
    assert await ledger.store.spawn("a", ref(claim), "child", task("child")) == child
    other = await ledger.store.spawn("a", ref(claim), "another", task("child"))
    assert other not in (None, child)
    assert {name: int(value) for name, value in (await ledger.store.checkpoints(claim.id)).items()} == {
        "child": child,
        "another": other,
    }
    await ledger.finish("a", lost(claim))
    await ledger.let_pass(0.002)
    again = next(c for c in await ledger.claim("b") if c.id == claim.id)
    assert await ledger.store.spawn("b", ref(again), "child", task("child")) == child
    assert {c.id for c in await ledger.store.held("b")} == {claim.id, child, other}


@cases.add()
async def spawning_at_once(ledger: Ledger) -> None:
    other = await ledger.another_store()
    await ledger.enqueue_one("parent")
    claim = await ledger.claim_one()
    answers = await asyncio.gather(
        *[store.spawn("a", ref(claim), "child", task("child")) for store in (ledger.store, other) for _ in range(4)]
    )
    assert len(set(answers)) == 1
    assert [found.id for found in await ledger.claim()] == [answers[0]]


@cases.add()
async def strangers_spawn_nothing(ledger: Ledger) -> None:
    await ledger.enqueue_one()
    claim = await ledger.claim_one()
    assert await ledger.store.spawn("b", ref(claim), "child", task("child")) is None
    await ledger.finish("a", released(claim, 600.0))
    assert await ledger.store.spawn("a", ref(claim), "child", task("child")) is None
    assert await ledger.claim() == []
    assert await ledger.store.checkpoints(claim.id) == {}


@cases.add()
async def a_spawned_task_belongs_to_its_job(ledger: Ledger) -> None:
    """It counts, and the job waits for it."""
    job, _ = await ledger.store.create_job(NewJob(name="j", tasks=(task("parent"),)))
    claim = await ledger.claim_one()
    child = await ledger.store.spawn("a", ref(claim), "child", task("child", job=job))
    assert (await ledger.job(job)).total == 2
    await ledger.finish("a", completed(claim))
    assert (await ledger.job(job)).state is JobState.RUNNING
    work = await ledger.claim_one()
    assert work.id == child
    await ledger.finish("a", completed(work))
    assert (await ledger.job(job)).state is JobState.COMPLETED
