"""The store goes away, answers get lost, dead workers leave awkward things behind."""

import asyncio
from typing import Any

import pytest

from headrace.core.errors import StoreUnavailable
from headrace.core.lanes import Lane
from headrace.core.limits import Gate
from headrace.core.states import AttemptState, TaskState
from headrace.core.task import Ref, Want
from headrace.executors.context import current
from headrace.telemetry.events import Bus, Event, StoreLost
from headrace.worker.worker import Worker, worker_record
from tests.support.postgres import PrivatePostgres
from tests.support.waiting import eventually
from tests.worker.bench import Bench, opened

PRIMARY = Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=10)


class LosesAnswers:
    """A store whose first calls of some verbs are carried out, and whose answers never arrive."""

    def __init__(self, store: Any, *verbs: str) -> None:
        self._store = store
        self._losing = set(verbs)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in self._losing:
            return found

        async def lose(*args: Any, **kwargs: Any) -> Any:
            answer = await found(*args, **kwargs)
            if not answer or name not in self._losing:
                return answer
            self._losing.discard(name)
            raise StoreUnavailable("the connection was lost before the answer came")

        return lose


@pytest.mark.parametrize("verb", ["claim", "finish", "start", "heartbeat"])
async def test_an_answer_that_gets_lost_changes_nothing(bench: Bench, verb: str) -> None:
    """What the store did is found again: each task runs once, and completes, without waiting for a lease."""
    ran: list[int] = []

    async def note() -> None:
        ran.append(current.task_id)
        await asyncio.sleep(0.3)

    bench.app.add(note)
    async with opened(bench):
        tasks = [await bench.enqueue("note") for _ in range(5)]
        store: Any = LosesAnswers(bench.store, verb)
        worker = Worker(bench.app, store=store, options=bench.options(lease=60.0))
        running = asyncio.create_task(worker.run())
        for task in tasks:
            await eventually(lambda task=task: is_in(bench, task, TaskState.COMPLETED))
        worker.stop()
        await asyncio.wait_for(running, 30)
        assert sorted(ran) == sorted(tasks)
        assert {(await bench.record(task)).attempt for task in tasks} == {1}
        assert await bench.store.check() == []


async def test_an_outage_kills_nobody_and_loses_nothing(postgres_url: str, private_postgres: PrivatePostgres) -> None:
    """The task ends while the server is down; its result lands when it is back, by the same worker, in one attempt."""
    bench = Bench(postgres_url)
    ended = asyncio.Event()
    gate = asyncio.Event()

    async def hold() -> str:
        await gate.wait()
        ended.set()
        return "kept"

    bench.app.add(hold)
    async with opened(bench):
        task = await bench.enqueue("hold")
        async with bench.running() as worker:
            first = worker.id
            await eventually(lambda: is_in(bench, task, TaskState.RUNNING))
            await asyncio.to_thread(private_postgres.stop, "immediate")
            gate.set()
            await ended.wait()
            await asyncio.sleep(2 * 1.5)  # longer than a lease: nobody may be taken for dead when it is over
            await asyncio.to_thread(private_postgres.start)
            await eventually(lambda: is_in(bench, task, TaskState.COMPLETED))
            assert worker.id == first
            # It goes on working.
            gate.set()
            later = await bench.enqueue("hold")
            await eventually(lambda: is_in(bench, later, TaskState.COMPLETED))
        record = await bench.record(task)
        assert (record.attempt, record.result) == (1, '"kept"')
        assert await bench.store.check() == []


