"""`headrace send`: events from the command line."""

import contextlib
import json
import sqlite3

import pytest

from headrace.cli.failures import OK, UNAVAILABLE, USAGE
from tests.cli.shell import Shell


def test_an_event_is_sent(shell: Shell, sqlite_url: str) -> None:
    code, out, _ = shell("send", "paid", "order-7", '{"amount": 5}', "--json")
    sent = json.loads(out)
    assert (code, sent["event"], sent["key"]) == (OK, "paid", "order-7")
    assert isinstance(sent["id"], str)
    code, out, _ = shell("send", "paid", "order-8", "not JSON", "--database", shell.target)
    assert code == OK
    assert out.strip().isdecimal()
    assert shell("send", "tick")[0] == OK
    with contextlib.closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection:
        rows = connection.execute("SELECT name, key, payload FROM headrace_events ORDER BY created_at, id").fetchall()
    assert rows == [("paid", "order-7", '{"amount":5}'), ("paid", "order-8", '"not JSON"'), ("tick", "", "null")]


@pytest.mark.parametrize("words", [["", "k"], ["e" * 300, "k"]])
def test_a_mistake_is_one_line(shell: Shell, words: list[str]) -> None:
    code, _, err = shell("send", *words)
    assert code == USAGE
    assert "a text of 1 to 200" in err


def test_no_ledger_is_made_by_a_mistyped_path(shell: Shell) -> None:
    code, _, err = shell("send", "paid", "k", "--database", "sqlite:///no_such.db")
    assert code == UNAVAILABLE
    assert "no_such.db" in err
    assert not (shell.folder / "no_such.db").exists()
