"""One clear error each, and nothing written."""

import subprocess
import sys

import pytest

from headrace import App
from headrace.core.errors import MissingExtra, SchemaError, SettingsError, UnknownTask
from headrace.store.connect import sqlite_path


def test_a_newer_schema_is_refused(sqlite_url: str):
    import sqlite3

    app = App(sqlite_url)

    @app.task(name="x")
    def x() -> None: ...

    x.enqueue()
    app.close()
    connection = sqlite3.connect(sqlite_path(sqlite_url))
    connection.execute("UPDATE headrace_meta SET value = '9999' WHERE key = 'schema'")
    connection.commit()
    with pytest.raises(SchemaError, match="9999"):
        x.enqueue()
    assert connection.execute("SELECT count(*) FROM headrace_tasks").fetchone() == (1,)
    connection.close()
    app.close()


@pytest.mark.postgres
def test_a_newer_schema_is_refused_on_a_server(postgres_url: str):
    import psycopg

    app = App(postgres_url)

    @app.task(name="x")
    def x() -> None: ...

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE headrace.meta SET value = '9999' WHERE key = 'schema'")
        with pytest.raises(SchemaError, match="9999"):
            x.enqueue()
        assert connection.execute("SELECT count(*) FROM headrace.tasks").fetchone() == (0,)
    app.close()


def test_a_missing_driver_names_the_extra():
    program = """
import sys
sys.modules["asyncpg"] = None
from headrace import App
from headrace.core.errors import MissingExtra
app = App("postgresql://me@localhost/x")
@app.task(name="x")
def x() -> None: ...
try:
    x.enqueue()
except MissingExtra as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "headrace[postgres]" in done.stdout, done.stderr
    assert issubclass(MissingExtra, ImportError)


def test_a_bad_app_name():
    for name in ("Billing", "1st", "a-b", "a" * 60, "drop table;"):
        with pytest.raises(SettingsError, match="cannot be a schema"):
            App("sqlite://", name=name)


def test_a_folder_that_is_not_there(tmp_path):
    app = App(f"sqlite:///{tmp_path}/missing/headrace.db")
    with pytest.raises(Exception, match="does not exist"):
        app.tasks.list()
    assert not (tmp_path / "missing").exists()


def test_an_unknown_task_name(sqlite_app: App):
    with pytest.raises(UnknownTask, match="nothing"):
        sqlite_app.get_task("nothing")
    assert sqlite_app.tasks.list() == []
