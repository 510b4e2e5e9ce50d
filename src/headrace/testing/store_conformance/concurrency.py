"""Many at once, through several stores on one database: nothing twice, nothing lost, counters exact."""

import asyncio
from collections import Counter

from headrace.core.lanes import Lane
from headrace.core.limits import Gate
from headrace.core.states import JobState
from headrace.core.task import ClaimedTask, Key, NewJob, Ref, Want
from headrace.store.base import Store
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, completed, failed_for_good, lost, ref, task

cases = Cases("concurrency")

BOTH_LANES = [Want(queue="default", pool="coroutine", lane=lane, n=7) for lane in Lane]


async def _stores(ledger: Ledger, n: int) -> list[Store]:
    return [ledger.store] + [await ledger.another_store() for _ in range(n - 1)]


@cases.add("A6", "A37", "A42")
async def each_task_is_claimed_once(ledger: Ledger) -> None:
    """A6, A37: six claimers over three connections and 300 tasks: every task in one hand; A42: by the statement that
    the database runs."""
    ids = await ledger.enqueue(*[task() for _ in range(300)])
    stores = await _stores(ledger, 3)

    async def claim_all(store: Store, worker: str) -> list[ClaimedTask]:
        mine: list[ClaimedTask] = []
        while claims := await store.claim(worker, BOTH_LANES):
            mine += claims
        return mine

    hands = await asyncio.gather(*[claim_all(stores[i % 3], f"w{i}") for i in range(6)])
    claimed = [claim.id for hand in hands for claim in hand]
    assert sorted(claimed) == sorted(ids)


@cases.add("A24")
async def claim_finish_and_count_under_load(ledger: Ledger) -> None:
    """A24: every worker's counts are exactly the outcomes it reported, and together they are all of them."""
    await ledger.enqueue(*[task() for _ in range(200)])
    stores = await _stores(ledger, 3)
    for n in range(4):
        await ledger.register(f"w{n}")
    done: Counter[tuple[str, str]] = Counter()

    async def work(store: Store, worker: str) -> None:
        while claims := await store.claim(worker, BOTH_LANES):
            ends = [completed(claim) if claim.id % 3 else failed_for_good(claim) for claim in claims]
            report = await store.finish(worker, ends)
            assert len(report.accepted) == len(claims)
            done.update((worker, end.state.value) for end in ends)

    await asyncio.gather(*[work(stores[n % 3], f"w{n}") for n in range(4)])
    assert sum(done.values()) == 200
    for record in await ledger.store.workers():
        assert record.tasks_completed == done[record.id, "completed"]
        assert record.tasks_failed == done[record.id, "failed"]


@cases.add()
async def the_last_tasks_of_a_job_end_together(ledger: Ledger) -> None:
    """Two finishers must not both see one open task, nor both see none: one completion, one hook."""
    stores = await _stores(ledger, 3)
    for round_number in range(8):
        hook = task("hook", queue=f"hooks-{round_number}")
        job, _ = await ledger.store.create_job(NewJob(name="j", tasks=tuple(task() for _ in range(6)), on_success=hook))
        claims = await ledger.claim("a")
        await asyncio.gather(*[stores[n % 3].finish("a", [completed(c)]) for n, c in enumerate(claims)])
        record = await ledger.job(job)
        assert (record.state, record.completed) == (JobState.COMPLETED, 6)
        assert len(await ledger.claim(queue=f"hooks-{round_number}")) == 1


@cases.add()
async def adding_while_the_last_one_finishes(ledger: Ledger) -> None:
    """Either the addition came first and the job waits for it, or the job was over and the addition is refused."""
    from headrace.core.errors import WrongState

    stores = await _stores(ledger, 2)
    for _ in range(10):
        job, _answers = await ledger.store.create_job(NewJob(name="j", tasks=(task(),)))
        claim = await ledger.claim_one()

        async def add(job: int = job) -> bool:
            try:
                await stores[1].enqueue([task(job=job)])
            except WrongState:
                return False
            return True

        added, _report = await asyncio.gather(add(), ledger.store.finish("a", [completed(claim)]))
        record = await ledger.job(job)
        assert record.total == (2 if added else 1)
        assert record.state is (JobState.RUNNING if added else JobState.COMPLETED)
        if added:
            await ledger.finish("a", completed(await ledger.claim_one()))
            assert (await ledger.job(job)).state is JobState.COMPLETED


@cases.add()
async def one_of_many_gets_the_key(ledger: Ledger) -> None:
    stores = await _stores(ledger, 3)
    keyed = task(keys=(Key(scope="unique", key="k"), Key(scope="idem", key="i", ttl=60)))
    answers = await asyncio.gather(*[stores[n % 3].enqueue([keyed]) for n in range(12)])
    assert sum(answer.created for (answer,) in answers) == 1
    assert len({answer.id for (answer,) in answers}) == 1


@cases.add()
async def keyed_enqueues_in_opposite_order_do_not_deadlock(ledger: Ledger) -> None:
    stores = await _stores(ledger, 2)
    keyed = [task(keys=(Key(scope="unique", key=f"k{n}"),)) for n in range(40)]
    answers = await asyncio.gather(*[stores[n % 2].enqueue(keyed[:: 1 if n % 2 else -1]) for n in range(6)])
    assert sum(answer.created for batch in answers for answer in batch) == 40


