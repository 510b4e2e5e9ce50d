"""The same workflows on SQLite and PostgreSQL, through a worker's verbs."""

from types import SimpleNamespace

import pytest

from headrace import Graph, chain, chord, group
from headrace.core.errors import NotAllowed, TaskFailed
from headrace.core.states import JobState, TaskState
from headrace.testing import inline, override
from headrace.testing.background import BackgroundWorker
from headrace.workflows import approve


def test_results_flow(works: SimpleNamespace, store_url: str):
    add, total, tell = works.add, works.total, works.tell
    with inline(works.app, url=store_url):
        assert chain(add.s(1), group([]), total.s()).enqueue().result() == 0
        assert chord([add.s(i, i) for i in range(4)], total.s()).enqueue().result() == 12
        assert chain(group(add.s(1), add.s(2)), group(tell.s(), total.s())).enqueue().result() == [[[2, 3]], 5]
        graph = Graph("by hand")
        one, two = graph.add(add.s(1)), graph.add(add.s(2))
        graph.add(total.s([one, 100, two]), after=graph.add(tell.s("first")))
        handle = graph.enqueue()
        assert handle.result() == 105
        assert len(handle.graph().edges) == 3


def test_failures_are_taken_up_again(works: SimpleNamespace, store_url: str):
    with inline(works.app, url=store_url):
        risky = works.fail.s().on_failure(works.tell.si("handled"))
        assert chain(risky, works.add.s()).enqueue().wait() is JobState.COMPLETED
        handle = chord([works.add.s(1), works.fail.s()], works.total.s()).enqueue(on_failure=works.tell.si("hook"))
        assert handle.wait() is JobState.FAILED
        assert [words for name, words in works.ran if name == "tell"] == [["handled"], ["hook"]]
        with pytest.raises(TaskFailed, match="it was not to be"):
            handle.result()
        works.broken.clear()
        assert len(handle.retry_failed()) == 2
        assert handle.result() == 2
        first = handle.graph().nodes[0].id
        assert len(works.app.jobs.clear(first)) == 2
        assert handle.result() == 2
        assert works.app.check() == []


def test_a_result_that_takes_too_long(works: SimpleNamespace, store_url: str):
    with override(works.app, url=store_url):
        handle = chain(works.add.s(1), works.add.s(2)).enqueue()
        with pytest.raises(TimeoutError, match=f"job {handle.id} has no result within"):
            handle.result(timeout=0.01)
        with pytest.raises(TimeoutError, match=f"job {handle.id} is pending"):
            handle.wait(timeout=0.01)


def test_a_person_decides(works: SimpleNamespace, store_url: str):
    with inline(works.app, url=store_url):
        handle = chain(works.add.s(1), approve(role="finance"), works.tell.s()).enqueue()
        [asked] = [node.id for node in handle.graph().nodes if node.state is TaskState.PENDING_APPROVAL]
        with pytest.raises(NotAllowed):
            works.app.tasks.approve(asked, by="bob", role="sales")
        works.app.tasks.approve(asked, by="ann", role="finance")
        assert handle.result()[0]["by"] == "ann"


def test_a_job_grows_beside_a_real_worker(works: SimpleNamespace, store_url: str):
    """Through claims, inputs and finishes of a worker: a fan-out, a fan-in, a task that adds to its job, a failure."""
    with override(works.app, url=store_url), BackgroundWorker(works.app):
        flow = chain(works.add.s(0), works.add.map(range(50)), works.total.s(), works.add.s(1))
        handle = flow.enqueue(on_success=works.tell.si("well"))
        assert handle.result(timeout=60) == sum(range(1, 51)) + 1
        assert handle.wait(timeout=60) is JobState.COMPLETED
        grown = works.grow.s(2).enqueue()
        assert grown.wait(timeout=60) is JobState.COMPLETED
        assert grown.record().total == 3
        failed = chain(works.add.s(1), works.fail.s(), works.tell.s()).enqueue()
        with pytest.raises(TaskFailed, match="it was not to be"):
            failed.result(timeout=60)
        assert failed.wait(timeout=60) is JobState.FAILED
