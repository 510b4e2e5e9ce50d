"""New runs of parts of a graph: retry, retry_failed and clear. Nobody is freed early, twice, or never."""

import asyncio

from headrace.core.errors import NotFound, WrongState
from headrace.core.states import JobState, TaskState
from headrace.core.task import Key
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.drawing import SKIPPED, UPSTREAM_FAILED, Graph, done, draw, failure, node
from headrace.testing.store_conformance.ledger import Ledger, completed, ref, refused, stopped, suspended, task

cases = Cases("reopening")


def _names(graph: Graph, ids: list[int]) -> list[str]:
    names = {task_id: name for name, task_id in graph.ids.items()}
    return sorted(names[task_id] for task_id in ids)


@cases.add()
async def retrying_a_failed_task_blocks_what_it_took_down(ledger: Ledger) -> None:
    """With a new run each, and the job's; what had completed stays."""
    graph = await draw(ledger, x=node(), a=node(), b=node("a", "x"), c=node("b"), d=node(done("x")))
    await graph.take()
    await graph.complete("x")
    await graph.complete("d")
    await graph.fail("a")
    assert (await graph.fate(), await graph.hooks()) == (JobState.FAILED, ["hook.failure"])
    assert _names(graph, await ledger.store.retry([graph.ids["a"]])) == ["a", "b", "c"]
    await graph.sound()
    assert await graph.states() == {"x": "completed", "a": "pending", "b": "blocked", "c": "blocked", "d": "completed"}
    record = await graph.record()
    assert (record.run_no, record.completed_at) == (2, None)
    runs = {name: (await ledger.get(task_id)).run_no for name, task_id in graph.ids.items()}
    assert runs == {"x": 1, "a": 2, "b": 2, "c": 2, "d": 1}
    assert await ledger.store.retry([graph.ids["a"]]) == [], "it is open already"
    await graph.each(graph.complete, "abc")
    assert (await graph.fate(), await graph.hooks()) == (JobState.COMPLETED, ["hook.success"])


@cases.add()
async def a_retried_task_that_fails_again_takes_them_down_again(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(), b=node("a"), c=node("b"))
    await graph.fail("a")
    for run in range(2, 5):
        await ledger.store.retry([graph.ids["a"]])
        await graph.sound()
        await graph.fail("a")
        await graph.sound()
        assert await graph.states() == {"a": "failed", "b": UPSTREAM_FAILED, "c": UPSTREAM_FAILED}
        assert ((await graph.record()).run_no, await graph.fate()) == (run, JobState.FAILED)
    assert await graph.hooks() == ["hook.failure"] * 4, "once for each run"


@cases.add()
async def a_skipped_handler_is_there_again(ledger: Ledger) -> None:
    """A completed task that somebody runs again may fail this time."""
    graph = await draw(ledger, a=node(), handler=node(failure("a")), after=node("handler"))
    await graph.complete("a")
    assert await graph.states() == {"a": "completed", "handler": SKIPPED, "after": UPSTREAM_FAILED}
    assert await graph.fate() is JobState.COMPLETED
    assert _names(graph, await ledger.store.retry([graph.ids["a"]])) == ["a", "after", "handler"]
    await graph.sound()
    await graph.fail("a")
    await graph.each(graph.complete, ["handler", "after"])
    assert await graph.fate() is JobState.COMPLETED
    assert await graph.hooks() == ["hook.success", "hook.success"]


