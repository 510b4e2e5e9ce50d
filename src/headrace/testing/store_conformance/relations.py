"""What a task has to do with others: its parents, its children, what is below it, the schedule that fired it."""

from headrace.core.task import EdgeKind
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.drawing import done, draw, node
from headrace.testing.store_conformance.ledger import Ledger
from headrace.testing.store_conformance.schedules import new

cases = Cases("relations")


@cases.add()
async def parents_and_children_wherever_they_are(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(), b=node(), c=node("a", done("b")), d=node("c"))
    await graph.take()
    await graph.complete("a")
    ids = graph.ids
    parents = await ledger.store.parents(ids["c"], limit=10)
    assert [(each.id, each.state, each.kind) for each in parents] == [
        (ids["a"], "completed", EdgeKind.ON_SUCCESS),
        (ids["b"], "claimed", EdgeKind.ON_DONE),
    ]
    assert [each.id for each in await ledger.store.parents(ids["c"], limit=1)] == [ids["a"]]
    children = await ledger.store.children(ids["a"], limit=10)
    assert [(each.id, each.state) for each in children] == [(ids["c"], "blocked")]
    assert await ledger.store.children(ids["d"], limit=10) == []
    assert await ledger.store.parents(ids["a"], limit=10) == []


@cases.add()
async def everything_below_as_far_as_it_is_asked_for(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(), b=node("a"), c=node("a"), d=node("b", "c"), e=node("d"), other=node())
    ids = graph.ids
    below = await ledger.store.below(ids["a"], limit=100)
    assert {each.id for each in below} == {ids[name] for name in "abcde"}
    assert below[0].id == ids["a"]
    assert [each.id for each in await ledger.store.below(ids["e"], limit=100)] == [ids["e"]]
    assert len(await ledger.store.below(ids["a"], limit=2)) == 2
    assert await ledger.store.below(2**40, limit=10) == []
    await graph.take()
    await graph.complete("a")
    assert {each.state for each in await ledger.store.below(ids["a"], limit=2)} <= {"completed", "pending", "blocked"}


@cases.add()
async def the_schedule_that_fired_it(ledger: Ledger) -> None:
    await ledger.store.put_schedules([new("nightly"), new("hourly")])
    run = await ledger.store.run_schedule("hourly")
    assert run.task is not None
    alone = await ledger.enqueue_one()
    assert await ledger.store.fired_by(run.task, (await ledger.get(run.task)).created_at) == "hourly"
    assert await ledger.store.fired_by(alone, (await ledger.get(alone)).created_at) is None