@cases.add()
async def a_limit_holds_under_load(ledger: Ledger) -> None:
    stores = await _stores(ledger, 3)
    await ledger.enqueue(*[task(gates=(Gate(kind="limit", key="k", n=3),)) for _ in range(60)])
    running: set[Ref] = set()
    most = done = 0

    async def work(store: Store, worker: str) -> None:
        nonlocal most, done
        while done < 60:
            claims = await store.claim(worker, [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=4)])
            if not claims:
                await asyncio.sleep(0.005)
                continue
            answer = await store.admit(worker, claims)
            admitted = [claim for claim in claims if ref(claim) in answer.admitted]
            running.update(ref(claim) for claim in admitted)
            most = max(most, len(running))
            await asyncio.sleep(0)
            # Out of the set before the slot can be free, so that the count is never too high by itself.
            running.difference_update(ref(claim) for claim in admitted)
            if admitted:
                await store.finish(worker, [completed(claim) for claim in admitted])
            done += len(admitted)

    async with asyncio.timeout(60):
        await asyncio.gather(*[work(stores[n % 3], f"w{n}") for n in range(6)])
    assert most <= 3
    assert done == 60


@cases.add()
async def two_rescuers_one_takes_over(ledger: Ledger) -> None:
    stores = await _stores(ledger, 3)
    await ledger.register("dead")
    answers = await asyncio.gather(*[stores[n % 3].take_over("dead", beat=0) for n in range(6)])
    assert sorted(answers) == [False] * 5 + [True]


@cases.add()
async def a_report_and_a_rescue_at_once_give_one_outcome(ledger: Ledger) -> None:
    stores = await _stores(ledger, 2)
    await ledger.enqueue(*[task() for _ in range(40)])
    claims = await ledger.claim("a")
    reports = await asyncio.gather(
        stores[0].finish("a", [completed(claim) for claim in claims]),
        stores[1].finish("a", [lost(claim) for claim in reversed(claims)]),
    )
    assert not reports[0].accepted & reports[1].accepted
    assert reports[0].accepted | reports[1].accepted == {ref(claim) for claim in claims}
    for claim in claims:
        attempts = [attempt for attempt in await ledger.attempts(claim.id) if attempt.charged]
        assert len(attempts) == 1


@cases.add()
async def cancel_and_finish_at_once(ledger: Ledger) -> None:
    stores = await _stores(ledger, 2)
    await ledger.enqueue(*[task() for _ in range(30)])
    claims = await ledger.claim("a")
    ids = [claim.id for claim in claims]
    report, answers = await asyncio.gather(
        stores[0].finish("a", [completed(claim) for claim in claims]), stores[1].cancel(ids[::-1])
    )
    assert len(report.accepted) == 30
    assert {answer.value for answer in answers.values()} <= {"cancelling", "too_late"}
    assert {await ledger.state(task_id) for task_id in ids} == {"completed"}


@cases.add()
async def two_retries_by_hand_are_one_run(ledger: Ledger) -> None:
    """Of six at once, one changes the task."""
    stores = await _stores(ledger, 3)
    task_id = await ledger.enqueue_one()
    await ledger.finish("a", failed_for_good(await ledger.claim_one()))
    answers = await asyncio.gather(*[stores[n % 3].retry([task_id]) for n in range(6)])
    assert sorted(map(len, answers)) == [0, 0, 0, 0, 0, 1]
    assert (await ledger.get(task_id)).run_no == 2


@cases.add("F61")
async def two_promoters_move_a_task_once(ledger: Ledger) -> None:
    """F61: due tasks are promoted by several at once; each is claimed once. (Nothing is pushed here and removed there:
    to be ready is a column of the task's own row, so that a crash has nothing to fall between.)"""
    stores = await _stores(ledger, 3)
    await ledger.enqueue(*[task(delay=0.02) for _ in range(90)])
    await ledger.let_pass(0.05)
    await asyncio.gather(*[stores[n % 3].promote(limit=20) for n in range(6)])
    hands = await asyncio.gather(*[stores[n % 3].claim(f"w{n}", BOTH_LANES) for n in range(6)])
    ids = [claim.id for hand in hands for claim in hand]
    assert len(ids) == len(set(ids)) == 42


@cases.add()
async def the_first_claims_of_a_job_race(ledger: Ledger) -> None:
    stores = await _stores(ledger, 3)
    for _ in range(5):
        job, _ = await ledger.store.create_job(NewJob(name="j", tasks=tuple(task() for _ in range(12))))
        one = [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=4)]
        hands = await asyncio.gather(*[stores[n].claim(f"w{n}", one) for n in range(3)])
        assert sum(map(len, hands)) == 12
        record = await ledger.job(job)
        assert (record.state, record.running) == (JobState.RUNNING, 12)


@cases.add()
async def jobs_finished_crosswise_do_not_deadlock(ledger: Ledger) -> None:
    stores = await _stores(ledger, 2)
    jobs = [
        (await ledger.store.create_job(NewJob(name="j", tasks=tuple(task() for _ in range(10)))))[0] for _ in range(4)
    ]
    claims = await ledger.claim("a")
    assert len(claims) == 40
    halves = claims[::2], claims[1::2][::-1]
    await asyncio.gather(*[stores[n].finish("a", [completed(c) for c in half]) for n, half in enumerate(halves)])
    assert [(await ledger.job(job)).state for job in jobs] == [JobState.COMPLETED] * 4
