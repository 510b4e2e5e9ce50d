"""What was free to run waits again when that which it waited for is opened, and comes back in its old place."""

from headrace.core.states import JobState
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.drawing import UPSTREAM_FAILED, Wait, draw, node
from headrace.testing.store_conformance.ledger import Ledger, completed, suspended, task

cases = Cases("waiting_again")


@cases.add()
async def a_dependent_that_nobody_has_claimed(ledger: Ledger) -> None:
    """Pending, or before a decision: it is not run on what is no longer there."""
    graph = await draw(
        ledger, a=node(), x=node(), b=node(Wait("a", input=0), "x"), c=node("a", approval=True), d=node("b")
    )
    await graph.complete("a", "x")
    waiting = {"b": "pending", "c": "pending_approval", "d": "blocked"}
    assert await graph.states() == {"a": "completed", "x": "completed", **waiting}
    for _ in range(2):
        assert await ledger.store.retry([graph.ids["a"]]) == [graph.ids["a"]]
        await graph.sound()
        assert await graph.states() == {"a": "pending", "x": "completed", **dict.fromkeys("bcd", "blocked")}
        assert await graph.take() == {"a"}
        await graph.complete("a")
        await graph.sound()
        assert await graph.states() == {"a": "completed", "x": "completed", **waiting}
    await ledger.store.decide(graph.ids["c"], approved=True, by="ann")
    await graph.each(graph.complete, "bcd")
    assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def two_upstreams_are_opened_one_after_the_other(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(), b=node(), c=node("a", "b"))
    await graph.complete("a", "b")
    for name in "ab":
        await ledger.store.retry([graph.ids[name]])
    for name in "ab":
        assert await graph.state("c") == "blocked"
        await graph.complete(name)
        await graph.sound()
    await graph.complete("c")
    assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def the_new_run_fails(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(critical=False), b=node("a"), c=node("b"), keep=node())
    await graph.complete("a")
    await ledger.store.retry([graph.ids["a"]])
    await graph.fail("a")
    await graph.sound()
    assert (await graph.state("b"), await graph.state("c")) == (UPSTREAM_FAILED, UPSTREAM_FAILED)
    await graph.complete("keep")
    assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def a_dependent_in_a_workers_hands(ledger: Ledger) -> None:
    """It goes on; nobody takes it away."""
    graph = await draw(ledger, a=node(), b=node("a"))
    await graph.complete("a")
    assert await graph.take() == {"b"}
    await ledger.store.retry([graph.ids["a"]])
    await graph.sound()
    await graph.each(graph.complete, "ba")
    assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def a_job_that_is_opened_again_has_not_started(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node())
    await graph.fail("a")
    await ledger.store.retry_failed(graph.job)
    record = await graph.record()
    assert (record.state, record.started_at, record.completed_at) == (JobState.PENDING, None, None)
    await graph.take()
    record = await graph.record()
    assert record.state is JobState.RUNNING
    assert record.started_at is not None
    await graph.complete("a")
    assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def a_sleeper_keeps_its_place(ledger: Ledger) -> None:
    """It comes before what was enqueued while it slept."""
    sleeper = await ledger.enqueue_one()
    await ledger.finish("a", suspended(await ledger.claim_one(), delay=0.1))
    later = await ledger.enqueue(task("later"))
    await ledger.let_pass(0.15)
    claims = [await ledger.claim_due() for _ in range(2)]
    assert [claim.id for claim in claims] == [sleeper, *later]
    await ledger.finish("a", *map(completed, claims))