async def test_a_worker_that_starts_in_an_outage_waits_for_its_end(
    postgres_url: str, private_postgres: PrivatePostgres
) -> None:
    """Below a supervisor: it does not exit to be replaced again and again, and says once what it waits for."""
    bench = Bench(postgres_url)

    async def greet() -> str:
        return "hello"

    bench.app.add(greet)
    async with opened(bench):
        task = await bench.enqueue("greet")
        await bench.store.register(worker_record("late:1:1", bench.options(lease=60.0)))
        await asyncio.to_thread(private_postgres.stop, "immediate")
        said: list[Event] = []
        bus = Bus()
        bus.subscribe(said.append, StoreLost)
        worker = Worker(bench.app, options=bench.options(lease=60.0), identity="late:1:1", bus=bus)
        running = asyncio.create_task(worker.run())
        try:
            await eventually(lambda: bool(said))
            await asyncio.wait({running}, timeout=1.0)
            assert not running.done()
        finally:
            await asyncio.to_thread(private_postgres.start)
        await eventually(lambda: is_in(bench, task, TaskState.COMPLETED))
        assert [event.what for event in said if isinstance(event, StoreLost)] == ["worker late:1:1"]
        worker.stop()
        await asyncio.wait_for(running, 30)


async def test_a_dead_worker_leaves_a_cancelled_task(bench: Bench) -> None:
    async def never() -> None:
        raise AssertionError

    bench.app.add(never)
    async with opened(bench):
        started, waiting = await bench.enqueue("never"), await bench.enqueue("never")
        await bench.store.register(worker_record("dead:1:1", bench.options()))
        await bench.store.claim("dead:1:1", [PRIMARY])
        await bench.store.start("dead:1:1", [Ref(started, 1)])
        await bench.store.cancel([started, waiting])
        async with bench.running():
            for task in (started, waiting):
                await eventually(lambda task=task: is_in(bench, task, TaskState.CANCELLED))
        assert await bench.store.check() == []


async def test_an_interrupted_rescue_is_taken_up(bench: Bench) -> None:
    """The worker's row was taken over, then the rescuer died: the next one finds what is still held."""

    async def answer() -> str:
        return "done"

    bench.app.add(answer)
    async with opened(bench):
        task = await bench.enqueue("answer")
        await bench.store.register(worker_record("dead:1:1", bench.options()))
        await bench.store.claim("dead:1:1", [PRIMARY])
        assert await eventually(lambda: taken_over(bench, "dead:1:1"))
        async with bench.running():
            await eventually(lambda: is_in(bench, task, TaskState.COMPLETED))


async def test_suspects_run_one_at_a_time_and_their_start_is_written_first(bench: Bench) -> None:
    """When one is entered, those before it are in the ledger: if it kills everything, only it was inside."""
    inside, most = 0, 0
    states: list[str] = []
    earlier: list[int] = []

    async def careful() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        states.append(await bench.state(current.task_id))
        assert {await bench.state(task) for task in earlier} <= {TaskState.COMPLETED}
        earlier.append(current.task_id)
        await asyncio.sleep(0.02)
        inside -= 1

    bench.app.add(careful)
    async with opened(bench):
        tasks = [await bench.enqueue("careful") for _ in range(4)]
        await bench.store.register(worker_record("dead:1:1", bench.options()))
        assert len(await bench.store.claim("dead:1:1", [PRIMARY])) == 4
        async with bench.running():
            for task in tasks:
                await eventually(lambda task=task: is_in(bench, task, TaskState.COMPLETED))
        assert (most, states) == (1, [TaskState.RUNNING] * 4)


async def test_a_limit_is_kept_by_the_worker(bench: Bench) -> None:
    """Eight tasks, a limit of two: never more inside, and all of them complete."""
    inside, most = 0, 0

    async def limited() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.02)
        inside -= 1

    bench.app.add(limited)
    async with opened(bench):
        gate = (Gate(kind="limit", key="two", n=2),)
        tasks = [await bench.enqueue("limited", gates=gate) for _ in range(8)]
        async with bench.running():
            for task in tasks:
                await eventually(lambda task=task: is_in(bench, task, TaskState.COMPLETED))
        assert most == 2
        assert {(await bench.record(task)).attempt for task in tasks} == {1}
        assert await bench.store.check() == []


async def test_what_a_task_says_is_kept(bench: Bench) -> None:
    async def talk() -> None:
        for n in range(150):
            current.log(f"line {n}")
        current.progress(1, 3, "a third")
        await asyncio.sleep(2.5)

    bench.app.add(talk)
    async with opened(bench):
        task = await bench.enqueue("talk")
        async with bench.running():
            await eventually(lambda: has_progress(bench, task))
            await eventually(lambda: is_in(bench, task, TaskState.COMPLETED))
        lines = await bench.store.logs(task)
        assert [line.line for line in lines] == [f"line {n}" for n in range(150)]
        (attempt,) = await bench.store.attempts(task)
        assert attempt.state is AttemptState.SUCCEEDED