@cases.add()
async def what_something_else_took_down_stays_down(ledger: Ledger) -> None:
    """Two upstreams failed and one of them is retried: what needs both cannot run, and is not blocked for ever."""
    graph = await draw(
        ledger, a=node(critical=False), b=node(critical=False), both=node("a", "b"), tail=node("both"), x=node()
    )
    await graph.take()
    await graph.fail("a")
    await graph.fail("b")
    await ledger.store.retry([graph.ids["a"]])
    await graph.sound()
    await graph.complete("a")
    await graph.sound()
    states = await graph.states()
    assert (states["both"], states["tail"]) == (UPSTREAM_FAILED, UPSTREAM_FAILED)
    await graph.complete("x")
    assert await graph.fate() is JobState.COMPLETED
    assert {"both", "tail", "b"} <= set(_names(graph, await ledger.store.retry([graph.ids["b"]])))
    await graph.sound()
    assert not (await graph.fate()).terminal
    await graph.each(graph.complete, ["b", "both", "tail"])
    assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def both_failures_retried_at_once(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(critical=False), b=node(critical=False), both=node("a", "b"), x=node(delay=600.0))
    await graph.take()
    await graph.fail("a", "b")
    changed = await ledger.store.retry([graph.ids["a"], graph.ids["b"]])
    assert _names(graph, changed) == ["a", "b", "both"]
    await graph.sound()
    await graph.each(graph.complete, ["b", "a", "both"])


@cases.add()
async def retrying_what_can_never_run(ledger: Ledger) -> None:
    """Its upstream has failed: it is not blocked for ever, and does not run."""
    graph = await draw(ledger, a=node(critical=False), b=node("a"), x=node(delay=600.0))
    await graph.fail("a")
    await ledger.store.retry([graph.ids["b"]])
    await graph.sound()
    assert await graph.state("b") == UPSTREAM_FAILED
    assert await graph.take() == set()


@cases.add()
async def those_that_still_wait_wait_for_the_retried_one_again(ledger: Ledger) -> None:
    """Blocked by another upstream while the first is retried: the barrier counts both, whichever ends first."""
    for order in (["a", "b"], ["b", "a"]):
        graph = await draw(ledger, a=node(critical=False), b=node(), c=node(done("a"), "b"))
        await graph.take()
        await graph.fail("a")
        await graph.sound()
        await ledger.store.retry([graph.ids["a"]])
        await graph.sound()
        await graph.complete(order[0])
        await graph.sound()
        assert await graph.state("c") == "blocked"
        await graph.complete(order[1])
        await graph.sound()
        assert await graph.take() == {"c"}
        await graph.complete("c")
        assert (await graph.fate(), await graph.hooks()) == (JobState.COMPLETED, ["hook.success"])


@cases.add()
async def a_second_end_of_a_task_frees_nobody_twice(ledger: Ledger) -> None:
    """Its dependents are held, or have ended: the first end was theirs."""
    graph = await draw(ledger, a=node(), held=node("a"), over=node("a"), x=node(delay=600.0))
    await graph.complete("a")
    await graph.complete("over")
    assert "held" in await graph.take()
    assert _names(graph, await ledger.store.retry([graph.ids["a"]])) == ["a"]
    await graph.sound()
    assert "a" in await graph.take()
    await graph.complete("a")
    await graph.sound()
    assert await graph.states() == {"a": "completed", "held": "claimed", "over": "completed", "x": "pending"}
    await graph.complete("held")
    await graph.sound()


@cases.add()
async def retrying_an_upstream_of_a_ready_task(ledger: Ledger) -> None:
    """It may run, or wait once more; it runs once."""
    graph = await draw(ledger, a=node(), b=node("a"))
    await graph.complete("a")
    await ledger.store.retry([graph.ids["a"]])
    await graph.sound()
    assert await graph.state("b") in ("pending", "blocked")
    await graph.complete("a")
    await graph.sound()
    await graph.complete("b")
    await graph.sound()
    assert (await ledger.get(graph.ids["b"])).claim_no == 1
    assert (await graph.fate(), await graph.hooks()) == (JobState.COMPLETED, ["hook.success"])


@cases.add()
async def of_two_retries_at_once_one_opens(ledger: Ledger) -> None:
    other = await ledger.another_store()
    for _ in range(8):
        graph = await draw(ledger, a=node(), b=node("a"), c=node("b"))
        await graph.fail("a")
        one, two = await asyncio.gather(ledger.store.retry([graph.ids["a"]]), other.retry([graph.ids["a"]]))
        assert sorted(one + two) == sorted(graph.ids.values())
        await graph.sound()
        assert (await graph.record()).run_no == 2
        await graph.each(graph.complete, "abc")
        assert await graph.hooks() == ["hook.failure", "hook.success"]


