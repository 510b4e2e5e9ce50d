"""The place of an app: where it is by default, what settings say, and what is imported before a table is touched."""

import subprocess
import sys
from pathlib import Path

import pytest

from headrace import App
from headrace.core.errors import SettingsError


def test_it_is_beside_the_database(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path}/tasks.db")
    assert app.data.url == (tmp_path / "tasks.db.data").as_uri()
    assert app.data.create([{"a": 1}]).table().num_rows == 1
    assert (tmp_path / "tasks.db.data").is_dir()
    assert app.data is app.data
    assert app.data.keep is not None
    assert app.data.keep.days == 7


def test_settings_say_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/tasks.db"
    app = App(url, data_url=str(tmp_path / "elsewhere"), data_keep=60)
    assert app.data.url == (tmp_path / "elsewhere").as_uri()
    assert app.data.keep is not None
    assert app.data.keep.total_seconds() == 60
    monkeypatch.setenv("HEADRACE_DATA_URL", "memory://tables")
    monkeypatch.setenv("HEADRACE_DATA_KEEP_SECONDS", "none")
    app = App(url)
    assert (app.data.url, app.data.keep) == ("memory://tables", None)
    with pytest.raises(SettingsError, match="data_keep"):
        App(url, data_keep=-1)


@pytest.mark.parametrize("url", ["postgresql://user:hidden@host/shop", "sqlite://"])
def test_without_a_place_the_setting_is_named(url: str) -> None:
    app = App(url)
    with pytest.raises(SettingsError, match="HEADRACE_DATA_URL") as caught:
        _ = app.data
    assert "hidden" not in str(caught.value)
    assert App(url, data_url="memory://x").data.url == "memory://x"


def test_owners_differ_by_database_and_name_and_hide_passwords(tmp_path: Path) -> None:
    def owner(url: str, name: str = "headrace") -> str | None:
        return App(url, name=name, data_url="memory://x").data.owner

    base = "postgresql://u:one@host/shop"
    assert owner(base) == owner("postgresql://u:two@host/shop")
    assert len({owner(base), owner(base, "billing"), owner("postgresql://u:one@host/other")}) == 3


def test_the_only_place_of_a_process_is_the_current_one(tmp_path: Path) -> None:
    program = f"""
import asyncio
from headrace import App
from headrace.data import Object, current_data
url = "sqlite:///{tmp_path}/tasks.db"
app, same = App(url), App(url)
made = asyncio.run(Object.create([{{"a": 1}}]))
assert made.data.url == app.data.url
print(asyncio.run(Object(made.id).count()))
"""
    assert run(program) == "1"


def test_nothing_heavy_is_imported_before_a_table_is_touched(tmp_path: Path) -> None:
    program = f"""
import sys
from headrace import App
from headrace.data import SQL, Data, Object, View, current_data, sweep, use
app = App("sqlite:///{tmp_path}/tasks.db")

@app.task(name="count")
async def count(rows: Object, part: View | None = None) -> Object: ...

app.upgrade()
count.enqueue(Object("obj_a"))
app.data
print(*sorted({{"pyarrow", "pandas", "polars", "numpy", "fsspec", "chdb", "clickhouse_connect"}} & set(sys.modules)))
"""
    assert run(program) == ""


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True)
    return done.stdout.strip()
