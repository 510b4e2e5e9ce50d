"""Events: kept, taken once by each wait, in order, by tasks that wait for them or did not yet."""

import asyncio

from headrace.core.errors import LeaseLost
from headrace.core.states import JobState, TaskState
from headrace.core.task import ClaimedTask, NewJob, Received, Ref
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import (
    Ledger,
    completed,
    failed,
    failed_for_good,
    lost,
    ref,
    refused,
    released,
    suspended,
    task,
)

cases = Cases("events")


async def _receive(
    ledger: Ledger, claim: ClaimedTask, step: str = "paid", *, key: str = "7", timeout: float | None = None
) -> Received | None:
    return await ledger.store.receive("a", ref(claim), step, event="payment", key=key, timeout=timeout)


async def _waits(ledger: Ledger, *, step: str = "paid", timeout: float | None = None) -> int:
    """A task that has given its slot back to wait for the payment."""
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    assert await _receive(ledger, claim, step, timeout=timeout) is None
    await ledger.finish("a", suspended(claim, step=step))
    return task_id


@cases.add()
async def an_event_that_came_before_the_wait(ledger: Ledger) -> None:
    await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.send("payment", "7", '{"euros":3}')
    received = await _receive(ledger, claim)
    assert received is not None
    assert (received.payload, received.timed_out) == ('{"euros":3}', False)
    assert "paid" in await ledger.store.checkpoints(claim.id)
    await ledger.finish("a", completed(claim))


@cases.add()
async def an_event_that_comes_while_the_task_waits(ledger: Ledger) -> None:
    task_id = await _waits(ledger)
    record = await ledger.get(task_id)
    assert (record.state, record.waiting_on, record.worker) == (TaskState.BLOCKED, "event:payment/7", None)
    assert await ledger.claim() == []
    assert await ledger.store.deliver() == 0
    await ledger.store.send("payment", "8", "1")
    await ledger.store.send("refund", "7", "1")
    assert await ledger.state(task_id) == "blocked"
    await ledger.store.send("payment", "7", "2")
    assert await ledger.state(task_id) == "pending"
    claim = await ledger.claim_due()
    assert (claim.id, claim.attempt) == (task_id, 0)
    assert await _receive(ledger, claim) == Received(payload="2")
    await ledger.finish("a", completed(claim))


@cases.add()
async def an_event_that_comes_between_the_question_and_the_wait(ledger: Ledger) -> None:
    """The task asked, found nothing, and is about to be suspended: the finish sees that it came."""
    await ledger.enqueue_one()
    claim = await ledger.claim_one()
    assert await _receive(ledger, claim) is None
    await ledger.store.send("payment", "7", "1")
    assert await ledger.state(claim.id) == "claimed", "a running task is not touched"
    await ledger.finish("a", suspended(claim, step="paid"))
    assert await ledger.state(claim.id) == "pending"
    assert await _receive(ledger, await ledger.claim_due()) == Received(payload="1")


@cases.add()
async def sending_and_suspending_at_once(ledger: Ledger) -> None:
    """Whoever comes first, the task goes on; at the latest when `deliver` has looked."""
    other = await ledger.another_store()
    for n in range(15):
        await ledger.enqueue_one()
        claim = await ledger.claim_one()
        key = str(n)
        assert await _receive(ledger, claim, key=key) is None
        await asyncio.gather(
            ledger.store.finish("a", [suspended(claim, step="paid")]), other.send("payment", key, str(n))
        )
        await ledger.store.deliver()
        again = await ledger.claim_due()
        assert again.id == claim.id
        assert await _receive(ledger, again, key=key) == Received(payload=str(n))
        await ledger.finish("a", completed(again))


@cases.add()
async def the_answer_stays_the_same(ledger: Ledger) -> None:
    """An attempt that dies after the answer leaves it to the next, however many events came since."""
    await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.send("payment", "7", "1")
    assert await _receive(ledger, claim) == Received(payload="1")
    await ledger.store.send("payment", "7", "2")
    assert await _receive(ledger, claim) == Received(payload="1")
    await ledger.finish("a", lost(claim))
    again = await ledger.claim_due()
    assert await _receive(ledger, again) == Received(payload="1")


