"""A claim never stays with a worker that forgot it, whatever happens on its way into user code."""

import asyncio
import random
import time
from collections.abc import Coroutine, Mapping
from typing import Any

import pytest

from headrace.core.lanes import Lane
from headrace.core.limits import Gate
from headrace.core.outcome import Released
from headrace.core.retry import DEFAULT_RETRY
from headrace.core.settlement import settle
from headrace.core.states import TaskState
from headrace.core.task import NewTask, Pool, Want
from headrace.executors.base import Executor, Launch, Ran
from headrace.executors.context import current
from headrace.executors.coroutine import CoroutineExecutor
from headrace.executors.invocation import Host
from headrace.telemetry.events import WorkerStopped
from headrace.worker.pools import build_executors
from headrace.worker.worker import Worker, worker_record
from tests.support.waiting import eventually
from tests.worker.application import Definition
from tests.worker.bench import Bench, opened


async def test_queues_that_share_a_limit_are_admitted_in_the_order_of_their_tasks(bench: Bench) -> None:
    """Not by the names of the queues: one that always has something new would keep the other from its turn."""
    ran: list[str] = []

    async def limited(word: str) -> None:
        ran.append(word)

    bench.app.add(limited)
    gate = (Gate(kind="limit", key="shared", n=1),)
    async with opened(bench):
        for queue, word, priority in (("b", "second", 0), ("a", "third", 0), ("b", "first", 5), ("a", "fourth", -1)):
            await bench.enqueue("limited", {"word": word}, queue=queue, priority=priority, gates=gate)
        await bench.burst(queues=("a", "b"))
    assert ran == ["first", "second", "third", "fourth"]


async def test_a_suspect_cancelled_in_its_line_does_not_hold_up_the_others(bench: Bench) -> None:
    gate = asyncio.Event()

    async def hold() -> None:
        await gate.wait()

    async def quick() -> None:
        pass

    bench.app.add(hold)
    bench.app.add(quick)
    async with opened(bench):
        first, second, third = await bench.enqueue("hold"), await bench.enqueue("quick"), await bench.enqueue("quick")
        await make_suspects(bench)
        async with bench.running(lease=60.0, unstarted_after=30.0):
            await eventually(lambda: is_in(bench, first, TaskState.RUNNING))
            await bench.store.cancel([second])
            await eventually(lambda: is_in(bench, second, TaskState.CANCELLED))
            gate.set()
            await eventually(lambda: is_in(bench, third, TaskState.COMPLETED))
        assert await bench.store.check() == []


async def test_a_backlog_of_coroutines_that_never_wait_keeps_nothing_else_from_starting(bench: Bench) -> None:
    """Each fills a turn of the loop by itself, and there are enough for all the time that the thread's task has."""

    async def busy() -> None:
        until = time.monotonic() + 0.02
        while time.monotonic() < until:
            pass

    def quick() -> str:
        return "ran"

    bench.app.add(busy)
    bench.app.add(quick)
    async with opened(bench):
        await bench.store.enqueue([bench.app.task("busy") for _ in range(2000)])
        other = await bench.enqueue("quick", pool="thread")
        async with bench.running(lease=60.0, threads=1):
            await eventually(lambda: is_in(bench, other, TaskState.COMPLETED))
            counts = await bench.store.counts()
            assert counts.get(TaskState.PENDING, 0) > 0, "the backlog was still there"


