"""Lane first, priority within the lane, then the order of eligibility."""

from headrace.core.lanes import Lane
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, failed, released, snoozed, task

cases = Cases("lanes_and_priorities")


@cases.add()
async def higher_priority_first(ledger: Ledger) -> None:
    by_priority = {p: await ledger.enqueue_one(priority=p) for p in (0, 5, -3, 10, 5000)}
    more = await ledger.enqueue_one(priority=5)
    expected = [by_priority[5000], by_priority[10], by_priority[5], more, by_priority[0], by_priority[-3]]
    assert [claim.id for claim in await ledger.claim(n=1)] == expected[:1]
    assert [claim.id for claim in await ledger.claim(n=10)] == expected[1:]


@cases.add()
async def many_at_once_come_in_that_order_too(ledger: Ledger) -> None:
    made = [task(priority=(7 * place) % 5) for place in range(300)]
    ids = await ledger.enqueue(*made)
    best_first = sorted(range(300), key=lambda place: (-made[place].priority, ids[place]))
    for asked in (slice(0, 130), slice(130, 300)):
        claimed = await ledger.claim(n=170 if asked.start else 130)
        assert [claim.id for claim in claimed] == [ids[place] for place in best_first[asked]]


@cases.add()
async def the_earlier_due_comes_first_whenever_it_was_enqueued(ledger: Ledger) -> None:
    late = await ledger.enqueue_one(delay=0.1)
    soon = await ledger.enqueue_one(delay=0.05)
    await ledger.let_pass(0.15)
    assert [claim.id for claim in await ledger.claim(n=2)] == [soon, late]


@cases.add("F8", "F9")
async def retries_are_in_their_own_lane(ledger: Ledger) -> None:
    """F9: the retried task is found in the retry lane alone; F8: the primary lane holds only the new one."""
    old = await ledger.enqueue_one()
    await ledger.finish("a", failed(await ledger.claim_one()))
    new = await ledger.enqueue_one()
    assert (await ledger.get(old)).lane is Lane.RETRY
    retry = await ledger.claim_due(lanes=(Lane.RETRY,))
    assert (retry.id, retry.lane, retry.attempt) == (old, 1, 1)
    assert [claim.id for claim in await ledger.claim(lanes=(Lane.PRIMARY,))] == [new]


@cases.add("F10", "F11", "F33")
async def a_waiting_retry_becomes_due_in_the_retry_lane(ledger: Ledger) -> None:
    """F33: the instant of the retry is in `eligible_at`; F10: until then it is not claimable; F11: then it comes in
    the retry lane, also behind new work."""
    task_id = await ledger.enqueue_one()
    await ledger.finish("a", failed(await ledger.claim_one(), delay=0.3))
    waiting = await ledger.get(task_id)
    assert waiting.eligible_at > waiting.created_at
    if await ledger.store.now() < waiting.eligible_at:
        assert await ledger.claim() == []
    await ledger.let_pass(0.35)
    await ledger.store.promote()
    assert await ledger.store.retry_depth("default") == 1
    assert (await ledger.claim_one(lanes=(Lane.RETRY,))).id == task_id


@cases.add()
async def giving_back_keeps_the_lane_and_snoozing_too(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    await ledger.finish("a", released(await ledger.claim_one()))
    assert (await ledger.get(task_id)).lane is Lane.PRIMARY
    await ledger.finish("a", snoozed(await ledger.claim_due(), 0.0))
    assert (await ledger.get(task_id)).lane is Lane.PRIMARY
    await ledger.finish("a", failed(await ledger.claim_due()))
    await ledger.finish("a", released(await ledger.claim_due()))
    assert (await ledger.get(task_id)).lane is Lane.RETRY


@cases.add("F14")
async def both_lanes_can_be_asked_at_once(ledger: Ledger) -> None:
    """F14: with the retry lane empty, a claim that asks both is filled from the primary one."""
    await ledger.enqueue(*[task() for _ in range(3)])
    claims = await ledger.claim(n=5)
    assert len(claims) == 3
    for claim in claims:
        await ledger.finish("a", failed(claim))
    # And the other way round: only retries are left, and all of them come.
    await ledger.let_pass(0.01)
    again = await ledger.claim(n=5)
    assert len(again) == 3
    assert {claim.lane for claim in again} == {1}


@cases.add()
async def priority_holds_within_the_retry_lane(ledger: Ledger) -> None:
    low = await ledger.enqueue_one(priority=1)
    high = await ledger.enqueue_one(priority=9)
    for claim in await ledger.claim():
        await ledger.finish("a", failed(claim))
    await ledger.let_pass(0.01)
    assert [claim.id for claim in await ledger.claim(lanes=(Lane.RETRY,))] == [high, low]


@cases.add()
async def depth_of_the_retry_lane_is_capped(ledger: Ledger) -> None:
    await ledger.enqueue(*[task() for _ in range(8)])
    for claim in await ledger.claim():
        await ledger.finish("a", failed(claim))
    await ledger.let_pass(0.01)
    await ledger.store.promote()
    assert await ledger.store.retry_depth("default") == 8
    assert await ledger.store.retry_depth("default", cap=5) == 5
    assert await ledger.store.retry_depth("nothing") == 0
