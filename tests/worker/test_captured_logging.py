"""What tasks say by `logging` becomes lines of their attempts, wherever their code runs."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace import App
from headrace.core.errors import SettingsError
from headrace.executors.capture import capture_logging, release

ROOT = Path(__file__).parents[2]
ENQUEUE = """
from tests.worker import talking_tasks as t
print(t.on_the_loop.enqueue().id, t.in_a_thread.enqueue().id, t.in_a_child.enqueue().id)
"""


def run(*words: str, url: str, **variables: str) -> str:
    environ = {**os.environ, "HEADRACE_DATABASE_URL": url, **variables}
    environ["PYTHONPATH"] = f"{ROOT}{os.pathsep}{environ.get('PYTHONPATH', '')}"
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=environ, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines_after_work(url: str, **variables: str) -> list[list[tuple[str, str]]]:
    ids = run(sys.executable, "-c", ENQUEUE, url=url).split()
    headrace = str(Path(sys.executable).parent / "headrace")
    worker = [headrace, "worker", "tests.worker.talking_tasks:app", "--burst", "--children", "1", "--threads", "1"]
    run(*worker, url=url, **variables)
    app = App(url)
    try:
        return [[(line.stream, line.line) for line in app.tasks.handle(int(id)).logs()] for id in ids]
    finally:
        app.close()


@pytest.mark.requirement("R88")
def test_in_coroutines_threads_and_children(sqlite_url: str) -> None:
    """R88: messages of the standard library's `logging` are rows of the task's log, from the loop, a thread and a
    child; secrets are taken out of them, and the engine's own loggers are no words of the task."""
    on_the_loop, in_a_thread, in_a_child = lines_after_work(sqlite_url)
    assert on_the_loop[0] == ("info", "order 7")
    assert on_the_loop[1][0] == "warning"
    assert "hunter2" not in on_the_loop[1][1]
    assert on_the_loop[2] == ("error", "from a thread")
    level, text = on_the_loop[3]
    assert level == "error"
    assert text.startswith("it failed\nTraceback")
    assert "ValueError: broken" in text
    assert len(on_the_loop) == 4
    assert in_a_thread == [("info", "in a thread"), ("info", "beside it")]
    assert in_a_child == [("info", "in a child"), ("info", "by current"), ("info", "arguments that do not fit: %d")]


def test_it_can_be_switched_off(sqlite_url: str) -> None:
    on_the_loop, in_a_thread, in_a_child = lines_after_work(sqlite_url, HEADRACE_TASK_LOG_LEVEL="off")
    assert (on_the_loop, in_a_thread, in_a_child) == ([], [], [("info", "by current")])


def test_a_level_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="task_log_level"):
        App("sqlite://", task_log_level="loud")


def test_where_nothing_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The level of the root is lowered for as long as a worker is there, and warnings go on to the standard error."""
    root, heard = logging.getLogger(), list[str]()

    class Last(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", logging.WARNING)
    monkeypatch.setattr(logging, "lastResort", Last(logging.WARNING))
    handler = capture_logging("info")
    assert root.level == logging.INFO
    logging.getLogger("shop").info("quiet")
    logging.getLogger("shop").warning("loud")
    release(handler)
    assert (heard, root.level, root.handlers) == (["loud"], logging.WARNING, [])


def test_the_handler_is_there_while_a_worker_is() -> None:
    root = logging.getLogger()
    before = list(root.handlers)
    one, two = capture_logging("info"), capture_logging("warning")
    assert one is two
    assert one in root.handlers
    release(one)
    assert one in root.handlers
    release(two)
    assert root.handlers == before
    assert capture_logging("off") is None
