"""Durable tasks that give their slot back: until later, until an event, until another task has ended."""

import asyncio
import itertools

from headrace.core.errors import DurableError
from headrace.core.states import AttemptState, JobState, TaskState
from headrace.core.task import Key, NewJob
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.drawing import draw, node
from headrace.testing.store_conformance.ledger import (
    Ledger,
    completed,
    failed_for_good,
    ref,
    refused,
    stopped,
    suspended,
    task,
)

cases = Cases("suspending")


@cases.add()
async def until_later(ledger: Ledger) -> None:
    """Uncharged, with an attempt that says so; it keeps its lane, its priority and its place."""
    task_id = await ledger.enqueue_one(priority=3)
    first = await ledger.claim_one()
    await ledger.finish("a", suspended(first, delay=0.5))
    record = await ledger.get(task_id)
    assert (record.state, record.attempt, record.lane, record.priority) == (TaskState.PENDING, 0, 0, 3)
    assert await ledger.claim() == []
    await ledger.let_pass(0.6)
    again = await ledger.claim_one()
    assert (again.id, again.claim_no, again.attempt) == (task_id, 2, 0)
    await ledger.finish("a", completed(again))
    attempts = await ledger.attempts(task_id)
    assert [(a.state, a.charged) for a in attempts] == [
        (AttemptState.SUSPENDED, False),
        (AttemptState.SUCCEEDED, True),
    ]


async def _calls(ledger: Ledger, **options: object) -> tuple[int, int]:
    """A task that waits for a child that it has made."""
    parent = await ledger.enqueue_one("parent", **options)
    claim = await ledger.claim_one()
    child = await ledger.store.spawn("a", ref(claim), "child", task("child"))
    assert child is not None
    await ledger.finish("a", suspended(claim, task=child))
    return parent, child


@cases.add()
async def until_a_child_has_ended(ledger: Ledger) -> None:
    """In whatever way: completed, failed or cancelled, it is the parent's to look at."""
    for how in (completed, failed_for_good, None):
        parent, child = await _calls(ledger)
        assert await ledger.state(parent) == "blocked"
        claim = await ledger.claim_one()
        assert claim.id == child, "the parent holds no slot"
        if how is None:
            await ledger.store.cancel([child])
            await ledger.finish("a", stopped(claim))
        else:
            await ledger.finish("a", how(claim))
        assert await ledger.state(parent) == "pending"
        again = await ledger.claim_due()
        assert (again.id, again.attempt) == (parent, 0)
        await ledger.finish("a", completed(again))


@cases.add()
async def a_child_that_ended_before_the_parent_waits(ledger: Ledger) -> None:
    parent = await ledger.enqueue_one("parent")
    claim = await ledger.claim_one()
    child = await ledger.store.spawn("a", ref(claim), "child", task("child"))
    assert child is not None
    await ledger.finish("b", completed(await ledger.claim_one("b")))
    await ledger.finish("a", suspended(claim, task=child))
    assert await ledger.state(parent) == "pending"
    await ledger.finish("a", completed(await ledger.claim_due()))


@cases.add()
async def a_child_that_is_gone(ledger: Ledger) -> None:
    """Pruned while its parent ran, or never there: nobody waits for ever."""
    parent = await ledger.enqueue_one("parent")
    claim = await ledger.claim_one()
    await ledger.finish("a", suspended(claim, task=987_654_321))
    assert await ledger.state(parent) == "pending"


@cases.add()
async def the_child_ends_while_the_parent_suspends(ledger: Ledger) -> None:
    other = await ledger.another_store()
    for _ in range(15):
        parent = await ledger.enqueue_one("parent")
        claim = await ledger.claim_one()
        child = await ledger.store.spawn("a", ref(claim), "child", task("child"))
        assert child is not None
        work = await ledger.claim_one("b")
        await asyncio.gather(
            ledger.store.finish("a", [suspended(claim, task=child)]), other.finish("b", [completed(work)])
        )
        again = await ledger.claim_due()
        assert again.id == parent
        await ledger.finish("a", completed(again))


@cases.add()
async def both_in_one_finish(ledger: Ledger) -> None:
    """One worker runs parent and child and reports both at once, whatever became of the child."""
    for how, reverse in itertools.product((completed, failed_for_good, stopped), (False, True)):
        parent = await ledger.enqueue_one("parent")
        claim = await ledger.claim_one()
        child = await ledger.store.spawn("a", ref(claim), "child", task("child"))
        assert child is not None
        ends = [suspended(claim, task=child), how(await ledger.claim_one())]
        await ledger.finish("a", *(ends[::-1] if reverse else ends))
        again = await ledger.claim_due()
        assert again.id == parent
        await ledger.finish("a", completed(again))


@cases.add()
async def one_child_after_another(ledger: Ledger) -> None:
    """Each suspension adds its edge; those of before are satisfied."""
    parent = await ledger.enqueue_one("parent")
    for n in range(3):
        claim = await ledger.claim_due()
        assert claim.id == parent
        child = await ledger.store.spawn("a", ref(claim), f"child-{n}", task("child"))
        assert child is not None
        await ledger.finish("a", suspended(claim, task=child))
        assert await ledger.state(parent) == "blocked"
        await ledger.finish("a", completed(await ledger.claim_one()))
        assert await ledger.store.check() == []
    await ledger.finish("a", completed(await ledger.claim_due()))
    assert [edge.place for edge in await ledger.store.edges([parent])] == sorted(
        edge.place for edge in await ledger.store.edges([parent])
    )


