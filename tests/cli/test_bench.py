"""`headrace bench` measures the user's own store, and leaves nothing behind."""

import json
import shlex
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from headrace.cli import benching
from headrace.cli.failures import FAILED, INTERRUPTED, OK
from headrace.store.connect import connect
from headrace.testing.store_conformance.ledger import Ledger
from tests.cli.shell import Shell, environment
from tests.support.waiting import wait_until

# As `python -m headrace.cli`, in a process that does not ignore SIGHUP although these tests may.
COMMAND = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL); from headrace.cli import main; main()"


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_bench_that_is_told_to_end_leaves_nothing_behind(either_shell: Shell, number: signal.Signals):
    """It comes as soon as there is something to remove; its repetition does not disturb the removal."""
    bench = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "bench", "--seconds", "600"],
        cwd=either_shell.folder, env=environment(either_shell.url), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        wait_until(lambda: traces(either_shell.url), timeout=60)
        bench.send_signal(number)
        bench.send_signal(number)
        _, err = bench.communicate(timeout=60)
    finally:
        bench.kill()
        bench.wait()
    assert (bench.returncode, b"left behind" in err) == (INTERRUPTED, False)
    assert traces(either_shell.url) == []


def test_its_worker_ends_too_and_signals_are_as_before(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    workers: list[subprocess.Popen[bytes]] = []

    def told_to_end(_app: Any, worker: subprocess.Popen[bytes], *_: Any) -> Any:
        workers.append(worker)
        assert worker.poll() is None
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(benching, "_drained", told_to_end)
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP)
    assert shell("bench", "--seconds", "1", "--tasks", "100")[0] == INTERRUPTED
    assert [worker.poll() is None for worker in workers] == [False]
    assert traces(shell.url) == []
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP)) == before


def test_what_cannot_be_removed_is_told_with_the_command_that_does(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    store = type(connect(shell.url))

    async def refuse(*_: Any) -> None:
        raise OSError("no")

    with monkeypatch.context() as broken:
        broken.setattr(store, "downgrade", refuse)
        broken.setattr(benching, "_one_by_one", lambda *_: 1 / 0)
        with pytest.raises(OSError, match="no"):
            shell("bench", "--seconds", "1", "--tasks", "100")
    err = capsys.readouterr().err
    (line,) = [line for line in err.splitlines() if line.startswith("left behind: headrace ")]
    monkeypatch.delenv("HEADRACE_DATABASE_URL")
    assert shell(*shlex.split(line.removeprefix("left behind: headrace ")))[0] == OK
    assert traces(shell.url) == []