@cases.add("A49")
async def retry_failed_opens_what_failed_and_what_it_took_along(ledger: Ledger) -> None:
    """A49: failed ones are pending, those behind them and those that ended with the job are pending or blocked."""
    graph = await draw(ledger, x=node(), y=node("x"), a=node(), b=node("a"), z=node("y"), ready=node("x"))
    await graph.take()
    await graph.complete("x")
    await graph.fail("a")
    assert await graph.fate() is JobState.FAILED
    reopened = await ledger.store.retry_failed(graph.job)
    assert _names(graph, reopened) == ["a", "b", "ready", "y", "z"]
    await graph.sound()
    assert await graph.states() == {
        "x": "completed",
        "y": "pending",
        "a": "pending",
        "b": "blocked",
        "z": "blocked",
        "ready": "pending",
    }
    await graph.complete("a", "y", "ready")
    await graph.complete("b", "z")
    await graph.sound()
    assert await graph.fate() is JobState.COMPLETED
    assert await graph.hooks() == ["hook.failure", "hook.success"]


@cases.add("A49")
async def retry_failed_after_a_cancellation(ledger: Ledger) -> None:
    """A49: all that was cancelled with the job, blocked behind what is not done."""
    graph = await draw(ledger, a=node(), b=node("a"), c=node(failure("a")), d=node(done("b")))
    await ledger.store.cancel_job(graph.job)
    assert len(await ledger.store.retry_failed(graph.job)) == 4
    await graph.sound()
    assert await graph.states() == {"a": "pending", "b": "blocked", "c": "blocked", "d": "blocked"}
    await graph.each(graph.complete, "abd")
    assert await graph.state("c") == SKIPPED
    assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def retry_failed_while_one_of_them_still_stops(ledger: Ledger) -> None:
    """Its end belongs to the run that is over, and would doom what waits for it in the new one: first it ends."""
    graph = await draw(ledger, a=node(), b=node(), c=node("b"))
    await graph.take()
    await graph.fail("a")
    assert await graph.state("b") == "cancelling"
    error = await refused(ledger.store.retry_failed(graph.job), WrongState)
    assert str(graph.ids["b"]) in str(error)
    await graph.sound()
    assert await graph.fate() is JobState.FAILED
    await graph.end(stopped, "b")
    assert _names(graph, await ledger.store.retry_failed(graph.job)) == ["a", "b", "c"]
    await graph.sound()
    await graph.complete("a", "b")
    await graph.complete("c")
    assert await graph.fate() is JobState.COMPLETED
    assert set((await graph.states()).values()) == {"completed"}


@cases.add()
async def retry_failed_of_a_failed_job_leaves_what_a_person_cancelled(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(), b=node(), c=node(), d=node(failure("c")))
    await graph.take()
    await graph.complete("c")
    await graph.stop("b")
    await graph.fail("a")
    assert await graph.fate() is JobState.FAILED
    assert _names(graph, await ledger.store.retry_failed(graph.job)) == ["a"]
    await graph.sound()
    assert (await graph.state("b"), await graph.state("d")) == ("cancelled/user", SKIPPED)
    await graph.complete("a")
    assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def retry_failed_of_a_cancelled_job_takes_all_that_was_cancelled(ledger: Ledger) -> None:
    """Also what a person had cancelled before; not what an edge skipped."""
    graph = await draw(ledger, a=node(), b=node(), c=node(), d=node(failure("c")))
    await graph.take()
    await graph.complete("c")
    await graph.stop("b")
    await ledger.store.cancel_job(graph.job)
    await graph.end(stopped, "a")
    assert _names(graph, await ledger.store.retry_failed(graph.job)) == ["a", "b"]
    await graph.sound()
    assert await graph.state("d") == SKIPPED
    await graph.complete("a", "b")
    assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def a_rejection_is_not_run_again_without_a_decision(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(approval=True), b=node("a"))
    await ledger.store.decide(graph.ids["a"], approved=False, by="ann")
    await ledger.store.retry_failed(graph.job)
    await graph.sound()
    assert await graph.take() == set()
    assert await graph.state("a") in ("pending_approval", "rejected")


