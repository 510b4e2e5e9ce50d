"""A plain success has no row among the attempts: its history row is the attempt. Nobody who asks may see that."""

from datetime import timedelta

from headrace.core.outcome import Completed
from headrace.core.settlement import Execution, Settlement
from headrace.core.states import AttemptState, TaskState
from headrace.core.task import AttemptRecord, ClaimedTask, TaskRecord
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import (
    Ledger,
    completed,
    failed,
    failed_for_good,
    ref,
    settled,
    task,
)

cases = Cases("plain_successes")

RAN = Execution(ran_for=0.01, executor="coroutine")


def success(claim: ClaimedTask) -> Settlement:
    return settled(claim, Completed(result="1"), execution=RAN)


def told(done: TaskRecord, **changed: object) -> AttemptRecord:
    """The attempt that ended a task, as the task itself has it."""
    return AttemptRecord(
        **{
            "task": done.id, "claim_no": done.claim_no, "run_no": done.run_no, "attempt": done.attempt,
            "state": AttemptState.SUCCEEDED, "charged": True, "worker": "a", "executor": "coroutine", "handle": None,
            "claimed_at": done.claimed_at, "started_at": done.started_at, "finished_at": done.finished_at,
            "error_class": None, "error_message": None, "traceback": None, "exit_code": None, "recorded_by": "worker",
            "late_state": None, "late_at": None, **changed,
        }  # pyright: ignore[reportArgumentType]
    )  # fmt: skip


@cases.add()
async def the_attempt_says_everything(ledger: Ledger) -> None:
    """Every field, after a failure that has a row of its own."""
    task_id = await ledger.enqueue_one()
    await ledger.finish("a", failed(await ledger.claim_one()))
    claim = await ledger.claim_due()
    await ledger.let_pass(0.02)
    await ledger.finish("a", success(claim))
    done = await ledger.get(task_id)
    first, second = await ledger.store.attempts(task_id)
    assert (first.state, first.claim_no, first.attempt) == (AttemptState.FAILED, 1, 1)
    assert second == told(done, claim_no=2, run_no=1, attempt=2)
    assert second.claimed_at is not None
    assert second.started_at is not None
    assert second.finished_at is not None
    assert second.claimed_at <= second.started_at
    assert abs((second.finished_at - second.started_at) - timedelta(seconds=0.01)) < timedelta(milliseconds=5)


@cases.add()
async def what_history_cannot_say_is_kept(ledger: Ledger) -> None:
    """A start that was written, with its handle, and a success that somebody else recorded."""
    await ledger.enqueue(task(), task())
    started, rescued = await ledger.claim()
    await ledger.store.start("a", [ref(started)], executor="command")
    await ledger.store.record_handle("a", ref(started), "pid:77")
    by_rescuer = Execution(ran_for=0.0, recorded_by="rescuer")
    await ledger.finish("a", completed(started), settled(rescued, Completed(result="1"), execution=by_rescuer))
    (attempt,) = await ledger.attempts(started.id)
    assert attempt == told(await ledger.get(started.id), executor="command", handle="pid:77")
    (attempt,) = await ledger.attempts(rescued.id)
    assert attempt == told(await ledger.get(rescued.id), executor=None, recorded_by="rescuer")


@cases.add()
async def its_report_may_be_repeated(ledger: Ledger) -> None:
    """Also after a manual retry, when the history row is gone, and while the new run is under way."""
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.finish("a", success(claim))
    before = await ledger.attempts(task_id)
    for act in (None, ledger.store.retry([task_id]), ledger.claim_due("b")):
        if act is not None:
            await act
        report = await ledger.store.finish("a", [success(claim)])
        assert (report.accepted, report.repeated, report.refused) == (frozenset(), {ref(claim)}, frozenset())
        assert await ledger.attempts(task_id) == before


