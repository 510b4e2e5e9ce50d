"""Graphs: what is freed, what can never run, and when; counted exactly after every step."""

from headrace.core.lanes import Lane
from headrace.core.states import JobState
from headrace.core.task import EdgeKind, Want
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.drawing import SKIPPED, UPSTREAM_FAILED, done, draw, failure, node
from headrace.testing.store_conformance.ledger import (
    Ledger,
    completed,
    failed,
    released,
)

cases = Cases("graphs")


# What frees, and what makes impossible.


@cases.add("R80")
async def a_fan_out_and_its_fan_in(ledger: Ledger) -> None:
    """R80: the continuation is claimed once, after the last of the group, in whatever order they end."""
    graph = await draw(ledger, a=node(), b=node("a"), c=node("a"), d=node("a"), e=node("b", "c", "d"))
    await graph.sound()
    assert await graph.states() == {"a": "pending", "b": "blocked", "c": "blocked", "d": "blocked", "e": "blocked"}
    assert await graph.take() == {"a"}
    await graph.complete("a")
    assert await graph.take() == {"b", "c", "d"}
    await graph.each(graph.complete, "cd")
    assert await graph.take() == {"b"}, "the last of three has not ended"
    assert await graph.state("e") == "blocked"
    await graph.complete("b")
    assert await graph.take() == {"e"}
    assert await graph.take() == {"e"}, "once"
    assert await graph.fate() is JobState.RUNNING
    await graph.complete("e")
    assert await graph.fate() is JobState.COMPLETED
    await graph.sound()
    assert await graph.hooks() == ["hook.success"]


@cases.add()
async def all_of_a_group_in_one_finish(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(), b=node(), c=node(), d=node("a", "b", "c"), e=node("a"))
    await graph.complete("a", "b", "c")
    await graph.sound()
    assert await graph.take() == {"d", "e"}


@cases.add()
async def two_edges_to_one_task_are_two(ledger: Ledger) -> None:
    """They pass its result on to two inputs; its end satisfies both."""
    graph = await draw(ledger, a=node(), b=node("a", done("a", 0)), c=node(failure("a"), done("a")))
    await graph.complete("a")
    await graph.sound()
    assert await graph.states() == {"a": "completed", "b": "pending", "c": SKIPPED}
    assert [(edge.place, edge.kind, edge.input) for edge in await ledger.store.edges([graph.ids["b"]])] == [
        (0, EdgeKind.ON_SUCCESS, None),
        (1, EdgeKind.ON_DONE, 0),
    ]


@cases.add()
async def a_failure_cancels_what_needed_the_success(ledger: Ledger) -> None:
    """Down to the last of them in the same transaction, before the end of the job cancels the rest."""
    graph = await draw(ledger, a=node(), b=node("a"), c=node("b"), d=node("c"), x=node(), y=node("x"), z=node())
    assert await graph.take() == {"a", "x", "z"}
    await graph.complete("z")
    await graph.fail("a")
    states = await graph.states()
    assert [states[name] for name in "abcd"] == ["failed", UPSTREAM_FAILED, UPSTREAM_FAILED, UPSTREAM_FAILED]
    assert (states["x"], states["y"], states["z"]) == ("cancelling", "cancelled/job_failed", "completed")
    assert await graph.fate() is JobState.FAILED
    await graph.sound()
    await graph.complete("x")
    await graph.sound()
    assert (await graph.fate(), await graph.hooks()) == (JobState.FAILED, ["hook.failure"])


@cases.add("A71")
async def a_failure_that_is_not_critical_takes_its_own_branch_alone(ledger: Ledger) -> None:
    """A71: what needs it is cancelled, the rest of the graph runs, and the job completes."""
    graph = await draw(
        ledger, a=node(critical=False), b=node("a"), c=node("b"), x=node(), y=node("x"), z=node("y", done("c"))
    )
    await graph.take()
    await graph.fail("a")
    await graph.sound()
    assert await graph.fate() is JobState.RUNNING
    states = await graph.states()
    assert [states[name] for name in "bcxyz"] == [UPSTREAM_FAILED, UPSTREAM_FAILED, "claimed", "blocked", "blocked"]
    await graph.each(graph.complete, "xyz")
    assert await graph.fate() is JobState.COMPLETED
    assert await graph.hooks() == ["hook.success"]


@cases.add()
async def each_kind_of_edge_under_each_end(ledger: Ledger) -> None:
    """Completed, failed, cancelled while held and before, expired."""
    kinds = {"s": node("a"), "d": node(done("a")), "f": node(failure("a"))}

    async def after(how: str) -> tuple[str, ...]:
        upstream = node(critical=False, max_age=0.01 if how == "expire" else None)
        graph = await draw(ledger, a=upstream, **kinds)
        match how:
            case "complete":
                await graph.complete("a")
            case "fail":
                await graph.fail("a")
            case "stop":
                await graph.stop("a")
            case "cancel":
                await graph.cancel("a")
            case _:
                await ledger.let_pass(0.05)
                assert await ledger.store.expire() == 1
        await graph.sound()
        states = await graph.states()
        for name in "df":
            if states[name] == "pending":
                await graph.complete(name)
                await graph.sound()
        for name in "s":
            if states[name] == "pending":
                await graph.complete(name)
        assert (await graph.fate()).terminal
        return tuple(states[name] for name in "sdf")

    assert await after("complete") == ("pending", "pending", SKIPPED)
    assert await after("fail") == (UPSTREAM_FAILED, "pending", "pending")
    assert await after("stop") == (UPSTREAM_FAILED, "pending", SKIPPED)
    assert await after("cancel") == (UPSTREAM_FAILED, "pending", SKIPPED)
    assert await after("expire") == (UPSTREAM_FAILED, "pending", "pending")


