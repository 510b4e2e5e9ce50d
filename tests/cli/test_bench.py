"""`headrace bench` measures the user's own store, and leaves nothing behind."""

import json
import sqlite3
from pathlib import Path

import psycopg
import pytest

from headrace.cli import benching
from headrace.cli.failures import FAILED, OK
from headrace.testing.store_conformance.ledger import Ledger
from tests.cli.shell import Shell


def traces(url: str) -> list[str]:
    """What a bench would leave in the database."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
        connection.close()
    else:
        with psycopg.connect(url) as connection:
            names = [name for (name,) in connection.execute("SELECT nspname FROM pg_namespace").fetchall()]
    return [name for name in names if "bench" in name]


def test_the_users_store_is_measured_and_left_as_it_was(either_shell: Shell):
    mine = either_shell.ledger(lambda ledger: ledger.enqueue_one())
    code, out, _ = either_shell("bench", "--seconds", "1", "--tasks", "600", "--json")
    assert code == OK
    found = json.loads(out)
    assert min(found["single"], found["batch"], found["drained"]) > 0
    assert found["done"] > 0
    assert "=" in found["durability"]
    assert traces(either_shell.url) == []

    async def live(ledger: Ledger) -> list[int]:
        return [name.oldest for name in await ledger.store.live_names()]

    assert either_shell.ledger(live) == [mine]


def test_no_store_is_left_where_there_was_none(shell: Shell):
    Path("elsewhere").mkdir()
    code, out, _ = shell("bench", "--seconds", "1", "--tasks", "100", "--database", "sqlite:///elsewhere/x.db")
    assert code == OK
    assert "tasks a second" in out
    assert "synchronous=FULL" in out
    assert list(Path("elsewhere").iterdir()) == []


def test_a_name_that_is_taken_is_not_touched(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(benching.secrets, "token_hex", lambda _: "taken")
    assert shell("db", "upgrade", "--name", "headrace_bench_taken")[0] == OK
    before = traces(shell.url)
    code, out, err = shell("bench", "--seconds", "1")
    assert (code, out) == (FAILED, "")
    assert "already" in err
    assert traces(shell.url) == before


def test_a_worker_that_does_not_begin_is_told_with_its_last_words(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(benching, "_TARGET", "no_such_module:app")
    code, out, err = shell("bench", "--seconds", "1", "--tasks", "100")
    assert (code, out) == (FAILED, "")
    assert "did not begin" in err
    assert "no module 'no_such_module'" in err
    assert traces(shell.url) == []
