"""Claim: in order, once, and nothing that is not ready."""

from datetime import timedelta

from headrace.core.lanes import Lane
from headrace.core.states import JobState, TaskState
from headrace.core.task import NewJob, Want
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, completed, failed, failed_for_good, released, task

cases = Cases("claim")


@cases.add("A16", "A21")
async def a_claim_says_all_a_worker_needs(ledger: Ledger) -> None:
    """pending → claimed (A16), with `claimed_at` set at that transition and nothing later yet (A21)."""
    task_id = await ledger.enqueue_one(arguments='{"a":1}', options='{"o":2}', max_attempts=3, version=5, priority=2)
    claim = await ledger.claim_one("w1")
    assert (claim.id, claim.claim_no, claim.attempt, claim.losses, claim.run_no) == (task_id, 1, 0, 0, 1)
    assert (claim.arguments, claim.options, claim.max_attempts, claim.version) == ('{"a":1}', '{"o":2}', 3, 5)
    assert (claim.priority, claim.queue, claim.pool, claim.lane) == (2, "default", "coroutine", 0)
    assert (claim.gated, claim.expired, claim.state, claim.job) == (False, False, "claimed", None)
    assert 0 <= claim.waited < 60
    record = await ledger.get(task_id)
    assert (record.state, record.worker, record.claim_no) == (TaskState.CLAIMED, "w1", 1)
    assert record.claimed_at is not None
    assert record.claimed_at >= record.created_at
    assert record.started_at is None
    assert record.finished_at is None


@cases.add()
async def a_claimed_task_is_not_claimed_again(ledger: Ledger) -> None:
    await ledger.enqueue(*[task() for _ in range(5)])
    first = await ledger.claim("a", 3)
    second = await ledger.claim("b", 3)
    assert len(first) == 3
    assert len(second) == 2
    assert not {c.id for c in first} & {c.id for c in second}
    assert await ledger.claim("c") == []


@cases.add("F8")
async def first_in_first_out(ledger: Ledger) -> None:
    """F8: equal priorities come in the order of their enqueues, also within one call."""
    ids = await ledger.enqueue(*[task() for _ in range(20)])
    ids += [await ledger.enqueue_one() for _ in range(5)]
    assert [claim.id for claim in await ledger.claim(n=10)] == ids[:10]
    assert [claim.id for claim in await ledger.claim(n=100)] == ids[10:]


@cases.add()
async def wants_are_separate(ledger: Ledger) -> None:
    mail = await ledger.enqueue(*[task(queue="mail") for _ in range(3)])
    child = await ledger.enqueue(*[task(pool="child") for _ in range(3)])
    await ledger.enqueue(*[task(queue="other") for _ in range(3)])
    claims = await ledger.store.claim(
        "a",
        [
            Want(queue="mail", pool="coroutine", lane=Lane.PRIMARY, n=2),
            Want(queue="default", pool="child", lane=Lane.PRIMARY, n=5),
            Want(queue="nothing", pool="coroutine", lane=Lane.PRIMARY, n=5),
            Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=5),
        ],
    )
    assert {c.id for c in claims if c.queue == "mail"} == set(mail[:2])
    assert {c.id for c in claims if c.pool == "child"} == set(child)
    assert len(claims) == 5


@cases.add()
async def asking_for_nothing_gets_nothing(ledger: Ledger) -> None:
    await ledger.enqueue_one()
    assert await ledger.store.claim("a", []) == []
    assert await ledger.claim(n=0) == []
    assert len(await ledger.claim()) == 1


@cases.add()
async def every_claim_has_a_number_that_never_repeats(ledger: Ledger) -> None:
    """Released, retried, and run anew by hand: the number only rises."""
    task_id = await ledger.enqueue_one(max_attempts=3)
    numbers: list[int] = []
    for settle in (released, failed, released, failed):
        claim = await ledger.claim_due()
        numbers.append(claim.claim_no)
        await ledger.finish("a", settle(claim))
    claim = await ledger.claim_due()
    numbers.append(claim.claim_no)
    await ledger.finish("a", failed_for_good(claim))
    assert await ledger.store.retry([task_id]) == [task_id]
    claim = await ledger.claim_due()
    numbers.append(claim.claim_no)
    assert numbers == sorted(set(numbers))
    assert claim.run_no == 2