@pytest.mark.requirement("A24")
async def test_workers_count_their_outcomes_exactly(bench: Bench) -> None:
    async def even(n: int) -> None:
        if n % 2:
            raise ValueError

    bench.app.add(even)
    async with opened(bench):
        await bench.store.enqueue([bench.app.task("even", {"n": n}, max_attempts=1) for n in range(100)])
        await asyncio.gather(bench.burst(), bench.burst(), bench.burst())
        rows = await bench.store.workers()
        assert len(rows) == 3
        assert sum(row.tasks_completed for row in rows) == sum(row.tasks_failed for row in rows) == 50


async def is_in(bench: Bench, task: int, state: TaskState) -> bool:
    try:
        return await bench.state(task) == state
    except StoreUnavailable:
        return False


async def taken_over(bench: Bench, worker: str) -> bool:
    (row,) = [row for row in await bench.store.workers() if row.id == worker]
    return await bench.store.take_over(worker, beat=row.beat)


async def has_progress(bench: Bench, task: int) -> bool:
    return (await bench.record(task)).progress is not None


async def test_what_landed_while_the_ledger_was_read_does_not_run_again(bench: Bench) -> None:
    """After a doubt the worker compares notes with the ledger, whose answer may be older than an outcome."""
    ran: list[int] = []
    asked, gate, answer = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def note() -> None:
        ran.append(current.task_id)
        await gate.wait()

    class AnswersLate(LosesAnswers):
        async def held(self, *args: Any, **kwargs: Any) -> Any:
            found = await self._store.held(*args, **kwargs)
            asked.set()
            await answer.wait()
            return found

    bench.app.add(note)
    async with opened(bench):
        store: Any = AnswersLate(bench.store)
        worker = Worker(bench.app, store=store, options=bench.options(lease=60.0))
        running = asyncio.create_task(worker.run())
        task = await bench.enqueue("note")
        await eventually(lambda: ran == [task])
        assert worker.dispatcher is not None
        worker.dispatcher.claimer.uncertain = True
        await asyncio.wait_for(asked.wait(), 10)
        gate.set()
        await eventually(lambda: is_in(bench, task, TaskState.COMPLETED))
        answer.set()
        await eventually(lambda: worker.dispatcher is not None and not worker.dispatcher.claimer.uncertain)
        worker.stop()
        await asyncio.wait_for(running, 30)
        assert ran == [task]


async def test_a_claim_that_was_committed_after_the_first_look_is_found(bench: Bench) -> None:
    """The line was cut while the server waited for its disk: nothing is held at first, and later it is."""
    ran = asyncio.Event()

    async def note() -> None:
        ran.set()

    bench.app.add(note)
    async with opened(bench), bench.running(lease=60.0) as worker:
        assert worker.dispatcher is not None
        claimer = worker.dispatcher.claimer
        claimer.uncertain = True
        await eventually(lambda: not claimer.uncertain)
        task = await bench.enqueue("note", queue="elsewhere")  # so that the worker does not claim it by itself
        late = Want(queue="elsewhere", pool="coroutine", lane=Lane.PRIMARY, n=1)
        assert len(await bench.store.claim(worker.id, [late])) == 1
        await eventually(lambda: is_in(bench, task, TaskState.COMPLETED))
        assert ran.is_set()