@cases.add()
async def clearing_takes_everything_below(ledger: Ledger) -> None:
    """Completed, failed, cancelled, pending and blocked alike; not what is beside. Their checkpoints go."""
    graph = await draw(
        ledger,
        root=node(),
        a=node("root"),
        beside=node("root"),
        b=node("a"),
        bad=node("a", critical=False),
        below_bad=node("bad"),
        ready=node("b"),
        blocked=node("ready", done("bad")),
    )
    await graph.complete("root")
    await graph.take()
    for name in ("a", "beside"):
        await ledger.store.save_checkpoint("a", ref(graph.held[name]), "step", "1")
    await graph.complete("beside")
    await graph.complete("a")
    await graph.take()
    await graph.complete("b")
    await graph.fail("bad")
    await graph.sound()
    cleared = await ledger.store.clear(graph.ids["a"])
    assert _names(graph, cleared) == sorted(["a", "b", "bad", "below_bad", "ready", "blocked"])
    await graph.sound()
    assert await graph.states() == {
        "root": "completed",
        "a": "pending",
        "beside": "completed",
        **dict.fromkeys(["b", "bad", "below_bad", "ready", "blocked"], "blocked"),
    }
    assert await ledger.store.checkpoints(graph.ids["a"]) == {}
    assert await ledger.store.checkpoints(graph.ids["beside"]) == {"step": "1"}
    again = await ledger.get(graph.ids["a"])
    assert (again.run_no, again.attempt, again.result) == (2, 0, None)
    for names in (["a"], ["b", "bad"], ["ready", "below_bad"], ["blocked"]):
        await graph.take()
        await graph.complete(*names)
        await graph.sound()
    assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def clearing_opens_the_job_again(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(), b=node("a"))
    await graph.complete("a")
    await graph.complete("b")
    assert await graph.hooks() == ["hook.success"]
    assert _names(graph, await ledger.store.clear(graph.ids["b"])) == ["b"]
    await graph.sound()
    record = await graph.record()
    assert (record.run_no, record.state.terminal, record.completed_at) == (2, False, None)
    assert await graph.states() == {"a": "completed", "b": "pending"}
    await graph.complete("b")
    assert (await graph.fate(), await graph.hooks()) == (JobState.COMPLETED, ["hook.success"])


@cases.add()
async def what_cannot_be_cleared(ledger: Ledger) -> None:
    """An unknown task, one that has not ended, one with something below it in a worker's hands: nothing changes."""
    await refused(ledger.store.clear(987_654_321), NotFound)
    graph = await draw(ledger, a=node(), b=node("a"), c=node("b"), d=node("a"))
    await refused(ledger.store.clear(graph.ids["a"]), WrongState)
    await refused(ledger.store.clear(graph.ids["c"]), WrongState)
    await graph.complete("a")
    await graph.complete("b")
    await graph.take()
    before = await ledger.store.get(list(graph.ids.values()))
    await refused(ledger.store.clear(graph.ids["a"]), WrongState)
    assert await ledger.store.get(list(graph.ids.values())) == before
    await graph.sound()


