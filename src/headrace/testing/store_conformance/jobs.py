"""Jobs: many tasks, one fate, exact counters, each hook once per run."""

from headrace.core.errors import DuplicateTask, NotFound, WrongState
from headrace.core.lanes import Lane
from headrace.core.states import JobState, Reason, TaskState
from headrace.core.task import JobRecord, Key, NewJob, NewTask, Want
from headrace.store.base import JobEnd
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import (
    Ledger,
    completed,
    failed,
    failed_for_good,
    ref,
    refused,
    released,
    stopped,
    task,
)

cases = Cases("jobs")

HOOKS = "hooks"


def counters(job: JobRecord) -> tuple[int, int, int, int]:
    return (job.total, job.completed, job.failed, job.cancelled)


async def create(ledger: Ledger, *tasks: NewTask, hooks: bool = True, **fields: object) -> int:
    """A job whose hooks go to a queue of their own, where they can be counted."""
    if hooks:
        fields["on_success"] = task("hook.success", queue=HOOKS)
        fields["on_failure"] = task("hook.failure", queue=HOOKS)
    job, answers = await ledger.store.create_job(NewJob(name="j", tasks=tasks, **fields))  # pyright: ignore[reportArgumentType]
    assert len(answers) == len(tasks)
    return job


async def hooks_of(ledger: Ledger) -> list[str]:
    """The hooks that were enqueued since the last time."""
    claims = await ledger.claim(queue=HOOKS)
    await ledger.finish("a", *[completed(claim) for claim in claims])
    return [claim.name for claim in claims]


@cases.add("A8", "A44")
async def a_new_job(ledger: Ledger) -> None:
    """A8: its fields; A44: completed and total give the progress."""
    job, answers = await ledger.store.create_job(
        NewJob(name="nightly", description="all of it", tasks=(task(), task()), metadata='{"by":"cron"}', timeout=60.0)
    )
    record = await ledger.job(job)
    assert (record.name, record.description, record.state) == ("nightly", "all of it", JobState.PENDING)
    assert (record.metadata, record.run_no, record.reason) == ('{"by":"cron"}', 1, None)
    assert (record.started_at, record.completed_at) == (None, None)
    assert record.deadline_at is not None
    assert counters(record) == (2, 0, 0, 0)
    for answer in answers:
        assert (await ledger.get(answer.id)).job == job
    await ledger.finish("a", completed(await ledger.claim_one()))
    assert counters(await ledger.job(job)) == (2, 1, 0, 0)


@cases.add()
async def many_jobs_at_once(ledger: Ledger) -> None:
    jobs = [await create(ledger, task(), hooks=False) for _ in range(3)]
    found = await ledger.store.get_jobs([jobs[0], 987_654_321, jobs[2]])
    assert found == [await ledger.store.get_job(jobs[2]), await ledger.store.get_job(jobs[0])], "newest first"
    assert await ledger.store.get_jobs([]) == []


@cases.add("A11", "A9")
async def completed_when_all_its_tasks_are(ledger: Ledger) -> None:
    """A11: with the last task, not before, with `completed_at`; A9: pending → running → completed."""
    job = await create(ledger, task(), task(), task())
    states: list[JobState] = [(await ledger.job(job)).state]
    for claim in await ledger.claim():
        states.append((await ledger.job(job)).state)
        await ledger.finish("a", completed(claim))
    states.append((await ledger.job(job)).state)
    assert states == [JobState.PENDING, JobState.RUNNING, JobState.RUNNING, JobState.RUNNING, JobState.COMPLETED]
    done = await ledger.job(job)
    assert counters(done) == (3, 3, 0, 0)
    assert done.completed_at is not None
    assert await hooks_of(ledger) == ["hook.success"]


@cases.add("A11")
async def all_in_one_finish(ledger: Ledger) -> None:
    """A11, with the whole job ending in one batch: counted once each, completed once."""
    job = await create(ledger, *[task() for _ in range(50)])
    await ledger.finish("a", *[completed(claim) for claim in await ledger.claim()])
    assert counters(await ledger.job(job)) == (50, 50, 0, 0)
    assert (await ledger.job(job)).state is JobState.COMPLETED
    assert await hooks_of(ledger) == ["hook.success"]


