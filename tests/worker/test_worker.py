"""One worker in one process, on both stores: what it claims it runs, and what it ran it reports."""

import asyncio
import contextlib
import itertools
import random
import time
from datetime import timedelta

import pytest

from headrace.client.breakers import Breaker
from headrace.core.breaker import BreakerPolicy
from headrace.core.errors import BreakerOpen, Permanent
from headrace.core.lanes import Lane
from headrace.core.outcome import Cancel, Completed, Failed, RetryAfter, Snooze
from headrace.core.retry import ErrorSignature, Retry
from headrace.core.settlement import Execution, settle
from headrace.core.states import AttemptState, TaskState
from headrace.core.task import ErrorInfo, NewJob, NewTask, Ref, Want
from headrace.executors.context import current
from headrace.store.base import CancelAnswer
from headrace.worker.holding import Stage
from headrace.worker.services.depth import RetryDepth
from headrace.worker.worker import Worker, worker_record
from tests.support.waiting import eventually
from tests.worker.bench import Bench, opened


@pytest.mark.requirement("A32", "A33", "F20")
async def test_what_is_claimed_is_run_and_its_result_stored(bench: Bench) -> None:
    """A32: claim, run, result stored, completed. A33: the async half. F20: the result is in the ledger."""

    async def double(n: int) -> int:
        return n * 2

    bench.app.add(double)
    async with opened(bench):
        tasks = [await bench.enqueue("double", {"n": n}) for n in range(20)]
        await bench.burst()
        records = await bench.store.get(tasks)
        assert [records[task].result for task in tasks] == [str(n * 2) for n in range(20)]
        assert {records[task].state for task in tasks} == {TaskState.COMPLETED}
        assert await bench.store.check() == []


@pytest.mark.requirement("A34")
async def test_the_running_task_knows_itself(bench: Bench) -> None:
    async def who() -> list[int | None]:
        return [current.task_id, current.attempt, current.job_id]

    bench.app.add(who)
    async with opened(bench):
        task = await bench.enqueue("who")
        await bench.burst()
        assert (await bench.record(task)).result == f"[{task}, 1, null]"


