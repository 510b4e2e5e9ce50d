"""The address that `make demo` prints: every page of it works, for somebody who has no account."""

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any

import httpx
import pexpect
import pytest

from tests.browser.browsing import NARROW, WIDE, Complaints, settled
from tests.browser.driver import Browser, expect
from tests.browser.looking import layout_faults
from tests.support.browser import ROOT

_PATIENCE = 150


def _shown() -> tuple[Any, str]:
    """The demo in a terminal, at its end, where it stays; and its address."""
    demo = pexpect.spawn(
        sys.executable,
        ["-m", "headrace.cli", "demo", "--tasks", "200"],
        env=os.environ | {"TERM": "xterm-256color"},
        dimensions=(30, 100),
        encoding="utf-8",
        timeout=_PATIENCE,
    )
    demo.expect(r"the dashboard: .*?(http://127\.0\.0\.1:\d+)")
    url = demo.match[1]
    demo.expect("Ctrl-C ends it")
    return demo, url


def _pages(url: str) -> list[str]:
    """Of each panel, and of one thing of each kind."""

    def first(path: str) -> dict[str, Any]:
        found = httpx.get(f"{url}/api/v1/{path}", timeout=30).raise_for_status().json()
        return (found["items"] if isinstance(found, dict) else found)[0]

    texts = [path.read_text() for path in sorted(Path(ROOT, "dashboard/src/panels").glob("*/index.tsx"))]
    panels = [re.findall(r'^  path: "([^"]*)"', text, re.MULTILINE)[0] for text in texts]
    things = [
        f"tasks/{first('tasks?status=completed')['id']}",
        f"tasks/{first('tasks?status=failed')['id']}",
        f"tasks/{first('tasks?status=completed')['id']}/edit",
        "tasks/new",
        *(f"jobs/{first('jobs')['id']}{tab}" for tab in ("", "?tab=tasks", "?tab=gantt", "?tab=logs", "?tab=events")),
        f"queues/{first('queues')['name']}",
        f"schedules/{first('schedules')['name']}",
        f"workers/{first('workers')['id']}",
    ]
    return [*panels, *things]


@pytest.mark.timeout(300)
async def test_every_page_of_the_demo_works(browser: Browser):
    demo, url = await asyncio.to_thread(_shown)
    complaints = Complaints()
    wrong: dict[str, list[str]] = {}
    try:
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
    finally:
        demo.sendintr()
        await asyncio.to_thread(demo.expect, pexpect.EOF)
        demo.close()
    assert demo.exitstatus == 0
    assert (wrong, complaints.left) == ({}, [])