@cases.add()
async def an_expired_task_says_so(ledger: Ledger) -> None:
    await ledger.enqueue_one(max_age=0.05)
    await ledger.enqueue_one(max_age=600.0)
    await ledger.let_pass(0.1)
    assert [claim.expired for claim in await ledger.claim()] == [True, False]


@cases.add("A10", "A39", "A42")
async def the_first_claim_of_a_job_starts_it(ledger: Ledger) -> None:
    """A10: the job runs with `started_at` once its first task is claimed; A39: a later claim leaves that instant."""
    job, _ = await ledger.store.create_job(NewJob(name="j", tasks=(task(), task(), task())))
    before = await ledger.job(job)
    assert (before.state, before.started_at) == (JobState.PENDING, None)
    await ledger.claim_one("a")
    first = await ledger.job(job)
    assert first.state is JobState.RUNNING
    assert first.started_at is not None
    assert first.running == 1
    await ledger.let_pass(0.02)
    await ledger.claim("b")
    second = await ledger.job(job)
    assert second.started_at == first.started_at
    assert second.running == 3


@cases.add("A38")
async def tasks_of_the_older_job_come_first(ledger: Ledger) -> None:
    """A38: a task added later to the older, started job comes before those of a younger job that never started."""
    old, _ = await ledger.store.create_job(NewJob(name="old", tasks=(task(),)))
    await ledger.let_pass(0.01)
    young, _ = await ledger.store.create_job(NewJob(name="young", tasks=(task(), task())))
    await ledger.claim_one()
    await ledger.let_pass(0.01)
    added = await ledger.enqueue_one(job=old)
    order = await ledger.claim(n=10)
    assert [claim.job for claim in order] == [old, young, young]
    assert order[0].id == added


@cases.add("A40")
async def two_workers_share_a_job(ledger: Ledger) -> None:
    """A40: with one task of the job in hand, another worker gets another task of the same job."""
    job, _ = await ledger.store.create_job(NewJob(name="j", tasks=(task(), task())))
    first = await ledger.claim_one("a")
    second = await ledger.claim_one("b")
    assert first.id != second.id
    assert first.job == second.job == job


@cases.add("A41")
async def tasks_of_a_job_that_is_over_are_never_claimed(ledger: Ledger) -> None:
    """A41: cancelled, and failed by one critical task: the rest of either job is not claimable."""
    cancelled, _ = await ledger.store.create_job(NewJob(name="cancelled", tasks=(task(), task())))
    await ledger.store.cancel_job(cancelled)
    assert await ledger.claim() == []
    failing, _ = await ledger.store.create_job(NewJob(name="failing", tasks=(task(), task(), task())))
    await ledger.finish("a", failed_for_good(await ledger.claim_one()))
    assert (await ledger.job(failing)).state is JobState.FAILED
    assert await ledger.claim() == []


@cases.add()
async def finish_and_claim_in_one_step(ledger: Ledger) -> None:
    ids = await ledger.enqueue(*[task() for _ in range(4)])
    first = await ledger.claim(n=2)
    wants = [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=2)]
    report = await ledger.store.finish("a", [completed(claim) for claim in first], wants=wants)
    assert len(report.accepted) == 2
    assert [claim.id for claim in report.claimed] == ids[2:]
    assert [claim.claim_no for claim in report.claimed] == [1, 1]
    assert await ledger.claim() == []


@cases.add()
async def waited_is_the_time_since_it_was_eligible(ledger: Ledger) -> None:
    await ledger.enqueue_one()
    await ledger.let_pass(0.2)
    claim = await ledger.claim_one()
    assert 0.2 <= claim.waited < 10
    record = await ledger.get(claim.id)
    assert record.claimed_at is not None
    assert abs((record.claimed_at - record.eligible_at) - timedelta(seconds=claim.waited)) < timedelta(seconds=0.05)
