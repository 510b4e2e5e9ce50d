"""One tick, one task: whatever number of schedulers run, and wherever they are killed."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headrace.core.clock import Clock
from headrace.core.schedule import ScheduleRecord
from headrace.core.task import NewTask, TaskFilter
from headrace.scheduling.cadence import Cron, cadence_from_json
from headrace.scheduling.declaration import Schedule
from headrace.store.base import Store, StoreOptions
from headrace.store.connect import connect
from headrace.testing.clock import SharedClock
from tests.support.sizes import sized
from tests.support.waiting import eventually, wait_until

ROOT = Path(__file__).parents[2]
START = datetime(2030, 3, 31, tzinfo=UTC)  # clocks change an hour later in Berlin
MINUTE = timedelta(minutes=1)


class Scheduler:
    """A process that is started again as often as it is killed."""

    def __init__(self, words: Sequence[str], log: Path) -> None:
        self._words = words
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.deaths = 0

    def start(self, **environment: str) -> None:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *self._words], cwd=ROOT, stdout=log, stderr=log, env=os.environ | environment
            )

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def reap(self) -> None:
        """If it was started, it must have died by the signal: anything else is an error of its own."""
        if self._process is None:
            return
        code = self._process.wait(60)
        assert code == -signal.SIGKILL, f"exit {code}\n{self._log.read_text()[-4000:]}"
        self.deaths += 1
        self._process = None

    def kill(self) -> None:
        """It may be dead already."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self.reap()

    def terminate(self) -> int:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        code = self._process.wait(60)
        self._process = None
        return code

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def fires(self) -> bool:
        """Whether the last of its processes has begun."""
        return "fires what is due" in self._log.read_text(errors="replace")


@pytest.fixture
def schedulers(tmp_path: Path) -> Iterator[list[Scheduler]]:
    made: list[Scheduler] = []
    yield made
    for scheduler in made:
        scheduler.close()


@contextlib.asynccontextmanager
async def opened(url: str, clock: Clock | None = None) -> AsyncIterator[Store]:
    store = connect(url, StoreOptions(extra={} if clock is None else {"clock": clock}))
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def fired(store: Store, name: str) -> list[datetime]:
    """The ticks that have a run, oldest first."""
    ticks: list[datetime] = []
    before: datetime | None = None
    while page := await store.schedule_runs(name, limit=1000, before=before):
        ticks += [run.tick for run in page]
        before = page[-1].tick
    return ticks[::-1]


async def account(store: Store, names: Sequence[str]) -> dict[str, list[datetime]]:
    """The ticks of each; every run has a task of its own, and there is no task without a run."""
    ticks = {name: await fired(store, name) for name in names}
    tasks: Counter[str] = Counter()
    page, before = await store.list(TaskFilter(limit=1000)), None
    while page:
        tasks.update(record.name for record in page)
        before = (page[-1].created_at, page[-1].id)
        page = await store.list(TaskFilter(limit=1000, before=before))
    assert tasks == {name: len(found) for name, found in ticks.items() if found}
    assert await store.check() == []
    return ticks