@cases.add()
async def a_retry_is_not_an_end(ledger: Ledger) -> None:
    job = await create(ledger, task(max_attempts=2))
    await ledger.finish("a", failed(await ledger.claim_one()))
    assert (await ledger.job(job)).state is JobState.RUNNING
    assert counters(await ledger.job(job)) == (1, 0, 0, 0)
    await ledger.finish("a", released(await ledger.claim_due()))
    await ledger.finish("a", completed(await ledger.claim_due()))
    assert (await ledger.job(job)).state is JobState.COMPLETED
    assert await hooks_of(ledger) == ["hook.success"]


@cases.add("A12", "A71", "A41")
async def a_critical_failure_fails_the_job(ledger: Ledger) -> None:
    """A12, A71: the job is failed with `completed_at` at once; A41: what waited is cancelled, what runs is told."""
    job = await create(ledger, task(priority=3), task(priority=2), task(priority=1))
    one = await ledger.claim_one("a")
    two = await ledger.claim_one("b")
    await ledger.finish("a", failed_for_good(one))
    over = await ledger.job(job)
    assert over.state is JobState.FAILED
    assert over.completed_at is not None
    assert await ledger.claim() == []
    # The one that runs elsewhere may end as it likes: the job's fate stands.
    report = await ledger.store.finish("b", [completed(two)])
    assert ref(two) in report.accepted
    ended = await ledger.job(job)
    assert ended.state is JobState.FAILED
    assert ended.completed_at == over.completed_at
    assert counters(ended) == (3, 1, 1, 1)
    assert await hooks_of(ledger) == ["hook.failure"]


@cases.add("A71")
async def an_uncritical_failure_does_not(ledger: Ledger) -> None:
    """A71: the job goes on and completes without it."""
    job = await create(ledger, task(critical=False, priority=9), task())
    await ledger.finish("a", failed_for_good(await ledger.claim_one()))
    assert (await ledger.job(job)).state is JobState.RUNNING
    await ledger.finish("a", completed(await ledger.claim_one()))
    done = await ledger.job(job)
    assert (done.state, counters(done)) == (JobState.COMPLETED, (2, 1, 1, 0))
    assert await hooks_of(ledger) == ["hook.success"]


@cases.add("A13")
async def a_terminal_job_is_final(ledger: Ledger) -> None:
    """A13: late reports, cancels and failures of its tasks change neither state nor instant."""
    job = await create(ledger, task(), task())
    one = await ledger.claim_one("a")
    two = await ledger.claim_one("b")
    await ledger.store.cancel_job(job)
    over = await ledger.job(job)
    assert over.state is JobState.CANCELLED
    await ledger.store.finish("a", [completed(one)])
    await ledger.store.finish("b", [failed_for_good(two)])
    after = await ledger.job(job)
    assert (after.state, after.completed_at) == (JobState.CANCELLED, over.completed_at)
    assert counters(after) == (2, 1, 1, 0)
    assert await hooks_of(ledger) == ["hook.failure"]


@cases.add("A45", "A72")
async def cancelling_a_job(ledger: Ledger) -> None:
    """A72: every pending task is cancelled; A45: the job is cancelled and the running one is told to stop."""
    job = await create(ledger, task(priority=9), task(), task(delay=60))
    running = await ledger.claim_one()
    await ledger.store.start("a", [ref(running)])
    answer = await ledger.store.cancel_job(job)
    assert (answer.id, answer.state) == (job, JobState.CANCELLED)
    assert answer.completed_at is not None
    assert await ledger.store.cancelling("a") == [ref(running)]
    assert counters(await ledger.job(job)) == (3, 0, 0, 2)
    await ledger.finish("a", stopped(running, "job_cancelled"))
    assert counters(await ledger.job(job)) == (3, 0, 0, 3)
    assert (await ledger.job(job)).state is JobState.CANCELLED
    assert await hooks_of(ledger) == ["hook.failure"]


@cases.add("A46")
async def what_cannot_be_cancelled(ledger: Ledger) -> None:
    """A46: an unknown job is not found, one that is over is refused, and nothing changes."""
    await refused(ledger.store.cancel_job(987_654_321), NotFound)
    job = await create(ledger, task())
    await ledger.finish("a", completed(await ledger.claim_one()))
    before = await ledger.job(job)
    await refused(ledger.store.cancel_job(job), WrongState)
    assert await ledger.job(job) == before
    other = await create(ledger, task())
    await ledger.store.cancel_job(other)
    await refused(ledger.store.cancel_job(other), WrongState)