@cases.add()
async def clearing_beside_a_failure(ledger: Ledger) -> None:
    """What is below the cleared task and needs another that failed can never run: it is not blocked for ever."""
    graph = await draw(ledger, a=node(), b=node(critical=False), c=node("a", "b"), d=node(done("c")))
    await graph.take()
    await graph.complete("a")
    await graph.fail("b")
    await graph.complete("d")
    assert await graph.fate() is JobState.COMPLETED
    assert set(_names(graph, await ledger.store.clear(graph.ids["a"]))) >= {"a", "d"}
    await graph.sound()
    await graph.complete("a")
    await graph.sound()
    assert await graph.state("c") == UPSTREAM_FAILED
    await graph.complete("d")
    assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def clearing_a_task_without_a_job(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.save_checkpoint("a", ref(claim), "step", "1")
    await ledger.finish("a", completed(claim))
    assert await ledger.store.clear(task_id) == [task_id]
    record = await ledger.get(task_id)
    assert (record.state, record.run_no) == (TaskState.PENDING, 2)
    assert await ledger.store.checkpoints(task_id) == {}
    assert (await ledger.claim_due()).run_no == 2


@cases.add()
async def adding_below_a_retried_task(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(), b=node("a"))
    await graph.fail("a")
    await ledger.store.retry([graph.ids["a"]])
    await graph.add(c=node("a"), d=node("b", done("a")))
    await graph.sound()
    await graph.each(graph.complete, "abcd")
    assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def a_job_reopened_around_a_failure_fails_again(ledger: Ledger) -> None:
    """One of two critical failures is retried and completes: the other one still counts."""
    graph = await draw(ledger, a=node(), b=node())
    await graph.take()
    await graph.fail("a", "b")
    assert await graph.hooks() == ["hook.failure"]
    await ledger.store.retry([graph.ids["a"]])
    await graph.complete("a")
    await graph.sound()
    assert (await graph.fate(), await graph.hooks()) == (JobState.FAILED, ["hook.failure"])


@cases.add()
async def a_task_that_keeps_its_key_for_itself(ledger: Ledger) -> None:
    """A dependent whose unique key another task took meanwhile cannot come back; the others do."""
    key = (Key(scope="unique", key="k"),)
    graph = await draw(ledger, a=node(critical=False), b=node("a", keys=key), c=node("a"), x=node(delay=600.0))
    await graph.fail("a")
    holder = await ledger.enqueue(task(keys=key, delay=600.0))
    reopened = _names(graph, await ledger.store.retry([graph.ids["a"]]))
    assert reopened == ["a", "c"]
    await graph.sound()
    assert await graph.state("b") == UPSTREAM_FAILED
    await ledger.store.cancel(holder)


@cases.add()
async def clearing_forgets_an_approval(ledger: Ledger) -> None:
    """Of one that has not run yet, too: somebody decides again, when what is above has run again."""
    graph = await draw(ledger, a=node(), b=node("a", approval=True), keep=node())
    await graph.complete("a")
    await ledger.store.decide(graph.ids["b"], approved=True, by="ann")
    assert await graph.state("b") == "pending"
    before = (await ledger.get(graph.ids["b"])).enqueued_at
    await ledger.let_pass(0.01)
    await ledger.store.clear(graph.ids["a"])
    await graph.sound()
    assert await graph.state("b") == "blocked"
    assert await ledger.store.checkpoints(graph.ids["b"]) == {}
    assert (await ledger.get(graph.ids["b"])).enqueued_at > before
    await graph.complete("a")
    assert await graph.state("b") == "pending_approval"
    await ledger.store.decide(graph.ids["b"], approved=True, by="bob")
    await graph.complete("b", "keep")
    assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def a_cleared_task_has_not_begun(ledger: Ledger) -> None:
    """It had slept, and was cleared with what it waits for: when that fails now, it is cancelled like any other."""
    graph = await draw(ledger, a=node(critical=False), b=node("a"), keep=node())
    await graph.complete("a")
    await graph.take()
    claim = graph.held.pop("b")
    await ledger.store.save_checkpoint("a", ref(claim), "step", "1")
    await ledger.finish("a", suspended(claim, delay=600.0))
    await ledger.let_pass(0.01)
    await ledger.store.clear(graph.ids["a"])
    assert await graph.state("b") == "blocked"
    await graph.fail("a")
    await graph.sound()
    assert await graph.state("b") == UPSTREAM_FAILED
