"""A command begins at once: what is heavy is imported by whoever needs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headrace.cli.root import application

# Typer brings pydantic with it where a command has parameters.
LIBRARIES = {"alembic", "sqlalchemy", "asyncpg", "prometheus_client", "opentelemetry", "watchfiles"}
LIBRARIES |= {"pyarrow", "pandas", "polars", "numpy", "fsspec", "chdb", "clickhouse_connect"}
HEAVY = {*LIBRARIES, "asyncio", "sqlite3", "orjson", "headrace.store.base"}
# A list needs the store and its driver, and nothing of these.
UNNEEDED = {*LIBRARIES, "headrace.worker", "headrace.app"}

PROGRAM = """
import sys
sys.argv = ["headrace", *sys.argv[1:]]
from headrace.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
finally:
    print("\\nIMPORTED", *sorted(sys.modules))
"""


def imported(*words: str, url: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, timeout=100, check=True,
        env={**os.environ, "HEADRACE_DATABASE_URL": url},
    )  # fmt: skip
    return set(done.stdout.rpartition("IMPORTED ")[2].split())


@pytest.mark.parametrize("words", [["--help"], ["tasks", "list", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(words: list[str], sqlite_url: str):
    assert imported(*words, url=sqlite_url) & HEAVY == set()


def test_a_list_imports_only_its_store(sqlite_url: str):
    found = imported("tasks", "list", url=sqlite_url)
    assert "headrace.store.sqlite" in found
    assert found & UNNEEDED == set()


@pytest.mark.parametrize(("asked", "cores", "begun"), [(None, 4, 1), (3, 4, 3), (64, 2, 2)])
def test_all_processes_of_a_worker_begin_to_import_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asked: int | None, cores: int, begun: int
):
    """They are handed to the supervisor, and none is left behind when it has ended. Not more than there are cores to
    import on: the supervisor starts the others."""

    class Begun:
        closed = False

        def close(self) -> None:
            self.closed = True

    handed: list[Begun] = []

    def run(target: str, options: object, *, spawned: list[Begun], **others: object) -> int:
        handed.extend(spawned)
        assert not any(process.closed for process in spawned)
        return 0

    monkeypatch.setattr("headrace.worker.spawning.Spawned", Begun)
    monkeypatch.setattr("headrace.worker.supervisor.run", run)
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "begun_tasks.py").write_text("from headrace import App\napp = App('sqlite:///x.db')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    flags = ["--processes", str(asked)] if asked is not None else []
    done = CliRunner().invoke(application, ["worker", "begun_tasks:app", *flags])
    assert done.exit_code == 0, done.output
    assert len(handed) == begun
    assert all(process.closed for process in handed)
