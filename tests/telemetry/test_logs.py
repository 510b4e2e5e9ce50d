"""What a real worker writes: lines with the attempt they are about, in every executor, and where they lead to."""

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace import App
from headrace.core.errors import OptionError, SettingsError
from headrace.telemetry.logs import LEVELS, ConsoleLines, JsonLines, TaskFields
from headrace.worker.options import WorkerOptions
from tests.telemetry.workers import headrace, python

TASKS = """
import asyncio
import logging
import os

from headrace import App, Retry, current

app = App(os.environ["HEADRACE_DATABASE_URL"])
log = logging.getLogger("shop")
logging.basicConfig(format="once more: %(message)s")
logging.getLogger("library").info("nobody asked for this")


@app.task(name="coroutine", queue="mail")
async def coroutine() -> None:
    log.info("said")
    await asyncio.to_thread(log.info, "said from a thread")


@app.task(name="thread", queue="mail", executor="thread")
def thread() -> None:
    log.info("said")


@app.task(name="process", queue="mail", retry=Retry(max_attempts=2, backoff="fixed", base=0))
def process() -> None:
    log.info("said")
    current.log(f"kept by attempt {current.attempt}", step=1)
    if current.attempt == 1:
        raise OSError("not yet")
    log.warning("with more", extra={"step": 2, "api_key": "hunter2"})


@app.task(name="broken", queue="mail", retry=Retry(max_attempts=1))
async def broken() -> None:
    try:
        raise ValueError("inner, token=hunter2")
    except ValueError:
        log.exception("it failed")
    raise ValueError("for good")
"""
ENQUEUE = "import tasks\nfor task in (tasks.coroutine, tasks.thread, tasks.process, tasks.broken): task.enqueue()"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(TASKS)
    return tmp_path


@pytest.mark.requirement("D65")
def test_json_lines_say_which_attempt_they_are_about(sqlite_url: str, folder: Path) -> None:
    """D65: task_id, attempt, queue, runner_type and ray_job_id on the lines of user code in every executor, and on the
    worker's own line about a failure."""
    python(folder, ENQUEUE, HEADRACE_DATABASE_URL=sqlite_url)
    done = headrace(
        folder, "worker", "tasks:app", "--burst", "--children", "1", "--log-format", "json", "--log-level", "debug",
        HEADRACE_DATABASE_URL=sqlite_url,
    )  # fmt: skip
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stderr.splitlines()]
    tasks = {record.name: record for record in App(sqlite_url).tasks.list()}
    for name in ("coroutine", "thread", "process"):
        said = [line for line in lines if line["message"] == "said" and line["task"] == name]
        assert [line["attempt"] for line in said] == ([1, 2] if name == "process" else [1])
        for line in said:
            assert line["task_id"] == str(tasks[name].id)
            assert (line["queue"], line["runner_type"], line["ray_job_id"]) == ("mail", name, None)
            assert line["worker"] == tasks[name].worker
            assert (line["level"], line["logger"]) == ("info", "shop")
            assert line["log_ref"] == f"logs/{tasks[name].id}/{line['claim_no']}"
    (elsewhere,) = [line for line in lines if line["message"] == "said from a thread"]
    assert elsewhere["task"] == "coroutine"

    (failed,) = [line for line in lines if " broken failed " in line["message"]]
    assert {name: failed[name] for name in ("task_id", "attempt", "queue", "runner_type", "ray_job_id")} == {
        "task_id": str(tasks["broken"].id), "attempt": 1, "queue": "mail", "runner_type": "coroutine",
        "ray_job_id": None,
    }  # fmt: skip
    assert any(line["message"].endswith("completed (succeeded)") and line["task"] == "thread" for line in lines)
    (logged,) = [line for line in lines if line["message"] == "it failed"]
    assert "ValueError: inner, token=[redacted]" in logged["exception"]
    (more,) = [line for line in lines if line["message"] == "with more"]
    assert more["extra"] == {"step": 2, "api_key": "[redacted]"}
    assert "hunter2" not in done.stderr
    assert "nobody asked" not in done.stderr


