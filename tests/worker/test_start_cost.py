"""What a process imports before its first task: each module is paid for by every worker process and every test."""

import subprocess
import sys

import pytest

_OPEN = """
import asyncio, sys
from headrace.store.base import StoreOptions
from headrace.store.connect import connect

async def main():
    store = connect(sys.argv[1], StoreOptions(name="headrace"))
    await store.open()
    await store.close()

asyncio.run(main())
print(*sorted(sys.modules.keys() & {"alembic", "sqlalchemy", "pydantic", "typer", "rich", "asyncpg"}))
"""


def _heavy(code: str, *arguments: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(("dialect", "needed"), [("sqlite", []), ("postgres", ["asyncpg"])])
def test_a_ledger_that_is_there_is_opened_without_the_tools_that_make_one(
    request: pytest.FixtureRequest, dialect: str, needed: list[str]
) -> None:
    """Alembic and SQLAlchemy cost half a second of a processor, in the supervisor and in each of its processes."""
    from headrace.store import migrations

    url = request.getfixturevalue(f"{dialect}_url")
    migrations.upgrade(url, name="headrace")
    assert _heavy(_OPEN, url) == needed


def test_a_worker_process_begins_without_the_command_line_and_what_only_some_tasks_need() -> None:
    code = "import sys, headrace.worker.process, headrace.app; print(*sorted(sys.modules.keys() & {'alembic', "
    code += "'sqlalchemy', 'pydantic', 'typer', 'rich', 'asyncpg', 'psycopg', 'prometheus_client'}))"
    assert _heavy(code) == []