@cases.add()
async def adding_to_an_open_job(ledger: Ledger) -> None:
    """The added task counts, and the job waits for it."""
    job = await create(ledger, task())
    first = await ledger.claim_one()
    added = await ledger.enqueue_one(job=job)
    assert counters(await ledger.job(job)) == (2, 0, 0, 0)
    await ledger.finish("a", completed(first))
    assert (await ledger.job(job)).state is JobState.RUNNING
    claim = await ledger.claim_one()
    assert claim.id == added
    await ledger.finish("a", completed(claim))
    assert (await ledger.job(job)).state is JobState.COMPLETED
    assert await hooks_of(ledger) == ["hook.success"]


@cases.add("A48")
async def adding_to_a_job_that_is_over_is_refused(ledger: Ledger) -> None:
    """A48: after completion, failure and cancellation; nothing of the call is written."""
    done = await create(ledger, task(), hooks=False)
    await ledger.finish("a", completed(await ledger.claim_one()))
    broken = await create(ledger, task(), hooks=False)
    await ledger.finish("a", failed_for_good(await ledger.claim_one()))
    gone = await create(ledger, task(), hooks=False)
    await ledger.store.cancel_job(gone)
    for job in (done, broken, gone):
        await refused(ledger.store.enqueue([task(), task(job=job)]), WrongState)
        assert (await ledger.job(job)).total == 1
    assert await ledger.claim() == []


@cases.add("A49")
async def retrying_the_failed_tasks_of_a_job(ledger: Ledger) -> None:
    """A49: failed and cancelled-with-it tasks are pending with a fresh budget, the job is open again; what had
    completed stays. Its hooks belong to the new run."""
    job = await create(ledger, task(priority=3), task(priority=2, max_attempts=1), task(priority=1))
    good, bad = await ledger.claim(n=2, lanes=(Lane.PRIMARY,))
    await ledger.finish("a", completed(good))
    await ledger.finish("a", failed(bad))
    assert counters(await ledger.job(job)) == (3, 1, 1, 1)
    assert await hooks_of(ledger) == ["hook.failure"]
    reopened = await ledger.store.retry_failed(job)
    assert bad.id in reopened
    assert good.id not in reopened
    assert len(reopened) == 2
    again = await ledger.job(job)
    assert again.run_no == 2
    assert again.state in (JobState.PENDING, JobState.RUNNING)
    assert again.completed_at is None
    assert counters(again) == (3, 1, 0, 0)
    assert (await ledger.get(bad.id)).attempt == 0
    await ledger.let_pass(0.01)
    await ledger.finish("a", *[completed(claim) for claim in await ledger.claim()])
    done = await ledger.job(job)
    assert (done.state, counters(done)) == (JobState.COMPLETED, (3, 3, 0, 0))
    assert await hooks_of(ledger) == ["hook.success"]


@cases.add()
async def only_a_failed_or_cancelled_job_has_failed_tasks_to_retry(ledger: Ledger) -> None:
    await refused(ledger.store.retry_failed(987_654_321), NotFound)
    job = await create(ledger, task())
    await refused(ledger.store.retry_failed(job), WrongState)
    await ledger.finish("a", completed(await ledger.claim_one()))
    await refused(ledger.store.retry_failed(job), WrongState)
    assert (await ledger.job(job)).run_no == 1


@cases.add()
async def a_cancelled_job_can_be_retried(ledger: Ledger) -> None:
    job = await create(ledger, task(), task())
    await ledger.store.cancel_job(job)
    assert await hooks_of(ledger) == ["hook.failure"]
    assert len(await ledger.store.retry_failed(job)) == 2
    await ledger.let_pass(0.01)
    await ledger.finish("a", *[completed(claim) for claim in await ledger.claim()])
    assert (await ledger.job(job)).state is JobState.COMPLETED
    assert await hooks_of(ledger) == ["hook.success"]


