"""An app is pointed elsewhere for a block, and is afterwards what it was."""

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from headrace import App
from headrace.store import migrations
from headrace.store.base import StoreOptions
from headrace.store.connect import connect, sqlite_path
from headrace.testing import FakeClock, drain, override, temporary_database


def test_a_block_has_an_empty_database_that_is_gone_afterwards(shop: SimpleNamespace) -> None:
    app: App = shop.app
    with override(app) as first:
        assert first.url == app.url == app.store_url == app.settings.database_url
        path = Path(sqlite_path(first.url))
        assert shop.add.enqueue(1, 2).id == 1
        assert path.exists()
        # The tables are the app's own.
        assert len(app.tasks.list()) == 1
    assert not path.exists()
    assert app.url == "sqlite:////nowhere/production.db" == app.settings.database_url
    with override(app):
        assert app.tasks.list() == []


def test_what_was_open_before_stays_open(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path}/own.db")

    @app.task(name="work")
    def work() -> None: ...

    before = work.enqueue()
    with override(app):
        assert app.tasks.list() == []
        work.enqueue()
        with override(app):
            assert app.tasks.list() == []
        assert len(app.tasks.list()) == 1
    assert [record.id for record in app.tasks.list()] == [before.id]
    assert work.enqueue().id == before.id + 1
    app.close()


def test_an_error_in_the_block_brings_the_app_back(shop: SimpleNamespace) -> None:
    with pytest.raises(ZeroDivisionError), override(shop.app):
        shop.add.enqueue(1, 1).id // 0
    assert shop.app.url == "sqlite:////nowhere/production.db"
    assert shop.app.engine.clock is None


async def test_it_works_from_async_code_in_both_forms(shop: SimpleNamespace) -> None:
    async with override(shop.app):
        await shop.greet.aenqueue("a")
        assert len(await shop.app.tasks.alist()) == 1
    with override(shop.app):
        assert await shop.app.tasks.alist() == []
        await shop.greet.aenqueue("b")


def test_two_schemas_in_one_postgres_database_do_not_meet(postgres_url: str, shop: SimpleNamespace) -> None:
    app: App = shop.app
    with temporary_database(postgres_url, name="shop") as one, temporary_database(postgres_url, name="shop") as two:
        assert one.name != two.name
        with override(app, url=one.url, name=one.name):
            shop.add.enqueue(1, 2)
            asyncio.run(_enqueued_on_a_loop(shop))
            assert drain(app).completed == 2
        with override(app, url=two.url, name=two.name, clock=FakeClock()):
            assert app.tasks.list() == []
            assert app.name == two.name
            shop.add.enqueue(1, 2)
    assert app.name == "shop"
    for gone in (one, two):
        assert migrations.current(postgres_url, name=gone.name) is None


async def _enqueued_on_a_loop(shop: SimpleNamespace) -> None:
    """Which has a line of its own to PostgreSQL."""
    await shop.add.aenqueue(3, 4)
    await shop.app.aclose()


def test_a_store_of_its_own_sees_the_same_ledger_and_clock(shop: SimpleNamespace) -> None:
    """What a worker of the app is given."""

    async def look() -> list[int]:
        store = shop.app.new_store()
        await store.open()
        try:
            assert await store.now() == clock.now()
            return list(await store.get([1]))
        finally:
            await store.close()

    clock = FakeClock()
    with override(shop.app, clock=clock):
        shop.add.enqueue(1, 1)
        clock.advance(3600)
        assert asyncio.run(look()) == [1]


def test_only_a_postgres_url_can_hold_a_schema_for_a_test(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is no PostgreSQL URL"), temporary_database(f"sqlite:///{tmp_path}/x.db"):
        raise AssertionError


async def test_a_temporary_file_has_the_schema_already() -> None:
    with temporary_database(name="other") as database:
        store = connect(database.url, StoreOptions(name="other", migrate=False))
        await store.open()
        assert await store.check() == []
        await store.close()
