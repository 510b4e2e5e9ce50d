"""`headrace schedules` and `headrace scheduler` as a person or a script meets them."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from headrace import App
from headrace.cli.failures import FAILED, NOT_FOUND, OK, UNAVAILABLE, USAGE, explained
from headrace.cli.root import application
from headrace.store.connect import sqlite_path
from tests.support.waiting import wait_until

TASKS = """
from headrace import App, Schedule

app = App({url!r})


@app.schedule("0 9 * * 1-5", tz="Europe/Berlin", name="morning", arguments={{"user_id": 7}})
@app.task(name="welcome")
async def welcome(user_id: int) -> str:
    return f"hello {{user_id}}"
"""


class Shell:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        def run() -> None:
            try:
                application(list(words), standalone_mode=True)
            except SystemExit as end:
                codes.append(int(end.code or 0))

        codes: list[int] = []
        code = explained(run)
        printed = self._capsys.readouterr()
        return codes[0] if codes and code == OK else code, printed.out, printed.err

    def ok(self, *words: str) -> str:
        code, out, err = self(*words)
        assert (code, err) == (OK, "")
        return out


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sqlite_url: str) -> str:
    name = f"scheduled_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(TASKS.format(url=sqlite_url))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("HEADRACE_DATABASE_URL", sqlite_url)
    App(sqlite_url).upgrade()
    return name


@pytest.fixture
def shell(module: str, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


def test_the_life_of_a_schedule(shell: Shell, module: str):
    target = f"{module}:app"
    assert (
        shell.ok("schedules", "list") == "no schedules; declare one with @app.schedule, or `headrace schedules add`\n"
    )
    out = shell.ok("schedules", "add", target, "welcome", "--cron", "0 9 * * *", "--tz", "Europe/Berlin", "user_id=7")
    assert out.startswith("schedule welcome: At 09:00 every day (Europe/Berlin)\nnext ")
    (listed,) = json.loads(shell.ok("schedules", "list", "--json"))
    assert (listed["name"], listed["task"], listed["tz"], listed["runs"]) == ("welcome", "welcome", "Europe/Berlin", [])
    assert listed["cadence"] == {"kind": "cron", "expression": "0 9 * * *", "tz": "Europe/Berlin"}
    (fire,) = listed["next"]
    local = datetime.fromisoformat(fire["local"])
    assert (local.hour, local.minute) == (9, 0)
    assert local == datetime.fromisoformat(fire["utc"])
    table = shell.ok("schedules", "list")
    assert "At 09:00 every day (Europe/Berlin)" in table
    assert " 09:00:00 CE" in table
    assert " in " in table
    task = shell.ok("schedules", "run", "welcome").strip()
    assert json.loads(shell.ok("tasks", "show", task, "--json"))["task"]["arguments"] == '{"user_id":7}'
    (run,) = json.loads(shell.ok("schedules", "runs", "welcome", "--json"))
    assert (run["task"], run["manual"], run["status"]) == (task, True, "pending")
    assert "hand" in shell.ok("schedules", "runs", "welcome")
    assert "pending" in shell.ok("schedules", "list")
    shown = shell.ok("schedules", "show", "welcome")
    assert "at run time" in shown
    assert '{"user_id":7}' in shown
    assert "catch up: coalesce, overlap: skip" in shown
    assert len(json.loads(shell.ok("schedules", "show", "welcome", "--json"))["next"]) == 5
    assert len(json.loads(shell.ok("schedules", "next", "welcome", "-n", "7", "--json"))) == 7
    assert shell.ok("schedules", "next", "welcome", "-n", "2").count("UTC), in") == 2
    assert shell.ok("schedules", "pause", "welcome") == (
        "schedule welcome is paused; `headrace schedules resume welcome` lets it go on\n"
    )
    assert "paused" in shell.ok("schedules", "list")
    assert shell.ok("schedules", "next", "welcome") == "next      none: paused\n"
    assert json.loads(shell.ok("schedules", "resume", "welcome", "--json")) == {"schedule": "welcome", "paused": False}
    assert shell.ok("schedules", "resume", "welcome").startswith("schedule welcome goes on\nnext ")
    assert shell.ok("schedules", "remove", "welcome") == "schedule welcome is removed\n"
    assert json.loads(shell.ok("schedules", "list", "--json")) == []


def test_the_other_cadences_and_policies(shell: Shell, module: str):
    words = ["schedules", "add", f"{module}:app", "welcome", "user_id=1", "--json"]
    every = json.loads(
        shell.ok(
            *words, "--every", "1h30m", "--as", "often", "--catch-up", "skip", "--grace", "5m", "--overlap", "queue",
            "--jitter", "10s", "--queue", "mail", "--paused",
        )
    )  # fmt: skip
    assert every["cadence"]["seconds"] == 5400
    assert (every["catch_up"], every["grace"], every["overlap"], every["jitter"]) == ("skip", 300, "queue", 10)
    assert (every["queue"], every["paused"], every["next"]) == ("mail", True, [])
    once = json.loads(shell.ok(*words, "--at", "2130-01-01T00:00:00+01:00", "--as", "once"))
    assert [fire["utc"] for fire in once["next"]] == ["2129-12-31T23:00:00+00:00"]
    assert once["describe"] == "Once, at 2129-12-31 23:00:00 UTC"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--cron", "* * * *", "user_id=1"], FAILED, "must have exactly 5"),
        (["--cron", "* * * * *", "--tz", "Berlin", "user_id=1"], FAILED, "did you mean Europe/Berlin?"),
        (["--every", "5 parsecs", "user_id=1"], USAGE, "'5 parsecs' is no length of time"),
        (["--every", "", "user_id=1"], USAGE, "no length of time"),
        (["--every", "5m", "--tz", "UTC", "user_id=1"], FAILED, "intervals have no zone"),
        (["--every", "0.1s", "user_id=1"], FAILED, "at least one second"),
        (["--every", "5m", "--grace", "soon", "user_id=1"], USAGE, "--grace 'soon'"),
        (["--at", "tomorrow", "user_id=1"], USAGE, "'tomorrow' is no instant"),
        (["--at", "2130-01-01T00:00:00", "user_id=1"], FAILED, "must have a time zone"),
        (["--at", "2001-01-01T00:00:00Z", "user_id=1"], FAILED, "is over"),
        (["user_id=1"], USAGE, "one of --cron, --every and --at; given: none"),
        (["--every", "5m", "--cron", "* * * * *", "user_id=1"], USAGE, "given: --cron and --every"),
        (["--every", "5m"], FAILED, "'user_id' is missing"),
        (["--every", "5m", "user_id=seven"], FAILED, "'user_id'"),
        (["--every", "5m", "--as", "-x", "user_id=1"], FAILED, "name of a schedule"),
        (["--every", "5m", "--catch-up", "all", "--overlap", "skip", "user_id=1"], FAILED, "overlap='allow'"),
    ],
)
def test_each_mistake_of_an_addition_is_one_clear_line(
    shell: Shell, module: str, words: list[str], code: int, said: str
):
    found, out, err = shell("schedules", "add", f"{module}:app", "welcome", *words)
    assert (found, out) == (code, "")
    assert said in err.replace("\n", " ")
    assert "Traceback" not in err
    assert json.loads(shell.ok("schedules", "list", "--json")) == []


@pytest.mark.parametrize("command", ["show", "pause", "resume", "run", "remove", "next", "runs"])
def test_a_schedule_that_is_not_there(shell: Shell, command: str):
    code, out, err = shell("schedules", command, "nobody")
    assert (code, out) == (NOT_FOUND, "")
    assert "no schedule 'nobody'" in err


def test_a_name_that_is_taken_and_an_unknown_task(shell: Shell, module: str):
    add = ("schedules", "add", f"{module}:app", "welcome", "user_id=1", "--every")
    shell.ok(*add, "5m")
    code, _, err = shell(*add, "6m")
    assert code == FAILED
    assert "there is a schedule welcome already" in err
    code, _, err = shell("schedules", "add", f"{module}:app", "nothing", "--every", "5m")
    assert code == FAILED
    assert "no task 'nothing'" in err


def test_a_scheduler_without_a_store_says_so(shell: Shell):
    code, _, err = shell("scheduler", "--database", "sqlite:///absent.db")
    assert code == UNAVAILABLE
    assert "absent.db" in err


def change(url: str, assignment: str) -> None:
    """The rows of all schedules, as no command would."""
    with contextlib.closing(sqlite3.connect(sqlite_path(url))) as file, file:
        file.execute(f"UPDATE headrace_schedules SET {assignment}")


def test_a_cursor_that_lies_ahead_of_the_clock_is_told_of(shell: Shell, module: str, sqlite_url: str):
    shell.ok("schedules", "add", f"{module}:app", "welcome", "--every", "1h", "user_id=7")
    assert "cursor" not in shell.ok("schedules", "list") + shell.ok("schedules", "show", "welcome")
    change(sqlite_url, "cursor = cursor + 400 * 86400000000")
    for words in (["list"], ["show", "welcome"]):
        assert "its cursor lies ahead of the clock, at 2" in shell.ok("schedules", *words)
        assert "; pause and resume it" in shell.ok("schedules", *words)
    code, out, _ = shell("doctor", "--json")
    assert code == FAILED
    (finding,) = [each for each in json.loads(out)["findings"] if each["check"] == "schedules"]
    assert "ahead of the clock" in finding["what"]
    assert finding["mend"] == "headrace schedules pause welcome; headrace schedules resume welcome"
    shell.ok("schedules", "pause", "welcome")
    shell.ok("schedules", "resume", "welcome")
    assert "cursor" not in shell.ok("schedules", "list")


@pytest.mark.parametrize(
    ("assignment", "why"),
    [
        ("""task = '{"name":"welcome","colour":"blue"}'""", "colour"),
        ("""cadence = '{"kind":"cron","expression":"* * * * *","tz":"Mars/Olympus"}'""", "Mars/Olympus"),
    ],
)
def test_what_cannot_be_read_here_is_told_of(shell: Shell, module: str, sqlite_url: str, assignment: str, why: str):
    """A scheduler keeps to itself that it cannot read a schedule, so each command says whether it can."""
    shell.ok("schedules", "add", f"{module}:app", "welcome", "--every", "1h", "user_id=7")
    change(sqlite_url, assignment)
    assert "unreadable here" in shell.ok("schedules", "list")
    shown = shell.ok("schedules", "show", "welcome")
    assert "state     unreadable here: " in shown
    assert why in shown
    assert why in json.loads(shell.ok("schedules", "show", "welcome", "--json"))["problem"]
    code, out, _ = shell("doctor", "--json")
    (finding,) = [each for each in json.loads(out)["findings"] if each["check"] == "schedules"]
    assert (code, finding["level"]) == (OK, "warning")
    assert why in finding["what"]


@pytest.mark.parametrize("command", ["scheduler", "worker", "up"])
def test_a_name_that_two_go_by_stops_the_start_with_one_line(shell: Shell, module: str, tmp_path: Path, command: str):
    shell.ok("schedules", "add", f"{module}:app", "welcome", "--every", "1h", "--as", "morning", "user_id=7")
    words = [sys.executable, "-m", "headrace.cli", command, f"{module}:app"]
    free = {**os.environ, "HEADRACE_PORT": "0"}
    done = subprocess.run(words, cwd=tmp_path, env=free, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == FAILED, done.stderr
    assert "schedule 'morning' was made at run time" in done.stderr
    assert "Traceback" not in done.stderr


@contextlib.contextmanager
def running(folder: Path, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
    with (folder / "said.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "headrace.cli", *words], cwd=folder, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_scheduler_writes_what_the_app_declares_fires_and_drains(shell: Shell, module: str, tmp_path: Path):
    shell.ok("schedules", "add", f"{module}:app", "welcome", "--every", "1s", "user_id=7")
    said = (tmp_path / "said.log").read_text
    with running(tmp_path, "scheduler", f"{module}:app") as process:
        wait_until(lambda: json.loads(shell.ok("schedules", "runs", "welcome", "--json")) or process.poll(), 60)
        (morning, _) = json.loads(shell.ok("schedules", "list", "--json"))
        assert (morning["name"], morning["declared_by"]) == ("morning", f"{module}:app")
        wait_until(lambda: "schedule welcome fired for" in said(), 60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, said()
    code, out, _ = shell("schedules", "remove", "morning")
    assert code == OK
    assert f"the code of {module}:app declares it" in out


def test_a_worker_fires_unless_it_is_told_not_to(shell: Shell, module: str, tmp_path: Path):
    shell.ok("schedules", "add", f"{module}:app", "welcome", "--every", "1s", "user_id=7")
    said = (tmp_path / "said.log").read_text
    with running(tmp_path, "worker", f"{module}:app", "--no-scheduler") as process:
        wait_until(lambda: " takes " in said() or process.poll() is not None, 60)
        handle = shell.ok("schedules", "run", "welcome").strip()
        wait_until(lambda: json.loads(shell.ok("tasks", "show", handle, "--json"))["task"]["state"] == "completed", 60)
        listed = json.loads(shell.ok("schedules", "list", "--json"))
        assert [each["name"] for each in listed] == ["morning", "welcome"], "it declares all the same"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, said()
    assert len(json.loads(shell.ok("schedules", "runs", "welcome", "--json"))) == 1
    with running(tmp_path, "worker", f"{module}:app") as process:

        def completed() -> bool:
            runs = json.loads(shell.ok("schedules", "runs", "welcome", "--json"))
            return any(run["status"] == "completed" and not run["manual"] for run in runs) or process.poll() is not None

        wait_until(completed, 60)
        wait_until(lambda: "schedule welcome fired for" in said(), 60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, said()