async def test_a_short_wait_is_short_on_an_idle_worker(bench: Bench) -> None:
    """Whoever gives something back knows when it is due; nobody has to find it on the next round of every second."""
    ran: list[float] = []

    async def flaky() -> None:
        ran.append(time.monotonic())
        if len(ran) < 7:
            raise ConnectionError("again")

    bench.app.add(flaky, retry=Retry(max_attempts=9, backoff="fixed", base=0.05, jitter=0.0))
    async with opened(bench), bench.running(poll=30.0):
        task = await bench.enqueue("flaky")
        await eventually(lambda: is_in(bench, task, TaskState.COMPLETED))
    gaps = sorted(after - before for before, after in itertools.pairwise(ran))
    assert gaps[0] >= 0.05
    assert gaps[len(gaps) // 2] < 0.6


@pytest.mark.requirement("A64", "F21", "F22", "D56")
async def test_an_error_is_retried_later_in_the_retry_lane(bench: Bench) -> None:
    """Each failure is an attempt of its own (D56), the task goes back to pending (F22) and completes in the end."""

    async def third_time() -> str:
        if current.attempt < 3:
            raise ConnectionError("not yet")
        return "done"

    bench.app.add(third_time)
    async with opened(bench):
        task = await bench.enqueue("third_time")
        async with bench.running():
            await eventually(lambda: is_in(bench, task, TaskState.COMPLETED))
        attempts = await bench.store.attempts(task)
        assert [attempt.state for attempt in attempts] == [
            AttemptState.FAILED,
            AttemptState.FAILED,
            AttemptState.SUCCEEDED,
        ]
        assert [attempt.attempt for attempt in attempts] == [1, 2, 3]
        record = await bench.record(task)
        assert (record.attempt, record.lane) == (3, Lane.RETRY)


@pytest.mark.requirement("A65", "F23")
async def test_a_permanent_error_fails_at_once(bench: Bench) -> None:
    async def hopeless() -> None:
        raise Permanent("no")

    bench.app.add(hopeless)
    async with opened(bench):
        task = await bench.enqueue("hopeless")
        await bench.burst()
        record = await bench.record(task)
        assert (record.state, record.reason, record.attempt) == (TaskState.FAILED, "error", 1)


async def test_attempts_end(bench: Bench) -> None:
    async def always() -> None:
        raise ValueError("again")

    bench.app.add(always)
    async with opened(bench):
        task = await bench.enqueue("always")
        async with bench.running():
            await eventually(lambda: is_in(bench, task, TaskState.FAILED))
        assert (await bench.record(task)).attempt == 3


async def test_what_a_task_may_return(bench: Bench) -> None:
    """Snooze runs again uncharged, RetryAfter charged, Cancel ends it."""

    async def snooze() -> object:
        return Snooze(0.02) if current.claim_no < 3 else current.attempt

    async def cancel() -> object:
        return Cancel("not needed")

    async def after() -> object:
        return RetryAfter(0.02) if current.attempt < 3 else current.attempt

    for function in (snooze, cancel, after):
        bench.app.add(function)
    async with opened(bench):
        snoozing, cancelling, retrying = [await bench.enqueue(name) for name in ("snooze", "cancel", "after")]
        async with bench.running():
            for task, state in (
                (snoozing, TaskState.COMPLETED),
                (cancelling, TaskState.CANCELLED),
                (retrying, TaskState.COMPLETED),
            ):
                await eventually(lambda task=task, state=state: is_in(bench, task, state))
        assert (await bench.record(snoozing)).result == "1"
        assert (await bench.record(retrying)).result == "3"
        assert (await bench.record(cancelling)).reason == "user"


@pytest.mark.requirement("F24")
async def test_an_open_breaker_charges_nobody(bench: Bench) -> None:
    async def guarded() -> int:
        if current.claim_no < 6:
            raise BreakerOpen("mail", delay=0.01)
        return current.attempt

    bench.app.add(guarded)
    async with opened(bench):
        task = await bench.enqueue("guarded")
        async with bench.running():
            await eventually(lambda: is_in(bench, task, TaskState.COMPLETED))
        record = await bench.record(task)
        assert (record.result, record.attempt) == ("1", 1)


@pytest.mark.requirement("F13")
async def test_starts_hold_seven_to_three_while_both_lanes_have_work(bench: Bench) -> None:
    """Exact over every ten starts, in the order in which they start."""
    starts: list[int] = []

    async def first_fails() -> None:
        if current.claim_no == 1:
            raise ConnectionError

    async def fresh() -> None:
        starts.append(0)

    async def note() -> None:
        starts.append(1)

    for function in (first_fails, fresh, note):
        bench.app.add(function, retry=Retry(max_attempts=2, backoff="fixed", base=0, jitter=0.0))
    async with opened(bench):
        await bench.store.enqueue([bench.app.task("first_fails") for _ in range(60)])
        worker = "filler"
        await register(bench, worker)
        claims = await bench.store.claim(worker, [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=60)])
        await fail_all(bench, worker, claims)
        bench.app.definitions["first_fails"] = bench.app.definitions["note"]
        await bench.store.enqueue([bench.app.task("fresh") for _ in range(200)])
        while await bench.store.promote() == 0:  # all retries are ready before the first pick
            pass
        await bench.burst(concurrency=7)
        assert sum(starts) == 60
        contested = max(index for index, lane in enumerate(starts) if lane == 1) - 10
        assert contested > 150
        for begin in range(contested):
            assert sum(starts[begin : begin + 10]) == 3, (begin, "".join(map(str, starts)))


async def test_higher_priority_first(bench: Bench) -> None:
    order: list[int] = []

    async def note(n: int) -> None:
        order.append(n)

    bench.app.add(note)
    async with opened(bench):
        for n in (1, 5, 3, 5):
            await bench.enqueue("note", {"n": n}, priority=n)
        await bench.burst(concurrency=1)
        assert order == [5, 5, 3, 1]


async def test_a_name_nobody_knows_goes_back_and_at_last_fails(bench: Bench) -> None:
    async with opened(bench):
        patient = await bench.enqueue("unheard_of")
        late = await bench.enqueue("unheard_of", max_age=0.001)
        await bench.burst()
        waiting, failed = await bench.record(patient), await bench.record(late)
        assert (waiting.state, waiting.attempt) == (TaskState.PENDING, 0)
        assert waiting.eligible_at - waiting.enqueued_at > timedelta(seconds=1.5)
        assert failed.state == TaskState.FAILED
        assert failed.reason in ("unknown_task", "expired")


async def _nothing_expires(*, limit: int = 0) -> int:
    return 0


