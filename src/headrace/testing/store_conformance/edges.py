"""Edges: to what has ended, to what is not there, and the results that they pass on."""

import asyncio

from headrace.core.errors import GraphError, WrongState
from headrace.core.states import JobState
from headrace.core.task import After, EdgeKind, Key, NewJob
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.drawing import (
    SKIPPED,
    UPSTREAM_FAILED,
    Wait,
    done,
    draw,
    failure,
    new_tasks,
    node,
)
from headrace.testing.store_conformance.ledger import (
    Ledger,
    completed,
    failed_for_good,
    refused,
    task,
)

cases = Cases("edges")


# Edges to what is already there.


@cases.add()
async def edges_to_what_has_ended(ledger: Ledger) -> None:
    """Satisfied: pending at once. Impossible: cancelled at once, and counted."""
    graph = await draw(ledger, a=node(), b=node(critical=False), c=node(), x=node())
    await graph.take()
    await graph.complete("a")
    await graph.fail("b")
    await graph.stop("c")
    await graph.add(
        a_success=node("a"),
        a_done=node(done("a")),
        a_failure=node(failure("a")),
        b_success=node("b"),
        b_done=node(done("b")),
        b_failure=node(failure("b")),
        c_success=node("c"),
        c_done=node(done("c")),
        c_failure=node(failure("c")),
        mixed=node("a", "x"),
        behind=node("b_success"),
        behind_done=node(done("b_success"), "a"),
    )
    await graph.sound()
    states = await graph.states()
    assert [states[name] for name in ("a_success", "a_done", "a_failure")] == ["pending", "pending", SKIPPED]
    assert [states[name] for name in ("b_success", "b_done", "b_failure")] == [UPSTREAM_FAILED, "pending", "pending"]
    assert [states[name] for name in ("c_success", "c_done", "c_failure")] == [UPSTREAM_FAILED, "pending", SKIPPED]
    assert (states["mixed"], states["behind"], states["behind_done"]) == ("blocked", UPSTREAM_FAILED, "pending")
    await graph.complete("x")
    await graph.sound()
    assert await graph.state("mixed") == "pending"


@cases.add()
async def an_impossible_task_is_not_all_that_keeps_a_job_open(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(critical=False), b=node())
    await graph.take()
    await graph.fail("a")
    await graph.complete("b")
    assert await graph.fate() is JobState.COMPLETED
    await refused(ledger.store.enqueue([task(job=graph.job, after=(After(task=graph.ids["a"]),))]), WrongState)
    await graph.sound()


@cases.add()
async def a_running_task_adds_what_waits_for_itself(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node())
    await graph.take()
    await graph.add(b=node("a"), c=node("b"))
    await graph.sound()
    await graph.complete("a")
    assert await graph.fate() is JobState.RUNNING, "it may not complete before what its last task added"
    await graph.each(graph.complete, "bc")
    assert await graph.fate() is JobState.COMPLETED
    assert await graph.hooks() == ["hook.success"]


@cases.add()
async def adding_an_edge_while_its_task_ends(ledger: Ledger) -> None:
    """Either the finish saw the edge or the enqueue saw the end: nobody is blocked for ever."""
    other = await ledger.another_store()
    for _ in range(15):
        graph = await draw(ledger, a=node(), keep=node(delay=600.0))
        await graph.take()
        edges = (After(task=graph.ids["a"]),)
        answers, _ = await asyncio.gather(
            other.enqueue([task("b", job=graph.job, after=edges)]), graph.complete("a"), return_exceptions=False
        )
        graph.ids["b"] = answers[0].id
        await graph.sound()
        assert await graph.state("b") == "pending"
        await ledger.store.cancel_job(graph.job)
        await ledger.claim("hooks", queue="hooks")


