"""The commands as a person or a script meets them: words, JSON, exit codes, one line for each mistake."""

import json
import subprocess
import sys
from pathlib import Path

from headrace.cli.failures import FAILED, OK, USAGE
from headrace.cli.target import shown_url
from tests.cli.shell import Shell


def test_a_task_is_enqueued_listed_shown_and_cancelled(shell: Shell):
    module = shell.module
    code, out, _ = shell("enqueue", shell.target, f"{module}.double", "n=4", "--json")
    made = json.loads(out)
    assert (code, made["created"]) == (OK, True)
    assert isinstance(made["id"], str), "ids are texts in JSON: they may be larger than 2^53"
    code, out, _ = shell("tasks", "list", "--json")
    assert code == OK
    assert [(task["id"], task["state"]) for task in json.loads(out)] == [(made["id"], "pending")]
    code, out, _ = shell("tasks", "show", made["id"])
    assert code == OK
    assert '{"n":4}' in out
    code, out, _ = shell("tasks", "cancel", made["id"])
    assert (code, out) == (OK, f"task {made['id']}: cancelled\n")
    code, out, _ = shell("tasks", "cancel", made["id"])
    assert (code, out) == (FAILED, f"task {made['id']}: too late, it had ended\n")
    code, out, _ = shell("tasks", "retry", made["id"], "--json")
    assert (code, json.loads(out)) == (OK, {"retried": [made["id"]]})


def test_a_paused_queue_says_so(shell: Shell):
    assert shell("queues", "pause", "mail")[0] == OK
    _, out, _ = shell("queues", "list", "--json")
    assert [(queue["name"], queue["paused"]) for queue in json.loads(out)] == [("mail", True)]
    assert shell("queues", "resume", "mail")[0] == OK
    assert json.loads(shell("queues", "pause", "mail", "--json")[1]) == {"queue": "mail", "paused": True}
    assert json.loads(shell("queues", "resume", "mail", "--json")[1]) == {"queue": "mail", "paused": False}


def test_the_schema_goes_up_and_down_and_is_checked(shell: Shell):
    code, out, _ = shell("db", "downgrade", "base", "--yes", "--json")
    assert (code, json.loads(out)["after"]) == (OK, None)
    code, out, _ = shell("db", "upgrade", "--json")
    made = json.loads(out)
    assert (code, made["before"]) == (OK, None)
    assert made["after"]
    assert shell("db", "upgrade")[1] == f"the schema is at {made['after']}; nothing to do\n"
    assert shell("db", "check")[:2] == (OK, "the ledger is sound: every invariant holds\n")
    code, out, _ = shell("db", "prune", "--keep", "0", "--json")
    assert (code, json.loads(out)["tasks"]) == (OK, 0)


def test_the_check_finds_a_broken_ledger(shell: Shell, sqlite_url: str):
    import sqlite3

    with sqlite3.connect(sqlite_url.removeprefix("sqlite:///")) as connection:
        connection.execute(
            "INSERT INTO headrace_keys (scope, key, task) VALUES ('unique', 'nobody', 12345)",
        )
    connection.close()
    code, out, _ = shell("db", "check", "--json")
    assert code == FAILED
    assert json.loads(out), "the broken rule is named"


def test_what_the_users_module_raises_is_shown_without_our_own_lines(shell: Shell, tmp_path: Path):
    (tmp_path / "broken_module.py").write_text("import json\n\nraise LookupError('no [such] thing')\n")
    code, out, err = shell("worker", "broken_module:app")
    assert (code, out) == (USAGE, "")
    assert err.splitlines()[0] == "headrace: importing 'broken_module' failed:"
    assert err.splitlines()[-1] == "LookupError: no [such] thing"
    assert "line 3" in err
    assert "importlib" not in err


def test_text_of_tasks_is_printed_as_it_is(shell: Shell, tmp_path: Path):
    """Brackets are markup to the library that prints, and a closing tag without its opening would be an error."""
    module = shell.module
    text = "[/no] [bold]such[/bold] [red] " + "word " * 40 + "end\x1b[2J"
    shell("enqueue", shell.target, f"{module}.refuse", f"text={text}")
    worker = subprocess.run(
        [sys.executable, "-m", "headrace.cli", "worker", shell.target, "--burst", "--children", "0"],
        cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert worker.returncode == OK, worker.stderr
    assert "alembic" not in worker.stderr
    code, out, err = shell("tasks", "list")
    assert (code, err) == (OK, "")
    assert "[/no] [bold]such[/bold] [red] word" in out
    assert len(out.splitlines()) == 2, "a task is one line where nobody has a screen"
    code, out, _ = shell("tasks", "show", "1")
    assert code == OK
    assert "[/no] [bold]such[/bold] [red] word" in out
    assert "word end [2J" in out
    assert "\x1b" not in out


def test_waiting_too_long_is_one_line(shell: Shell):
    module = shell.module
    code, out, err = shell("enqueue", shell.target, f"{module}.double", "n=1", "--wait", "--timeout", "0.1")
    assert (code, out) == (FAILED, "")
    assert err == "headrace: task 1 has not ended within 0.1 s; it goes on; headrace tasks show 1\n"


def test_a_list_of_no_queues_is_refused(shell: Shell):
    code, _, err = shell("worker", shell.target, "--queues", ",", "--burst")
    assert code == USAGE
    assert "names no queue" in err


def test_a_password_is_never_shown():
    shown = shown_url("postgresql://me:p@ss@host/shop?password=secret&sslmode=disable")
    assert shown == "postgresql://me:***@host/shop?password=***&sslmode=disable"


def test_wrong_arguments_are_refused_before_anything_is_written(shell: Shell):
    module = shell.module
    for words in (["n=four"], ["m=4"], [], ["n"]):
        code, _, err = shell("enqueue", shell.target, f"{module}.double", *words)
        assert code in (FAILED, USAGE), words
        assert err.startswith("headrace: ")
    code, _, err = shell("enqueue", shell.target, "nobody.knows")
    assert code == FAILED
    assert "nobody.knows" in err
    assert json.loads(shell("tasks", "list", "--json")[1]) == []


def test_a_worker_runs_what_is_there_and_ends(shell: Shell, tmp_path: Path):
    module = shell.module
    shell("enqueue", shell.target, f"{module}.double", "n=21")
    shell("enqueue", shell.target, f"{module}.broken")
    worker = subprocess.run(
        [sys.executable, "-m", "headrace.cli", "worker", shell.target, "--burst", "--children", "0"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert worker.returncode == OK, worker.stderr
    _, out, _ = shell("tasks", "list", "--json")
    found = {task["name"].rpartition(".")[2]: (task["state"], task["result"]) for task in json.loads(out)}
    assert found == {"double": ("completed", "42"), "broken": ("failed", None)}
    _, out, _ = shell("tasks", "list", "--state", "failed")
    assert "it is broken" in out


def test_the_demo_loses_nothing():
    demo = subprocess.run(
        [sys.executable, "-m", "headrace.cli", "demo", "--tasks", "200", "--json"],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert demo.returncode == OK, demo.stdout + demo.stderr
    summary = json.loads(demo.stdout)
    assert (summary["lost"], summary["violations"], summary["rescued"]) == (0, [], 3)
