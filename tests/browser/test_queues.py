"""Queues: seen as they move, paused, resumed, limited."""

import re

from headrace.core.task import QueueRecord
from tests.browser.browsing import Browsing, heading, settled
from tests.browser.driver import Locator, Page, expect
from tests.browser.stage import Stage


async def record(stage: Stage, name: str) -> QueueRecord | None:
    return next((each for each in await stage.app.queues.alist() if each.name == name), None)


async def is_paused(stage: Stage, name: str) -> bool:
    found = await record(stage, name)
    return found is not None and found.paused


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))


async def test_a_queue_is_paused_and_resumed_from_the_list(browsing: Browsing):
    stage = browsing.stage
    unload = stage.app.get_task("harbour.unload")
    page = await browsing.open("/queues")
    await page.get_by_role("button", name="Pause dock").click()
    await expect(row(page, "dock")).to_contain_text("paused")
    assert await is_paused(stage, "dock")

    handles = [await unload.aenqueue(crates=number) for number in range(3)]
    # Without a reload, and without a click.
    await expect(row(page, "dock").get_by_role("cell").nth(2)).to_have_text("3")
    assert {str((await handle.arecord()).state) for handle in handles} == {"pending"}

    await page.get_by_role("button", name="Resume dock").click()
    await expect(row(page, "dock")).not_to_contain_text("paused")
    assert not await is_paused(stage, "dock")
    for handle in handles:
        await handle.aresult(timeout=30)
    await expect(row(page, "dock").get_by_role("cell").nth(2)).to_have_text("0")


async def test_limits_are_set_changed_and_taken_away(browsing: Browsing):
    stage = browsing.stage
    page = await browsing.open("/queues/quay")
    await settled(page)
    limit = page.get_by_label("Tasks at once")
    save = page.get_by_role("button", name="Save the limit")
    await expect(save).to_be_disabled()
    await limit.fill("none at all")
    await expect(limit).to_have_attribute("aria-invalid", "true")
    await expect(save).to_be_disabled()
    await limit.fill("3")
    await save.click()
    await expect(page.get_by_text("quay runs at most 3 at once")).to_be_visible()
    assert (await record(stage, "quay")).limit == 3

    await page.get_by_label("Starts").fill("100")
    await page.get_by_label("In a").select_option("minute")
    await page.get_by_label("Most at once").fill("5")
    await page.get_by_role("button", name="Save the rate").click()
    await expect(page.get_by_text("The rate of quay is set")).to_be_visible()
    rate = (await record(stage, "quay")).rate
    assert (rate.n, rate.per, rate.burst) == (100, 60, 5)

    await page.reload()
    await expect(limit).to_have_value("3")
    await expect(page.get_by_label("Starts")).to_have_value("100")
    await limit.fill("")
    await save.click()
    await expect(page.get_by_text("quay has no limit")).to_be_visible()
    await page.get_by_label("Starts").fill("")
    await page.get_by_role("button", name="Save the rate").click()
    await expect(page.get_by_text("quay has no rate")).to_be_visible()

    async def unlimited() -> bool:
        found = await record(stage, "quay")
        return found is None or (found.limit is None and found.rate is None)

    assert await unlimited()


async def test_what_was_changed_elsewhere_is_shown(browsing: Browsing):
    page = await browsing.open("/queues/pier")
    await settled(page)
    await browsing.stage.app.queues.apause("pier")
    await expect(page.get_by_text("paused", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Resume").click()
    await expect(page.get_by_role("button", name="Pause")).to_be_visible()
    assert not await is_paused(browsing.stage, "pier")


async def test_a_queue_leads_to_its_tasks(browsing: Browsing):
    handle = await browsing.stage.app.get_task("harbour.moor").aenqueue(ship="Mary")
    await handle.aresult(timeout=30)
    page = await browsing.open("/queues")
    await page.get_by_role("link", name="jetty", exact=True).click()
    await expect(heading(page, "jetty")).to_be_visible()
    await page.get_by_role("link", name="Its tasks").click()
    await expect(heading(page, "Tasks")).to_be_visible()
    rows = page.get_by_role("table", name="Tasks").locator("tbody").get_by_role("row")
    mine = rows.filter(has=page.get_by_text(f"#{handle.id}", exact=True))
    await expect(mine).to_contain_text("harbour.moor")
    # Other tests have tasks in it, too; those of other queues are left out.
    await expect(rows.filter(has_not=page.get_by_text("jetty", exact=True))).to_have_count(0)


async def test_rates_are_drawn_at_the_first_look_and_at_each_one_after(browsing: Browsing):
    handle = await browsing.stage.app.get_task("harbour.moor").aenqueue(ship="Anne")
    await handle.aresult(timeout=30)
    page = await browsing.open("/queues/jetty")
    hour = page.get_by_role("table", name="What ended of jetty").get_by_role("row").filter(has_text="hour")
    # Workers write what they counted each few seconds.
    await expect(hour.get_by_role("cell").first).not_to_have_text(re.compile("^[–0]$"))
    chart = page.get_by_role("img", name="Ended each second")
    await expect(chart).to_be_visible()
    await page.get_by_label("Time range").select_option("Last 24 hours")
    await expect(page).to_have_url(re.compile("range=24h"))
    await page.reload()
    await expect(chart).to_be_visible()
    await page.get_by_role("button", name="Table of Ended each second").click()
    table = page.get_by_role("table", name="Ended each second")
    # A day by quarters of an hour: all of it, though the page was opened just now.
    await expect(table.get_by_role("row").nth(90)).to_be_visible()


async def test_who_may_not_act_is_shown_no_buttons(browsing: Browsing):
    page = await browsing.open("/queues", "vera")
    await settled(page)
    await expect(page.get_by_role("button", name="Pause")).to_have_count(0)
    await page.goto("/queues/mail")
    await settled(page)
    await expect(page.get_by_role("button", name="Pause")).to_have_count(0)
    await expect(page.get_by_label("Tasks at once")).to_have_count(0)
    await expect(page.get_by_text("no limit").first).to_be_visible()
