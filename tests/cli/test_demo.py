"""`headrace demo` in a real terminal: what a newcomer sees first."""

import os
import re
import sys
from typing import Any, cast

import httpx
import pexpect
import psutil
import pytest
from rich.text import Text

from headrace.app import App
from headrace.cli import demo_work
from tests.support.waiting import wait_until

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_PATIENCE = 100


@pytest.mark.timeout(180)
def test_the_demo_shows_the_engine_at_work_with_a_live_summary():
    """Each thing that it promises is seen in order, the counts move below them meanwhile, and nothing is lost.

    The settings of the shell would keep its worker away; they are about other tasks.
    """
    demo = _demo("--tasks", "300", HEADRACE_QUEUES="mail", HEADRACE_NAME="shop", HEADRACE_METRICS_PORT="nonsense")
    seen = ""
    for words in (
        "one SQLite file",
        r"look on while it works, .*http://127\.0\.0\.1:\d+",
        "hello world",
        "300 small tasks done",
        "came through on attempt 3",
        "cannot succeed",
        "hard limit",
        "a limit of two at a time: done",
        r"a schedule, .*every second.*fired \d+ times",
        r"shrink.* ×30: .*30 completed",
        "kill -9 of the whole worker in the middle of three tasks, of a durable task",
        "all three completed",
        "reserve and charge were not done again",
        "complete, and in order",
        "sound, nothing lost",
        "Ctrl-C ends it",
    ):
        demo.expect(words)
        seen += demo.before + (demo.after if isinstance(demo.after, str) else "")
    _look_at(_ESCAPES.sub("", seen))
    below = psutil.Process(demo.pid).children(recursive=True)
    demo.sendintr()
    demo.expect(pexpect.EOF)
    demo.close()
    assert demo.exitstatus == 0
    wait_until(lambda: not psutil.wait_procs(below, timeout=0)[1], timeout=60)
    text = _ESCAPES.sub("", seen)
    assert re.search(r"pending \d+ +running \d+ +completed [1-9]\d* +failed \d+", text), "no summary while it ran"
    # It was drawn over and over while the demo waited, and what it counts moved.
    assert len(set(re.findall(r"completed (\d+) ", text))) > 2


def _look_at(text: str) -> None:
    """It stays, with the address shown: its pages, or the word that they are not built, and what it has done."""
    url = re.findall(r"http://127\.0\.0\.1:\d+", text)[-1]
    page = httpx.get(url, headers={"Accept": "text/html"}, timeout=_PATIENCE)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "Headrace" in page.text
    jobs = httpx.get(f"{url}/api/v1/jobs", timeout=_PATIENCE).json()["items"]
    assert ("album", "completed") in [(job["name"], job["state"]) for job in jobs]
    with httpx.Client(base_url=url, timeout=_PATIENCE) as client:
        wait_until(
            lambda: any(worker["state"] != "stopped" for worker in client.get("/api/v1/workers").json()), timeout=60
        )


def test_without_the_libraries_for_tables_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    """`make demo` installs the core alone."""
    monkeypatch.setattr(demo_work, "find_spec", lambda name: None)
    said: list[str] = []
    table = demo_work.DemoTable(cast("App", None), abs)
    assert table.is_in_the_middle()
    assert table.finished(said.append) is None
    (line,) = said
    assert "pip install 'headrace[data]'" in Text.from_markup(line).plain


@pytest.mark.timeout(120)
def test_ctrl_c_ends_the_demo_and_its_worker():
    demo = _demo("--tasks", "100")
    demo.expect("hello world")
    below = psutil.Process(demo.pid).children(recursive=True)
    assert below
    demo.sendintr()
    demo.expect(pexpect.EOF)
    demo.close()
    assert demo.exitstatus == 130
    wait_until(lambda: not psutil.wait_procs(below, timeout=0)[1], timeout=60)


def _demo(*flags: str, **variables: str) -> Any:
    return pexpect.spawn(
        sys.executable,
        ["-m", "headrace.cli", "demo", *flags],
        env=os.environ | {"TERM": "xterm-256color", "NO_COLOR": "", **variables},
        dimensions=(30, 100),
        encoding="utf-8",
        timeout=_PATIENCE,
    )
