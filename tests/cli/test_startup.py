"""A command begins at once: what is heavy is imported by whoever needs it."""

import os
import subprocess
import sys

import pytest

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