@cases.add()
async def retrying_one_task_of_an_ended_job_opens_it_again(ledger: Ledger) -> None:
    job = await create(ledger, task(), task())
    one, two = await ledger.claim()
    await ledger.finish("a", failed_for_good(one))
    await ledger.finish("a", completed(two))
    assert (await ledger.job(job)).state is JobState.FAILED
    assert await hooks_of(ledger) == ["hook.failure"]
    assert await ledger.store.retry([one.id]) == [one.id]
    again = await ledger.job(job)
    assert (again.run_no, again.completed_at) == (2, None)
    assert counters(again) == (2, 1, 0, 0)
    await ledger.finish("a", completed(await ledger.claim_due()))
    assert (await ledger.job(job)).state is JobState.COMPLETED
    assert await hooks_of(ledger) == ["hook.success"]


@cases.add()
async def a_job_past_its_deadline_fails_once(ledger: Ledger) -> None:
    job = await create(ledger, task(priority=9), task(), timeout=0.1)
    running = await ledger.claim_one()
    await ledger.let_pass(0.2)
    assert await ledger.store.expire() >= 1
    await ledger.store.expire()
    over = await ledger.job(job)
    assert (over.state, over.reason) == (JobState.FAILED, Reason.JOB_TIMEOUT)
    assert await ledger.store.cancelling("a") == [ref(running)]
    assert await ledger.claim() == []
    assert await hooks_of(ledger) == ["hook.failure"]
    await ledger.finish("a", stopped(running, "job_timeout"))
    assert counters(await ledger.job(job)) == (2, 0, 0, 2)
    assert await hooks_of(ledger) == []


@cases.add()
async def cancelling_every_task_ends_the_job(ledger: Ledger) -> None:
    """One by one, with no word about the job: it must not stay open for ever, nor count as completed."""
    job = await create(ledger, task(), task())
    claims = await ledger.claim()
    await ledger.store.cancel([claims[0].id])
    await ledger.finish("a", stopped(claims[0]))
    await ledger.store.cancel([claims[1].id])
    await ledger.finish("a", stopped(claims[1]))
    over = await ledger.job(job)
    assert over.state in (JobState.CANCELLED, JobState.FAILED)
    assert counters(over) == (2, 0, 0, 2)
    assert await hooks_of(ledger) == ["hook.failure"]


@cases.add()
async def an_empty_job_waits_for_its_tasks_or_is_done(ledger: Ledger) -> None:
    job = await create(ledger, hooks=False)
    record = await ledger.job(job)
    assert counters(record) == (0, 0, 0, 0)
    if not record.state.terminal:
        added = await ledger.enqueue_one(job=job)
        claim = await ledger.claim_one()
        assert claim.id == added
        await ledger.finish("a", completed(claim))
        assert (await ledger.job(job)).state is JobState.COMPLETED


@cases.add()
async def a_folded_duplicate_is_counted_once(ledger: Ledger) -> None:
    keyed = task(keys=(Key(scope="unique", key="k"),))
    job = await create(ledger, keyed, keyed, task(), hooks=False)
    assert (await ledger.job(job)).total == 2
    await ledger.finish("a", *[completed(claim) for claim in await ledger.claim()])
    assert (await ledger.job(job)).state is JobState.COMPLETED


@cases.add()
async def listing(ledger: Ledger) -> None:
    """By state, newest first, page by page."""
    jobs = [await create(ledger, task(), hooks=False) for _ in range(5)]
    await ledger.store.cancel_job(jobs[1])
    assert [j.id for j in await ledger.store.list_jobs(states=[JobState.CANCELLED])] == [jobs[1]]
    listed = [j.id for j in await ledger.store.list_jobs(limit=3)]
    rest = [j.id for j in await ledger.store.list_jobs(limit=3, before=listed[-1])]
    assert listed + rest == sorted(jobs, reverse=True)
    assert await ledger.store.get_job(987_654_321) is None


@cases.add("A9")
async def a_job_that_never_ran_can_be_cancelled(ledger: Ledger) -> None:
    """A9: pending → cancelled, without a start."""
    job = await create(ledger, task())
    over = await ledger.store.cancel_job(job)
    assert (over.state, over.started_at) == (JobState.CANCELLED, None)
    assert (await ledger.store.list_jobs(states=[JobState.PENDING])) == []


