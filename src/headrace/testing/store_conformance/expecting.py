"""Acts on what was found a moment ago: whatever somebody has changed since is left alone, and answered so."""

from headrace.core.states import TaskState
from headrace.store.base import CancelAnswer
from headrace.store.expecting import Expected
from headrace.store.removing import DeleteAnswer
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, completed, failed_for_good, task

cases = Cases("expecting")


async def _now(ledger: Ledger, *states: TaskState) -> Expected:
    """As it is at this instant; whatever is done from here on is later."""
    expected = Expected(states=states, until=await ledger.store.now())
    await ledger.let_pass(0.01)
    return expected


async def _failed(ledger: Ledger, n: int) -> list[int]:
    ids = await ledger.enqueue(*(task(dead_letter=True) for _ in range(n)))
    await ledger.finish("a", *(failed_for_good(claim, dead_letter=True) for claim in await ledger.claim()))
    return ids


@cases.add()
async def what_was_replayed_is_not_deleted(ledger: Ledger) -> None:
    """Neither while it waits, nor once it has ended once more, as before or otherwise."""
    waits, fails, completes, stays = await _failed(ledger, 4)
    expected = await _now(ledger, TaskState.FAILED)
    assert len(await ledger.store.retry([fails, completes])) == 2
    await ledger.let_pass(0.01)
    for claim in await ledger.claim():
        again = completed(claim) if claim.id == completes else failed_for_good(claim, dead_letter=True)
        await ledger.finish("a", again)
    assert await ledger.store.retry([waits]) == [waits]
    before = await ledger.store.get([waits, fails, completes])
    assert await ledger.store.delete([waits, fails, completes, stays, 987_654_321], expected=expected) == {
        **dict.fromkeys([waits, fails, completes, 987_654_321], DeleteAnswer.CHANGED_MEANWHILE),
        stays: DeleteAnswer.DELETED,
    }
    assert await ledger.store.get([waits, fails, completes, stays]) == before


@cases.add()
async def a_new_run_is_not_deleted_whatever_its_state(ledger: Ledger) -> None:
    (replayed,) = await _failed(ledger, 1)
    waits = await ledger.enqueue_one(queue="later")
    expected = await _now(ledger, *TaskState)
    assert await ledger.store.retry([replayed]) == [replayed]
    late = await ledger.enqueue_one(queue="later")
    assert await ledger.store.delete([replayed, waits, late], expected=expected) == {
        replayed: DeleteAnswer.CHANGED_MEANWHILE,
        waits: DeleteAnswer.DELETED,
        late: DeleteAnswer.CHANGED_MEANWHILE,
    }


@cases.add()
async def what_completed_meanwhile_is_not_run_again(ledger: Ledger) -> None:
    """Somebody else has replayed it: its second run is not a third one because of us."""
    completes, fails, stays = await _failed(ledger, 3)
    expected = await _now(ledger, TaskState.FAILED)
    assert len(await ledger.store.retry([completes, fails])) == 2
    await ledger.let_pass(0.01)
    for claim in await ledger.claim():
        await ledger.finish("a", completed(claim) if claim.id == completes else failed_for_good(claim))
    assert await ledger.store.retry([completes, fails, stays], expected=expected) == [stays]
    runs = {id: record.run_no for id, record in (await ledger.store.get([completes, fails, stays])).items()}
    assert runs == {completes: 2, fails: 2, stays: 2}
    assert await ledger.store.retry([completes, stays, 987_654_321], expected=expected) == []


@cases.add()
async def what_began_meanwhile_is_not_cancelled(ledger: Ledger) -> None:
    """Of those that waited: one runs, one has ended, one waits again after a replay."""
    again = (await _failed(ledger, 1))[0]
    runs, ends, waits = await ledger.enqueue(task(priority=2), task(priority=1), task())
    expected = await _now(ledger, TaskState.PENDING)
    claims = {claim.id: claim for claim in await ledger.claim(n=2)}
    assert set(claims) == {runs, ends}
    await ledger.finish("a", completed(claims[ends]))
    assert await ledger.store.retry([again]) == [again]
    assert await ledger.store.cancel([runs, ends, waits, again], expected=expected) == {
        **dict.fromkeys([runs, ends, again], CancelAnswer.CHANGED_MEANWHILE),
        waits: CancelAnswer.CANCELLED,
    }
    assert [await ledger.state(id) for id in (runs, ends, again)] == ["claimed", "completed", "pending"]
