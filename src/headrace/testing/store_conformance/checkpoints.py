"""Checkpoints: the first value stands, and only the holder stores one."""

from headrace.core.task import Ref
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, completed, failed, ref, released

cases = Cases("checkpoints")


@cases.add()
async def the_first_value_stands(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    assert await ledger.store.save_checkpoint("a", ref(claim), "charge", "1") == "1"
    assert await ledger.store.save_checkpoint("a", ref(claim), "charge", "2") == "1"
    assert await ledger.store.save_checkpoint("a", ref(claim), "ship", "[3]") == "[3]"
    assert await ledger.store.checkpoints(task_id) == {"charge": "1", "ship": "[3]"}
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