@cases.add()
async def two_waits_of_a_task_take_two_events(ledger: Ledger) -> None:
    """The oldest first; each wait its own."""
    await ledger.enqueue_one()
    claim = await ledger.claim_one()
    for payload in ("1", "2"):
        await ledger.store.send("payment", "7", payload)
        await ledger.let_pass(0.002)
    assert await _receive(ledger, claim, "first") == Received(payload="1")
    assert await _receive(ledger, claim, "second") == Received(payload="2")
    assert await _receive(ledger, claim, "third") is None
    assert await _receive(ledger, claim, "first") == Received(payload="1")
    await ledger.finish("a", suspended(claim, step="third"))
    await ledger.store.send("payment", "7", "3")
    again = await ledger.claim_due()
    assert await _receive(ledger, again, "third") == Received(payload="3")


@cases.add()
async def two_tasks_take_the_same_event(ledger: Ledger) -> None:
    """It happened for everybody who waits for it."""
    one, two = await _waits(ledger), await _waits(ledger)
    await ledger.store.send("payment", "7", "1")
    await ledger.let_pass(0.002)
    claims = await ledger.claim()
    assert {claim.id for claim in claims} == {one, two}
    for claim in claims:
        assert await _receive(ledger, claim) == Received(payload="1")


@cases.add()
async def an_event_of_before_the_run_is_not_meant(ledger: Ledger) -> None:
    await ledger.store.send("payment", "7", "1")
    await ledger.let_pass(0.01)
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    assert await _receive(ledger, claim) is None
    await ledger.store.send("payment", "7", "2")
    await ledger.let_pass(0.01)
    await ledger.finish("a", failed_for_good(claim))
    assert await ledger.store.clear(task_id) == [task_id]
    again = await ledger.claim_due()
    assert await _receive(ledger, again) is None, "the one that came in the first run is older than the second"
    await ledger.finish("a", suspended(again, step="paid"))
    await ledger.store.send("payment", "7", "3")
    assert await _receive(ledger, await ledger.claim_due()) == Received(payload="3")


@cases.add()
async def an_event_of_an_earlier_attempt_is_meant(ledger: Ledger) -> None:
    """A retry, a release or a suspension is no new run."""
    await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.send("payment", "7", "1")
    await ledger.let_pass(0.01)
    await ledger.finish("a", failed(claim))
    await ledger.finish("a", released(await ledger.claim_due()))
    assert await _receive(ledger, await ledger.claim_due()) == Received(payload="1")


@cases.add()
async def a_wait_that_is_over(ledger: Ledger) -> None:
    """Its time counts from the first question, over attempts; that it was over stays true, whatever comes later."""
    task_id = await _waits(ledger, timeout=1.0)
    assert await ledger.store.deliver() == 0
    await ledger.let_pass(1.1)
    assert await ledger.store.deliver() == 1
    assert await ledger.store.deliver() == 0
    claim = await ledger.claim_due()
    assert claim.id == task_id
    received = await _receive(ledger, claim, timeout=0.3)
    assert received is not None
    assert received.timed_out
    await ledger.store.send("payment", "7", "1")
    assert await _receive(ledger, claim, timeout=600.0) == received
    await ledger.finish("a", lost(claim))
    again = await ledger.claim_due()
    assert await _receive(ledger, again, timeout=600.0) == received
    assert await _receive(ledger, again, "next") == Received(payload="1"), "nobody took it"


@cases.add()
async def the_time_of_a_wait_is_that_of_the_first_question(ledger: Ledger) -> None:
    await ledger.enqueue_one()
    claim = await ledger.claim_one()
    assert await _receive(ledger, claim, timeout=0.3) is None
    await ledger.finish("a", lost(claim))
    await ledger.let_pass(0.4)
    again = await ledger.claim_due()
    received = await _receive(ledger, again, timeout=0.3)
    assert received is not None
    assert received.timed_out


@cases.add()
async def a_wait_whose_time_ran_out_before_it_was_suspended(ledger: Ledger) -> None:
    await ledger.enqueue_one()
    claim = await ledger.claim_one()
    assert await _receive(ledger, claim, timeout=0.1) is None
    await ledger.let_pass(0.2)
    await ledger.finish("a", suspended(claim, step="paid"))
    await ledger.store.deliver()
    again = await ledger.claim_due()
    received = await _receive(ledger, again, timeout=0.1)
    assert received is not None
    assert received.timed_out


