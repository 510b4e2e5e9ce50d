"""Workflows that run: what comes out, in which order, and what becomes of them when something fails."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from headrace import App, Graph, JobHandle, Middleware, chain, chord, errors, group
from headrace.client import job_handle
from headrace.core.errors import GraphError, NotAllowed, NotFound, ResultError, TaskCancelled, TaskFailed, WrongState
from headrace.core.states import JobState, TaskState
from headrace.core.task import NewTask, TaskFilter
from headrace.workflows import approve
from tests.client.draining import registered

pytestmark = pytest.mark.usefixtures("running")


def states(handle: JobHandle[Any]) -> dict[str, str]:
    """By label, else by name; "cancelled/upstream_failed"."""
    return {
        node.name: node.state
        if node.reason is None or node.state is TaskState.FAILED
        else f"{node.state}/{node.reason}"
        for node in handle.graph().nodes
    }


def test_results_have_the_shape_of_their_composition(works: SimpleNamespace):
    add, total, tell = works.add, works.total, works.tell
    assert chain(add.s(1), add.s(2), add.s(3)).enqueue().result() == 7
    assert group(add.s(1), chain(add.s(1), add.s(1)), group()).enqueue().result() == [2, 3, []]
    assert chord([add.s(i, i) for i in range(4)], total.s()).enqueue().result() == 12
    assert chain(group(add.s(1), add.s(2)), group(tell.s(), total.s())).enqueue().result() == [[[2, 3]], 5]
    assert chain(add.s(1), group([]), total.s()).enqueue().result() == 0
    assert add.map([]).enqueue().result() == []
    assert add.starmap([(1, 2), (3, 4)]).enqueue().result() == [3, 7]
    assert add.s(1).enqueue().result() == 2


@pytest.mark.requirement("A11")
def test_a_handle_says_how_far_its_job_is(works: SimpleNamespace):
    """A11: the record is completed once all tasks are, and `completed_at` is set."""
    handle = chain(works.add.s(1), works.add.s(2)).enqueue(
        name="sum", description="of two", timeout=60, metadata={"by": "test"}
    )
    record = handle.record()
    assert (record.state, record.completed, record.total, record.failed, record.running) == ("completed", 2, 2, 0, 0)
    assert record.completed_at is not None
    assert (record.name, record.description, record.metadata) == ("sum", "of two", '{"by":"test"}')
    assert (handle.name, handle.state(), handle.wait(timeout=1)) == ("sum", JobState.COMPLETED, JobState.COMPLETED)
    assert [task.name for task in handle.tasks()] == ["add", "add"]
    again = works.app.jobs.handle(handle.id)
    assert again.state() is JobState.COMPLETED
    with pytest.raises(ResultError, match="made of its id"):
        again.result()
    with pytest.raises(NotFound):
        works.app.jobs.handle(99_999).record()


async def test_everything_has_an_async_form(works: SimpleNamespace):
    handle = await chain(works.add.s(1), works.add.s(2)).aenqueue()
    assert await handle == 4
    assert await handle.astate() is JobState.COMPLETED
    assert await handle.await_(timeout=5) is JobState.COMPLETED
    assert len((await handle.agraph()).nodes) == len(await handle.atasks()) == 2
    with pytest.raises(errors.RunningLoop, match="await aenqueue"):
        chain(works.add.s(1)).enqueue()


def test_a_graph_by_hand(works: SimpleNamespace):
    graph = Graph("by hand")
    one = graph.add(works.add.s(1), name="one")
    two = graph.add(works.add.s(one, 10))
    graph.add(works.total.s([one, two, 5]), after=two, name="sum")
    handle = graph.enqueue()
    assert handle.result() == 2 + 12 + 5
    assert handle.name == "by hand"
    picture = handle.graph()
    assert [node.name for node in picture.nodes] == ["one", "add", "sum"]
    ids = [node.id for node in picture.nodes]
    assert [(edge.upstream, edge.task, edge.passes) for edge in picture.edges] == [
        (ids[0], ids[1], True),
        (ids[0], ids[2], True),
        (ids[1], ids[2], True),
    ]
    assert picture.complete
    assert all(node.took is not None and node.attempts == 1 and node.critical for node in picture.nodes)
    part = handle.graph(limit=2)
    assert (len(part.nodes), part.complete) == (2, False)
    assert {edge.upstream for edge in part.edges} <= {node.id for node in part.nodes}


@pytest.mark.requirement("R80", "R81")
def test_the_continuation_runs_once_after_all_of_the_group_and_takes_nothing(works: SimpleNamespace):
    """R80: «tell» ran once, behind the five. R81: it was made by `si` and was given its own argument alone."""
    searches = group(works.add.si(i) for i in range(5))
    chain(searches, works.tell.si("continued")).enqueue().wait()
    assert [name for name, _ in works.ran] == ["add"] * 5 + ["tell"]
    assert works.ran[-1] == ("tell", ["continued"])


@pytest.mark.requirement("A12")
def test_a_chord_with_a_failed_member(works: SimpleNamespace):
    """T-R1: the body is cancelled as upstream_failed, a sibling that waits is cancelled, and the hook of the job runs,
    once. A12: the failed critical task has failed the job, and `completed_at` is set."""
    later = works.add.s(3).using(run_after=3600, name="sibling")
    flow = chord([works.add.s(1), works.fail.s(), later], works.total.s())
    handle = flow.enqueue(on_success=works.tell.si("well"), on_failure=works.tell.si("failed"))
    assert states(handle) == {
        "add": "completed",
        "fail": "failed",
        "sibling": "cancelled/job_failed",
        "total": "cancelled/upstream_failed",
    }
    assert [words for name, words in works.ran if name == "tell"] == [["failed"]]
    record = handle.record()
    assert (record.state, record.completed, record.failed, record.cancelled) == ("failed", 1, 1, 2)
    assert record.completed_at is not None
    with pytest.raises(TaskFailed, match="it was not to be") as caught:
        handle.result()
    assert f"job {handle.id}" in caught.value.__notes__[-1]


def test_hooks_run_once(works: SimpleNamespace):
    chain(works.add.s(1)).enqueue(on_success=works.tell.si("well"), on_failure=works.tell.si("failed"))
    assert works.ran == [("add", (1, 1)), ("tell", ["well"])]


def test_a_failure_that_is_handled(works: SimpleNamespace):
    handler, finally_ = works.tell.s("handled").using(name="handler"), works.tell.s("done").using(name="finally")
    risky = works.fail.s().on_failure(handler).on_done(finally_)
    handle = chain(works.add.s(1), risky, works.add.s(5)).enqueue()
    assert handle.wait() is JobState.COMPLETED
    assert ("tell", ["handled"]) in works.ran
    assert ("tell", [None, "done"]) in works.ran
    with pytest.raises(TaskFailed, match="it was not to be"):
        handle.result()
    works.broken.clear()
    well = risky.enqueue()
    assert well.result() == 0
    assert states(well) == {"fail": "completed", "handler": "cancelled/skipped", "finally": "completed"}
    assert works.ran[-1] == ("tell", [0, "done"])


def test_a_failure_that_is_not_critical(works: SimpleNamespace):
    flow = group(works.add.s(1), chain(works.fail.s().critical(False), works.add.s(2).critical(False)))
    handle = flow.enqueue()
    assert handle.wait() is JobState.COMPLETED
    assert (handle.record().completed, handle.record().failed, handle.record().cancelled) == (1, 1, 1)


def test_failed_work_is_taken_up_again(works: SimpleNamespace):
    handle = chain(works.add.s(1), works.fail.s(), works.tell.s()).enqueue()
    assert handle.wait() is JobState.FAILED
    works.broken.clear()
    again = handle.retry_failed()
    assert len(again) == 2
    assert handle.result() == [0]
    assert handle.state() is JobState.COMPLETED
    assert [name for name, _ in works.ran] == ["add", "fail", "fail", "tell"]


def test_a_task_is_cleared_with_all_below_it(works: SimpleNamespace):
    handle = chain(works.add.s(1), works.add.s(2), works.add.s(3)).enqueue()
    works.ran.clear()
    middle = handle.graph().nodes[1].id
    assert len(works.app.jobs.clear(middle)) == 2
    assert works.ran == [("add", (2, 2)), ("add", (4, 3))]
    assert handle.result() == 7
    with pytest.raises(NotFound):
        works.app.jobs.clear(99_999)


def test_a_job_that_is_cancelled_has_no_result(works: SimpleNamespace):
    handle = chain(works.add.s(1).using(run_after=3600), works.add.s(2)).enqueue()
    assert handle.cancel().state is JobState.CANCELLED
    with pytest.raises(TaskCancelled):
        handle.result(timeout=5)
    with pytest.raises(WrongState):
        handle.cancel()


# --- approvals -------------------------------------------------------------------------------------------------------


def waiting(handle: JobHandle[Any]) -> int:
    [id] = [node.id for node in handle.graph().nodes if node.state is TaskState.PENDING_APPROVAL]
    return id


def test_an_approval_lets_the_workflow_go_on(works: SimpleNamespace):
    tasks = works.app.tasks
    handle = chain(works.add.s(1), approve(role="finance", name="may we?"), works.tell.s()).enqueue()
    asked = waiting(handle)
    assert states(handle) == {"add": "completed", "may we?": "pending_approval", "tell": "blocked"}
    for role in (None, "sales"):
        with pytest.raises(NotAllowed, match="'finance'"):
            tasks.approve(asked, by="bob", role=role)
        with pytest.raises(NotAllowed):
            tasks.reject(asked, by="bob", role=role)
    with pytest.raises(errors.ArgumentError, match="who decides"):
        tasks.approve(asked, by=" ", role="finance")
    assert waiting(handle) == asked  # nothing changed
    tasks.approve(asked, by="ann", role="finance", note="cheap enough")
    [said] = handle.result()
    assert (said["by"], said["note"]) == ("ann", "cheap enough")
    with pytest.raises(WrongState):
        tasks.reject(asked, by="ann", role="finance")
    with pytest.raises(NotFound):
        tasks.approve(99_999, by="ann")


def test_an_approval_without_a_name_is_shown_by_its_role(works: SimpleNamespace):
    handle = chain(approve(), works.tell.s()).enqueue()
    assert states(handle) == {"approve": "pending_approval", "tell": "blocked"}
    handle = chain(approve(role="finance"), works.tell.s()).enqueue()
    assert states(handle) == {"approve (finance)": "pending_approval", "tell": "blocked"}


def test_a_rejection_ends_it(works: SimpleNamespace):
    handle = chain(approve(), works.tell.s()).enqueue(on_failure=works.tell.si("rejected"))
    works.app.tasks.reject(waiting(handle), by="ann", note="too dear")
    assert handle.state() is JobState.FAILED
    with pytest.raises(TaskCancelled, match="too dear"):
        handle.result()
    assert works.ran == [("tell", ["rejected"])]


# --- what is added to a job ------------------------------------------------------------------------------------------


@pytest.mark.requirement("A2")
def test_a_running_task_adds_to_its_job(works: SimpleNamespace):
    """A2: two tasks that it created are of its own job: one waits for the task itself, one for the first of them and
    takes its result."""
    handle = works.grow.s(3).enqueue()
    assert handle.wait() is JobState.COMPLETED
    assert works.ran == [("grow", 3), ("add", (3, 3)), ("add", (6, 100))]
    assert handle.record().total == 3


def test_outside_a_task_there_is_no_job_to_add_to(works: SimpleNamespace):
    from headrace import current

    with pytest.raises(errors.NoCurrentTask):
        current.job.add(works.add.s(1))


def test_flows_are_added_to_a_job(works: SimpleNamespace):
    jobs = works.app.jobs
    job = jobs.create("open", works.add.s(1).using(run_after=3600, name="late"))
    first, pair, prepared = jobs.add(
        job.id, works.add.s(1, 1), chain(works.add.s(5), works.add.map([1, 2])), works.add.prepare(9)
    )
    assert (first.result(), pair.result(), prepared.result()) == (2, [2, 3], 10)
    [last] = jobs.add(job.id, works.total.s([first, prepared]), after=[pair, first.id])
    assert last.result() == 12
    edges = {edge.upstream for edge in jobs.graph(job.id).edges if edge.task == last.id}
    assert edges == {first.id, prepared.id, *pair.task_ids}
    assert jobs.get(job.id).total == 7
    with pytest.raises(GraphError, match="nothing to add"):
        jobs.add(job.id, group([]))
    with pytest.raises(GraphError):
        jobs.add(job.id, works.add.s(1), after=99_999)
    assert jobs.get(job.id).total == 7


def test_a_job_of_many_kinds_of_parts(works: SimpleNamespace):
    graph = Graph("inner")
    graph.add(works.total.s([graph.add(works.add.s(1)), graph.add(works.add.s(2))]))
    jobs = works.app.jobs
    job = jobs.create("many", [works.add.prepare(1), works.add.s(2), chain(works.add.s(3), works.add.s(4)), graph])
    assert (jobs.wait(job.id).state, jobs.get(job.id).total) == (JobState.COMPLETED, 7)
    assert jobs.create("one", graph, on_success=works.tell.si("x")).total == 3


# --- all or nothing --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R84")
def test_a_workflow_that_cannot_be_is_not_written_at_all(works: SimpleNamespace):
    """R84: the error comes in the middle of the graph (a generator that fails, arguments that do not fit, a key that
    is taken), and no job and no task is there after it."""

    def broken() -> Any:
        yield works.add.s(1)
        raise LookupError("the source ran dry")

    works.add.using(unique="taken", run_after=3600).enqueue(1)
    before = len(works.app.tasks.list())
    taken = works.add.si(2).using(unique="taken", on_conflict="reject")
    for flow, error in (
        (chord(broken(), works.total.s()), LookupError),
        (chain(works.add.s(1), works.add.s("one")), errors.ArgumentError),
        (chain(works.add.s(1), works.add.s(1), works.nothing.s()), GraphError),
        (chain(works.add.s(1), taken, works.add.s(2)), errors.DuplicateTask),
    ):
        with pytest.raises(error):
            flow.enqueue(name="never")
    with pytest.raises(errors.ArgumentError):
        chain(works.add.s(1)).enqueue(on_failure=works.add.s("one"))
    assert len(works.app.tasks.list()) == before
    assert works.app.jobs.list() == []
    assert works.ran == []


def test_a_job_is_no_part_of_a_transaction_of_yours(works: SimpleNamespace, sqlite_url: str):
    """It has one of its own; to write it beside yours without a word would break what the block promises."""
    flow = chain(works.add.s(1), works.add.s(2))
    connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        with works.app.transaction(connection):
            for act in (flow.enqueue, lambda: works.app.jobs.create("job", flow)):
                with pytest.raises(errors.EnqueueError, match="cannot be part of yours"):
                    act()
        connection.execute("ROLLBACK")
        with pytest.raises(errors.OptionError, match="connection"):
            chain(works.add.s(1).using(connection=connection)).enqueue()
    finally:
        connection.close()
    assert works.app.jobs.list() == []


def test_many_results_are_read_page_by_page(works: SimpleNamespace, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(job_handle, "_PAGE", 3)
    assert group(works.add.map(range(7)), works.add.s(1)).enqueue().result() == [list(range(1, 8)), 2]


def test_middleware_and_counting_see_a_workflow(works: SimpleNamespace):
    """As they see any enqueue: what the middleware gives is written, with the edges."""
    seen: list[int] = []

    class Tags(Middleware):
        @contextmanager
        def enqueue(self, tasks: Sequence[NewTask]) -> Iterator[Sequence[NewTask]]:
            seen.append(len(tasks))
            yield [replace(task, priority=7) for task in tasks]

    works.app.add_middleware(Tags())
    tally = works.app.engine.counting.tally()
    handle = chord([works.add.s(1), works.add.s(2)], works.total.s()).enqueue()
    assert handle.result() == 5
    assert seen == [3]
    assert {task.priority for task in handle.tasks()} == {7}
    created = {key: row[0] for key, row in tally.rows.items() if "created" in key[0]}
    assert sum(count for key, count in created.items() if key[0].startswith("task")) == 3
    assert sum(count for key, count in created.items() if key[0].startswith("job")) == 1


# --- side by side ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R82")
async def test_members_of_a_group_are_in_the_hands_of_different_workers_at_once(sqlite_url: str):
    """R82: each of two workers claims one of the two members while neither has finished."""
    from headrace.core.lanes import Lane
    from headrace.core.task import Want

    app = App(sqlite_url)

    @app.task(name="search")
    async def search(index: int) -> int:
        return index

    await search.map([0, 1]).aenqueue()
    store = app.new_store()
    await store.open()
    try:
        workers = [await registered(store), await registered(store)]
        want = Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=1)
        claims = [await store.claim(worker, [want]) for worker in workers]
        held = await store.list(TaskFilter(states=(TaskState.CLAIMED,)))
        assert {claim.id for (claim,) in claims} == {record.id for record in held}
        assert {record.worker for record in held} == set(workers)
    finally:
        await store.close()
        await app.aclose()
