"""Tasks that wait for somebody to decide."""

import asyncio
import json
from datetime import datetime

from headrace.core.errors import NotFound, WrongState
from headrace.core.states import JobState, TaskState
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.drawing import UPSTREAM_FAILED, done, draw, failure, node
from headrace.testing.store_conformance.ledger import (
    Ledger,
    refused,
    task,
)

cases = Cases("approvals")


@cases.add()
async def an_approval_behind_an_edge(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(), b=node("a", approval=True), c=node("b"))
    assert await graph.state("b") == "blocked"
    await refused(ledger.store.decide(graph.ids["b"], approved=True, by="eve"), WrongState)
    await graph.complete("a")
    await graph.sound()
    assert await graph.state("b") == "pending_approval"
    assert await graph.take() == set()
    decided = await ledger.store.decide(graph.ids["b"], approved=True, by="ann", note="fine")
    assert (decided.id, decided.state) == (graph.ids["b"], TaskState.PENDING)
    await graph.sound()
    checkpoint = (await ledger.store.checkpoints(graph.ids["b"]))["approval"]
    says = json.loads(checkpoint)
    assert (says["by"], says["note"]) == ("ann", "fine")
    assert datetime.fromisoformat(says["at"]).tzinfo is not None
    await graph.each(graph.complete, "bc")
    assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def a_rejection_fails_what_needs_it(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(approval=True), b=node("a"), x=node())
    record = await ledger.store.decide(graph.ids["a"], approved=False, by="ann", note="too dear")
    assert record.state is TaskState.REJECTED
    assert "ann" in (record.error_message or "")
    await graph.sound()
    states = await graph.states()
    assert (states["b"], states["x"]) == (UPSTREAM_FAILED, "cancelled/job_failed")
    assert (await graph.fate(), await graph.hooks()) == (JobState.FAILED, ["hook.failure"])


@cases.add()
async def a_rejection_can_be_handled(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(approval=True), b=node("a"), handler=node(failure("a")))
    await ledger.store.decide(graph.ids["a"], approved=False, by="ann")
    await graph.sound()
    assert await graph.states() == {"a": "rejected", "b": UPSTREAM_FAILED, "handler": "pending"}
    await graph.complete("handler")
    assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def a_rejection_that_is_not_critical(ledger: Ledger) -> None:
    graph = await draw(ledger, a=node(approval=True, critical=False), b=node(done("a")))
    await ledger.store.decide(graph.ids["a"], approved=False, by="ann")
    await graph.sound()
    await graph.complete("b")
    assert await graph.fate() is JobState.COMPLETED


@cases.add()
async def what_cannot_be_decided(ledger: Ledger) -> None:
    await refused(ledger.store.decide(987_654_321, approved=True, by="ann"), NotFound)
    pending, waiting = await ledger.enqueue(task(priority=1), task(approval=True))
    await refused(ledger.store.decide(pending, approved=True, by="ann"), WrongState)
    await ledger.store.decide(waiting, approved=True, by="ann")
    await refused(ledger.store.decide(waiting, approved=True, by="bob"), WrongState)
    await refused(ledger.store.decide(waiting, approved=False, by="bob"), WrongState)
    assert '"ann"' in (await ledger.store.checkpoints(waiting))["approval"]
    assert len(await ledger.claim()) == 2
    gone = await ledger.enqueue_one(approval=True)
    await ledger.store.cancel([gone])
    await refused(ledger.store.decide(gone, approved=True, by="ann"), WrongState)


@cases.add()
async def of_two_that_decide_at_once_one_does(ledger: Ledger) -> None:
    other = await ledger.another_store()
    for _ in range(10):
        graph = await draw(ledger, a=node(approval=True), b=node(done("a")))
        answers = await asyncio.gather(
            ledger.store.decide(graph.ids["a"], approved=True, by="ann"),
            other.decide(graph.ids["a"], approved=False, by="bob"),
            return_exceptions=True,
        )
        assert [type(answer) for answer in answers].count(WrongState) == 1, answers
        await graph.sound()
        state = await graph.state("a")
        assert state == ("pending" if isinstance(answers[1], WrongState) else "rejected")
        await ledger.store.cancel_job(graph.job)
        await ledger.claim("hooks", queue="hooks")
