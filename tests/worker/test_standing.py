"""An idle worker stands by for what is enqueued, on PostgreSQL: it comes without a claim, once, whatever gets lost."""

import asyncio
from typing import Any

import pytest

from headrace.core.errors import StoreUnavailable
from headrace.core.states import TaskState
from headrace.core.task import ClaimedTask
from headrace.store.postgres import wakeups
from headrace.testing.store_conformance.ledger import released
from headrace.worker import standing
from headrace.worker.standing import Standing
from headrace.worker.worker import Worker
from tests.support.waiting import eventually
from tests.worker.bench import Bench, opened

pytestmark = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)


@pytest.fixture(autouse=True)
def _announcements_are_heard_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakeups, "_SETTLED", 0.0)


class Watched:
    """A store that counts claims and what was handed over."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.brought: list[int] = []
        self.handed: list[int] = []
        self.tell = True
        self.stands = 0
        self.still_stands = store.still_stands
        self.stand_down = store.stand_down
        self.leave = store.leave

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def claim(self, worker: str, wants: Any) -> list[ClaimedTask]:
        found = await self._store.claim(worker, wants)
        self.brought += [claim.id for claim in found]
        return found

    async def stand_by(self, worker: str, queues: Any, pools: Any, take: Any) -> bool:
        def taken(claim: ClaimedTask) -> None:
            self.handed.append(claim.id)
            if self.tell:
                take(claim)

        answer = await self._store.stand_by(worker, queues, pools, taken)
        self.stands += answer
        return answer


def place_of(worker: Worker) -> Standing:
    assert worker.dispatcher is not None
    return worker.dispatcher.claimer.standing


async def stands(worker: Worker) -> None:
    await eventually(lambda: worker.dispatcher is not None and place_of(worker).stands)


async def completed(bench: Bench, task: int) -> None:
    async def is_completed() -> bool:
        return await bench.state(task) == TaskState.COMPLETED

    await eventually(is_completed)


async def started(bench: Bench, store: Watched, **changes: object) -> tuple[Worker, "asyncio.Task[None]"]:
    given: Any = store
    worker = Worker(bench.app, store=given, options=bench.options(lease=60.0, **changes))
    return worker, asyncio.create_task(worker.run())


async def ended(worker: Worker, running: "asyncio.Task[None]") -> None:
    worker.stop()
    await asyncio.wait_for(running, 30)


async def test_an_idle_worker_is_handed_one_task_after_the_other(bench: Bench) -> None:
    async def note() -> None: ...

    bench.app.add(note)
    async with opened(bench):
        store = Watched(bench.store)
        worker, running = await started(bench, store)
        tasks: list[int] = []
        for _ in range(3):
            await stands(worker)
            tasks.append(await bench.enqueue("note"))
            await completed(bench, tasks[-1])
        await ended(worker, running)
        assert (store.handed, store.brought) == (tasks, [])
        for task in tasks:
            [attempt] = await bench.store.attempts(task)
            assert (attempt.claim_no, attempt.worker) == (1, worker.id)


async def test_a_worker_does_not_stand_by_while_something_may_block_its_loop(bench: Bench) -> None:
    """What is handed over would wait for the loop, although others are idle."""
    goes_on = asyncio.Event()

    async def wait() -> None:
        await goes_on.wait()

    bench.app.add(wait)
    async with opened(bench):
        store = Watched(bench.store)
        worker, running = await started(bench, store)
        await stands(worker)
        first = await bench.enqueue("wait")
        await eventually(lambda: worker.dispatcher is not None and worker.dispatcher.attempts.running["coroutine"] == 1)
        assert not place_of(worker).stands
        await asyncio.sleep(0.5)  # it looks for work meanwhile, and finds none
        assert not place_of(worker).stands
        second = await bench.enqueue("wait")
        await eventually(lambda: store.brought == [second])
        goes_on.set()
        for task in (first, second):
            await completed(bench, task)
        await stands(worker)
        await ended(worker, running)


async def test_what_a_claim_brings_ends_the_standing_by(bench: Bench) -> None:
    goes_on = asyncio.Event()

    async def wait() -> None:
        await goes_on.wait()

    bench.app.add(wait)
    async with opened(bench):
        store = Watched(bench.store)
        worker, running = await started(bench, store)
        await stands(worker)
        [one, two] = [answer.id for answer in await bench.store.enqueue([bench.app.task("wait")] * 2)]
        await eventually(lambda: sorted(store.brought) == [one, two])

        async def nobody_stands() -> bool:
            return not await store.still_stands(worker.id)

        await eventually(nobody_stands)
        goes_on.set()
        await ended(worker, running)
        assert store.handed == []


async def test_a_task_whose_word_is_lost_is_found_and_runs_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker holds it in the ledger and was never told: it notices that it stands by no more, and looks."""
    monkeypatch.setattr(standing, "_RENEW", 0.1)
    ran: list[str] = []

    async def note() -> None:
        ran.append("note")

    bench.app.add(note)
    async with opened(bench):
        store = Watched(bench.store)
        worker, running = await started(bench, store)
        await stands(worker)
        store.tell = False
        task = await bench.enqueue("note")
        assert (await bench.record(task)).worker == worker.id
        await completed(bench, task)
        assert (ran, store.handed) == (["note"], [task])
        await ended(worker, running)


async def test_a_task_whose_word_is_lost_is_found_also_when_a_claim_brings_another(bench: Bench) -> None:
    """Long before it would have asked whether it still stands by: it hears when it says that it does not any more."""
    ran: list[str] = []

    async def note(name: str) -> None:
        ran.append(name)

    bench.app.add(note)
    async with opened(bench):
        store = Watched(bench.store)
        worker, running = await started(bench, store)
        await stands(worker)
        store.tell = False
        task = await bench.enqueue("note", {"name": "handed"})
        await bench.store.enqueue([bench.app.task("note", {"name": "claimed"})] * 2)
        await completed(bench, task)
        await eventually(lambda: sorted(ran) == ["claimed", "claimed", "handed"])
        await ended(worker, running)
        assert store.handed == [task]


