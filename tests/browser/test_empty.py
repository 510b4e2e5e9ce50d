"""A server that is new: nothing was ever enqueued, and every page says what to do."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.browsing import Browsing, settled
from tests.browser.conftest import _staged, _visited
from tests.browser.driver import Browser, expect
from tests.browser.looking import axe_violations, layout_faults
from tests.browser.stage import Stage
from tests.browser.test_screens import FORMS
from tests.support.browser import need_axe

# What is there from the beginning (workers, queues and schedules of the code, users, logins) is no empty page.
EMPTY = {
    "/": ("Nothing was enqueued yet", "headrace enqueue tasks:app"),
    "/tasks": ("No tasks yet", "welcome.enqueue"),
    "/jobs": ("There are no jobs yet", "enqueue"),
    "/dead-letters": ("There are no dead letters", "dead_letter"),
    "/approvals": ("Nothing waits for your word", "approv"),
    "/breakers": ("No breaker has opened yet", "@app.breaker("),
}


@pytest.fixture(scope="module")
def new_stage(
    browser: Browser, runner: object, tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path
) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("new-shop")
    shutil.copy(sqlite_template, folder / "shop.db")
    yield from _staged(runner, folder, f"sqlite:///{folder / 'shop.db'}")  # type: ignore[arg-type]


@pytest.fixture
def new_browsing(browser: Browser, new_stage: Stage, runner: object) -> Iterator[Browsing]:
    yield from _visited(browser, new_stage, runner)  # type: ignore[arg-type]


async def test_an_empty_page_says_what_to_do(new_browsing: Browsing):
    axe = need_axe()
    page = await new_browsing.open("/workers", "ada", reduced_motion=True)
    await expect(page.get_by_role("table").first).to_be_visible()  # the worker is there, and says nothing any more
    wrong: dict[str, list[str]] = {}
    for address, (title, advice) in EMPTY.items():
        await page.goto(address)
        await settled(page)
        main = page.get_by_role("main")
        await expect(main.get_by_text(title)).to_be_visible()
        await expect(main).to_contain_text(advice)
        for form, (scheme, (width, height), rules) in FORMS.items():
            await page.emulate_media(color_scheme=scheme)
            await expect(page.locator("html")).to_have_attribute("data-theme", scheme)
            await page.set_viewport_size({"width": width, "height": height})
            await settled(page)
            if faults := await layout_faults(page) + await axe_violations(page, axe, rules):
                wrong[f"{address}, {form}"] = faults
    assert wrong == {}
