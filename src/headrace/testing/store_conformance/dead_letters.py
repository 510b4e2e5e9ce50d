"""Dead letters: whatever failed for good under a policy that keeps them, also where no worker settled it."""

from typing import Any

from headrace.core.states import Reason, TaskState
from headrace.core.task import Key, NewJob, Ref, TaskFilter
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import (
    Ledger,
    completed,
    expired,
    failed,
    failed_for_good,
    stopped,
    task,
)

cases = Cases("dead_letters")


async def listed(ledger: Ledger, *, dead: bool = True) -> set[int]:
    return {record.id for record in await ledger.store.list(TaskFilter(dead_letter=dead))}


@cases.add("F19")
async def what_the_sweeper_expires(ledger: Ledger) -> None:
    """F19: age reached when found by the sweeper, or when picked; one whose policy keeps none is only failed."""
    kept = await ledger.enqueue_one(max_age=0.05, dead_letter=True)
    parked = await ledger.enqueue_one(max_age=0.05, delay=600, dead_letter=True)
    dropped = await ledger.enqueue_one(max_age=0.05)
    picked = await ledger.enqueue_one(max_age=0.05, dead_letter=True, queue="picked")
    await ledger.let_pass(0.1)
    claim = await ledger.claim_one(queue="picked")
    assert claim.expired
    await ledger.finish("a", expired(claim))
    assert await ledger.store.expire() == 3
    assert await listed(ledger) == {kept, parked, picked}
    assert await listed(ledger, dead=False) == {dropped}
    for task_id, dead in ((kept, True), (parked, True), (picked, True), (dropped, False)):
        record = await ledger.get(task_id)
        assert (record.state, record.reason, record.dead_letter) == (TaskState.FAILED, Reason.EXPIRED, dead)


@cases.add("F23")
async def failed_for_good_or_out_of_attempts_or_of_age(ledger: Ledger) -> None:
    """F23: a permanent failure, the last attempt, and a retry that would come after the age are dead letters alike."""
    await ledger.enqueue(*[task(dead_letter=True, max_age=60, max_attempts=n) for n in (9, 1, 9)])
    permanent, last, old = sorted(await ledger.claim(), key=lambda claim: claim.id)
    await ledger.finish("a", failed_for_good(permanent), failed(last), failed(old, delay=120))
    assert await listed(ledger) == {permanent.id, last.id, old.id}
    assert (await ledger.store.dead_letter_depth(), await ledger.store.dead_letter_depth(cap=2)) == (3, 2)
    record = await ledger.get(old.id)
    assert (record.state, record.reason, record.dead_letter) == (TaskState.FAILED, Reason.EXPIRED, True)


@cases.add()
async def only_what_failed(ledger: Ledger) -> None:
    """The policy alone makes no dead letter: not while the task lives, nor when it completed or was cancelled."""
    live = await ledger.enqueue_one(dead_letter=True, queue="later")
    await ledger.enqueue(task(dead_letter=True), task(dead_letter=True), task(dead_letter=True))
    one, two, three = await ledger.claim()
    await ledger.finish("a", completed(one), stopped(two), failed(three, delay=60))
    assert await listed(ledger) == set()
    assert await ledger.store.dead_letter_depth() == 0
    assert await listed(ledger, dead=False) == {live, one.id, two.id, three.id}
    for task_id in (live, one.id, two.id, three.id):
        assert not (await ledger.get(task_id)).dead_letter
    assert [r.id for r in await ledger.store.list(TaskFilter(states=(TaskState.COMPLETED,), dead_letter=False))] == [
        one.id
    ]


@cases.add()
async def a_settlement_may_say_so_too(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    await ledger.finish("a", failed_for_good(await ledger.claim_one(), dead_letter=True))
    assert await listed(ledger) == {task_id}
    assert (await ledger.get(task_id)).dead_letter


@cases.add()
async def a_new_run_keeps_the_policy(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one(dead_letter=True, max_age=0.2)
    await ledger.finish("a", failed_for_good(await ledger.claim_one()))
    assert await ledger.store.retry([task_id]) == [task_id]
    assert await listed(ledger) == set()
    await ledger.let_pass(0.3)
    assert await ledger.store.expire() == 1
    assert await listed(ledger) == {task_id}


@cases.add()
async def a_replacement_brings_its_own_policy(ledger: Ledger) -> None:
    key = (Key(scope="unique", key="k", on_conflict="replace"),)
    (first,) = await ledger.store.enqueue([task(keys=key, max_age=60)])
    (second,) = await ledger.store.enqueue([task(keys=key, max_age=60, dead_letter=True)])
    claim = await ledger.claim_one()
    assert claim.id == second.id
    await ledger.finish("a", failed(claim, delay=120))
    assert (await ledger.get(claim.id)).dead_letter
    assert await listed(ledger) == {second.id}, first


@cases.add()
async def a_hook_is_a_task_like_any_other(ledger: Ledger) -> None:
    hook = task("hook", queue="hooks", max_age=0.05, dead_letter=True)
    job, _ = await ledger.store.create_job(NewJob(name="j", tasks=(task(),), on_failure=hook))
    await ledger.store.cancel_job(job)
    await ledger.let_pass(0.1)
    assert await ledger.store.expire() == 1
    (record,) = await ledger.store.list(TaskFilter(dead_letter=True))
    assert (record.name, record.reason) == ("hook", Reason.EXPIRED)


async def dead(ledger: Ledger, **options: Any) -> int:
    """A dead letter of one failed attempt."""
    task_id = await ledger.enqueue_one(dead_letter=True, queue="dead", **options)
    await ledger.finish("a", failed_for_good(await ledger.claim_one(queue="dead")))
    return task_id


@cases.add()
async def purge_removes_dead_letters_and_nothing_else(ledger: Ledger) -> None:
    gone, stays = await dead(ledger), await dead(ledger)
    (attempt,) = await ledger.attempts(gone)
    await ledger.store.append_logs([(Ref(gone, attempt.claim_no), 0, "stdout", "line")])
    await ledger.enqueue(task(), task(), task())
    done, failure, held = await ledger.claim()
    await ledger.finish("a", completed(done), failed_for_good(failure))
    others = [done.id, failure.id, held.id, 987_654_321]
    assert await ledger.store.purge([gone, *others]) == [gone]
    assert set(await ledger.store.get([gone, stays, *others])) == {stays, done.id, failure.id, held.id}
    assert await ledger.attempts(gone) == []
    assert await ledger.store.logs(gone) == []
    assert await listed(ledger) == {stays}
    assert await ledger.store.purge([gone]) == []
    assert await ledger.store.purge([]) == []


@cases.add()
async def purge_leaves_a_job_that_is_not_over(ledger: Ledger) -> None:
    job, (first, _) = await ledger.store.create_job(
        NewJob(name="j", tasks=(task(dead_letter=True, critical=False), task(queue="later")))
    )
    await ledger.finish("a", failed_for_good(await ledger.claim_one()))
    assert await listed(ledger) == {first.id}
    assert await ledger.store.purge([first.id]) == []
    await ledger.store.cancel_job(job)
    assert await ledger.store.purge([first.id]) == [first.id]


@cases.add()
async def purge_frees_the_names_kept_for_a_retry(ledger: Ledger) -> None:
    key = (Key(scope="unique", key="k"),)
    gone = await dead(ledger, keys=key)
    assert await ledger.store.purge([gone]) == [gone]
    (made,) = await ledger.store.enqueue([task(keys=key)])
    assert made.created