@pytest.mark.requirement("D66")
def test_a_log_ref_leads_to_the_lines_of_its_execution(sqlite_url: str, folder: Path) -> None:
    """D66: the log_ref of each attempt, as the app and the command line give it, resolves to that execution's lines."""
    python(folder, "import tasks; tasks.process.enqueue()", HEADRACE_DATABASE_URL=sqlite_url)
    headrace(folder, "worker", "tasks:app", "--burst", "--children", "1", HEADRACE_DATABASE_URL=sqlite_url)
    app = App(sqlite_url)
    (task,) = app.tasks.list()
    first, second = app.tasks.attempts(task.id)
    said = ["said", 'kept by attempt 1 {"step": 1}'], ["said", 'kept by attempt 2 {"step": 1}', "with more"]
    assert [line.line for line in app.tasks.logs(first.log_ref)] == said[0]
    assert [line.line for line in app.tasks.logs(second.log_ref)] == said[1]
    assert len(app.tasks.logs(task.log_ref)) == len(app.tasks.logs(task.id)) == 5
    shown = json.loads(
        headrace(folder, "tasks", "show", str(task.id), "--json", HEADRACE_DATABASE_URL=sqlite_url).stdout
    )
    assert [attempt["log_ref"] for attempt in shown["attempts"]] == [first.log_ref, second.log_ref]
    assert shown["task"]["log_ref"] == task.log_ref
    with pytest.raises(ValueError, match="refers to no log"):
        app.tasks.logs("elsewhere/7")
    app.close()


def test_lines_for_people_and_the_environment(sqlite_url: str, folder: Path) -> None:
    python(folder, ENQUEUE, HEADRACE_DATABASE_URL=sqlite_url)
    words = ("worker", "tasks:app", "--burst", "--children", "1")
    done = headrace(folder, *words, HEADRACE_DATABASE_URL=sqlite_url, HEADRACE_LOG_LEVEL="WARNING")
    assert "takes every queue" not in done.stderr
    assert "INFO" not in done.stderr
    assert "once more" not in done.stderr  # one handler is enough
    (warning,) = [line for line in done.stderr.splitlines() if "with more" in line]
    assert " WARNING shop: with more [task=" in warning
    assert " attempt=2 queue=mail worker=" in warning
    assert warning.endswith(" runner=process]")
    assert "ValueError: inner, token=[redacted]" in done.stderr
    assert "hunter2" not in done.stderr


def test_a_wrong_format_or_level_is_one_sentence(sqlite_url: str, folder: Path) -> None:
    done = headrace(folder, "worker", "tasks:app", "--log-format", "xml", code=2, HEADRACE_DATABASE_URL=sqlite_url)
    assert "--log-format must be one of console, json, not 'xml'" in done.stderr
    assert "Traceback" not in done.stderr
    with pytest.raises(OptionError, match="log_level"):
        WorkerOptions(log_level="loud")
    with pytest.raises(SettingsError, match="log_level must be"):
        App("sqlite:///unused.db", log_level="loud")
    assert set(LEVELS) == {"debug", "info", "warning", "error"}


def test_the_filter_for_a_configuration_of_ones_own() -> None:
    record = logging.LogRecord("a", logging.INFO, "f", 1, "m", (), None)
    assert TaskFields().filter(record)
    assert (record.task_id, record.attempt, record.trace_id) == (None, None, None)  # pyright: ignore[reportAttributeAccessIssue]


def failed_login(name: str = "shop.auth") -> logging.LogRecord:
    try:
        raise ValueError("password=hunter2")
    except ValueError:
        stack = "Stack:\n  token='hunter2'"
        return logging.LogRecord(name, 40, "f", 1, "refused, api_key=%s", ("hunter2",), sys.exc_info(), sinfo=stack)


@pytest.mark.parametrize("lines", [ConsoleLines(), JsonLines()])
def test_what_another_handler_made_of_an_exception_is_not_taken_over(lines: logging.Formatter) -> None:
    """`logging` keeps the text of an exception in the record: by a handler before ours it holds the secret, and what
    comes after ours is to see what it would see without it."""
    record = failed_login()
    assert "hunter2" in logging.Formatter().format(record)
    assert record.exc_text
    line = lines.format(record)
    assert "hunter2" not in line
    assert "ValueError: password=[redacted]" in line
    assert "token='[redacted]'" in line
    fresh = failed_login()
    lines.format(fresh)
    assert fresh.exc_text is None


@pytest.mark.parametrize("name", ["shop.auth", "token", "auth-keys"])
def test_the_name_of_a_logger_hides_no_word_of_its_messages(name: str) -> None:
    first = ConsoleLines().format(failed_login(name)).splitlines()[0]
    assert first.endswith(f" ERROR {name}: refused, api_key=[redacted]")


def test_arguments_that_do_not_fit_lose_no_line() -> None:
    record = logging.LogRecord("a", logging.INFO, "f", 1, "%s and %s", ("one",), None)
    assert ConsoleLines().format(record).endswith(" INFO a: %s and %s")