@cases.add()
async def a_parked_or_blocked_task_keeps_its_job_open(ledger: Ledger) -> None:
    job = await create(ledger, task(), task(approval=True))
    await ledger.finish("a", completed(await ledger.claim_one()))
    assert not (await ledger.job(job)).state.terminal
    await ledger.store.cancel_job(job)
    assert (await ledger.job(job)).state is JobState.CANCELLED
    for record in (await ledger.store.get([])).values():
        assert record.state is TaskState.CANCELLED


@cases.add()
async def a_key_that_is_held_does_not_keep_a_job_from_ending(ledger: Ledger) -> None:
    """The hook is enqueued in the transaction of the last finish: a refusal would undo every outcome beside it."""
    key = Key(scope="unique", key="report", on_conflict="reject")
    await ledger.enqueue(task(queue="elsewhere", keys=(key,)))
    hook = task("hook.success", queue=HOOKS, keys=(key,), job=987_654_321)
    job = await create(ledger, task(), hooks=False, on_success=hook)
    await ledger.enqueue(task())
    claims = await ledger.claim()
    await ledger.finish("a", *[completed(claim) for claim in claims])
    assert (await ledger.job(job)).state is JobState.COMPLETED
    assert await hooks_of(ledger) == [], "its key is held: that task stands for it"


@cases.add()
async def a_listener_that_fails_fails_nothing_else(ledger: Ledger) -> None:
    """The end is committed when it is told: the verb says so, and what it claimed is handed out."""

    def fails(_: JobEnd) -> None:
        raise RuntimeError("nobody counts any more")

    ledger.store.watch_job_ends(fails)
    job = await create(ledger, task(priority=9), hooks=False)
    claim = await ledger.claim_one()
    await ledger.store.enqueue([task()])
    report = await ledger.store.finish(
        "a", [completed(claim)], wants=[Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=1)]
    )
    assert len(report.accepted) == len(report.claimed) == 1
    assert (await ledger.job(job)).state == JobState.COMPLETED


@cases.add()
async def every_end_is_told_once(ledger: Ledger) -> None:
    """Whatever ends a job (a finish, a cancellation, a deadline) tells the listener of the store that did it, with the
    hook that was enqueued, and no other; tasks that come home later tell nothing."""
    told: list[JobEnd] = []
    told_elsewhere: list[JobEnd] = []
    other = await ledger.another_store()
    ledger.store.watch_job_ends(told.append)
    other.watch_job_ends(told_elsewhere.append)

    done = await create(ledger, task(), task())
    for claim in await ledger.claim():
        await ledger.finish("a", completed(claim))
    broken = await create(ledger, task(priority=2), task(priority=1))
    one, two = await ledger.claim_one("a"), await ledger.claim_one("b")
    await ledger.finish("a", failed_for_good(one))
    await other.finish("b", [completed(two)])
    cancelled = await create(ledger, task(), hooks=False)
    await other.cancel_job(cancelled)
    left, answers = await ledger.store.create_job(NewJob(name="j", tasks=(task(priority=1), task())))
    await ledger.finish("a", completed(await ledger.claim_one()))
    await ledger.store.cancel([answer.id for answer in answers])
    late = await create(ledger, task(), hooks=False, timeout=0.1)
    await ledger.let_pass(0.2)
    await ledger.store.expire()

    assert [(end.job, end.state) for end in told] == [
        (done, JobState.COMPLETED),
        (broken, JobState.FAILED),
        (left, JobState.COMPLETED),
        (late, JobState.FAILED),
    ]
    assert [end.hook.name if end.hook else None for end in told] == ["hook.success", "hook.failure", None, None]
    assert [end.took is not None and end.took >= 0 for end in told] == [True, True, True, False]
    assert [(end.job, end.state, end.took) for end in told_elsewhere] == [(cancelled, JobState.CANCELLED, None)]


@cases.add("A25")
async def a_job_of_which_one_task_is_refused_is_not_made(ledger: Ledger) -> None:
    """A25: one transaction: there is neither the job nor the task before the refused one."""
    key = Key(scope="unique", key="k", on_conflict="reject")
    holder = await ledger.enqueue_one(keys=(key,))
    await refused(ledger.store.create_job(NewJob(name="j", tasks=(task(), task(keys=(key,))))), DuplicateTask)
    assert await ledger.store.list_jobs() == []
    assert [claim.id for claim in await ledger.claim()] == [holder]
