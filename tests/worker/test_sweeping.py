"""Tables of an app are swept by one process; an app without any pays nothing."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from headrace import App
from headrace.worker.services.sweeping import DataSweeper, data_in_use

pytest.importorskip("pyarrow")


@pytest.fixture
def app(sqlite_url: str) -> Iterator[App]:
    made = App(sqlite_url)
    yield made
    made.close()


async def test_what_is_due_is_dropped_by_whoever_leads(app: App, tmp_path: Path) -> None:
    await app.data.acreate([{"n": 1}], keep=timedelta(0))
    kept = await app.data.acreate([{"n": 2}], keep=timedelta(days=1))
    store = app.new_store()
    await store.open()
    try:
        first, second = (DataSweeper(app=app, store=store, identity=identity) for identity in ("one", "two"))
        await second.run_once()
        left = {meta.id for meta in await app.data.alist()}
        assert left == {kept.id}
        again = await app.data.acreate([{"n": 3}], keep=timedelta(0))
        await first.run_once()
        assert {meta.id for meta in await app.data.alist()} == {kept.id, again.id}, "another one leads"
        await second.run_once()
        assert {meta.id for meta in await app.data.alist()} == {kept.id}
    finally:
        await store.close()
        await app.aclose()


def test_an_app_without_tables_has_nothing_to_sweep(app: App, tmp_path: Path) -> None:
    assert data_in_use(app) is None
    assert not list(tmp_path.glob("*.data"))
    assert data_in_use(App("postgresql://localhost/none")) is None, "no place for tables at all"
    assert data_in_use(App(app.url, data_url="chdb:///somewhere")) is None
    far = data_in_use(App(app.url, data_url="memory://tables"))
    assert far is not None
    assert far.url == "memory://tables"