@pytest.mark.requirement("F19")
async def test_what_is_too_old_fails_without_running(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []

    async def run() -> None:
        ran.append(1)

    bench.app.add(run)
    async with opened(bench):
        monkeypatch.setattr(bench.store, "expire", _nothing_expires)
        task = await bench.enqueue("run", max_age=0.001)
        await asyncio.sleep(0.01)
        await bench.burst()
        record = await bench.record(task)
        assert (record.state, record.reason, ran) == (TaskState.FAILED, "expired", [])


@pytest.mark.requirement("A36")
async def test_a_task_that_cannot_be_imported_fails_and_the_worker_goes_on(bench: Bench) -> None:
    class Broken(dict):
        def __getitem__(self, name: str):
            if name == "broken":
                raise ImportError("no module named tasks.missing")
            return super().__getitem__(name)

    async def fine() -> str:
        return "fine"

    bench.app.add(fine)
    bench.app.definitions = Broken(bench.app.definitions, broken=None)
    async with opened(bench):
        broken = (await bench.store.enqueue([NewTask(name="broken")]))[0].id
        good = await bench.enqueue("fine")
        await bench.burst()
        record = await bench.record(broken)
        assert (record.state, record.error_message) == (TaskState.FAILED, "no module named tasks.missing")
        assert await bench.state(good) == TaskState.COMPLETED


@pytest.mark.requirement("A81")
async def test_states_of_a_worker(bench: Bench) -> None:
    """Idle without a task, active while one runs, stopped after it deregistered."""
    gate = asyncio.Event()

    async def hold() -> None:
        await gate.wait()

    bench.app.add(hold)
    async with opened(bench):
        async with bench.running(heartbeat=0.1) as worker:
            await eventually(lambda: worker_is(bench, worker.id, "idle"))
            task = await bench.enqueue("hold")
            await eventually(lambda: worker_is(bench, worker.id, "active"))
            # Late start: it still runs, so it is written as running.
            await eventually(lambda: is_in(bench, task, TaskState.RUNNING))
            gate.set()
            await eventually(lambda: worker_is(bench, worker.id, "idle"))
        assert await worker_is(bench, worker.id, "stopped")


async def test_a_worker_that_is_torn_down_starts_nothing_of_its_buffer(bench: Bench) -> None:
    """It is cancelled, so nothing is drained; a place becomes free when what runs is ended, and nobody takes it."""
    started: list[int] = []
    holding = asyncio.Event()

    async def work(n: int) -> None:
        """Holds the only place as soon as something waits behind it."""
        started.append(n)
        if buffered(worker):
            holding.set()
            await asyncio.Event().wait()

    bench.app.add(work)
    async with opened(bench):
        # Enough that the worker has learned by their pace to claim ahead.
        await bench.store.enqueue([bench.app.task("work", {"n": n}) for n in range(2000)])
        worker = Worker(bench.app, store=bench.store, options=bench.options(concurrency=1))
        task = asyncio.create_task(worker.run())
        try:
            await asyncio.wait_for(holding.wait(), 30)
            before = len(started)
            assert buffered(worker) >= 1
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert len(started) == before


@pytest.mark.requirement("A82")
async def test_a_drain_lets_tasks_end_and_gives_back_the_rest(bench: Bench) -> None:
    """Running tasks end within the grace, nothing is left claimed, the worker is deregistered."""
    gate = asyncio.Event()

    async def hold() -> str:
        await gate.wait()
        return "ended"

    bench.app.add(hold)
    async with opened(bench):
        tasks = [await bench.enqueue("hold") for _ in range(6)]
        async with bench.running(concurrency=2) as worker:
            await eventually(lambda: running_now(worker) == 2)
            worker.stop()
            await eventually(lambda: buffered(worker) == 0)
            gate.set()
        states = [await bench.state(task) for task in tasks]
        assert sorted(states) == ["completed"] * 2 + ["pending"] * 4
        assert [(await bench.record(task)).attempt for task in tasks].count(0) == 4
        assert await bench.store.held(worker.id) == []
        assert await worker_is(bench, worker.id, "stopped")


async def test_what_does_not_end_within_the_grace_goes_back_uncharged(bench: Bench) -> None:
    async def for_ever() -> None:
        await asyncio.Event().wait()

    bench.app.add(for_ever)
    async with opened(bench):
        task = await bench.enqueue("for_ever")
        async with bench.running(grace=0.1) as worker:
            await eventually(lambda: running_now(worker) == 1)
        record = await bench.record(task)
        assert (record.state, record.attempt) == (TaskState.PENDING, 0)
        assert [attempt.state for attempt in await bench.store.attempts(task)] == [AttemptState.RELEASED]


async def test_cancel_of_running_and_waiting_tasks(bench: Bench) -> None:
    cleaned: list[int] = []

    async def for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(current.task_id)

    bench.app.add(for_ever)
    async with opened(bench):
        async with bench.running(concurrency=1) as worker:
            running = await bench.enqueue("for_ever")
            await eventually(lambda: running_now(worker) == 1)
            waiting = await bench.enqueue("for_ever")
            answers = await bench.store.cancel([running, waiting])
            assert answers[running] is CancelAnswer.CANCELLING
            await eventually(lambda: is_in(bench, running, TaskState.CANCELLED))
            await eventually(lambda: is_in(bench, waiting, TaskState.CANCELLED))
        assert cleaned == [running]


@pytest.mark.requirement("A68", "A69", "F17")
async def test_a_dead_workers_tasks_are_rescued_and_its_report_refused(bench: Bench) -> None:
    """A68: claimed and running tasks of a silent worker become pending. A69: its late report changes nothing.

    F17: a task claimed by a worker that then dies is not lost.
    """

    async def answer() -> str:
        return "second"

    bench.app.add(answer)
    async with opened(bench):
        claimed, started = await bench.enqueue("answer"), await bench.enqueue("answer")
        await register(bench, "dead:1:1")
        claims = await bench.store.claim("dead:1:1", [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=2)])
        assert len(claims) == 2
        await bench.store.start("dead:1:1", [Ref(started, 1)])
        began = time.monotonic()
        async with bench.running():
            await eventually(lambda: is_in(bench, claimed, TaskState.COMPLETED))
            await eventually(lambda: is_in(bench, started, TaskState.COMPLETED))
            assert time.monotonic() - began < 2 * 1.5 + 1
            report = await bench.store.finish("dead:1:1", [completed(claim, "late") for claim in claims])
            assert report.refused == {Ref(claimed, 1), Ref(started, 1)}
        assert (await bench.record(claimed)).result == (await bench.record(started)).result == '"second"'
        # The one whose start was written is charged, the other is a suspect and is not.
        assert ((await bench.record(started)).attempt, (await bench.record(claimed)).attempt) == (2, 1)
        assert (await bench.record(claimed)).losses == 1
        # The wait after a loss, about a second, was over when its silence of most of a lease was taken for death.
        lost, _ = await bench.store.attempts(started)
        assert (await bench.record(started)).eligible_at == lost.finished_at
        assert await worker_is(bench, "dead:1:1", "stopped")
        assert await bench.store.check() == []


