"""What the ends of the tasks of a graph make of their job."""

from headrace.core.states import JobState, Reason
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.drawing import UPSTREAM_FAILED, done, draw, failure, node
from headrace.testing.store_conformance.ledger import (
    Ledger,
    completed,
    failed_for_good,
)

cases = Cases("graph_fates")


@cases.add()
async def a_handler_that_completes_saves_the_job(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(), handler=node(failure("a")), tail=node("a"), x=node())
    await graph.take()
    await graph.fail("a")
    await graph.sound()
    assert await graph.states() == {"a": "failed", "handler": "pending", "tail": UPSTREAM_FAILED, "x": "claimed"}
    assert await graph.fate() is JobState.RUNNING
    await graph.each(graph.complete, ["handler", "x"])
    assert await graph.fate() is JobState.COMPLETED
    assert await graph.hooks() == ["hook.success"]


@cases.add()
async def a_handler_that_fails_saves_nothing(ledger: Ledger) -> None:
    """A critical one fails the job at once; one that is not leaves the first failure unhandled."""
    for critical in (True, False):
        graph = await draw(ledger, a=node(), handler=node(failure("a"), critical=critical))
        await graph.fail("a")
        assert await graph.fate() is JobState.RUNNING
        await graph.fail("handler")
        await graph.sound()
        assert await graph.fate() is JobState.FAILED
        assert await graph.hooks() == ["hook.failure"]


@cases.add()
async def a_handler_that_is_cancelled_saves_nothing(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(), handler=node(failure("a")))
    await graph.fail("a")
    await graph.cancel("handler")
    await graph.sound()
    assert (await graph.fate(), await graph.hooks()) == (JobState.FAILED, ["hook.failure"])


@cases.add()
async def cleaning_up_runs_before_the_job_has_failed(ledger: Ledger) -> None:
    """An on_done task of a critical failure runs; then the job has failed, whatever it said."""
    graph = await draw(ledger, a=node(), clean=node(done("a")), x=node(), y=node("x"))
    await graph.take()
    await graph.fail("a")
    assert await graph.fate() is JobState.RUNNING
    await graph.each(graph.complete, ["clean", "x", "y"])
    assert (await graph.fate(), await graph.hooks()) == (JobState.FAILED, ["hook.failure"])


@cases.add()
async def what_was_added_after_a_failure_waits_for_nothing(ledger: Ledger) -> None:
    """A failure whose handler runs: another critical one without a handler still breaks the job at once."""
    graph = await draw(ledger, a=node(), handler=node(failure("a")), x=node(), y=node())
    await graph.take()
    await graph.fail("a")
    await graph.fail("x")
    await graph.sound()
    states = await graph.states()
    assert (states["handler"], states["y"]) == ("cancelled/job_failed", "cancelling")
    assert await graph.fate() is JobState.FAILED


@cases.add()
async def a_handler_in_the_same_batch(ledger: Ledger) -> None:
    """All that has ended with one finish, the failure among them."""
    graph = await draw(ledger, a=node(), b=node(), handler=node(failure("a"), "b"))
    await graph.take()
    a, b = graph.held.pop("a"), graph.held.pop("b")
    await ledger.finish("a", failed_for_good(a), completed(b))
    await graph.sound()
    assert await graph.states() == {"a": "failed", "b": "completed", "handler": "pending"}
    await graph.complete("handler")
    assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def all_cancelled_is_cancelled(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(), b=node("a"), c=node("b"))
    await graph.cancel("a")
    await graph.sound()
    assert (await graph.fate(), await graph.hooks()) == (JobState.CANCELLED, ["hook.failure"])


@cases.add()
async def one_branch_cancelled_is_completed(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(), b=node("a"), x=node())
    await graph.cancel("a")
    await graph.sound()
    assert await graph.fate() is JobState.PENDING
    await graph.complete("x")
    await graph.sound()
    assert (await graph.fate(), await graph.hooks()) == (JobState.COMPLETED, ["hook.success"])


@cases.add()
async def cancelling_a_blocked_task(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(), b=node("a"), c=node("b"), d=node(done("b")), e=node("a"))
    await graph.cancel("b")
    await graph.sound()
    assert await graph.states() == {
        "a": "pending",
        "b": "cancelled/user",
        "c": UPSTREAM_FAILED,
        "d": "pending",
        "e": "blocked",
    }
    await graph.complete("a")
    await graph.sound()
    assert (await graph.state("b"), await graph.state("e")) == ("cancelled/user", "pending")


@cases.add("A72", "A41")
async def cancelling_a_job_with_blocked_tasks(ledger: Ledger) -> None:
    """A72: those that wait for others are cancelled with the pending ones, on_done or not; A41: none is claimed when
    what they waited for ends."""
    graph = await draw(ledger, a=node(), b=node("a"), c=node(done("a")), d=node(done("c")), x=node())
    await graph.take(1)
    held = next(iter(graph.held))
    await ledger.store.cancel_job(graph.job)
    states = await graph.states()
    assert states.pop(held) == "cancelling"
    assert {state.split("/")[0] for state in states.values()} == {"cancelled"}
    await graph.sound()
    await graph.complete(held)
    await graph.sound()
    assert await graph.take() == set()
    assert (await graph.fate(), await graph.hooks()) == (JobState.CANCELLED, ["hook.failure"])


@cases.add("A41")
async def the_deadline_of_a_job_with_blocked_tasks(ledger: Ledger) -> None:
    """A41: nothing of it is claimed after it."""
    graph = await draw(ledger, 0.1, a=node(), b=node("a"), c=node(done("b")))
    await graph.take()
    await ledger.let_pass(0.2)
    assert await ledger.store.expire() >= 1
    await graph.sound()
    record = await graph.record()
    assert (record.state, record.reason) == (JobState.FAILED, Reason.JOB_TIMEOUT)
    assert await graph.states() == {"a": "cancelling", "b": "cancelled/job_timeout", "c": "cancelled/job_timeout"}
    await graph.complete("a")
    await graph.sound()
    assert await graph.take() == set()
    assert await graph.hooks() == ["hook.failure"]
