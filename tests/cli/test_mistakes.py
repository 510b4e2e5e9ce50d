"""Each mistake is one clear line and an exit code; nothing is made by whoever only looks."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.cli.failures import FAILED, NOT_FOUND, UNAVAILABLE, USAGE
from headrace.testing.store_conformance.ledger import Ledger, completed
from tests.cli.shell import Shell, environment

ABSENT = "sqlite:///absent.db"
# Every command that needs a store, on one that is not there.
WITHOUT_A_STORE = [
    ["tasks", "list"], ["tasks", "show", "1"], ["tasks", "cancel", "1"], ["tasks", "retry", "1"],
    ["dlq", "list"], ["dlq", "show", "1"], ["dlq", "retry", "--all"], ["dlq", "purge", "--all", "--yes"],
    ["jobs", "list"], ["jobs", "show", "1"], ["jobs", "cancel", "1"], ["jobs", "retry", "1"],
    ["queues", "list"], ["queues", "pause", "mail"], ["queues", "resume", "mail"], ["workers", "list"],
    ["logs"], ["logs", "1"], ["logs", "1", "--follow"], ["top"], ["top", "--once", "--json"],
    ["explain", "1"], ["health"], ["db", "check"], ["db", "prune"],
]  # fmt: skip


def one_line(shell: Shell, *words: str) -> tuple[int, str]:
    code, out, err = shell(*words)
    assert out == ""
    assert "Traceback" not in err
    assert not list(Path.cwd().glob("absent.db*")), "looking at a store must not make one"
    return code, err.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["tasks", "show", "999"], NOT_FOUND, "no task 999"),
        (["tasks", "show", "nine"], USAGE, "integer"),
        (["tasks", "list", "--state", "sleeping"], USAGE, "sleeping"),
        (["tasks", "list", "--database", "mysql://x/y"], FAILED, "not understood"),
        (["tasks", "list", "--database", "sqlite://host/x.db"], FAILED, "host or options"),
        (["tasks", "list", "--name", "Not A Name"], FAILED, "cannot be a schema"),
        (["tasks", "list", "--database", "sqlite:///no/such/folder/x.db"], UNAVAILABLE, "db upgrade"),
        (["tasks", "list", "--database", "postgresql://127.0.0.1:1/none"], UNAVAILABLE, "127.0.0.1"),
        (["tasks", "list", "--database", "postgresql+pg8000://x/y"], FAILED, "unknown driver"),
        (["tasks", "list", "--database", "no_such_module:app"], USAGE, "no module"),
        (["db", "upgrade", "no_such_revision"], UNAVAILABLE, "no_such_revision"),
        (["queues", "pause", ""], USAGE, "queue must be a name"),
        (["enqueue", "tasks", "x"], USAGE, "module:attribute"),
        (["enqueue", "no_such_module_here:app", "x"], USAGE, "no module"),
        (["enqueue", "json:dumps", "x"], USAGE, "not a headrace App"),
        (["worker", "json:nothing"], USAGE, "has no 'nothing'"),
        (["dlq", "show", "999"], NOT_FOUND, "no task 999"),
        (["dlq", "retry"], USAGE, "say which"),
        (["dlq", "retry", "1", "--all"], USAGE, "not both"),
        (["dlq", "retry", "--all", "--queue", "mail"], USAGE, "not both"),
        (["dlq", "retry", "--since", "yesterday"], USAGE, "is no time"),
        (["dlq", "purge", "--all"], USAGE, "--yes"),
        (["logs", "999"], NOT_FOUND, "no task 999"),
        (["logs", "999", "--follow"], NOT_FOUND, "no task 999"),
        (["logs", "--claim", "2"], USAGE, "one task"),
        (["logs", "1", "--queue", "mail"], USAGE, "not both"),
        (["explain", "999"], NOT_FOUND, "no task 999"),
        (["jobs", "show", "999"], NOT_FOUND, "no job 999"),
        (["jobs", "cancel", "999"], NOT_FOUND, "job 999"),
        (["jobs", "retry", "999"], NOT_FOUND, "job 999"),
        (["jobs", "list", "--state", "sleeping"], USAGE, "sleeping"),
        (["health", "--check", "weather"], USAGE, "weather"),
        (["bench", "--database", "sqlite:///no/such/folder/x.db"], USAGE, "does not exist"),
        (["bench", "--database", "mysql://x/y"], FAILED, "not understood"),
        (["no-such-command"], USAGE, "no-such-command"),
        *[([*words, "--database", ABSENT], UNAVAILABLE, "absent.db") for words in WITHOUT_A_STORE],
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_each_mistake_is_one_clear_line(shell: Shell, words: list[str], code: int, said: str):
    found, err = one_line(shell, *words)
    assert found == code, err
    assert said in err


def test_wrong_states_are_told(shell: Shell):
    async def finish(ledger: Ledger) -> int:
        id = await ledger.enqueue_one()
        await ledger.finish("a", completed(await ledger.claim_one()))
        return id

    done = shell.ledger(finish)
    code, err = one_line(shell, "dlq", "show", str(done))
    assert (code, f"task {done} is completed and no dead letter" in err) == (FAILED, True)
    live = shell.ledger(lambda ledger: ledger.enqueue_one())
    code, out, err = shell("tasks", "retry", str(live))
    assert (code, out) == (FAILED, "0 of 1 back in the queue\n")
    assert "not ended" in err


@pytest.mark.parametrize("words", [["tasks", "list"], ["top", "--once"], ["worker", "{target}"]])
def test_a_schema_of_a_newer_headrace_is_refused(shell: Shell, words: list[str]):
    with sqlite3.connect(shell.url.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE headrace_meta SET value = '9999' WHERE key = 'schema'")
    connection.close()
    done = subprocess.run(
        [sys.executable, "-m", "headrace.cli", *(word.format(target=shell.target) for word in words)],
        cwd=shell.folder, env=environment(shell.url), capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode in (FAILED, UNAVAILABLE)
    assert "newer than this code" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_extra_is_named(shell: Shell):
    """In a process in which the driver cannot be imported."""
    program = (
        "import sys; sys.modules['asyncpg'] = None; sys.argv = ['headrace', *sys.argv[1:]];"
        "from headrace.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "tasks", "list", "--database", "postgresql://me@localhost/shop"],
        cwd=shell.folder, env=environment(shell.url), capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == UNAVAILABLE
    assert done.stderr == "headrace: postgresql:// needs the PostgreSQL driver: pip install 'headrace[postgres]'\n"


def test_a_name_that_nobody_has_is_not_made(either_shell: Shell):
    for _ in range(2):
        code, err = one_line(either_shell, "tasks", "list", "--name", "nobody")
        assert code == UNAVAILABLE
        assert "no schema" in err
        assert "db upgrade" in err


def test_what_reads_the_output_may_go_away(shell: Shell):
    """`headrace tasks list | head -1`: no traceback."""

    async def many(ledger: Ledger) -> None:
        await ledger.enqueue(*[_task(n) for n in range(3000)])

    def _task(n: int):
        from headrace.testing.store_conformance.ledger import task

        return task(f"some.long.name.of.a.task.{n:05}")

    shell.ledger(many)
    done = subprocess.run(
        ["/bin/sh", "-c", f"'{sys.executable}' -m headrace.cli tasks list --limit 3000 | head -n 1"],
        cwd=shell.folder, env=environment(shell.url), capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.stdout.startswith("id")
    assert "Traceback" not in done.stderr