@cases.add()
async def a_node_of_a_graph_that_calls_a_child(ledger: Ledger) -> None:
    """Its dependents wait for it, not for its child; its inputs stay what they were."""
    graph = await draw(ledger, a=node(), b=node("a"), c=node("b"))
    await graph.complete("a")
    await graph.take()
    claim = graph.held.pop("b")
    child = await ledger.store.spawn("a", ref(claim), "child", task("child", job=graph.job))
    assert child is not None
    graph.ids["child"] = child
    await graph.sound()
    await ledger.finish("a", suspended(claim, task=child))
    await graph.sound()
    assert await graph.states() == {"a": "completed", "b": "blocked", "c": "blocked", "child": "pending"}
    await graph.complete("child")
    await graph.sound()
    assert (await graph.state("b"), await graph.state("c")) == ("pending", "blocked")
    assert await ledger.store.inputs(graph.ids["b"]) == []
    await graph.each(graph.complete, "bc")
    assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def a_failed_child_of_a_job_whose_parent_waits(ledger: Ledger) -> None:
    """The parent waits for its end and may handle it: the job is not broken at once. A critical one still counts."""
    graph = await draw(ledger, parent=node())
    await graph.take()
    claim = graph.held.pop("parent")
    child = await ledger.store.spawn("a", ref(claim), "child", task("child", job=graph.job, critical=False))
    assert child is not None
    graph.ids["child"] = child
    await ledger.finish("a", suspended(claim, task=child))
    await graph.fail("child")
    await graph.sound()
    assert await graph.state("parent") == "pending"
    await graph.complete("parent")
    assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def cancelling_a_suspended_task(ledger: Ledger) -> None:
    """It is simply cancelled; its child goes on, and its end touches nobody."""
    parent, child = await _calls(ledger)
    assert (await ledger.store.cancel([parent]))[parent] == "cancelled"
    claim = await ledger.claim_one()
    assert claim.id == child
    await ledger.finish("a", completed(claim))
    assert await ledger.state(parent) == "cancelled"
    assert await ledger.claim() == []


@cases.add()
async def cancelling_the_job_of_a_suspended_task(ledger: Ledger) -> None:
    job, _ = await ledger.store.create_job(NewJob(name="j", tasks=(task("parent"),)))
    claim = await ledger.claim_one()
    child = await ledger.store.spawn("a", ref(claim), "child", task("child", job=job))
    assert child is not None
    await ledger.finish("a", suspended(claim, task=child))
    await ledger.store.cancel_job(job)
    record = await ledger.job(job)
    assert (record.state, record.cancelled, record.open) == (JobState.CANCELLED, 2, 0)


@cases.add()
async def suspending_while_being_cancelled(ledger: Ledger) -> None:
    parent = await ledger.enqueue_one("parent")
    claim = await ledger.claim_one()
    child = await ledger.store.spawn("a", ref(claim), "child", task("child"))
    assert child is not None
    await ledger.store.cancel([parent])
    await ledger.finish("a", suspended(claim, task=child))
    assert await ledger.state(parent) == "cancelled"


@cases.add()
async def a_suspension_told_twice(ledger: Ledger) -> None:
    """By a repeat after a lost connection, and by one whose claim is gone."""
    parent, child = await _calls(ledger)
    claims = await ledger.store.attempts(parent)
    assert [attempt.state for attempt in claims] == [AttemptState.SUSPENDED]
    claim = await ledger.claim_one()
    assert claim.id == child
    await ledger.finish("a", completed(claim))
    again = await ledger.claim_due("b")
    report = await ledger.store.finish("a", [suspended(again, task=child)])
    assert not report.accepted, "b holds it"
    assert await ledger.state(parent) == "claimed"
    await ledger.finish("b", completed(again))


@cases.add()
async def an_age_does_not_end_who_waits(ledger: Ledger) -> None:
    parent, child = await _calls(ledger, max_age=0.8)
    await ledger.let_pass(0.9)
    await ledger.store.expire()
    assert await ledger.state(parent) == "blocked"
    await ledger.finish("a", completed(await ledger.claim_one()))
    assert child


@cases.add()
async def an_age_begins_anew_where_a_suspended_task_goes_on(ledger: Ledger) -> None:
    """It sleeps longer than it may be old; or its child has ended before it waits, and it is older than that."""
    sleeper = await ledger.enqueue_one(max_age=2.0)
    await ledger.finish("a", suspended(await ledger.claim_one(), delay=2.2))
    assert await ledger.state(sleeper) == "pending"
    parent = await ledger.enqueue_one("parent", max_age=2.0)
    claim = await ledger.claim_one()
    child = await ledger.store.spawn("a", ref(claim), "child", task("child"))
    assert child is not None
    await ledger.finish("b", completed(await ledger.claim_one("b")))
    await ledger.let_pass(2.1)
    await ledger.store.expire()
    await ledger.finish("a", suspended(claim, task=child))
    # Who keeps its place comes first, if its time has come by now.
    claims = [await ledger.claim_due() for _ in range(2)]
    assert {claim.id: claim.expired for claim in claims} == {parent: False, sleeper: False}
    await ledger.finish("a", *map(completed, claims))


