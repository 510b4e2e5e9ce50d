"""`headrace db move` and `headrace db prune` as a person or a script meets them."""

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pexpect
import pytest

from headrace import App, Schedule
from headrace.cli.failures import FAILED, OK, UNAVAILABLE, USAGE, explained
from headrace.cli.root import application
from headrace.core.lanes import Lane
from headrace.core.task import Ref, TaskFilter, Want, WorkerRecord
from headrace.store.base import StoreOptions
from headrace.store.connect import connect, sqlite_path
from headrace.worker.options import WorkerOptions
from headrace.worker.worker import Worker
from tests.support.migrated import postgres_template as postgres_template
from tests.support.migrated import sqlite_template as sqlite_template
from tests.support.waiting import wait_until

type Shell = Callable[..., tuple[int, str, str]]


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    for name in list(os.environ):
        if name.startswith("HEADRACE_") and not name.startswith("HEADRACE_TEST"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        codes: list[int] = []

        def act() -> None:
            try:
                application(list(words), standalone_mode=True)
            except SystemExit as end:
                codes.append(int(end.code or 0))

        code = explained(act)
        printed = capsys.readouterr()
        return codes[0] if codes and code == OK else code, printed.out, printed.err

    return run


def filled(url: str, n: int = 3) -> App:
    app = App(url)

    @app.task(name="work")
    async def work(n: int) -> int:
        return n

    work.enqueue_many([{"n": i} for i in range(n)])
    return app


def secret(url: str) -> str:
    """The server trusts whoever comes, so any password will do."""
    return url.replace("headrace@", "headrace:pl4nted@")


def meta(url: str, key: str) -> str | None:
    with contextlib.closing(sqlite3.connect(sqlite_path(url))) as connection:
        found = connection.execute("SELECT value FROM headrace_meta WHERE key = ?", (key,)).fetchone()
    return None if found is None else found[0]


@pytest.mark.postgres
def test_it_says_what_it_did(shell: Shell, sqlite_url: str, postgres_url: str):
    app = filled(sqlite_url, 2)
    app.get_task("work").using(idempotency_key="k").enqueue(n=3)
    code, out, err = shell("db", "move", sqlite_url, secret(postgres_url), "--json")
    assert (code, err) == (OK, "")
    report = json.loads(out)
    assert (report["complete"], report["same"], report["interrupted"]) == (True, True, False)
    tables = {row["table"]: row for row in report["tables"]}
    assert tables["tasks"]["rows"] == 3
    assert tables["tasks"]["source_checksum"] == tables["tasks"]["target_checksum"]
    assert tables["keys"]["rows"] == 1, "no secret, though it is called so"
    assert "pl4nted" not in out
    assert meta(sqlite_url, "moved_to") == secret(postgres_url), "handles need it"
    # Again: what landed meanwhile.
    app.get_task("work").enqueue(n=4)
    code, out, err = shell("db", "move", sqlite_url, secret(postgres_url))
    assert (code, err) == (OK, "")
    assert "every row was found in the target as it was here" in out
    assert "pl4nted" not in out
    (line,) = [line for line in out.splitlines() if line.startswith("tasks ")]
    assert line.split()[1] == "4", "rows of the whole move"
    app.close()
    assert shell("db", "check", "-d", postgres_url)[:2] == (OK, "the ledger is sound: every invariant holds\n")
    assert shell("db", "check", "-d", sqlite_url)[0] == OK


@pytest.mark.postgres
def test_the_password_need_not_stay_in_the_source(shell: Shell, sqlite_url: str, postgres_url: str):
    assert shell("db", "move", sqlite_url, secret(postgres_url), "--drop-password")[0] == OK
    assert meta(sqlite_url, "moved_to") == postgres_url
    assert b"pl4nted" not in Path(sqlite_path(sqlite_url)).read_bytes()


@pytest.mark.postgres
def test_the_schema_of_the_target_is_made(shell: Shell, sqlite_url: str, postgres_url: str):
    filled(sqlite_url).close()
    assert shell("db", "downgrade", "base", "--yes", "-d", postgres_url)[0] == OK
    code, _, err = shell("db", "move", sqlite_url, postgres_url, "--no-upgrade")
    assert (code, err.count("\n")) == (UNAVAILABLE, 1)
    assert "--no-upgrade" in err
    assert shell("db", "move", sqlite_url, postgres_url)[0] == OK


@pytest.mark.postgres
def test_what_the_target_had_by_itself_is_told(shell: Shell, sqlite_url: str, postgres_url: str):
    for url in (sqlite_url, postgres_url):
        app = filled(url, 0)
        app.schedules.add(app.get_task("work"), Schedule(timedelta(hours=1), name="hourly"), n=1)
        app.close()
    code, out, err = shell("db", "move", sqlite_url, postgres_url)
    assert (code, err) == (OK, "")
    assert "but for those that it had by itself (1 of schedules)" in " ".join(out.split())
    (line,) = [line for line in out.splitlines() if line.startswith("schedules ")]
    assert line.split()[1:3] == ["0", "1"]


@pytest.mark.postgres
def test_a_ledger_that_has_moved_says_so(
    shell: Shell, sqlite_url: str, postgres_url: str, caplog: pytest.LogCaptureFixture
):
    app = filled(sqlite_url, 1)
    assert shell("db", "move", sqlite_url, secret(postgres_url))[0] == OK
    place = postgres_url.partition("@")[2]
    code, out, _ = shell("doctor", "-d", sqlite_url, "--json")
    (found,) = [finding for finding in json.loads(out)["findings"] if finding["check"] == "moved"]
    assert (code, found["level"], found["mend"]) == (OK, "warning", "use that URL")
    assert "has moved to postgresql://" in found["what"]
    assert place in found["what"]
    assert "pl4nted" not in out
    code, _, err = shell("tasks", "show", "1", "-d", sqlite_url)
    assert code != OK
    assert "has moved to postgresql://" in err
    assert place in err
    assert "pl4nted" not in err
    # What lands here waits for the next move; a worker says why it takes nothing.
    app.get_task("work").enqueue(n=4)
    code, out, _ = shell("doctor", "-d", sqlite_url, "--json")
    assert (code, [f["check"] for f in json.loads(out)["findings"] if f["level"] == "problem"]) == (FAILED, ["moved"])
    with caplog.at_level("WARNING", logger="headrace.worker"):
        asyncio.run(Worker(app, options=WorkerOptions(burst=True, concurrency=1)).run())
    (said,) = [record.getMessage() for record in caplog.records if "has moved to" in record.getMessage()]
    assert place in said
    assert "pl4nted" not in said
    app.close()


async def _hold(url: str, lease: float) -> int:
    """A worker claims a task, starts it, and is never heard of again."""
    store = connect(url, StoreOptions())
    await store.open()
    try:
        now = await store.now()
        await store.register(
            WorkerRecord(
                id="dead", kind="worker", hostname="h", pid=1, state="active", beat=0, lease=lease, queues=("default",),
                version="0", started_at=now, last_heartbeat=now, stopped_at=None, tasks_completed=0, tasks_failed=0,
            )
        )  # fmt: skip
        (claim,) = await store.claim("dead", [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=1)])
        await store.start("dead", [Ref(claim.id, claim.claim_no)])
        return claim.id
    finally:
        await store.close()