@cases.add("R84")
async def edges_to_nowhere_are_refused(ledger: Ledger) -> None:
    """R84: to a later place, to itself, to a task of another job, of none, or of nobody: nothing of the call is
    written, neither the job nor the tasks before."""
    graph = await draw(ledger, a=node())
    loose = await ledger.enqueue_one()
    for edge in (After(task=1, local=True), After(task=2, local=True), After(task=7, local=True)):
        await refused(
            ledger.store.create_job(NewJob(name="j", tasks=(task(), task(after=(edge,)), task()))), GraphError
        )
    for strange in (graph.ids["a"], loose, 987_654_321):
        job = NewJob(name="j", tasks=(task(), task(after=(After(task=strange),))))
        await refused(ledger.store.create_job(job), GraphError)
    assert [found.id for found in await ledger.store.list_jobs()] == [graph.job]
    other = await draw(ledger, a=node())
    for edge in (
        After(task=1, local=True),
        After(task=2, local=True),
        After(task=other.ids["a"]),
        After(task=loose),
        After(task=987_654_321),
    ):
        call = [task(job=graph.job), task(job=graph.job, after=(edge,)), task(job=graph.job)]
        await refused(ledger.store.enqueue(call), GraphError)
    # Of two jobs in one call.
    call = [task(job=other.job), task(job=graph.job, after=(After(task=0, local=True),))]
    await refused(ledger.store.enqueue(call), GraphError)
    assert (await graph.record()).total == (await other.record()).total == 1
    assert len(await ledger.claim()) == 3
    assert await ledger.store.edges([graph.ids["a"], other.ids["a"]]) == []


@cases.add()
async def a_task_without_a_job_has_no_edges(ledger: Ledger) -> None:
    first = await ledger.enqueue_one()
    await refused(ledger.store.enqueue([task(after=(After(task=first),))]), GraphError)
    await refused(ledger.store.enqueue([task(), task(after=(After(task=0, local=True),))]), GraphError)
    assert len(await ledger.claim()) == 1


@cases.add()
async def edges_are_told_as_they_were_drawn(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(), b=node(), c=node(done("b", 1), "a", failure("a", 0)), d=node("c"))
    found = await ledger.store.edges(list(graph.ids.values()))
    names = {task_id: name for name, task_id in graph.ids.items()}
    assert [(names[e.task], e.place, names[e.upstream], e.kind, e.input) for e in found] == [
        ("c", 0, "b", EdgeKind.ON_DONE, 1),
        ("c", 1, "a", EdgeKind.ON_SUCCESS, None),
        ("c", 2, "a", EdgeKind.ON_FAILURE, 0),
        ("d", 0, "c", EdgeKind.ON_SUCCESS, None),
    ]
    await ledger.store.cancel_job(graph.job)
    assert await ledger.store.edges(list(graph.ids.values())) == found, "they stay when it has ended"
    assert await ledger.store.edges([]) == []


# Results that are passed on.


@cases.add()
async def inputs_by_number_and_place(ledger: Ledger) -> None:
    """What ended without a result is there without one; edges without an input pass nothing on."""
    graph = await draw(
        ledger,
        a=node(),
        b=node(critical=False),
        c=node(),
        d=node(
            Wait("c", EdgeKind.ON_SUCCESS, 1),
            "a",
            Wait("a", EdgeKind.ON_SUCCESS, 1),
            done("b", 0),
            Wait("c", EdgeKind.ON_DONE, 0),
        ),
    )
    await graph.take()
    await ledger.finish("a", completed(graph.held.pop("a"), '"of a"'), completed(graph.held.pop("c"), "[3]"))
    await graph.fail("b")
    assert await graph.take() == {"d"}
    names = {task_id: name for name, task_id in graph.ids.items()}
    found = await ledger.store.inputs(graph.ids["d"])
    assert [(i.input, i.place, names[i.task], i.name, i.state.value, i.result) for i in found] == [
        (0, 3, "b", "b", "failed", None),
        (0, 4, "c", "c", "completed", "[3]"),
        (1, 0, "c", "c", "completed", "[3]"),
        (1, 2, "a", "a", "completed", '"of a"'),
    ]
    assert {i.codec for i in found} == {"json/1"}
    assert await ledger.store.inputs(graph.ids["a"]) == []
    assert await ledger.store.inputs(987_654_321) == []


@cases.add()
async def a_result_is_kept_while_somebody_needs_it(ledger: Ledger) -> None:
    """Past its time to live, while a task that waits or waited for it has not ended; then it goes."""
    graph = await draw(
        ledger, a=node(), plain=node(), b=node(Wait("a", EdgeKind.ON_SUCCESS, 0), "plain", delay=0.0), c=node("b")
    )
    await graph.take()
    ends = [completed(graph.held.pop(name), "1")._replace(result_ttl=0.1) for name in ("a", "plain")]
    await ledger.finish("a", *ends)
    await ledger.let_pass(0.2)
    assert (await ledger.store.prunable(keep=3600)).results == 0
    assert (await ledger.store.prune(keep=3600)).results == 0
    assert [found.result for found in await ledger.store.inputs(graph.ids["b"])] == ["1"]
    await graph.complete("b")
    assert (await ledger.store.prune(keep=3600)).results == 2
    assert (await ledger.get(graph.ids["a"])).result is None


