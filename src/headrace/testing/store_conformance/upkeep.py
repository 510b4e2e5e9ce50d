"""What services do on the side: bounded, repeatable, harmless when many do it."""

from dataclasses import asdict, replace

from headrace.core.limits import Gate
from headrace.core.states import Reason, TaskState
from headrace.core.task import ClaimedTask, Key, NewJob
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, completed, failed, failed_for_good, ref, task

cases = Cases("upkeep")


@cases.add()
async def promote_says_when_the_next_is_due(ledger: Ledger) -> None:
    assert await ledger.store.promote() is None
    await ledger.enqueue_one(delay=100.0)
    wait = await ledger.store.promote()
    assert wait is not None
    assert 50 < wait <= 100
    await ledger.enqueue_one(delay=0.05)
    await ledger.let_pass(0.1)
    wait = await ledger.store.promote()
    assert wait is not None
    assert 50 < wait <= 100
    assert len(await ledger.claim()) == 1


@cases.add("F60")
async def promote_is_bounded(ledger: Ledger) -> None:
    """F60: 250 retries are due; each call makes 100 of them ready and says that more are due, the third is the last."""
    await ledger.enqueue(*[task() for _ in range(250)])
    await ledger.finish("a", *[failed(claim, delay=0.05) for claim in await ledger.claim("a", 250)])
    await ledger.let_pass(0.1)
    ready: list[int] = []
    for more in (0, 0, None, None):
        assert await ledger.store.promote(limit=100) == more
        ready.append(await ledger.store.retry_depth("default"))
    assert ready == [100, 200, 250, 250]
    assert len(await ledger.claim("a", 300)) == 250


@cases.add("F19", "F62")
async def expire_finds_what_nobody_picks(ledger: Ledger) -> None:
    """F19, F62: found by the sweeper, whether it is ready or waits for its time: failed as expired, uncharged, once."""
    old = await ledger.enqueue_one(max_age=0.05)
    waiting = await ledger.enqueue_one(max_age=0.05, delay=0.01)
    young = await ledger.enqueue_one(max_age=600.0)
    await ledger.let_pass(0.1)
    assert await ledger.store.expire() == 2
    assert await ledger.store.expire() == 0
    for task_id in (old, waiting):
        ended = await ledger.get(task_id)
        assert (ended.state, ended.reason, ended.attempt) == (TaskState.FAILED, Reason.EXPIRED, 0)
        assert ended.finished_at is not None
    assert [claim.id for claim in await ledger.claim()] == [young]


