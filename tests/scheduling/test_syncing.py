"""What an app's code declares is written when it starts, and goes when the code no longer says it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from headrace import App, Schedule
from headrace.core.errors import StoreUnavailable, WrongState
from headrace.store.base import Store
from headrace.telemetry.events import Bus
from headrace.worker.options import WorkerOptions
from headrace.worker.scheduling import declare_schedules, scheduler_services, take_over_schedules
from headrace.worker.worker import Worker
from tests.support.waiting import eventually


def noop(n: int = 0) -> int:
    return n


def app_with(url: str, **schedules: object) -> App:
    app = App(url)
    task = app.task(name="noop")(noop)
    for name, when in schedules.items():
        task.schedule(when if isinstance(when, Schedule) else Schedule(when, name=name))  # type: ignore[arg-type]
    return app


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = App(url).new_store()
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def start(app: App, store: Store, target: str = "tasks:app") -> None:
    await declare_schedules(app, store, target, stopping=asyncio.Event())


async def names(store: Store) -> list[str]:
    return [record.name for record in await store.schedules()]


async def test_what_a_start_takes_back_is_logged_by_name(store_url: str, caplog: pytest.LogCaptureFixture):
    """An older version that restarts late changes and removes what a newer one declared."""
    async with opened(store_url) as store:
        with caplog.at_level("WARNING", logger="headrace.store"):
            await start(app_with(store_url, a=60, b=60, c=60), store)
            await start(app_with(store_url, a=60, b=60, c=60), store)
            assert caplog.messages == [], "nothing that was there is another now"
            await start(app_with(store_url, a=60, b=90), store)
        assert caplog.messages == [
            "the declaration of tasks:app changed schedules that were there: b",
            "the declaration of tasks:app removed schedules that were there: c",
        ]


async def test_they_are_written_once_changed_and_removed_with_the_code(store_url: str):
    async with opened(store_url) as store:
        await start(app_with(store_url, a=60, b="0 9 * * *"), store)
        first = {record.name: record for record in await store.schedules()}
        assert {name: record.declared_by for name, record in first.items()} == {"a": "tasks:app", "b": "tasks:app"}
        await start(app_with(store_url, a=60, b="0 9 * * *"), store)
        assert {record.name: record for record in await store.schedules()} == first, "a restart changes nothing"
        await start(app_with(store_url, a=90, c=60), store)
        after = {record.name: record for record in await store.schedules()}
        assert sorted(after) == ["a", "c"]
        assert after["a"].id == first["a"].id
        assert after["a"].revision > first["a"].revision
        await start(app_with(store_url), store)
        assert await names(store) == [], "the code has none any more"


async def test_many_processes_of_one_app_start_at_once(store_url: str):
    async with opened(store_url) as store, opened(store_url) as other:
        await asyncio.gather(*(start(app_with(store_url, a=60, b=90), each) for each in (store, other) * 5))
        records = await store.schedules()
        assert [(record.name, record.revision) for record in records] == [("a", 1), ("b", 1)]


async def test_what_an_operator_changed_stands_until_the_code_changes(store_url: str):
    async with opened(store_url) as store:
        app = app_with(store_url, a=60)
        await start(app, store)
        await app.schedules.aset("a", when=3600, jitter=10)
        await app.schedules.apause("a")
        await start(app_with(store_url, a=60), store)
        seen = await app.schedules.aget("a")
        assert (seen.describe(), seen.record.jitter, seen.paused) == ("Every hour", 10, True)
        await start(app_with(store_url, a=90), store)
        seen = await app.schedules.aget("a")
        assert (seen.describe(), seen.record.jitter, seen.paused) == ("Every 1 minute 30 seconds", 0, True)
        await app.aclose()


async def test_apps_leave_each_other_alone_and_two_of_one_name_are_refused(store_url: str):
    async with opened(store_url) as store:
        app = app_with(store_url, mine=60)
        await start(app, store, "one:app")
        await start(app_with(store_url, theirs=60), store, "two:app")
        await app.schedules.aadd(app.get_task("noop"), Schedule(60, name="by hand"))
        await start(app_with(store_url), store, "three:app")
        assert await names(store) == ["by hand", "mine", "theirs"], "an app that declares none removes nobody's"
        with pytest.raises(WrongState, match="'one:app'"):
            await start(app_with(store_url, mine=90, new=90), store, "two:app")
        with pytest.raises(WrongState, match="run time"):
            await start(app_with(store_url, x=Schedule(60, name="by hand")), store, "two:app")
        assert await names(store) == ["by hand", "mine", "theirs"]
        await app.aclose()


async def test_a_target_without_an_attribute_is_the_same_app(sqlite_url: str):
    async with opened(sqlite_url) as store:
        await start(app_with(sqlite_url, a=60), store, "tasks")
        assert (await store.schedules())[0].declared_by == "tasks:app"


async def test_an_app_without_schedules_writes_nothing(sqlite_url: str, monkeypatch: pytest.MonkeyPatch):
    async with opened(sqlite_url) as store:
        asked: list[str] = []

        async def counted(by: str, schedules: object) -> list[object]:
            asked.append(by)
            return []

        monkeypatch.setattr(store, "declare_schedules", counted)
        await start(app_with(sqlite_url), store)
        assert asked == []
        await start(app_with(sqlite_url, a=60), store)
        assert asked == ["tasks:app"]


async def test_an_outage_at_the_start_is_waited_out(sqlite_url: str, monkeypatch: pytest.MonkeyPatch):
    async with opened(sqlite_url) as store:
        real, failures = store.declare_schedules, [StoreUnavailable("gone"), StoreUnavailable("still gone")]

        async def flaky(by: str, schedules: object) -> object:
            if failures:
                raise failures.pop()
            return await real(by, schedules)  # type: ignore[arg-type]

        monkeypatch.setattr(store, "declare_schedules", flaky)
        await start(app_with(sqlite_url, a=60), store)
        assert await names(store) == ["a"]
        failures.append(StoreUnavailable("gone for good"))
        stopping = asyncio.Event()
        stopping.set()
        await declare_schedules(app_with(sqlite_url, b=60), store, "tasks:app", stopping=stopping)
        assert await names(store) == ["a"], "told to stop, it does not insist"


async def test_code_that_follows_other_code_writes_and_fires_nothing_before_it_has_begun(
    sqlite_url: str, caplog: pytest.LogCaptureFixture
):
    """What is another app's by then is said, and what is due is fired all the same."""
    async with opened(sqlite_url) as store:
        await start(app_with(sqlite_url, theirs=3600), store, "two:app")
        for app in (app_with(sqlite_url, mine=3600), app_with(sqlite_url, theirs=60)):
            begun, stopping = asyncio.Event(), asyncio.Event()
            before, services = await names(store), scheduler_services(store, WorkerOptions(), Bus())
            taking = asyncio.create_task(
                take_over_schedules(app, store, "tasks:app", services, begun=begun, stopping=stopping)
            )
            try:
                for _ in range(5):
                    await asyncio.sleep(0)
                assert [service.task for service in services] == [None]
                assert await names(store) == before
                begun.set()
                await eventually(lambda taking=taking, services=services: taking.done() or services[0].task is not None)
                assert not taking.done()
                assert await names(store) == ["mine", "theirs"]
            finally:
                taking.cancel()
                await asyncio.gather(taking, return_exceptions=True)
        assert "'two:app'" in caplog.text
        assert caplog.text.count("schedules stay as they were") == 1


async def test_declared_by_hand_from_a_program(sqlite_url: str):
    app = app_with(sqlite_url, a=60)
    seen = await app.schedules.adeclare("tasks:app")
    assert [each.name for each in seen] == ["a"]
    assert await app_with(sqlite_url).schedules.adeclare("tasks:app") == []
    assert await app.schedules.alist() == []
    await app.aclose()


@pytest.mark.parametrize(("options", "expected"), [({}, 1), ({"scheduler": False}, 0), ({"burst": True}, 0)])
async def test_who_runs_a_scheduler(sqlite_url: str, options: dict[str, bool], expected: int):
    async with opened(sqlite_url) as store:
        assert len(scheduler_services(store, WorkerOptions(**options), Bus())) == expected  # type: ignore[arg-type]
    assert WorkerOptions.from_json(WorkerOptions(scheduler=False).to_json()).scheduler is False


async def test_a_burst_neither_declares_nor_fires(sqlite_url: str):
    app = app_with(sqlite_url, a=1)
    worker = Worker(app, target="tasks:app", options=WorkerOptions(burst=True, children=0))
    await asyncio.wait_for(worker.run(), 60)
    assert await app.schedules.alist() == []
    await app.aclose()
