"""The address that `make demo` prints: every page of it works, for somebody who has no account."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import httpx
import pytest

from tests.browser.browsing import NARROW, WIDE, Complaints, settled
from tests.browser.driver import Browser, expect
from tests.browser.looking import layout_faults
from tests.support.browser import ROOT
from tests.support.waiting import eventually

_ADDRESS = re.compile(r"the dashboard: .*?(http://127\.0\.0\.1:\d+)", re.DOTALL)


class Demo:
    """In a terminal, where it stays at its end. No fork of a process that has threads, as of this one's browser."""

    def __enter__(self) -> Self:
        self.said = ""
        self._screen, terminal = os.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headrace.cli", "demo", "--tasks", "200"],
            env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "200"},
            stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
        )  # fmt: skip
        os.close(terminal)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(60)
        finally:
            self.process.kill()
            self._reader.join(10)
            os.close(self._screen)

    def _read(self) -> None:
        with suppress(OSError):  # the other end is closed
            while text := os.read(self._screen, 65_536):
                self.said += text.decode(errors="replace")

    def is_there(self) -> bool:
        assert self.process.poll() is None, self.said[-4000:]
        return "Ctrl-C ends it" in self.said


def _pages(url: str) -> list[str]:
    """Of each panel, and of one thing of each kind."""

    def first(path: str) -> dict[str, Any]:
        found = httpx.get(f"{url}/api/v1/{path}", timeout=30).raise_for_status().json()
        items = found["items"] if isinstance(found, dict) else found
        assert items, f"the demo left nothing at {path}"
        return items[0]

    texts = [path.read_text() for path in sorted(Path(ROOT, "dashboard/src/panels").glob("*/index.tsx"))]
    panels = [re.findall(r'^  path: "([^"]*)"', text, re.MULTILINE)[0] for text in texts]
    things = [
        f"tasks/{first('tasks?status=completed')['id']}",
        f"tasks/{first('tasks?status=failed')['id']}",
        f"tasks/{first('tasks?status=completed')['id']}/edit",
        "tasks/new",
        *(f"jobs/{first('jobs')['id']}{tab}" for tab in ("", "?tab=tasks", "?tab=gantt", "?tab=logs", "?tab=events")),
        "queues/default",
        f"schedules/{first('schedules')['name']}",
        f"workers/{first('workers')['id']}",
    ]
    return [*panels, *things]


@pytest.mark.timeout(300)
async def test_every_page_of_the_demo_works(browser: Browser):
    complaints = Complaints()
    wrong: dict[str, list[str]] = {}
    with Demo() as demo:
        await eventually(demo.is_there, timeout=150)
        found = _ADDRESS.search(demo.said)
        assert found is not None, demo.said
        url = found[1]
        pages = await asyncio.to_thread(_pages, url)
        context = await browser.new_context(base_url=url, reduced_motion="reduce")
        context.on("page", complaints.listen)
        page = await context.new_page()
        for address in pages:
            for width, height in (WIDE, NARROW):
                await page.set_viewport_size({"width": width, "height": height})
                await page.goto(f"/{address}")
                await settled(page)
                await expect(page.get_by_role("main").get_by_role("alert")).to_have_count(0)
                if faults := await layout_faults(page):
                    wrong[f"{address}, {width}"] = faults
        await context.close()
    assert demo.process.returncode == 0
    assert (wrong, complaints.left) == ({}, [])