@cases.add()
async def a_cancellation_that_nobody_obeys_frees_what_waits_for_its_end(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(), b=node("a"), c=node(done("a")))
    await graph.take()
    await graph.cancel("a")
    assert await graph.states() == {"a": "cancelling", "b": "blocked", "c": "blocked"}
    await ledger.let_pass(0.1)
    assert await ledger.store.end_cancelling(grace=0.05) == 1
    await graph.sound()
    assert await graph.states() == {"a": "cancelled/user", "b": UPSTREAM_FAILED, "c": "pending"}


@cases.add()
async def what_can_never_run_frees_what_waits_for_the_end_of_that(ledger: Ledger) -> None:
    """The closure goes over edges of success and failure; an on_done edge behind it is satisfied, and a handler of a
    failure that cannot come is skipped. What failed says more than a handler that nobody needs."""
    graph = await draw(
        ledger,
        a=node(critical=False),
        b=node("a"),
        clean=node(done("b")),
        handler=node(failure("b")),
        after_handler=node("handler"),
        both=node("b", failure("handler")),
    )
    await graph.fail("a")
    await graph.sound()
    assert await graph.states() == {
        "a": "failed",
        "b": UPSTREAM_FAILED,
        "clean": "pending",
        "handler": SKIPPED,
        "after_handler": UPSTREAM_FAILED,
        "both": UPSTREAM_FAILED,
    }


@cases.add()
async def a_long_chain_is_closed_at_once(ledger: Ledger) -> None:
    names = [f"t{n:03}" for n in range(300)]
    nodes = {name: node(*[up] if up else [], critical=False) for up, name in zip(["", *names], names, strict=False)}
    graph = await draw(ledger, **nodes, end=node(done(names[-1])))
    await graph.fail(names[0])
    await graph.sound()
    states = await graph.states()
    assert {states[name] for name in names[1:]} == {UPSTREAM_FAILED}
    assert states["end"] == "pending"


@cases.add()
async def one_that_waits_for_two_batches_is_cancelled_once(ledger: Ledger) -> None:
    """Its first upstream fails, then the second: it has ended by then."""
    graph = await draw(ledger, a=node(critical=False), b=node(critical=False), c=node("a", "b"), d=node(done("c")))
    await graph.take()
    await graph.fail("a")
    await graph.sound()
    assert await graph.state("d") == "pending"
    await graph.fail("b")
    await graph.sound()
    assert (await graph.record()).cancelled == 1
    await graph.complete("d")
    assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def a_retry_frees_nobody(ledger: Ledger) -> None:
    """Neither does a release: only an end is one."""
    graph = await draw(ledger, a=node(max_attempts=3), b=node("a"), c=node(failure("a")))
    await graph.end(failed, "a")
    await graph.sound()
    assert (await graph.state("b"), await graph.state("c")) == ("blocked", "blocked")
    await graph.end(released, "a")
    assert (await graph.state("b"), await graph.state("c")) == ("blocked", "blocked")
    await graph.complete("a")
    assert (await graph.state("b"), await graph.state("c")) == ("pending", SKIPPED)


@cases.add()
async def a_late_report_frees_nobody(ledger: Ledger) -> None:
    await ledger.register("a", "b")
    graph = await draw(ledger, a=node(), b=node("a"))
    await graph.take()
    stale = graph.held["a"]
    assert await ledger.store.deregister("a") == 1
    await ledger.let_pass(0.01)
    (again,) = await ledger.claim("b")
    assert (again.id, again.claim_no) == (stale.id, stale.claim_no + 1)
    report = await ledger.store.finish("a", [completed(stale)])
    assert not report.accepted
    assert await graph.state("b") == "blocked"
    await ledger.finish("b", completed(again))
    assert await graph.state("b") == "pending"
    report = await ledger.store.finish("b", [completed(again)])
    assert report.repeated, "told twice, freed once"
    await graph.sound()


# When it runs.


@cases.add()
async def a_delay_counts_from_the_enqueue_and_an_age_from_the_release(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(), late=node("a", delay=600.0), old=node("a", max_age=0.8), due=node("a"))
    await ledger.let_pass(0.9)
    assert await ledger.store.expire() == 0, "who waits for others does not grow old"
    await graph.complete("a")
    assert await graph.take() == {"old", "due"}
    assert not graph.held["old"].expired
    assert await graph.state("late") == "pending"
    wait = await ledger.store.promote()
    assert wait is not None
    assert 500 < wait <= 600
    await graph.sound()


@cases.add()
async def what_is_freed_can_be_claimed_by_the_same_finish(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(), b=node("a"))
    await graph.take()
    want = Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=5)
    report = await ledger.store.finish("a", [completed(graph.held.pop("a"))], wants=[want])
    claimed = {claim.name for claim in report.claimed} | await graph.take()
    assert claimed == {"b"}