@cases.add()
async def strangers_receive_nothing(ledger: Ledger) -> None:
    """And note no wait."""
    await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.send("payment", "7", "1")
    for worker, stale in (("b", ref(claim)), ("a", Ref(claim.id, claim.claim_no + 1)), ("a", Ref(987_654_321, 1))):
        asked = ledger.store.receive(worker, stale, "paid", event="payment", key="7", timeout=None)
        await refused(asked, LeaseLost)
    await ledger.finish("a", released(claim))
    await refused(ledger.store.receive("a", ref(claim), "paid", event="payment", key="7", timeout=None), LeaseLost)
    assert await ledger.store.checkpoints(claim.id) == {}


@cases.add()
async def a_task_that_waits_keeps_its_job_open(ledger: Ledger) -> None:
    job, _ = await ledger.store.create_job(NewJob(name="j", tasks=(task(),)))
    claim = await ledger.claim_one()
    assert await _receive(ledger, claim) is None
    await ledger.finish("a", suspended(claim, step="paid"))
    record = await ledger.job(job)
    assert (record.state, record.open, record.running) == (JobState.RUNNING, 1, 0)
    await ledger.store.send("payment", "7", "1")
    await ledger.finish("a", completed(await ledger.claim_due()))
    assert (await ledger.job(job)).state is JobState.COMPLETED


@cases.add()
async def a_cancelled_wait(ledger: Ledger) -> None:
    """It has ended: its event does not bring it back."""
    task_id = await _waits(ledger, timeout=0.1)
    assert (await ledger.store.cancel([task_id]))[task_id] == "cancelled"
    await ledger.store.send("payment", "7", "1")
    await ledger.let_pass(0.2)
    await ledger.store.deliver()
    assert await ledger.state(task_id) == "cancelled"
    assert await ledger.claim() == []


@cases.add()
async def cancelled_while_it_is_about_to_wait(ledger: Ledger) -> None:
    """A suspension of a task that is `cancelling` ends it as cancelled, as any requeue does."""
    await ledger.enqueue_one()
    claim = await ledger.claim_one()
    assert await _receive(ledger, claim) is None
    await ledger.store.cancel([claim.id])
    await ledger.finish("a", suspended(claim, step="paid"))
    assert await ledger.state(claim.id) == "cancelled"
    await ledger.store.send("payment", "7", "1")
    assert await ledger.claim() == []


async def _all_wait(ledger: Ledger, n: int) -> list[int]:
    """So many tasks whose waits are over by the clock, and nobody has told them."""
    ids = await ledger.enqueue(*[task() for _ in range(n)])
    claims = await ledger.claim()
    for claim in claims:
        assert await _receive(ledger, claim, timeout=1.0) is None
    await ledger.finish("a", *[suspended(claim, step="paid") for claim in claims])
    assert {await ledger.state(task_id) for task_id in ids} == {"blocked"}
    await ledger.let_pass(1.1)
    return ids


@cases.add()
async def deliver_is_bounded(ledger: Ledger) -> None:
    await _all_wait(ledger, 5)
    resumed = [await ledger.store.deliver(limit=2) for _ in range(3)]
    assert (sum(resumed), max(resumed)) == (5, 2)
    assert await ledger.store.deliver(limit=2) == 0


@cases.add()
async def two_deliver_at_once(ledger: Ledger) -> None:
    other = await ledger.another_store()
    ids = await _all_wait(ledger, 6)
    await asyncio.gather(*[store.deliver() for store in (ledger.store, other) for _ in range(3)])
    await ledger.let_pass(0.002)
    assert sorted(claim.id for claim in await ledger.claim()) == ids


@cases.add()
async def old_events_are_pruned(ledger: Ledger) -> None:
    """Not those that are young; and a wait keeps what it took as its checkpoint."""
    await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.send("payment", "7", "1")
    assert await _receive(ledger, claim) == Received(payload="1")
    await ledger.let_pass(1.1)
    await ledger.store.send("payment", "7", "2")
    assert (await ledger.store.prunable(keep=1.0)).events == 1
    assert (await ledger.store.prune(keep=1.0)).events == 1
    assert (await ledger.store.prune(keep=1.0)).events == 0
    assert await _receive(ledger, claim) == Received(payload="1")
    assert await _receive(ledger, claim, "second") == Received(payload="2")


