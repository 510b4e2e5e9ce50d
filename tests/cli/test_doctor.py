"""`headrace doctor`: each thing that can be wrong is made wrong, and is found with its mend."""

import json
import multiprocessing
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headrace.cli.diagnosis import ledger as checks
from headrace.cli.diagnosis.findings import Finding, Level
from headrace.cli.diagnosis.machine import place, versions
from headrace.cli.failures import FAILED, OK
from headrace.core.states import Reason
from headrace.store import migrations
from headrace.store.base import StoreFacts
from headrace.testing.store_conformance.ledger import Ledger, failed_for_good
from tests.cli.shell import Shell, environment
from tests.support.postgres import PostgresServer

FACTS = StoreFacts(
    product="PostgreSQL", version=(15, 3), durable=True, durability="fsync=on", size=0, connections=5,
    most_connections=97,
)  # fmt: skip


def findings(shell: Shell, *words: str) -> tuple[int, list[dict[str, str]]]:
    code, out, err = shell("doctor", *words, "--json")
    assert err == ""
    answer = json.loads(out)
    assert answer["healthy"] is (code == OK)
    return code, answer["findings"]


def found(shell: Shell, level: str, check: str, *words: str) -> dict[str, str]:
    """The one finding of that level and check; a problem makes the exit code 1, a warning does not."""
    code, everything = findings(shell, *words)
    matching = [finding for finding in everything if (finding["level"], finding["check"]) == (level, check)]
    assert len(matching) == 1, everything
    assert matching[0]["mend"]
    wrong = any(finding["level"] == "problem" for finding in everything)
    assert code == (FAILED if wrong else OK)
    assert wrong or level == "warning"
    return matching[0]


@pytest.fixture
def durable_shell(request: pytest.FixtureRequest, either_shell: Shell) -> Iterator[Shell]:
    """On a server that forces to the disk, which others of these tests do without."""
    if either_shell.url.startswith("sqlite:"):
        yield either_shell
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.forcing():
        yield either_shell


def test_nothing_is_wrong(durable_shell: Shell):
    async def work(ledger: Ledger) -> None:
        await ledger.register("a", lease=600.0, queues=())
        await ledger.enqueue_one(f"{durable_shell.module}.double", arguments='{"n":1}')

    durable_shell.ledger(work)
    code, everything = findings(durable_shell, durable_shell.target)
    assert (code, {finding["level"] for finding in everything}) == (OK, {"ok"})
    assert {"python", "sqlite", "app", "url", "schema", "server", "clock", "workers", "names", "ledger"} <= {
        finding["check"] for finding in everything
    }
    code, out, _ = durable_shell("doctor")
    assert code == OK
    assert out.endswith("nothing is wrong\n")


# The place.


def test_a_file_that_is_not_there(shell: Shell):
    assert "db upgrade" in found(shell, "problem", "file", "--database", "sqlite:///absent.db")["mend"]
    assert not list(shell.folder.glob("absent.db*")), "a doctor makes nothing"


def test_a_folder_that_is_not_there(shell: Shell):
    assert "mkdir" in found(shell, "problem", "file", "--database", "sqlite:///no/such/x.db")["mend"]


def test_a_folder_for_a_file(shell: Shell):
    (shell.folder / "folder").mkdir()
    assert "is a folder" in found(shell, "problem", "file", "--database", "sqlite:///folder")["what"]


@pytest.mark.parametrize("url", ["mysql://x/y", "headrace.db", "sqlite://host/x.db", "sqlite://"])
def test_a_url_that_is_none(shell: Shell, url: str):
    found(shell, "problem", "url", "--database", url)


def test_a_file_that_is_no_database(shell: Shell):
    (shell.folder / "text.db").write_text("this is text, and far too long to be mistaken for an empty database\n" * 99)
    assert "not an SQLite database" in found(shell, "problem", "schema", "--database", "sqlite:///text.db")["what"]


def test_a_network_file_system(tmp_path: Path):
    (tmp_path / "x.db").touch()
    mounts = f"host:/export {tmp_path.resolve()} nfs4 rw 0 0\n"
    wrong = [finding for finding in place(f"sqlite:///{tmp_path}/x.db", mounts) if finding.level is Level.PROBLEM]
    assert [finding.check for finding in wrong] == ["mount"]
    assert "nfs4" in wrong[0].what


def _as_nobody(act: Callable[[], list[Finding]], answers: "multiprocessing.Queue[list[tuple[str, str]]]") -> None:
    if os.geteuid() == 0:
        os.seteuid(65534)
    answers.put([(finding.check, finding.what) for finding in act() if finding.level is Level.PROBLEM])