@cases.add()
async def expire_does_not_touch_what_runs(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one(max_age=0.05)
    claim = await ledger.claim_one()
    await ledger.let_pass(0.1)
    assert await ledger.store.expire() == 0
    await ledger.finish("a", completed(claim))
    assert await ledger.state(task_id) == "completed"


@cases.add()
async def expire_is_bounded_and_frees_keys(ledger: Ledger) -> None:
    await ledger.enqueue(*[task(max_age=0.05, keys=(Key(scope="unique", key=str(i)),)) for i in range(5)])
    await ledger.let_pass(0.1)
    assert await ledger.store.expire(limit=2) == 2
    assert await ledger.store.expire(limit=100) == 3
    (again,) = await ledger.store.enqueue([task(keys=(Key(scope="unique", key="0"),))])
    assert again.created


@cases.add()
async def expire_finds_a_parked_task(ledger: Ledger) -> None:
    gate = (Gate(kind="limit", key="k", n=1),)
    await ledger.enqueue(task(gates=gate), task(gates=gate, max_age=0.05))
    await ledger.store.admit("a", await ledger.claim())
    await ledger.let_pass(0.1)
    assert await ledger.store.expire() == 1


@cases.add()
async def unpark_finds_no_one_where_there_is_no_room(ledger: Ledger) -> None:
    gate = (Gate(kind="limit", key="k", n=1),)
    await ledger.enqueue(task(gates=gate), task(gates=gate))
    claims = await ledger.claim()
    answer = await ledger.store.admit("a", claims)
    assert await ledger.store.unpark() == 0
    assert await ledger.claim() == []
    (running,) = [claim for claim in claims if ref(claim) in answer.admitted]
    await ledger.finish("a", completed(running))
    assert len(await ledger.claim()) == 1


@cases.add()
async def prune_removes_what_is_old_and_nothing_else(ledger: Ledger) -> None:
    await ledger.enqueue(task(), task())
    one, two = await ledger.claim()
    await ledger.finish("a", completed(one, "1"))
    await ledger.store.append_logs([(ref(one), 0, "stdout", "line")])
    await ledger.let_pass(1.0)
    middle = await ledger.store.now()
    await ledger.finish("a", failed(two, delay=300))
    fresh = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    assert claim.id == fresh
    await ledger.finish("a", completed(claim))

    async def keep() -> float:
        # Half a second before the middle, however long the acts since then took on a busy machine.
        return (await ledger.store.now() - middle).total_seconds() + 0.5

    pruned = await ledger.store.prune(keep=await keep())
    assert pruned.tasks == 1
    assert set(await ledger.store.get([one.id, two.id, fresh])) == {two.id, fresh}
    assert await ledger.attempts(one.id) == []
    assert await ledger.store.logs(one.id) == []
    assert len(await ledger.attempts(two.id)) == 1
    assert (await ledger.store.prune(keep=await keep())).tasks == 0


@cases.add()
async def prune_removes_results_whose_time_is_over(ledger: Ledger) -> None:
    """Past its time to live the result is gone, the record of the task is not."""
    await ledger.enqueue(task(), task())
    one, two = await ledger.claim()
    await ledger.finish("a", completed(one, "1")._replace(result_ttl=0.1), completed(two, "2")._replace(result_ttl=600))
    await ledger.let_pass(0.2)
    assert (await ledger.store.prune(keep=3600)).results == 1
    gone = await ledger.get(one.id)
    assert (gone.state, gone.result) == (TaskState.COMPLETED, None)
    assert (await ledger.get(two.id)).result == "2"
    assert (await ledger.store.prune(keep=3600)).results == 0


@cases.add()
async def prune_leaves_gates_that_are_in_use(ledger: Ledger) -> None:
    """A rate that has given its token and a limit that is full stay so, however short the past is kept."""
    for gate in (Gate(kind="rate", key="g", n=1, per=1000.0), Gate(kind="limit", key="g", n=1)):
        await ledger.enqueue(task(gates=(gate,)), task(gates=(gate,)))
        first = await ledger.claim_one()
        assert (await ledger.store.admit("a", [first])).admitted == {ref(first)}
        await ledger.let_pass(0.05)
        await ledger.store.prune(keep=0.0)
        second = await ledger.claim_one()
        assert (await ledger.store.admit("a", [second])).parked == {ref(second)}
        await ledger.finish("a", completed(first))
        await ledger.store.cancel([second.id])


@cases.add()
async def prune_is_bounded(ledger: Ledger) -> None:
    await ledger.enqueue(*[task() for _ in range(10)])
    await ledger.finish("a", *[completed(claim) for claim in await ledger.claim()])
    await ledger.let_pass(0.05)
    assert (await ledger.store.prune(keep=0.01, limit=4)).tasks == 4
    assert (await ledger.store.prune(keep=0.01, limit=100)).tasks == 6


@cases.add()
async def prunable_says_what_prune_then_removes(ledger: Ledger) -> None:
    """Of each kind, and nothing of what stays: a young result, an open job's task, a worker that lives."""
    await ledger.register("gone", "here")
    await ledger.store.deregister("gone")
    await ledger.store.create_job(NewJob(name="over", tasks=(task(), task())))
    open_job, _ = await ledger.store.create_job(NewJob(name="open", tasks=(task(), task(delay=600))))
    await ledger.enqueue(*(task(keys=(Key(scope="idem", key=f"k{n}", ttl=0.01),)) for n in range(3)))
    await ledger.finish("here", *(completed(c, "1")._replace(result_ttl=600) for c in await ledger.claim("here")))
    await ledger.let_pass(0.3)
    there = await ledger.store.prunable(keep=0.2)
    assert (there.tasks, there.workers, there.keys, there.jobs, there.results) == (5, 1, 3, 1, 0)
    assert await ledger.store.prunable(keep=0.2) == there, "it removes nothing"
    pruned = await ledger.store.prune(keep=0.2)
    assert replace(pruned, job_events=0) == there, "what a job was is counted with the job"
    assert (await ledger.job(open_job)).completed == 1
    assert not any(asdict(await ledger.store.prunable(keep=0.2)).values())


@cases.add()
async def prune_removes_old_stopped_workers_and_expired_keys(ledger: Ledger) -> None:
    await ledger.register("gone", "here")
    await ledger.store.deregister("gone")
    await ledger.enqueue(task(keys=(Key(scope="idem", key="k", ttl=0.1),)))
    await ledger.finish("here", completed(await ledger.claim_one("here")))
    await ledger.let_pass(0.3)
    pruned = await ledger.store.prune(keep=0.2)
    assert (pruned.workers, pruned.keys) == (1, 1)
    assert [w.id for w in await ledger.store.workers()] == ["here"]


@cases.add()
async def one_leader_at_a_time(ledger: Ledger) -> None:
    assert await ledger.store.lead("scheduler", "a", lease=0.2)
    assert await ledger.store.lead("scheduler", "a", lease=0.2)
    assert not await ledger.store.lead("scheduler", "b", lease=0.2)
    assert await ledger.store.lead("pruner", "b", lease=0.2)
    await ledger.let_pass(0.3)
    assert await ledger.store.lead("scheduler", "b", lease=60)
    assert not await ledger.store.lead("scheduler", "a", lease=60)


@cases.add()
async def outcomes_add_up(ledger: Ledger) -> None:
    row = ("a", "default", "work", "completed")
    await ledger.store.count_outcomes([(*row, 3), (*row, 4)])
    await ledger.store.count_outcomes([(*row, 5), ("b", "default", "work", "failed", 2)])
    await ledger.store.count_outcomes([])
    counts = await ledger.store.counts()
    assert counts["completed"] == 12
    assert counts["failed"] == 2


@cases.add()
async def an_ended_cancellation_frees_its_limit(ledger: Ledger) -> None:
    gate = (Gate(kind="limit", key="k", n=1),)
    first, second = await ledger.enqueue(task(gates=gate), task(gates=gate))
    await ledger.store.admit("a", await ledger.claim())
    await ledger.store.cancel([first])
    await ledger.let_pass(0.1)
    assert await ledger.store.end_cancelling(grace=0.05) == 1
    assert (await ledger.claim_due("b")).id == second


@cases.add()
async def the_tasks_of_a_job_stay_until_the_job_is_old(ledger: Ledger) -> None:
    """Its fate and its retry depend on them, however old they are."""
    job, (answer, _) = await ledger.store.create_job(NewJob(name="j", tasks=(task(critical=False), task())))
    one, two = await ledger.claim()
    await ledger.finish("a", failed_for_good(one if one.id == answer.id else two))
    await ledger.let_pass(0.3)
    assert (await ledger.store.prune(keep=0.2)).tasks == 0, "its job is open"
    await ledger.finish("a", failed_for_good(two if one.id == answer.id else one))
    assert (await ledger.store.prune(keep=0.2)).tasks == 0, "its job has just ended"
    assert sorted(await ledger.store.retry_failed(job)) == sorted([one.id, two.id])


@cases.add()
async def a_ledger_is_sound_at_every_step_of_a_prune(ledger: Ledger) -> None:
    """A large job goes in batches; what its counters know of beyond that is no violation, and is forgotten with it."""
    job, _ = await ledger.store.create_job(NewJob(name="j", tasks=tuple(task() for _ in range(5))))
    await ledger.finish("a", *[completed(claim) for claim in await ledger.claim()])
    other, _ = await ledger.store.create_job(NewJob(name="k", tasks=(task(), task(delay=600))))
    await ledger.finish("a", completed(await ledger.claim_one()))
    await ledger.let_pass(0.3)
    removed: list[int] = []
    while await ledger.store.get_job(job) is not None:
        removed.append((await ledger.store.prune(keep=0.2, limit=2)).tasks)
        assert await ledger.store.check() == []
        assert len(removed) < 10
    assert sum(removed) == 5
    found = await ledger.store.get_job(other)
    assert found is not None
    assert (found.total, found.completed) == (2, 1)


@cases.add()
async def unpark_comes_to_every_gate_in_turn(ledger: Ledger) -> None:
    """A call looks at `limit` gates; the gates before the one with room are busy for long."""

    async def come(queue: str) -> list[ClaimedTask]:
        await ledger.enqueue(*[task(queue=queue, gates=(Gate(kind="limit", key=key),)) for key in "abc"])
        claims = await ledger.claim(queue=queue)
        await ledger.store.admit("a", claims)
        return claims

    holders = await come("default")
    await come("paused")
    await come("other")
    await ledger.store.pause("paused")
    await ledger.finish("a", completed(holders[-1]))
    assert await ledger.claim(queue="other") == [], "the room went to a queue that nobody works on"
    assert sum([await ledger.store.unpark(limit=1) for _ in range(4)]) >= 1
    assert len(await ledger.claim(queue="other")) == 1