@cases.add()
async def a_pruned_task_leaves_no_wait(ledger: Ledger) -> None:
    task_id = await _waits(ledger)
    await ledger.store.send("payment", "7", "1")
    claim = await ledger.claim_due()
    assert await _receive(ledger, claim) == Received(payload="1")
    await ledger.finish("a", completed(claim))
    gone = await _waits(ledger, step="never")
    await ledger.store.cancel([gone])
    await ledger.let_pass(0.3)
    assert (await ledger.store.prune(keep=0.2)).tasks == 2
    assert await ledger.store.get([task_id, gone]) == {}
    assert await ledger.store.checkpoints(task_id) == {}


@cases.add()
async def an_event_that_was_taken_resumes_nobody_again(ledger: Ledger) -> None:
    """Who took it and waits for the next one of that name is left alone, however many they are."""
    await ledger.enqueue(*[task(f"t{n}") for n in range(3)])
    await ledger.let_pass(0.002)
    claims = await ledger.claim()
    for claim in claims:
        assert await ledger.store.receive("a", ref(claim), "first", event="e", key="", timeout=None) is None
    await ledger.finish("a", *[suspended(claim, step="first") for claim in claims])
    await ledger.store.send("e", "", "1")
    await ledger.let_pass(0.002)
    again = await ledger.claim()
    assert len(again) == 3
    for claim in again:
        assert await ledger.store.receive("a", ref(claim), "first", event="e", key="", timeout=None) is not None
        assert await ledger.store.receive("a", ref(claim), "second", event="e", key="", timeout=None) is None
    await ledger.finish("a", *[suspended(claim, step="second") for claim in again])
    for _ in range(3):
        assert await ledger.store.deliver(limit=2) == 0
    assert await ledger.claim() == []
    await ledger.store.send("e", "", "2")
    await ledger.let_pass(0.002)
    assert len(await ledger.claim()) == 3


@cases.add()
async def what_was_sent_is_listed_the_last_first(ledger: Ledger) -> None:
    ids: list[int] = []
    for name, key in (("paid", "1"), ("paid", "2"), ("shipped", "1"), ("paid", "1")):
        ids.append(await ledger.store.send(name, key, f'{{"n":{len(ids)}}}'))
        await ledger.let_pass(0.001)
    found = await ledger.store.events()
    assert [(each.id, each.name, each.key) for each in found] == [
        (ids[3], "paid", "1"), (ids[2], "shipped", "1"), (ids[1], "paid", "2"), (ids[0], "paid", "1"),
    ]  # fmt: skip
    assert found[-1].payload == '{"n":0}'
    first = await ledger.store.events(limit=2)
    rest = await ledger.store.events(limit=10, before=(first[-1].created_at, first[-1].id))
    assert [*first, *rest] == found
    assert [each.id for each in await ledger.store.events(event="paid", key="1")] == [ids[3], ids[0]]
    place = (found[0].created_at, found[0].id)
    assert [each.id for each in await ledger.store.events(event="paid", key="1", before=place)] == [ids[0]]
    assert await ledger.store.events(event="nothing", key="1") == []
    assert await ledger.store.events(event="\0", key="1") == []


@cases.add()
async def events_of_a_name_are_looked_for_among_the_last(ledger: Ledger) -> None:
    ids: list[int] = []
    for name in ("paid", "shipped", "paid", "shipped", "shipped", "paid"):
        ids.append(await ledger.store.send(name, f"{len(ids)}", f'{{"n":{len(ids)}}}'))
        await ledger.let_pass(0.001)
    everything = await ledger.store.events()
    rows, place = await ledger.store.skim_events("paid")
    assert (rows, place) == ([each for each in everything if each.name == "paid"], None)
    rows, place = await ledger.store.skim_events("paid", window=3)
    assert ([each.id for each in rows], place) == ([ids[5]], (everything[2].created_at, ids[3]))
    rows, place = await ledger.store.skim_events("paid", before=place, window=3)
    assert ([each.payload for each in rows], place) == (['{"n":2}', '{"n":0}'], (everything[5].created_at, ids[0]))
    assert await ledger.store.skim_events("paid", before=place, window=3) == ([], None)
    assert await ledger.store.skim_events("\0") == ([], None)