def test_a_file_of_somebody_else(tmp_path: Path):
    """As a user who may look at it and not write it: in a child, because the tests may run as root."""
    tmp_path.chmod(0o755)
    (tmp_path / "x.db").touch(mode=0o644)
    (tmp_path / "x.db").chmod(0o444)
    for folder in tmp_path.parents[:3]:
        if folder.stat().st_uid == os.geteuid() and folder.parent != folder:
            folder.chmod(folder.stat().st_mode | 0o055)
    if os.geteuid() != 0:
        tmp_path.chmod(0o555)
    context = multiprocessing.get_context("fork")
    answers: multiprocessing.Queue[list[tuple[str, str]]] = context.Queue()
    url = f"sqlite:///{tmp_path}/x.db"
    child = context.Process(target=_as_nobody, args=(lambda: list(place(url)), answers))
    child.start()
    try:
        wrong = answers.get(timeout=60)
    finally:
        child.join(60)
        tmp_path.chmod(0o755)
    assert [check for check, _ in wrong] == ["rights", "rights"], wrong
    assert "may not read and write" in wrong[0][1]


# The schema.


def test_no_schema(shell: Shell):
    connection = sqlite3.connect("empty.db")
    connection.execute("CREATE TABLE mine (id)")
    connection.close()
    assert found(shell, "problem", "schema", "--database", "sqlite:///empty.db")["mend"] == "headrace db upgrade"
    code, _ = findings(shell, "--name", "nobody")
    assert code == FAILED