async def test_a_worker_that_lost_its_lease_starts_anew(bench: Bench) -> None:
    gate = asyncio.Event()
    claims: list[int] = []

    async def hold() -> int:
        claims.append(current.claim_no)
        await gate.wait()
        return current.claim_no

    bench.app.add(hold)
    async with opened(bench):
        task = await bench.enqueue("hold")
        async with bench.running(heartbeat=0.1) as worker:
            first = worker.id
            await eventually(lambda: claims == [1])
            (record,) = [row for row in await bench.store.workers() if row.id == first]
            await eventually(lambda: take_over_now(bench, first))
            assert record.id == first
            await eventually(lambda: worker.id != first)
            await eventually(lambda: len(claims) >= 2)
            gate.set()
            await eventually(lambda: is_in(bench, task, TaskState.COMPLETED))
        # The last one: a machine that stands still for a moment may cost the second its lease, too.
        assert (await bench.record(task)).result == str(claims[-1])
        assert claims[-1] > 1


async def test_how_tasks_ended_is_counted_once_each(bench: Bench) -> None:
    """What an operator's table shows: by queue, name and outcome, retries not among them, whole after a drain."""

    async def works() -> None: ...

    async def fails() -> None:
        raise Permanent("never")

    bench.app.add(works)
    bench.app.add(fails)
    async with opened(bench):
        for _ in range(3):
            await bench.enqueue("works")
        task = await bench.enqueue("fails")
        async with bench.running():
            await eventually(lambda: is_in(bench, task, TaskState.FAILED))
            await eventually(lambda: _counts(bench, completed=3, failed=1))
            await bench.enqueue("works")
        # What the last second brought is written by the drain.
        left = await bench.store.counts()
        assert left.get("completed", 0) + left.get("pending", 0) == 4
        assert left["failed"] == 1