async def test_a_task_whose_limits_cannot_be_read_holds_up_no_other(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    class Unreadable(LosesAnswers):
        async def admit(self, worker: str, claims: Any) -> Any:
            if poison in {claim.id for claim in claims}:
                raise ValueError("no such gate")
            return await self._store.admit(worker, claims)

    async def limited() -> None: ...

    bench.app.add(limited)
    gate = (Gate(kind="limit", key="k", n=10),)
    async with opened(bench):
        poison, *others = [await bench.enqueue("limited", gates=gate) for _ in range(5)]
        store: Any = Unreadable(bench.store)
        worker = Worker(bench.app, store=store, options=bench.options(lease=60.0))
        running = asyncio.create_task(worker.run())
        for task in others:
            await eventually(lambda task=task: is_in(bench, task, TaskState.COMPLETED))
        await eventually(lambda: is_in(bench, poison, TaskState.PENDING))
        worker.stop()
        await asyncio.wait_for(running, 30)
    assert f"task {poison} cannot be admitted" in caplog.text


async def test_what_the_worker_found_again_the_store_does_not_give_away(postgres_url: str) -> None:
    """The connection breaks below a claim that was committed: the worker takes the tasks in, and keeps them."""
    bench = Bench(postgres_url)
    ran: list[int] = []
    gate = asyncio.Event()

    async def note() -> None:
        ran.append(current.task_id)
        await gate.wait()

    bench.app.add(note)
    async with opened(bench):
        opened_store: Any = bench.store
        database = opened_store._database
        fetch, claims = database.fetch, 0
        # Its start is not written, as that of any task that has just begun.
        worker = Worker(bench.app, store=bench.store, options=bench.options(lease=60.0, late_start=60.0, poll=0.3))

        async def losing(*args: Any, **how: Any) -> Any:
            nonlocal claims
            rows = await fetch(*args, **how)
            if how.get("verb") == "claim":
                claims += bool(rows) or bool(claims)
                if claims == 1:
                    assert worker.dispatcher is not None
                    claimer: Any = worker.dispatcher.claimer
                    claimer._pause = 0.2  # so that the keeper looks first
                    raise StoreUnavailable("the connection was lost before the answer came")
            return rows

        database.fetch = losing
        tasks = [await bench.enqueue("note") for _ in range(5)]
        running = asyncio.create_task(worker.run())
        await eventually(lambda: claims >= 3 and sorted(set(ran)) == tasks)
        gate.set()
        for task in tasks:
            await eventually(lambda task=task: is_in(bench, task, TaskState.COMPLETED))
        worker.stop()
        await asyncio.wait_for(running, 30)
        assert sorted(ran) == tasks
        assert await bench.store.check() == []


async def test_a_store_that_is_away_does_not_look_like_a_blocked_loop(bench: Bench) -> None:
    """The supervisor gives away what a blocked loop holds; here the loop turns, and only the ledger cannot be asked."""

    class Away(LosesAnswers):
        async def held(self, *_: Any, **__: Any) -> Any:
            raise StoreUnavailable("it is away")

    async with opened(bench):
        store: Any = Away(bench.store)
        worker = Worker(bench.app, store=store, options=bench.options(lease=60.0))
        running = asyncio.create_task(worker.run())
        await worker.started()
        assert worker.dispatcher is not None
        assert worker.slots is not None
        worker.dispatcher.claimer.uncertain = True
        silences: list[float] = []
        until = asyncio.get_running_loop().time() + 2.5
        while asyncio.get_running_loop().time() < until:
            silences.append(asyncio.get_running_loop().time() - worker.slots.table.last_tick(0))
            await asyncio.sleep(0.05)
        worker.stop()
        await asyncio.wait_for(running, 30)
        assert max(silences) < 1.0


async def test_words_that_no_database_takes_do_not_end_the_worker(bench: Bench) -> None:
    """NUL, half a surrogate pair, a level that is no word: each would be refused by some driver."""

    async def talk() -> None:
        current.log("a\0b \ud800", x="\ud801\0")
        current.log("by number", level=20)  # pyright: ignore[reportArgumentType]
        current.log("odd", level="in\0fo\ud800")  # pyright: ignore[reportArgumentType]
        current.progress(0.5, message="\0\ud800")

    bench.app.add(talk)
    async with opened(bench):
        task = await bench.enqueue("talk")
        await bench.burst()
        assert await bench.state(task) == TaskState.COMPLETED
        assert [line.stream for line in await bench.store.logs(task)] == ["info", "20", "in\\x00fo\\ud800"]