def test_a_newer_schema(shell: Shell):
    with sqlite3.connect(shell.url.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE headrace_alembic_version SET version_num = '9999'")
    connection.close()
    finding = found(shell, "problem", "schema")
    assert "newer than this code" in finding["what"]
    assert "upgrade headrace" in finding["mend"]


def test_an_older_schema(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    """To code of tomorrow, which has one more migration, today's schema is old."""
    monkeypatch.setattr(migrations, "heads", lambda: ("9999",))
    assert found(shell, "problem", "schema")["mend"] == "headrace db upgrade"


def test_a_postgres_without_a_schema(either_shell: Shell):
    assert found(either_shell, "problem", "schema", "--name", "nobody")["mend"] == "headrace db upgrade"


def test_a_server_that_is_not_there(shell: Shell):
    found(shell, "problem", "store", "--database", "postgresql://127.0.0.1:1/none")


@pytest.mark.postgres
def test_a_database_that_is_not_there(shell: Shell, postgres_url: str):
    finding = found(shell, "problem", "store", "--database", postgres_url + "_not_there")
    assert "_not_there" in finding["what"]


def without(module: str, *words: str, shell: Shell) -> dict[str, list[dict[str, str]]]:
    """In a process in which the module cannot be imported."""
    program = (
        f"import sys; sys.modules[{module!r}] = None; sys.argv = ['headrace', *sys.argv[1:]];"
        "from headrace.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "doctor", *words, "--json"],
        cwd=shell.folder, env=environment(shell.url), capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == FAILED, done.stderr
    return json.loads(done.stdout)


def test_a_missing_driver(shell: Shell):
    answer = without("asyncpg", "--database", "postgresql://me@localhost/shop", shell=shell)
    (wrong,) = [finding for finding in answer["findings"] if finding["level"] == "problem"]
    assert (wrong["check"], wrong["mend"]) == ("extras", "pip install 'headrace[postgres]'")


def test_a_missing_extra_of_the_app(shell: Shell):
    (shell.folder / "measured.py").write_text(f"from headrace import App\n\napp = App({shell.url!r}, metrics_port=0)\n")
    answer = without("prometheus_client", "measured:app", shell=shell)
    (wrong,) = [finding for finding in answer["findings"] if finding["level"] == "problem"]
    assert (wrong["check"], wrong["mend"]) == ("extras", "pip install 'headrace[metrics]'")


def test_an_app_that_is_not_there(shell: Shell):
    assert "no module" in found(shell, "problem", "app", "no_such_module_here:app")["what"]


# The server.


def test_versions_that_are_too_old():
    wrong = [finding for finding in versions((3, 11, 9), (3, 34, 0)) if finding.level is Level.PROBLEM]
    assert [finding.what for finding in wrong] == [
        "Python 3.11.9 is older than 3.12",
        "SQLite 3.34.0 is older than 3.35",
    ]
    assert [finding.level for finding in versions()] == [Level.OK, Level.OK]


def levels(facts: StoreFacts, pool: int = 10) -> dict[str, Level]:
    return {finding.check: finding.level for finding in checks.server(facts, pool)}


def test_an_old_postgres():
    assert levels(FACTS)["server"] is Level.OK
    assert levels(replace(FACTS, version=(12, 9)))["server"] is Level.PROBLEM
    assert levels(replace(FACTS, product="SQLite", version=(3, 40)))["server"] is Level.OK


def test_connections_that_are_nearly_used_up():
    assert levels(FACTS)["connections"] is Level.OK
    assert levels(replace(FACTS, connections=90))["connections"] is Level.WARNING
    assert levels(FACTS, pool=100)["connections"] is Level.WARNING


@pytest.mark.postgres
def test_a_pool_that_is_larger_than_the_server_allows(shell: Shell, postgres_url: str):
    (shell.folder / "greedy.py").write_text(
        f"from headrace import App\n\napp = App({postgres_url!r}, pool_size=5000)\n"
    )
    assert "HEADRACE_POOL_SIZE" in found(shell, "warning", "connections", "greedy:app")["mend"]


def test_a_store_that_is_not_durable(shell: Shell):
    (shell.folder / "hasty.py").write_text(
        f"from headrace import App\n\napp = App({shell.url!r}, synchronous='NORMAL')\n"
    )
    assert "synchronous=NORMAL" in found(shell, "warning", "durability", "hasty:app")["what"]


def test_clocks_that_disagree():
    now = datetime.now(UTC)
    later = now + timedelta(seconds=1)
    assert checks.clock(now, now, later).level is Level.OK
    assert checks.clock(now, now + timedelta(seconds=2.9), later).level is Level.OK
    ahead = checks.clock(now, later + timedelta(minutes=1), later)
    assert (ahead.level, "60 s ahead of" in ahead.what) == (Level.WARNING, True)
    behind = checks.clock(now, now - timedelta(minutes=1), later)
    assert (behind.level, "60 s behind" in behind.what) == (Level.WARNING, True)


# What stands still.


def test_work_that_nobody_takes(either_shell: Shell):
    either_shell.ledger(lambda ledger: ledger.enqueue_one(queue="mail"))
    finding = found(either_shell, "problem", "workers", either_shell.target)
    assert "1 tasks are ready in mail and no active worker takes it" in finding["what"]
    assert finding["mend"] == f"headrace worker {either_shell.target}"
    either_shell.ledger(lambda ledger: ledger.register("a", lease=600.0, queues=("web",)))
    assert "--queues mail" in found(either_shell, "problem", "workers")["mend"]
    either_shell.ledger(lambda ledger: ledger.register("b", lease=600.0, queues=("mail",)))
    assert findings(either_shell)[0] == OK


def test_a_paused_queue_with_work(shell: Shell):
    shell.ledger(lambda ledger: ledger.store.pause("mail"))
    assert all(finding["level"] == "ok" for finding in findings(shell)[1]), "a pause alone is nothing wrong"
    shell.ledger(lambda ledger: ledger.enqueue_one(queue="mail"))
    assert found(shell, "warning", "paused")["mend"] == "headrace queues resume mail"


def test_a_dead_worker_that_holds_tasks(either_shell: Shell):
    async def leave(ledger: Ledger) -> None:
        await ledger.register("gone", lease=0.001)
        await ledger.enqueue_one()
        await ledger.claim_one("gone")

    either_shell.ledger(leave)
    assert "gone" in found(either_shell, "problem", "stale")["what"]
    either_shell.ledger(lambda ledger: ledger.register("a", lease=600.0))
    assert "takes them over" in found(either_shell, "warning", "stale")["mend"]


def test_dead_letters(either_shell: Shell):
    async def fail(ledger: Ledger) -> None:
        await ledger.enqueue_one(dead_letter=True)
        await ledger.finish("a", failed_for_good(await ledger.claim_one()))

    either_shell.ledger(fail)
    finding = found(either_shell, "warning", "dead letters")
    assert (finding["what"], "headrace dlq list" in finding["mend"]) == ("1 dead letters", True)


def test_names_that_the_app_does_not_have(either_shell: Shell):
    """What was enqueued by the path of a function needs no task, as long as it can be imported."""

    async def enqueue(ledger: Ledger) -> None:
        await ledger.register("a", lease=600.0, queues=())
        await ledger.enqueue_one("shop.gone")
        await ledger.enqueue_one("shop.gone", delay=600)
        await ledger.enqueue_one("os.path.join", options='{"entrypoint":true}')
        await ledger.enqueue_one("echo", kind="command", pool="command")
        await ledger.enqueue_one(f"{either_shell.module}.double")

    either_shell.ledger(enqueue)
    finding = found(either_shell, "problem", "names", either_shell.target)
    assert finding["what"] == "tasks wait whose names the App does not have: shop.gone (2)"
    assert "aliases" in finding["mend"]
    assert all(finding["check"] != "names" for finding in findings(either_shell)[1]), "without an App nobody can know"


def test_names_that_no_worker_knew(shell: Shell):
    async def fail(ledger: Ledger) -> None:
        await ledger.enqueue_one("shop.gone")
        settlement = failed_for_good(await ledger.claim_one())
        await ledger.finish("a", settlement._replace(reason=Reason.UNKNOWN_TASK))

    shell.ledger(fail)
    assert "shop.gone" in found(shell, "warning", "names")["what"]


def test_a_broken_ledger(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    with sqlite3.connect(shell.url.removeprefix("sqlite:///")) as connection:
        connection.execute("INSERT INTO headrace_keys (scope, key, task) VALUES ('unique', 'nobody', 12345)")
    connection.close()
    assert "db check" in found(shell, "problem", "ledger")["mend"]
    monkeypatch.setattr(checks, "_QUICK", 0)
    assert findings(shell)[0] == OK, "a large ledger is read only when asked"
    assert findings(shell, "--thorough")[0] == FAILED