async def _counts(bench: Bench, **expected: int) -> bool:
    found = await bench.store.counts()
    return all(found.get(state) == n for state, n in expected.items())


async def test_a_service_that_dies_takes_the_worker_down(bench: Bench) -> None:
    async with opened(bench):
        worker = Worker(bench.app, store=bench.store, options=bench.options())
        task = asyncio.create_task(worker.run())
        await worker.started()
        for running in asyncio.all_tasks():
            if running.get_name() == "headrace.promoter":
                running.cancel()
        with pytest.raises(Exception, match="promoter died"):
            await asyncio.wait_for(task, 10)


# --- looking ----------------------------------------------------------------------------------------------------------


async def is_in(bench: Bench, task: int, state: TaskState) -> bool:
    return await bench.state(task) == state


async def worker_is(bench: Bench, worker: str, state: str) -> bool:
    return any(row.state == state for row in await bench.store.workers() if row.id == worker)


async def take_over_now(bench: Bench, worker: str) -> bool:
    (row,) = [row for row in await bench.store.workers() if row.id == worker]
    return await bench.store.take_over(worker, beat=row.beat)


def running_now(worker: Worker) -> int:
    assert worker.dispatcher is not None
    return len(worker.dispatcher.holding.at(Stage.RUNNING))


def buffered(worker: Worker) -> int:
    assert worker.dispatcher is not None
    return len(worker.dispatcher.buffer)


async def register(bench: Bench, worker: str) -> None:
    await bench.store.register(worker_record(worker, bench.options()))


def completed(claim, result: str):
    return settle(
        claim, Completed(result=f'"{result}"'), Retry(), rng=random.Random(1), execution=Execution(ran_for=0.1)
    )


async def fail_all(bench: Bench, worker: str, claims) -> None:
    failed = Failed(error=ErrorInfo(error_class="E", message="e"), signature=ErrorSignature())
    policy = Retry(max_attempts=2, backoff="fixed", base=0, jitter=0.0)
    settlements = [
        settle(claim, failed, policy, rng=random.Random(1), execution=Execution(ran_for=0.1)) for claim in claims
    ]
    await bench.store.finish(worker, settlements)


@pytest.mark.requirement("A65")
async def test_a_permanent_error_fails_its_job(bench: Bench) -> None:
    """A65 (the job's part): one permanent error of a critical task, and the job is failed."""

    async def hopeless() -> None:
        raise Permanent("no")

    bench.app.add(hopeless)
    async with opened(bench):
        job, _ = await bench.store.create_job(NewJob(name="j", tasks=(bench.app.task("hopeless"),)))
        await bench.burst()
        found = await bench.store.get_job(job)
        assert found is not None
        assert (found.state, found.failed) == ("failed", 1)


@pytest.mark.requirement("F24")
async def test_an_open_breaker_keeps_the_block_from_being_entered(bench: Bench) -> None:
    """F24: the task is not run, stays pending until the breaker may be probed, and loses no attempt."""
    breaker = Breaker("mail", BreakerPolicy(volume_threshold=2, timeout=600))
    for _ in range(2):
        with contextlib.suppress(ConnectionError), breaker.call():
            raise ConnectionError
    entered: list[int] = []

    async def guarded() -> None:
        async with breaker.call():
            entered.append(1)

    bench.app.add(guarded)
    async with opened(bench):
        task = await bench.enqueue("guarded", max_attempts=1)
        await bench.burst()
        record = await bench.record(task)
        assert (record.state, record.attempt, entered) == (TaskState.PENDING, 0, [])
        assert record.eligible_at - record.enqueued_at > timedelta(seconds=500)


@pytest.mark.requirement("F16")
async def test_the_configured_ratio_is_what_the_buffer_uses(bench: Bench) -> None:
    """F16: from the start, and still after the depth of the lane was measured."""
    async with opened(bench), bench.running(retry_ratio=0.4) as worker:
        buffer = worker.dispatcher.buffer
        assert buffer.credit("default").ratio == 0.4
        await RetryDepth(
            store=bench.store, buffer=buffer, queues=lambda: ["default"], options=worker.options
        ).run_once()
        assert buffer.credit("default").ratio == 0.4