@pytest.mark.postgres
def test_what_a_dead_worker_held_is_rescued_and_goes_along(shell: Shell, sqlite_url: str, postgres_url: str):
    """Nobody else is left on the file to do it. While its lease may still run it counts as alive."""
    filled(sqlite_url, 1).close()
    held = asyncio.run(_hold(sqlite_url, 0.5))
    wait_until(lambda: shell("db", "move", sqlite_url, postgres_url)[0] == OK, 60, message="its lease is over")
    new = App(postgres_url)
    (attempt,) = new.tasks.attempts(held)
    assert (new.tasks.get(held).state, attempt.state, attempt.charged) == ("pending", "lost", True)
    assert new.check() == []
    new.close()


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("sqlite:///a.db", "sqlite:///a.db", "are the same"),
        ("sqlite:///there.db", "sqlite:///b.db", "moves to PostgreSQL, not to sqlite:///b.db"),
        ("postgresql://me:pl4nted@h/d", "postgresql://h/e", "only an SQLite ledger can be moved"),
        ("sqlite:///nowhere.db", "postgresql://h/d", "nothing to move"),
        ("sqlite://", "postgresql://h/d", "in memory"),
        ("there.db", "postgresql://h/d", "write sqlite:///file.db first"),
    ],
)
def test_wrong_ends_are_one_sentence(shell: Shell, tmp_path: Path, source: str, target: str, said: str):
    (tmp_path / "there.db").touch()
    code, out, err = shell("db", "move", source, target)
    assert (code, out, err.count("\n")) == (FAILED, "", 1)
    assert said in err
    assert "pl4nted" not in err


def test_a_target_that_is_not_there_is_one_sentence(shell: Shell, sqlite_url: str):
    code, out, err = shell("db", "move", sqlite_url, "postgresql://me:pl4nted@127.0.0.1:1/shop")
    assert (code, out, err.count("\n")) == (UNAVAILABLE, "", 1)
    assert "pl4nted" not in err
    assert meta(sqlite_url, "move") is None