@pytest.mark.parametrize("raised", [KeyboardInterrupt, asyncio.CancelledError, SystemExit, GeneratorExit])
async def test_an_import_that_raises_anything_fails_its_task_alone(
    bench: Bench, raised: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Charged and for good: uncharged it would end one worker process after the other, for ever."""

    async def quick() -> None:
        pass

    bench.app.add(quick)
    resolve = type(bench.app).resolve

    def raising(app: Any, name: str, options: Mapping[str, Any]) -> Definition:
        if name == "bad":
            raise raised
        return resolve(app, name, options)

    monkeypatch.setattr(type(bench.app), "resolve", raising)
    async with opened(bench):
        bad = await bench.enqueue("bad")
        async with bench.running(lease=60.0):
            await eventually(lambda: is_in(bench, bad, TaskState.FAILED))
            good = await bench.enqueue("quick")
            await eventually(lambda: is_in(bench, good, TaskState.COMPLETED))


async def test_suspects_that_wait_for_a_long_one_keep_no_places(bench: Bench) -> None:
    """All places are taken by suspects in their line, of which the first runs long: the others make room."""
    gate = asyncio.Event()

    async def hold() -> None:
        await gate.wait()

    async def quick() -> None:
        pass

    bench.app.add(hold)
    bench.app.add(quick)
    async with opened(bench):
        suspects = [await bench.enqueue("hold") for _ in range(4)]
        await make_suspects(bench)
        async with bench.running(lease=60.0, concurrency=4, unstarted_after=0.3) as worker:
            await eventually(lambda: is_in(bench, suspects[0], TaskState.RUNNING))
            innocent = await bench.enqueue("quick")
            await eventually(lambda: is_in(bench, innocent, TaskState.COMPLETED))
            assert not gate.is_set()
            gate.set()
            for task in suspects:
                await eventually(lambda task=task: is_in(bench, task, TaskState.COMPLETED))
            assert worker.dispatcher is not None
        assert {(await bench.record(task)).attempt for task in suspects} == {1}


async def test_what_was_given_back_while_its_start_was_written_does_not_run(bench: Bench) -> None:
    ran: list[str] = []

    async def note() -> None:
        ran.append("here")

    bench.app.add(note)
    starting, go_on = asyncio.Event(), asyncio.Event()

    class SlowStart:
        def __getattr__(self, name: str) -> Any:
            return getattr(bench.store, name)

        async def start(self, *args: Any, **kwargs: Any) -> Any:
            answer = await bench.store.start(*args, **kwargs)
            starting.set()
            await go_on.wait()
            return answer

    async with opened(bench):
        task = await bench.enqueue("note")
        await make_suspects(bench)
        store: Any = SlowStart()
        worker = Worker(bench.app, store=store, options=bench.options(lease=60.0))
        stopped = heard(worker)
        running = asyncio.create_task(worker.run())
        await starting.wait()
        worker.stop_now()
        await asyncio.wait_for(running, 30)
        go_on.set()
        await asyncio.sleep(0)
        await asyncio.wait([one for one in asyncio.all_tasks() if one.get_name() == "headrace.attempt"] or [running])
        assert await bench.state(task) == TaskState.PENDING
        assert ran == []
        (event,) = stopped
        # A claim that was under way may bring it once more, and that goes back as well.
        assert event.released >= 1


def heard(worker: Worker) -> list[Any]:
    """What it says when it has stopped."""
    stopped: list[Any] = []
    worker.bus.subscribe(stopped.append, WorkerStopped)
    return stopped


class HandsOut(CoroutineExecutor):
    """Takes launches ahead of their turn, which never comes."""

    waiting: list[asyncio.Future[Ran]]

    def free(self) -> int:
        return 3 - len(self.waiting)

    def begin(self, launch: Launch) -> Coroutine[Any, Any, Ran]:
        return self._wait()

    async def _wait(self) -> Ran:
        self.waiting.append(asyncio.get_running_loop().create_future())
        return await self.waiting[-1]

    def release_unstarted(self) -> None:
        for future in self.waiting:
            future.set_result(Ran(outcome=Released()))


async def test_a_worker_that_stops_says_how_many_it_gave_back_wherever_they_waited(bench: Bench) -> None:
    async def quick() -> None:
        pass

    bench.app.add(quick)
    HandsOut.waiting = []

    def executors(worker: Worker, resources: Mapping[str, Any]) -> Mapping[Pool, Executor]:
        assert worker.slots is not None
        return {"coroutine": HandsOut(concurrency=3, slots=worker.slots, host=Host())}

    async with opened(bench):
        tasks = [await bench.enqueue("quick") for _ in range(3)]
        options = bench.options(lease=60.0, concurrency=3, unstarted_after=30.0)
        worker = Worker(bench.app, store=bench.store, options=options, executors=executors)
        stopped = heard(worker)
        running = asyncio.create_task(worker.run())
        await eventually(lambda: len(HandsOut.waiting) == 3, 20)
        worker.stop()
        await asyncio.wait_for(running, 30)
        assert {await bench.state(task) for task in tasks} == {TaskState.PENDING}
        assert [event.released for event in stopped] == [3]


@pytest.mark.parametrize("options", ['{"retry":{"base":"x"}}', '{"timeout":"x"}', "[1]"])
async def test_options_that_cannot_be_read_fail_their_task_only(bench: Bench, options: str) -> None:
    async def quick() -> None:
        pass

    bench.app.add(quick)
    async with opened(bench):
        bad = await bench.enqueue("quick", options=options, max_attempts=1)
        expired = await bench.enqueue("quick", options=options, max_attempts=1, max_age=0.001)
        good = await bench.enqueue("quick")
        async with bench.running(lease=60.0):
            for task in (bad, expired):
                await eventually(lambda task=task: is_in(bench, task, TaskState.FAILED))
            await eventually(lambda: is_in(bench, good, TaskState.COMPLETED))


async def test_options_that_cannot_be_read_do_not_end_a_rescuer(bench: Bench) -> None:
    async with opened(bench):
        task = await bench.enqueue("nobody", options='{"retry":{"base":"x"}}')
        await bench.store.register(worker_record("gone:1:1", bench.options()))
        assert await bench.store.claim("gone:1:1", [_EVERYTHING])
        async with bench.running():
            await eventually(lambda: is_in(bench, task, TaskState.FAILED))


async def test_an_import_that_wants_to_leave_fails_its_task_only(bench: Bench) -> None:
    async def quick() -> None:
        pass

    class Leaving(dict[str, Definition]):
        def __contains__(self, name: object) -> bool:
            if name == "leaving":
                raise SystemExit(3)
            return super().__contains__(name)

    bench.app.add(quick)
    bench.app.definitions = Leaving(bench.app.definitions)
    async with opened(bench):
        (leaving,) = await bench.store.enqueue([NewTask(name="leaving")])
        good = await bench.enqueue("quick")
        async with bench.running(lease=60.0):
            await eventually(lambda: is_in(bench, leaving.id, TaskState.FAILED))
            await eventually(lambda: is_in(bench, good, TaskState.COMPLETED))


async def test_an_executor_that_breaks_costs_an_attempt_not_the_task(bench: Bench) -> None:
    async def quick() -> str:
        return "at last"

    bench.app.add(quick)
    failures = iter(["when it begins", "later", None])

    def breaking(worker: Worker, resources: Mapping[str, Any]) -> Mapping[Pool, Executor]:
        found = build_executors(worker, resources)
        executor = found["coroutine"]
        assert isinstance(executor, CoroutineExecutor)
        begin = executor.begin

        async def breaks() -> Ran:
            raise OSError(24, "Too many open files")

        def sometimes(launch: Launch) -> Ran | Coroutine[Any, Any, Ran]:
            failure = next(failures)
            if failure == "when it begins":
                raise OSError(24, "Too many open files")
            return begin(launch) if failure is None else breaks()

        executor.begin = sometimes
        return found

    async with opened(bench):
        task = await bench.enqueue("quick")
        worker = Worker(bench.app, store=bench.store, options=bench.options(lease=60.0), executors=breaking)
        running = asyncio.create_task(worker.run())
        await eventually(lambda: is_in(bench, task, TaskState.COMPLETED))
        worker.stop()
        await asyncio.wait_for(running, 30)
        assert (await bench.record(task)).attempt == 3


_EVERYTHING = Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=100)


async def make_suspects(bench: Bench) -> None:
    """What is pending now comes back from a worker that died before anyone could say whether it had started."""
    await bench.store.register(worker_record("gone:1:1", bench.options()))
    claims = await bench.store.claim("gone:1:1", [_EVERYTHING])
    rng = random.Random(0)
    await bench.store.finish(
        "gone:1:1", [settle(claim, Released(suspect=True), DEFAULT_RETRY, rng=rng) for claim in claims]
    )
    await bench.store.deregister("gone:1:1")


async def is_in(bench: Bench, task: int, state: TaskState) -> bool:
    return await bench.state(task) == state


async def test_retries_begin_when_what_is_being_written_is_written(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On SQLite they would keep the interpreter from the thread that writes, which holds the lock of the file. New work
    begins at once, and where the lock is somebody else's they do not wait for ever.
    """
    runs: list[str] = []
    bench = Bench(sqlite_url)

    async def once_more() -> None:
        runs.append("retry" if current.attempt > 1 else "first")
        if current.attempt in (1, 2):
            raise ValueError("not yet")

    async def new() -> None:
        runs.append("new")

    bench.app.add(once_more)
    bench.app.add(new)
    async with opened(bench), bench.running(lease=60.0, unstarted_after=30.0) as worker:
        assert worker.dispatcher is not None
        writes_for = 0.0

        def still(now: float) -> float | None:
            return writes_for

        monkeypatch.setattr(worker.dispatcher.finisher, "writes_for", still)
        await bench.enqueue("once_more")
        dispatcher = worker.dispatcher
        await eventually(lambda: runs == ["first"] and len(dispatcher.buffer) == 1)
        await bench.enqueue("new")
        await eventually(lambda: "new" in runs)
        assert runs[:2] == ["first", "new"], "the retry was here before it"
        writes_for = 1.0
        await eventually(lambda: runs == ["first", "new", "retry", "retry"], 20)