@cases.add()
async def what_a_child_returned_is_kept_for_its_parent(ledger: Ledger) -> None:
    """Past its time to live, and past that of history, until the parent has ended; also where the child ended first."""
    for ended_first in (False, True):
        await ledger.enqueue_one("parent")
        claim = await ledger.claim_due()
        child = await ledger.store.spawn("a", ref(claim), "child", task("child"))
        assert child is not None
        work = await ledger.claim_due("b")
        acts = [
            ledger.finish("a", suspended(claim, task=child)),
            ledger.finish("b", completed(work, "1")._replace(result_ttl=0.01)),
        ]
        for act in acts[::-1] if ended_first else acts:
            await act
        await ledger.let_pass(0.05)
        pruned = await ledger.store.prune(keep=0.0)
        assert (pruned.tasks, pruned.results) == (0, 0)
        assert (await ledger.get(child)).result == "1"
        await ledger.finish("a", completed(await ledger.claim_due()))
        assert (await ledger.store.prune(keep=3600.0)).results == 1
        await ledger.let_pass(0.05)
        assert (await ledger.store.prune(keep=0.0)).tasks == 2


@cases.add()
async def a_dead_letter_is_kept_for_its_parent(ledger: Ledger) -> None:
    _, child = await _calls(ledger)
    await ledger.finish("a", failed_for_good(await ledger.claim_one(), dead_letter=True))
    assert await ledger.store.purge([child]) == []
    await ledger.finish("a", completed(await ledger.claim_due()))
    assert await ledger.store.purge([child]) == [child]


@cases.add()
async def a_task_that_has_begun_is_not_taken_down(ledger: Ledger) -> None:
    """What it waited for runs again and fails, while it waits for a child of its own or has slept: it goes on."""
    for order in (("u", "child"), ("child", "u")):
        graph = await draw(ledger, u=node(critical=False), d=node("u"), e=node("d"), keep=node())
        await graph.complete("u")
        await graph.take()
        claim = graph.held.pop("d")
        child = await ledger.store.spawn("a", ref(claim), "child", task("child", job=graph.job))
        assert child is not None
        graph.ids["child"] = child
        await ledger.finish("a", suspended(claim, task=child))
        assert await ledger.store.retry([graph.ids["u"]]) == [graph.ids["u"]]
        await graph.sound()
        for name in order:
            assert await graph.state("d") == "blocked"
            await (graph.fail if name == "u" else graph.complete)(name)
            await graph.sound()
        assert (await graph.state("d"), await graph.state("e")) == ("pending", "blocked")
        await graph.each(graph.complete, ("d", "e", "keep"))
        assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def a_task_that_waits_for_an_event_is_not_taken_down(ledger: Ledger) -> None:
    graph = await draw(ledger, u=node(critical=False), d=node("u"), e=node("d"))
    await graph.complete("u")
    await graph.take()
    claim = graph.held.pop("d")
    assert await ledger.store.receive("a", ref(claim), "paid", event="e", key="", timeout=None) is None
    await ledger.finish("a", suspended(claim, step="paid"))
    await ledger.store.retry([graph.ids["u"]])
    await graph.fail("u")
    await graph.sound()
    assert (await graph.state("d"), await graph.state("e")) == ("blocked", "blocked")
    await ledger.store.send("e", "", "1")
    await graph.each(graph.complete, "de")
    assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def a_child_that_would_be_its_own_parent(ledger: Ledger) -> None:
    """Its unique key is held by the caller, which would wait for itself."""
    key = (Key(scope="unique", key="k"),)
    await ledger.enqueue_one("parent", keys=key)
    claim = await ledger.claim_one()
    await refused(ledger.store.spawn("a", ref(claim), "child", task("child", keys=key)), DurableError)
    assert await ledger.store.checkpoints(claim.id) == {}
    await ledger.finish("a", completed(claim))
    assert await ledger.claim() == []


@cases.add()
async def a_child_that_is_run_again_before_its_parent_goes_on(ledger: Ledger) -> None:
    """It had ended before the parent waited for it; the parent waits for its new end, and that resumes it."""
    parent = await ledger.enqueue_one("parent")
    claim = await ledger.claim_one()
    child = await ledger.store.spawn("a", ref(claim), "child", task("child"))
    assert child is not None
    await ledger.finish("b", failed_for_good(await ledger.claim_one("b")))
    await ledger.finish("a", suspended(claim, task=child))
    assert await ledger.store.retry([child]) == [child]
    assert await ledger.state(parent) == "blocked"
    work = await ledger.claim_due()
    assert work.id == child
    await ledger.finish("a", failed_for_good(work))
    again = await ledger.claim_due()
    assert again.id == parent
    await ledger.finish("a", completed(again))
