"""Graphs of tasks where two things happen at once, or a process dies in the middle of them.

The last tasks of a group end together, a cancellation meets a completion, workers get kill -9 while a group comes in,
a member of a group kills whoever runs it: the job ends once, its hook is enqueued once, the continuation runs after all
that it waits for, and the innocent complete.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from headrace.core.errors import DuplicateTask
from headrace.core.states import JobState
from headrace.core.task import After, ClaimedTask, EdgeKind, Key, NewJob, NewTask, TaskFilter
from headrace.store.base import Store
from headrace.testing.store_conformance.ledger import completed, failed_for_good
from tests.guarantees import tasks_poison
from tests.guarantees.declared import notes
from tests.guarantees.harness import DONE_CEILING, Harness
from tests.guarantees.ledgers import a_worker, claim, sound, stores, together
from tests.support.sizes import sized
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

ROUNDS = sized(small=25, full=500)
HOOKS = "hooks"
DONE = EdgeKind.ON_DONE


def work(name: str = "guarantee.work", *, after: Sequence[After] = (), **options: Any) -> NewTask:
    return NewTask(name=name, after=tuple(after), **options)


def job_of(*tasks: NewTask) -> NewJob:
    return NewJob(
        name="j",
        tasks=tasks,
        on_success=work("hook.success", queue=HOOKS),
        on_failure=work("hook.failure", queue=HOOKS),
    )


async def hooks(store: Store, worker: str) -> list[str]:
    """Those that were enqueued since the last time."""
    found = await claim(store, worker, 10, queue=HOOKS)
    await store.finish(worker, [completed(each) for each in found])
    return [each.name for each in found]


async def claim_due(store: Store, worker: str) -> list[ClaimedTask]:
    """What was freed just now may be due microseconds ahead of the clock."""
    for _ in range(200):
        if found := await claim(store, worker, 10):
            return found
        await asyncio.sleep(0.005)
    raise AssertionError("nothing became claimable")


# -- two at once -------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("A11", "R80", "R82")
def test_the_two_last_tasks_end_together(clean_url: str) -> None:
    """Two finishers on two workers (R82), each with one of the two last tasks of a group, many times: neither sees both
    open, nor both none. The continuation is claimed once after both (R80), the job completes once, with `completed_at`
    (A11), its hook is enqueued once."""

    async def run() -> None:
        async with stores(clean_url, 2) as (one, two):
            first, second = await a_worker(one), await a_worker(two)
            ended: list[int] = []
            for store in (one, two):
                store.watch_job_ends(lambda end: ended.append(end.job))
            both = (After(task=0, local=True), After(task=1, local=True))
            for _ in range(ROUNDS):
                job, answers = await one.create_job(job_of(work(), work(), work("last", after=both)))
                (mine,), (theirs,) = await claim(one, first, 1), await claim(two, second, 1)
                assert {mine.id, theirs.id} == {answers[0].id, answers[1].id}
                await together(
                    lambda mine=mine: one.finish(first, [completed(mine)]),
                    lambda theirs=theirs: two.finish(second, [completed(theirs)]),
                )
                (last,) = await claim_due(one, first)
                assert last.id == answers[2].id
                assert await claim(two, second, 5) == [], "once"
                await one.finish(first, [completed(last)])
                found = await one.get_job(job)
                assert found is not None
                assert (found.state, found.completed) == (JobState.COMPLETED, 3)
                assert found.completed_at is not None
                assert await hooks(one, first) == ["hook.success"]
            assert len(ended) == len(set(ended)) == ROUNDS

    asyncio.run(run())


@pytest.mark.requirement("A11", "A12", "A13")
def test_the_two_last_tasks_of_a_job_end_together_one_of_them_badly(clean_url: str) -> None:
    """A12: whichever comes first, the job has failed, once; A13: the other one's end changes nothing of that; A11: a
    failure that is not critical lets it complete."""

    async def run() -> None:
        async with stores(clean_url, 2) as (one, two):
            first, second = await a_worker(one), await a_worker(two)
            for turn in range(ROUNDS):
                critical = turn % 2 == 0
                job, _ = await one.create_job(job_of(work(critical=critical), work(critical=critical)))
                (mine,), (theirs,) = await claim(one, first, 1), await claim(two, second, 1)
                await together(
                    lambda mine=mine: one.finish(first, [failed_for_good(mine)]),
                    lambda theirs=theirs: two.finish(second, [completed(theirs)]),
                )
                found = await one.get_job(job)
                assert found is not None
                assert (found.failed, found.completed) == (1, 1)
                assert found.state is (JobState.FAILED if critical else JobState.COMPLETED)
                assert await hooks(one, first) == ["hook.failure" if critical else "hook.success"]

    asyncio.run(run())


@pytest.mark.requirement("A72", "A13", "A41")
def test_a_cancellation_meets_a_completion(clean_url: str) -> None:
    """Of a job, and of one task of it. Whichever is first: the job ends once and stays so (A13), nothing of it waits
    (A72) or is claimed (A41) once it is cancelled, and one hook is enqueued."""

    async def run() -> None:
        async with stores(clean_url, 2) as (one, two):
            first = await a_worker(one)
            for turn in range(ROUNDS):
                chain = (After(task=0, local=True),)
                job, answers = await one.create_job(
                    job_of(work(), work("next", after=chain), work("clean", after=[replace(chain[0], kind=DONE)]))
                )
                (head,) = await claim(one, first, 1)

                async def cancel(job: int = job, head: ClaimedTask = head, turn: int = turn) -> bool:
                    if turn % 2:
                        await two.cancel([head.id])
                        return False
                    await two.cancel_job(job)
                    return True

                cancelled, _ = await together(cancel, lambda head=head: one.finish(first, [completed(head)]))
                await sound(one)
                found = await one.get_job(job)
                assert found is not None
                if cancelled:
                    assert found.state is JobState.CANCELLED
                    assert await claim(one, first, 5) == []
                else:
                    assert (found.state, found.completed) == (JobState.RUNNING, 1), "success stands"
                    await one.finish(first, [completed(each) for each in await claim_due(one, first)])
                after = await one.get_job(job)
                assert after is not None
                assert after.state is (JobState.CANCELLED if cancelled else JobState.COMPLETED)
                assert len(await hooks(one, first)) == 1
                assert {answer.id for answer in answers} == set(await one.get([answer.id for answer in answers]))

    asyncio.run(run())


@pytest.mark.requirement("A13")
def test_a_retry_meets_the_end_of_a_job(clean_url: str) -> None:
    """A task of the job is run again while its last one ends: one run more or the same, and a hook for each run."""

    async def run() -> None:
        async with stores(clean_url, 2) as (one, two):
            first = await a_worker(one)
            for _ in range(ROUNDS):
                chain = (After(task=0, local=True),)
                job, answers = await one.create_job(job_of(work(critical=False), work("next", after=chain), work()))
                head, last = sorted(await claim(one, first, 2), key=lambda each: each.id)
                await one.finish(first, [failed_for_good(head)])
                await together(
                    lambda answers=answers: two.retry([answers[0].id]),
                    lambda last=last: one.finish(first, [completed(last)]),
                )
                await sound(one)
                while (found := await one.get_job(job)) is not None and not found.state.terminal:
                    await one.finish(first, [completed(each) for each in await claim_due(one, first)])
                assert found is not None
                assert (found.state, found.completed) == (JobState.COMPLETED, 3)
                assert await hooks(one, first) == ["hook.success"] * found.run_no

    asyncio.run(run())


@pytest.mark.requirement("R83", "R84")
def test_a_graph_that_is_refused_leaves_nothing(clean_url: str) -> None:
    """R84: one transaction: the last task's key is held, and of five hundred before it none is there; R83: nothing of
    it can be claimed, and the error reaches the caller."""

    async def run() -> None:
        async with stores(clean_url, 1) as (one,):
            worker = await a_worker(one)
            key = (Key(scope="unique", key="k", on_conflict="reject"),)
            await one.enqueue([work(queue="elsewhere", keys=key)])
            members = [work() for _ in range(500)]
            edges = tuple(After(task=place, local=True) for place in range(500))
            with pytest.raises(DuplicateTask):
                await one.create_job(job_of(*members, work("last", after=edges, keys=key)))
            assert await one.list_jobs() == []
            assert await claim(one, worker, 10) == []
            assert len(await one.list(TaskFilter(limit=10))) == 1

    asyncio.run(run())


# -- processes that die ------------------------------------------------------------------------------------------------


def _group(members: Sequence[NewTask], *continuations: NewTask, kind: EdgeKind = EdgeKind.ON_SUCCESS) -> NewJob:
    edges = tuple(After(task=place, kind=kind, local=True) for place in range(len(members)))
    return NewJob(name="group", tasks=[*members, *(replace(each, after=edges) for each in continuations)])


@pytest.mark.requirement("R80", "R82", "A3")
def test_workers_are_killed_in_the_middle_of_a_fan_in(harness: Harness) -> None:
    """R82: two workers run members of one group at the same time; then both get kill -9, and a third goes on. A3:
    nothing is lost; R80: the continuation is accepted once, and was free only after the last of the group was."""
    load, size = harness.load, sized(small=30, full=2000)
    # Six that stay at a gate, more than one worker runs at once: the group cannot be complete before the kill.
    members = [*(load.hold.prepare(gate="never") for _ in range(6)), *(load.touch.prepare(n=n) for n in range(size))]
    hook, hooked = load.touch.prepare(n=-2), load.touch.prepare(n=-3)
    group = replace(_group(members, load.touch.prepare(n=-1)), on_success=hook, on_failure=hooked)
    job, answers = harness.ledger.with_store(lambda store: store.create_job(group))
    ids = [answer.id for answer in answers]
    held, last = set(ids[:6]), ids[-1]
    killed = [harness.worker(concurrency=4, wait=False) for _ in range(2)]

    def in_the_middle() -> bool:
        return {execution.task for execution in harness.executions()} >= held and harness.ledger.done() >= size // 3

    wait_until(in_the_middle, DONE_CEILING, message=f"all are at the gate, others have ended; {harness.describe()}")
    assert len({execution.pid for execution in harness.executions() if execution.task in held}) >= 2
    third = harness.worker(concurrency=4, wait=False)
    for tree in killed:
        tree.kill()
    third.started()
    harness.until_done(ids)
    harness.account(ids)
    record = harness.ledger.with_store(lambda store: store.get_job(job))
    assert record is not None
    assert (record.state, record.completed, record.total) == (JobState.COMPLETED, len(ids), len(ids))
    journal = harness.ledger.journal()  # of the guard: every step of every task, in order
    ended = {step.task: place for place, step in enumerate(journal) if step.after == "completed"}
    freed = [place for place, step in enumerate(journal) if step.task == last and step.after == "pending"]
    assert min(freed) > max(ended[task] for task in ids[:-1])
    hooks = [task for task in harness.ledger.tasks() if task not in ids]
    harness.until_done(hooks)
    assert [harness.ledger.task(task).name for task in hooks] == ["touch"]


@pytest.mark.requirement("A12", "A71", "R80")
def test_a_poison_member_of_a_group_stops_alone(either_harness: Harness) -> None:
    """It kills its process at each attempt and has failed after its two. A12: being critical it fails its job; A71: in
    the other job it is not, and that one completes. What needs its success never runs (R80); what waits for the end of
    all of them runs after it, and every innocent member completes."""
    harness = either_harness
    tasks = tasks_poison.declared.on(harness.url)
    try:
        harness.worker(target="tests.guarantees.tasks_poison:app", concurrency=8, children=2)
        jobs: dict[bool, tuple[int, list[int]]] = {}
        for critical in (False, True):
            poison = replace(tasks.harm_child.prepare(harm="sigkill"), critical=critical)
            members = [*(tasks.quick.prepare(n=n) for n in range(5)), poison]
            needs, cleans = (After(task=p, local=True) for p in (5, 5))
            group = NewJob(
                name="group",
                tasks=[
                    *members,
                    replace(tasks.quick.prepare(n=100), after=tuple(After(task=p, local=True) for p in range(6))),
                    replace(tasks.quick.prepare(n=101), after=(needs,)),
                    replace(tasks.quick.prepare(n=102), after=(replace(cleans, kind=DONE),)),
                ],
            )
            job, answers = harness.ledger.with_store(lambda store, group=group: store.create_job(group))
            jobs[critical] = (job, [answer.id for answer in answers])
        everything = [task for _, ids in jobs.values() for task in ids]
        harness.until_done(everything)
        rows = harness.ledger.tasks()
        for critical, (job, ids) in jobs.items():
            assert [rows[task].state for task in ids[:5]] == ["completed"] * 5
            assert (rows[ids[5]].state, rows[ids[5]].reason, rows[ids[5]].attempt) == ("failed", "lost", 2)
            ended = [(rows[task].state, rows[task].reason) for task in ids[6:8]]
            assert ended == [("cancelled", "upstream_failed")] * 2
            assert rows[ids[8]].state == "completed"
            record = harness.ledger.with_store(lambda store, job=job: store.get_job(job))
            assert record is not None
            assert record.state is (JobState.FAILED if critical else JobState.COMPLETED)
        ran = [note.task for note in notes(harness.side, "begin")]
        assert not {task for _, ids in jobs.values() for task in ids[6:8]} & set(ran)
        assert harness.ledger.violations() == []
    finally:
        tasks.app.close()