@cases.add()
async def a_late_report_does_not_hide_it(ledger: Ledger) -> None:
    """Another outcome from its own worker, the same one from a stranger: refused, noted, and the success stands."""
    await ledger.enqueue(task(), task())
    claims = await ledger.claim("a")
    await ledger.finish("a", *map(success, claims))
    contradicted, claimed_by_another = claims
    for worker, late in (("a", failed_for_good(contradicted)), ("b", success(claimed_by_another))):
        report = await ledger.store.finish(worker, [late])
        assert (report.repeated, report.refused) == (frozenset(), {(late.task, late.claim_no)})
    for claim, late in ((contradicted, "failed"), (claimed_by_another, "succeeded")):
        (attempt,) = await ledger.attempts(claim.id)
        assert attempt.late_at is not None
        assert attempt == told(await ledger.get(claim.id), late_state=late, late_at=attempt.late_at)
        again = await ledger.store.finish("a", [success(claim)])
        assert (again.repeated, again.refused) == ({ref(claim)}, frozenset())
        assert await ledger.attempts(claim.id) == [attempt]


@cases.add()
async def a_stranger_who_came_before_does_not_hide_it(ledger: Ledger) -> None:
    """Its note stands when the holder reports; the attempt is the holder's."""
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one("a")
    assert (await ledger.store.finish("b", [failed(claim)])).refused == {ref(claim)}
    await ledger.finish("a", success(claim))
    (attempt,) = await ledger.attempts(task_id)
    assert attempt.late_at is not None
    assert attempt == told(await ledger.get(task_id), late_state="failed", late_at=attempt.late_at)
    assert (await ledger.store.finish("a", [success(claim)])).repeated == {ref(claim)}
    assert (await ledger.store.finish("b", [success(claim)])).refused == {ref(claim)}


@cases.add()
async def a_new_run_keeps_it(ledger: Ledger) -> None:
    """The history row goes, the attempt stays as it was, with the note of a late report where there is one."""
    await ledger.enqueue(task(), task())
    claims = await ledger.claim("a")
    await ledger.finish("a", *map(success, claims))
    await ledger.store.finish("b", [failed_for_good(claims[1])])
    ids = [claim.id for claim in claims]
    before = [await ledger.attempts(id) for id in ids]
    assert [[attempt.late_state for attempt in attempts] for attempts in before] == [[None], ["failed"]]
    assert sorted(await ledger.store.retry(ids)) == sorted(ids)
    assert [await ledger.attempts(id) for id in ids] == before
    await ledger.let_pass(0.01)
    again = {claim.id: claim for claim in await ledger.claim("a")}
    assert [await ledger.attempts(id) for id in ids] == before
    await ledger.finish("a", *(success(again[id]) for id in ids))
    for id, first in zip(ids, before, strict=True):
        done = await ledger.get(id)
        assert (done.state, done.run_no, done.claim_no, done.attempt) == (TaskState.COMPLETED, 2, 2, 1)
        assert await ledger.attempts(id) == [*first, told(done)]


@cases.add()
async def a_failed_run_after_it_is_told_apart(ledger: Ledger) -> None:
    """Completed, run again, failed: the success is of the first run, and its report is still a repeat."""
    task_id = await ledger.enqueue_one()
    first = await ledger.claim_one()
    await ledger.finish("a", success(first))
    await ledger.store.retry([task_id])
    await ledger.finish("a", failed_for_good(await ledger.claim_due()))
    attempts = await ledger.attempts(task_id)
    assert [(a.run_no, a.state) for a in attempts] == [(1, AttemptState.SUCCEEDED), (2, AttemptState.FAILED)]
    assert (await ledger.store.finish("a", [success(first)])).repeated == {ref(first)}


@cases.add()
async def it_goes_with_its_task(ledger: Ledger) -> None:
    """Nothing of it is left behind by `prune`, also where a stranger left a note."""
    await ledger.enqueue(task(), task())
    claims = await ledger.claim("a")
    await ledger.finish("a", *map(success, claims))
    await ledger.store.finish("b", [success(claims[1])])
    await ledger.let_pass(0.05)
    assert (await ledger.store.prune(keep=0.01)).tasks == 2
    assert [await ledger.attempts(claim.id) for claim in claims] == [[], []]