@pytest.mark.chaos
@pytest.mark.requirement("R106")
@pytest.mark.timeout(1200)
async def test_two_schedulers_killed_at_random_fire_each_tick_once(
    store_url: str, tmp_path: Path, schedulers: list[Scheduler]
):
    """R106: two scheduler processes are up. The clock moves tick by tick and sometimes jumps; all the while they are
    killed -9, from outside at random and at the two worst points: before and after the commit that fires. The ticks
    that have a run are exactly those of the calendar, and each has exactly one task."""
    ticks, rng = sized(small=150, full=10_000), random.Random(106)
    clock = SharedClock(tmp_path / "clock", instant=START)
    async with opened(store_url, clock) as store:
        schedules = {
            "minutes": Schedule(MINUTE, name="minutes", catch_up="all"),
            "quarters": Schedule(Cron("*/15 * * * *", "Europe/Berlin"), name="quarters", catch_up="all"),
            "hours": Schedule(Cron("5 */2 * * *", "Europe/Berlin"), name="hours", overlap="allow"),
        }
        await store.put_schedules([each.stored(NewTask(name=name)) for name, each in schedules.items()])
        schedulers += [
            Scheduler(["tests.guarantees.schedulers", store_url, str(clock.path)], tmp_path / f"{index}.log")
            for index in range(2)
        ]

        def keep_two() -> None:
            for scheduler in schedulers:
                if not scheduler.alive:
                    scheduler.reap()
                    point = rng.choice(["before", "after"])
                    nth = rng.randint(1, max(2, ticks // 4))
                    scheduler.start(HEADRACE_FAULT=f"store.fire.{point}_commit:kill9:{nth}")

        keep_two()
        passed, kills = 0, sorted(rng.sample(range(ticks), k=sized(small=4, full=60)))
        while passed < ticks:
            step = 1 if rng.random() < 0.9 else rng.randint(2, 20)
            passed += step
            clock.advance(step * MINUTE)
            while kills and kills[0] < passed:
                kills.pop(0)
                rng.choice(schedulers).kill()

            async def caught_up() -> bool:
                keep_two()
                return all(_is_behind_none(record, clock.now()) for record in await store.schedules())

            await eventually(caught_up, 90)
        deaths = sum(scheduler.deaths for scheduler in schedulers)
        found = await account(store, list(schedules))
    assert deaths >= sized(small=2, full=40), "they were killed"
    end = clock.now()
    for name in ("minutes", "quarters"):
        assert found[name] == list(schedules[name].cadence.fires(START, end)), "each tick once"
    every = list(schedules["hours"].cadence.fires(START, end))
    # What a jump went over is one fire for all.
    assert [tick for tick in every if tick in set(found["hours"])] == found["hours"]
    assert len(every) * 0.5 <= len(found["hours"]) <= len(every)
    assert len(found["minutes"]) >= ticks


def _is_behind_none(record: ScheduleRecord, now: datetime) -> bool:
    """Whether all ticks up to now are decided."""
    following = cadence_from_json(record.cadence).next_after(record.cursor)
    return following is None or following > now


@pytest.mark.chaos
@pytest.mark.requirement("R106")
@pytest.mark.timeout(300)
async def test_real_schedulers_killed_lose_no_second(store_url: str, tmp_path: Path, schedulers: list[Scheduler]):
    """R106, with nothing simulated: two `headrace scheduler` on one ledger and a tick each second, one of them killed
    -9 again and again, once both. No second is missing, none fired twice; told to stop they end with 0."""
    async with opened(store_url) as store:
        await store.put_schedules([Schedule(1, name="second", catch_up="all").stored(NewTask(name="second"))])
        words = ["headrace.cli", "scheduler", "--database", store_url]
        schedulers += [Scheduler(words, tmp_path / f"{index}.log") for index in range(2)]
        for scheduler in schedulers:
            scheduler.start()

        async def more(n: int) -> None:
            before = len(await fired(store, "second"))

            async def there() -> bool:
                assert any(scheduler.alive for scheduler in schedulers)
                return len(await fired(store, "second")) >= before + n

            await eventually(there, 90)

        await more(1)
        for round in range(sized(small=1, full=10)):
            victim = schedulers[round % 2]
            victim.kill()
            await more(1)
            victim.start()
            await more(1)
        for scheduler in schedulers:
            scheduler.kill()
        pause = time.monotonic() + 1.5  # seconds that nobody sees
        wait_until(lambda: time.monotonic() > pause)
        for scheduler in schedulers:
            scheduler.start()
        await more(2)
        for scheduler in schedulers:
            wait_until(scheduler.fires, 60)
        assert [scheduler.terminate() for scheduler in schedulers] == [0, 0]
        ticks = (await account(store, ["second"]))["second"]
        (record,) = await store.schedules()
        assert ticks == list(cadence_from_json(record.cadence).fires(record.created_at, ticks[-1]))
        assert len(ticks) >= 5
