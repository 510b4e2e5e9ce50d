"""A whole job, for whoever looks at it: every task once, wherever it is."""

from headrace.core.states import AttemptState, TaskState
from headrace.core.task import After, EdgeKind, JobHooks, NewJob, Outlined
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, completed, failed, failed_for_good, ref, task

cases = Cases("outlines")


async def pages(ledger: Ledger, job: int, limit: int) -> list[Outlined]:
    found: list[Outlined] = []
    while page := await ledger.store.outline(job, after=found[-1].id if found else 0, limit=limit):
        assert len(page) <= limit
        found += page
    return found


@cases.add()
async def every_task_is_on_one_page_in_the_order_of_ids(ledger: Ledger) -> None:
    await ledger.enqueue_one("someone.else")
    new = [
        task("a.one", options='{"label":"the first"}'),
        task("a.two"),
        task("a.two", critical=False),
        task("a.two"),
        task("a.three"),
    ]
    job, answers = await ledger.store.create_job(NewJob(name="j", tasks=new))
    by_id = {claim.id: claim for claim in await ledger.claim() if claim.job == job}
    first, second = answers[0].id, answers[2].id
    await ledger.store.start("a", [ref(by_id[first]), ref(by_id[second])])
    await ledger.finish("a", completed(by_id[first]), failed_for_good(by_id[second]))
    for limit in (1, 2, 5, 100):
        found = await pages(ledger, job, limit)
        assert [row.id for row in found] == sorted(answer.id for answer in answers)
    assert [row.name for row in found] == ["a.one", "a.two", "a.two", "a.two", "a.three"]
    assert [row.label for row in found] == ["the first", None, None, None, None]
    assert [row.critical for row in found] == [True, True, False, True, True]
    done, waiting, broken = found[0], found[1], found[2]
    assert (done.state, done.error) == (TaskState.COMPLETED, None)
    assert done.started_at is not None
    assert done.finished_at is not None
    assert done.finished_at >= done.started_at > 1_000_000_000
    assert (waiting.state, waiting.started_at, waiting.finished_at) == (TaskState.CLAIMED, None, None)
    assert (broken.state, broken.error) == (TaskState.FAILED, "builtins.ValueError: no")


@cases.add()
async def tasks_are_counted_by_name_and_state(ledger: Ledger) -> None:
    new = [task("b", queue="later"), task("a"), task("a"), task("b")]
    job, _ = await ledger.store.create_job(NewJob(name="j", tasks=new))
    claims = await ledger.claim()
    await ledger.finish("a", *[completed(claim) for claim in claims])
    assert await ledger.store.tally(job) == [
        ("a", TaskState.COMPLETED, 2),
        ("b", TaskState.COMPLETED, 1),
        ("b", TaskState.PENDING, 1),
    ]
    assert await ledger.store.tally(job + 1_000_000) == []


@cases.add()
async def the_hooks_of_a_job(ledger: Ledger) -> None:
    job, _ = await ledger.store.create_job(
        NewJob(name="j", tasks=(task(),), on_success=task("hook.success", queue="hooks"))
    )
    assert await ledger.store.hooks_of_job(job) == JobHooks(on_success="hook.success")
    await ledger.finish("a", completed(await ledger.claim_one()))
    assert await ledger.store.hooks_of_job(job) == JobHooks(on_success="hook.success", enqueued=True)
    assert await ledger.store.hooks_of_job(job + 1_000_000) == JobHooks()


@cases.add()
async def the_bones_and_joints_of_a_job(ledger: Ledger) -> None:
    await ledger.enqueue_one("someone.else")
    new = [
        task("a", options='{"label":"the first"}'),
        task("b", after=(After(task=0, local=True),)),
        task("c", after=(After(task=0, local=True, kind=EdgeKind.ON_DONE), After(task=1, local=True))),
    ]
    job, answers = await ledger.store.create_job(NewJob(name="j", tasks=new))
    first, second, third = [answer.id for answer in answers]
    claim = next(claim for claim in await ledger.claim() if claim.id == first)
    await ledger.store.start("a", [ref(claim)])
    await ledger.finish("a", completed(claim))
    found = sorted(await ledger.store.bones(job, limit=100))
    assert [row[:3] for row in found] == [(first, "a", "completed"), (second, "b", "pending"), (third, "c", "blocked")]
    begin, end = found[0][3:]
    assert begin is not None
    assert end is not None
    assert end >= begin > 1_000_000_000
    assert found[1][3:] == (None, None)
    assert len(await ledger.store.bones(job, limit=2)) == 2
    joints = sorted(await ledger.store.joints(job, limit=100))
    assert joints == [(second, first, 0), (third, first, 1), (third, second, 0)]
    assert len(await ledger.store.joints(job, limit=1)) == 1
    assert [*await ledger.store.bones(job + 1_000_000, limit=10), *await ledger.store.joints(2**40, limit=10)] == []
    assert await ledger.store.labels([first, second, third, 2**40]) == {first: "the first"}


@cases.add()
async def when_tasks_were_executed(ledger: Ledger) -> None:
    done, again, never = await ledger.enqueue(task("done"), task("again"), task("never", queue="other"))
    by_id = {claim.id: claim for claim in await ledger.claim()}
    await ledger.store.start("a", [ref(by_id[again])])
    await ledger.finish("a", completed(by_id[done]), failed(by_id[again]))
    second = await ledger.claim_due()
    await ledger.store.start("a", [ref(second)])
    found = await ledger.store.spans([done, again, never, 2**40])
    assert set(found) == {done, again}
    assert [(span.claim_no, span.state, span.charged, span.worker) for span in found[done]] == [
        (1, AttemptState.SUCCEEDED, True, "a")
    ]
    assert [(span.claim_no, span.state) for span in found[again]] == [
        (1, AttemptState.FAILED),
        (2, AttemptState.RUNNING),
    ]
    assert found[again][0].finished_at is not None
    assert found[again][1].finished_at is None