async def test_a_worker_that_may_not_stand_by_says_so_and_claims(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A role without the right to the table, say: not one try after the other."""
    asked: list[str] = []

    async def refused(worker: str, *_: Any) -> bool:
        asked.append(worker)
        raise PermissionError("permission denied for table standbys")

    async def note() -> None: ...

    bench.app.add(note)
    async with opened(bench):
        store = Watched(bench.store)
        monkeypatch.setattr(store, "stand_by", refused)
        worker, running = await started(bench, store)
        await eventually(lambda: asked)
        task = await bench.enqueue("note")
        await completed(bench, task)
        await ended(worker, running)
        assert len(asked) <= 4, "with growing pauses"
        assert "permission denied" in caplog.text


async def test_the_same_queues_again_end_nothing(bench: Bench) -> None:
    """Who finds the queues by itself says so every other second."""
    async with opened(bench):
        store = Watched(bench.store)
        worker, running = await started(bench, store, queues=("default",))
        await stands(worker)
        assert worker.dispatcher is not None
        worker.dispatcher.claimer.set_queues(["default"])
        assert place_of(worker).stands
        worker.dispatcher.claimer.set_queues(["default", "other"])
        assert not place_of(worker).stands
        await ended(worker, running)


async def test_what_lay_here_while_the_loop_stood_still_is_verified_before_it_begins(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be another worker's by now."""
    monkeypatch.setattr(standing, "_RENEW", 60.0)  # it does not find by itself what it was not told
    ran: list[str] = []

    async def note() -> None:
        ran.append("note")

    bench.app.add(note)
    async with opened(bench):
        store = Watched(bench.store)
        worker, running = await started(bench, store)
        await stands(worker)
        assert worker.dispatcher is not None
        claimer = worker.dispatcher.claimer
        store.tell = False
        task = await bench.enqueue("note")
        await eventually(lambda: store.handed == [task])
        [claim] = await bench.store.held(worker.id)
        await bench.store.finish(worker.id, [released(claim)])  # as a rescuer would
        claimer._turned_at -= 60.0
        claimer._handed(claim)
        await eventually(lambda: ran == ["note"])
        await completed(bench, task)
        await ended(worker, running)
        assert ran == ["note"]
        attempts = await bench.store.attempts(task)
        assert [attempt.claim_no for attempt in attempts if attempt.charged] == [2]


async def test_word_that_comes_after_the_look_starts_nothing_a_second_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "_RENEW", 0.1)
    ran: list[str] = []
    late: list[ClaimedTask] = []

    async def note() -> None:
        ran.append("note")

    bench.app.add(note)
    async with opened(bench):
        store = Watched(bench.store)
        worker, running = await started(bench, store)
        await stands(worker)
        take, place = place_of(worker)._take, place_of(worker)
        monkeypatch.setattr(place, "_take", late.append)
        place.end()
        await eventually(lambda: store.stands >= 2 and place.stands)  # stands by anew, and hears nothing
        task = await bench.enqueue("note")
        await completed(bench, task)
        await eventually(lambda: [claim.id for claim in late] == [task])
        take(late[0])
        await asyncio.sleep(0.2)
        assert ran == ["note"]
        await ended(worker, running)


async def test_a_worker_that_stops_gives_back_what_it_is_handed_meanwhile(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "_RENEW", 60.0)  # it does not find by itself what it was not told

    async def note() -> None: ...

    bench.app.add(note)
    async with opened(bench):
        store = Watched(bench.store)
        worker, running = await started(bench, store)
        await stands(worker)
        store.tell = False
        task = await bench.enqueue("note")
        await ended(worker, running)
        record = await bench.record(task)
        assert (record.state, record.worker, record.attempt) == (TaskState.PENDING, None, 0)


async def test_after_an_outage_of_the_listener_it_stands_by_again(bench: Bench, postgres_server: Any) -> None:
    async def note() -> None: ...

    bench.app.add(note)
    async with opened(bench):
        store = Watched(bench.store)
        worker, running = await started(bench, store)
        await stands(worker)
        await asyncio.to_thread(postgres_server.kill_backends, bench.app.store_url.rpartition("/")[2])

        async def is_handed_over() -> bool:
            task = await bench.enqueue("note")
            await completed(bench, task)
            return task in store.handed

        await eventually(is_handed_over)
        await ended(worker, running)


async def test_a_burst_is_over_when_nothing_is_left_and_stands_by_for_nothing(bench: Bench) -> None:
    async with opened(bench):
        store = Watched(bench.store)
        given: Any = store
        worker = Worker(bench.app, store=given, options=bench.options(burst=True))
        await asyncio.wait_for(worker.run(), 60)
        assert store.stands == 0


async def test_what_was_taken_for_missed_is_forgotten_with_the_first_word(bench: Bench) -> None:
    """The store did not answer, and nothing had been handed over: it stands by as before, one task after the other."""

    async def note() -> None: ...

    bench.app.add(note)
    async with opened(bench):
        store = Watched(bench.store)
        worker, running = await started(bench, store)
        await stands(worker)
        place_of(worker)._failed(StoreUnavailable("away"))
        tasks: list[int] = []
        for _ in range(3):
            await stands(worker)
            tasks.append(await bench.enqueue("note"))
            await completed(bench, tasks[-1])
        await ended(worker, running)
        assert store.handed == tasks