def test_a_file_without_a_ledger_is_one_sentence(shell: Shell, tmp_path: Path):
    (tmp_path / "empty.db").touch()
    code, _, err = shell("db", "move", "sqlite:///empty.db", "postgresql://127.0.0.1:1/shop")
    assert (code, err.count("\n")) == (UNAVAILABLE, 1)
    assert "has no ledger" in err


def test_without_the_driver_it_is_one_sentence(sqlite_url: str):
    code = (
        "import sys; sys.modules['asyncpg'] = None\n"
        "from headrace.cli import main\n"
        f"sys.argv = ['headrace', 'db', 'move', {sqlite_url!r}, 'postgresql://h/d']\n"
        "sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == UNAVAILABLE, done.stderr
    assert done.stderr.count("\n") == 1
    assert "pip install 'headrace[postgres]'" in done.stderr


@pytest.mark.postgres
def test_following_ends_with_an_interrupt_and_says_how_to_go_on(sqlite_url: str, postgres_url: str):
    app = filled(sqlite_url)
    words = [sys.executable, "-m", "headrace.cli", "db", "move", sqlite_url, postgres_url, "--follow", "--json"]
    mover = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: not app.tasks.list() or mover.poll() is not None, 60, message="the three have gone")
        late = app.get_task("work").enqueue(n=9)
        wait_until(lambda: not app.tasks.list() or mover.poll() is not None, 60, message="so has a late one")
        # It is in the target when nothing is on its way any more.
        wait_until(lambda: len(asyncio.run(_there(postgres_url))) == 4, 60, message="all of them arrived")
        assert late.state() == "pending"
        mover.send_signal(signal.SIGINT)
        out, err = mover.communicate(timeout=60)
    finally:
        mover.kill()
        mover.wait()
        app.close()
    report = json.loads(out)
    assert (mover.returncode, report["complete"], report["interrupted"]) == (OK, True, True), err


async def _there(url: str) -> Any:
    store = connect(url, StoreOptions())
    await store.open()
    try:
        return await store.list(TaskFilter())
    finally:
        await store.close()


@pytest.mark.postgres
def test_on_a_terminal_it_shows_how_far_it_is(sqlite_url: str, postgres_url: str):
    filled(sqlite_url, 2000).close()
    words = ["-m", "headrace.cli", "db", "move", sqlite_url, postgres_url]
    with contextlib.closing(
        pexpect.spawn(sys.executable, words, encoding="utf-8", timeout=60, dimensions=(40, 200))
    ) as it:
        it.expect("copying history")
        it.expect("moved in")
        it.expect(pexpect.EOF)
        it.wait()
    assert it.exitstatus == OK


def test_prune_by_the_length_of_time_that_is_kept(shell: Shell, sqlite_url: str):
    app = filled(sqlite_url)
    ids = [record.id for record in app.tasks.list()]
    app.tasks.cancel(*ids)
    app.close()
    base = ("db", "prune", "-d", sqlite_url)
    assert json.loads(shell(*base, "--keep", "1h", "--json")[1])["tasks"] == 0
    code, out, _ = shell(*base, "--keep", "0", "--dry-run", "--json")
    assert (code, json.loads(out)["tasks"], json.loads(out)["dry_run"]) == (OK, 3, True)
    assert shell(*base, "--keep", "0s", "--dry-run")[1].startswith("would remove: 3 tasks, ")
    assert shell(*base, "--keep", "0s")[1].startswith("removed: 3 tasks, ")
    assert shell(*base, "--keep", "0s")[1].startswith("removed: 0 tasks, ")
    for wrong in ("soon", "-1d", "7x", "9e9", "99999w"):
        code, out, err = shell(*base, f"--keep={wrong}")
        assert (code, out, err.count("\n")) == (USAGE, "", 1)
        assert "--keep" in err


def test_prune_goes_on_while_only_events_of_a_job_went(shell: Shell, sqlite_url: str):
    """More of them than two calls remove: the job goes with the last."""
    app = filled(sqlite_url)
    job = app.jobs.create("j", [app.get_task("work").prepare(n=1)])
    app.jobs.cancel(job.id)
    app.close()
    with contextlib.closing(sqlite3.connect(sqlite_path(sqlite_url), timeout=30)) as connection, connection:
        connection.executemany(
            "INSERT INTO headrace_job_events (job, seq, at, state, total, completed, failed, cancelled) "
            "VALUES (?, ?, 0, 'running', 1, 0, 0, 0)",
            [(job.id, 1000 + n) for n in range(11_000)],
        )
    code, out, _ = shell("db", "prune", "-d", sqlite_url, "--keep", "0s", "--json")
    assert (code, json.loads(out)["jobs"]) == (OK, 1)
    with contextlib.closing(sqlite3.connect(sqlite_path(sqlite_url), timeout=30)) as connection:
        assert connection.execute("SELECT count(*) FROM headrace_job_events").fetchall() == [(0,)]