@cases.add()
async def prune_takes_a_graph_with_everything_of_it(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(), b=node("a"), c=node("b"))
    await graph.take()
    await graph.cancel("c")
    await graph.complete("a")
    await graph.complete("b")
    assert await graph.hooks() == ["hook.success"]
    await ledger.let_pass(0.3)
    there = await ledger.store.prunable(keep=0.2)
    pruned = await ledger.store.prune(keep=0.2)
    assert (pruned.tasks, pruned.jobs) == (there.tasks, there.jobs) == (4, 1)
    assert await ledger.store.edges(list(graph.ids.values())) == []


# Edges and unique keys.


@cases.add()
async def an_edge_to_a_key_that_another_job_holds(ledger: Ledger) -> None:
    """An ended task's, a live one's of another job, one of no job: edges stay within the job. Nothing is written."""
    ended, live, alone = (Key(scope="unique", key=name, ttl=3600.0) for name in ("ended", "live", "alone"))
    await ledger.enqueue(task("holder", keys=(ended,)))
    await ledger.finish("a", failed_for_good(await ledger.claim_one()))
    await draw(ledger, holder=node(keys=(live,), delay=600.0))
    await ledger.enqueue(task("holder", keys=(alone,), delay=600.0))
    jobs = await ledger.store.list_jobs()
    other = await draw(ledger, x=node(delay=600.0))
    for key in (ended, live, alone):
        nodes = {"x": node(keys=(key,)), "y": node("x"), **{f"z{n}": node() for n in range(3)}}
        await refused(ledger.store.create_job(NewJob(name="j", tasks=new_tasks(nodes))), GraphError)
        await refused(ledger.store.enqueue(new_tasks(nodes, job=other.job)), GraphError)
    assert len(await ledger.store.list_jobs()) == len(jobs) + 1
    assert await ledger.claim() == []
    await other.sound()


@cases.add()
async def an_edge_to_a_key_that_the_job_itself_holds(ledger: Ledger) -> None:
    """Two nodes of one key are one task: who waits for the second waits for the first."""
    key = (Key(scope="unique", key="k"),)
    job, answers = await ledger.store.create_job(
        NewJob(name="j", tasks=new_tasks({"a": node(keys=key), "b": node(keys=key), "c": node("b")}))
    )
    first, second, last = answers
    assert (first.id, first.created, second.created) == (second.id, True, False)
    assert [edge.upstream for edge in await ledger.store.edges([last.id])] == [first.id]
    (again,) = await ledger.store.enqueue([task("a", job=job, keys=key)])
    assert again.id == first.id
    more = new_tasks({"a": node(keys=key), "d": node("a")}, job=job)
    *_, added = await ledger.store.enqueue(more)
    assert [edge.upstream for edge in await ledger.store.edges([added.id])] == [first.id]
    await ledger.finish("a", completed(await ledger.claim_one()))
    await ledger.let_pass(0.002)
    assert {claim.id for claim in await ledger.claim()} == {last.id, added.id}


@cases.add()
async def a_task_that_waits_for_others_replaces_none(ledger: Ledger) -> None:
    """The one that it would replace has other edges, or none: it would run with inputs that it does not wait for."""
    key = (Key(scope="unique", key="k", on_conflict="replace"),)
    holder = await ledger.enqueue_one("d", keys=key, arguments='{"n":1}')
    nodes = {"u": node(), "d": node(Wait("u", input=0), keys=key, arguments='{"n":2}')}
    await refused(ledger.store.create_job(NewJob(name="j", tasks=new_tasks(nodes))), GraphError)
    graph = await draw(ledger, x=node(delay=600.0))
    await refused(ledger.store.enqueue(new_tasks(nodes, job=graph.job)), GraphError)
    assert (await ledger.get(holder)).arguments == '{"n":1}'
    assert (await graph.record()).total == 1
    await ledger.finish("a", completed(await ledger.claim_one()))
    await graph.add(**nodes)
    await graph.each(graph.complete, "ud")
