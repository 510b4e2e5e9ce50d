"""Deletion: a task that nobody holds goes with everything that belongs to it; what others need stays."""

import asyncio

from headrace.core.limits import Gate
from headrace.core.task import Key, NewJob, Ref
from headrace.store.removing import DeleteAnswer
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, completed, failed_for_good, suspended, task

cases = Cases("deleting")

DELETED, HELD, NEEDED, UNKNOWN, _ = DeleteAnswer


@cases.add("F53")
async def whatever_nobody_holds(ledger: Ledger) -> None:
    """F53: what waits, what is scheduled and what ended is gone from the ready line and from every table; unknown and
    held ones have their own answers, and stay what they are."""
    done, failure, held = await ledger.enqueue(task(), task(dead_letter=True), task())
    claims = {claim.id: claim for claim in await ledger.claim()}
    await ledger.store.append_logs([(Ref(done, claims[done].claim_no), 0, "stdout", "line")])
    await ledger.finish("a", completed(claims[done], '"result"'), failed_for_good(claims[failure]))
    waits, later = await ledger.enqueue(task(), task(delay=600))
    gone = [done, failure, waits, later]
    assert await ledger.store.delete([*gone, held, 987_654_321]) == {
        **dict.fromkeys(gone, DELETED),
        held: HELD,
        987_654_321: UNKNOWN,
    }
    assert set(await ledger.store.get([*gone, held])) == {held}
    assert await ledger.claim() == []
    assert await ledger.attempts(failure) == []
    assert await ledger.store.logs(done) == []
    assert await ledger.store.dead_letter_depth() == 0
    assert await ledger.store.delete(gone) == dict.fromkeys(gone, UNKNOWN)
    assert await ledger.store.delete([]) == {}
    await ledger.finish("a", completed(claims[held]))
    assert await ledger.store.delete([held]) == {held: DELETED}


@cases.add()
async def its_keys_go_with_it(ledger: Ledger) -> None:
    """Also one that would have outlived the task: whoever enqueues the same again makes a new one."""
    keys = (Key(scope="unique", key="k"), Key(scope="idem", key="i", ttl=600))
    first = await ledger.enqueue_one(keys=keys)
    assert await ledger.store.delete([first]) == {first: DELETED}
    second = await ledger.enqueue_one(keys=keys)
    await ledger.finish("a", completed(await ledger.claim_one()))
    assert await ledger.store.delete([second]) == {second: DELETED}
    await ledger.enqueue_one(keys=keys)


@cases.add()
async def whoever_waited_behind_it_goes_on(ledger: Ledger) -> None:
    order = (Gate(kind="order", key="order:k"),)
    first, second = await ledger.enqueue(task(gates=order), task(gates=order))
    claims = await ledger.claim()
    admission = await ledger.store.admit("a", claims)
    assert {ref.id for ref in admission.admitted} == {first}
    await ledger.finish("a", failed_for_good(claims[0]))
    assert await ledger.store.retry([first]) == [first]
    assert await ledger.store.delete([first]) == {first: DELETED}
    claim = await ledger.claim_one()
    assert claim.id == second
    assert (await ledger.store.admit("a", [claim])).admitted == {Ref(claim.id, claim.claim_no)}


@cases.add()
async def a_job_that_is_not_over_keeps_its_tasks(ledger: Ledger) -> None:
    job, (first, second) = await ledger.store.create_job(
        NewJob(name="j", tasks=(task(critical=False), task(queue="later")))
    )
    assert await ledger.store.delete([first.id]) == {first.id: NEEDED}
    await ledger.finish("a", failed_for_good(await ledger.claim_one()))
    assert await ledger.store.delete([first.id, second.id]) == {first.id: NEEDED, second.id: NEEDED}
    await ledger.store.cancel_job(job)
    assert await ledger.store.delete([first.id, second.id]) == {first.id: DELETED, second.id: DELETED}


@cases.add()
async def what_a_live_task_waits_for_stays(ledger: Ledger) -> None:
    """Unless the one that waits goes with it."""
    child, parent = await ledger.enqueue(task(queue="children"), task())
    await ledger.finish("a", suspended(await ledger.claim_one(), task=child))
    assert await ledger.store.delete([child]) == {child: NEEDED}
    assert await ledger.state(parent) == "blocked"
    assert await ledger.store.delete([child, parent]) == {child: DELETED, parent: DELETED}
    assert await ledger.store.get([child, parent]) == {}


@cases.add()
async def of_two_at_once_one_deletes(ledger: Ledger) -> None:
    stores = [ledger.store, await ledger.another_store()]
    ids = await ledger.enqueue(*(task() for _ in range(40)))
    answers = await asyncio.gather(*(store.delete(ids) for store in stores))
    for id in ids:
        assert sorted(answer[id] for answer in answers) == [DELETED, UNKNOWN]


@cases.add()
async def a_claim_and_a_deletion_at_once(ledger: Ledger) -> None:
    """Each task is either in a worker's hands or gone."""
    store = await ledger.another_store()
    ids = await ledger.enqueue(*(task() for _ in range(40)))
    claims, answers = await asyncio.gather(ledger.claim("a", 20), store.delete(ids))
    claimed = {claim.id for claim in claims}
    left = {claim.id for claim in await ledger.claim("a")}
    assert {id for id, answer in answers.items() if answer is DELETED} == set(ids) - claimed - left
    assert {id for id, answer in answers.items() if answer is HELD} <= claimed
