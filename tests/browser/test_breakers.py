"""Breakers: opened by hand, reset, with what was done to them."""

from headrace.core.breaker import BreakerRecord
from tests.browser.browsing import Browsing, heading, settled
from tests.browser.driver import expect
from tests.browser.stage import Stage


async def record(stage: Stage, service: str) -> BreakerRecord:
    return next(each for each in await stage.app.breakers.alist() if each.service == service)


async def test_a_breaker_is_opened_by_hand_and_reset(browsing: Browsing):
    stage = browsing.stage
    page = await browsing.open("/breakers")
    await page.get_by_role("button", name="Open one by hand…").click()
    form = page.get_by_role("dialog", name="Open a breaker by hand")
    await expect(form.get_by_role("button", name="Open it")).to_be_disabled()
    await form.get_by_label("Service").fill("courier")
    await form.get_by_label("How long").select_option("until somebody resets it")
    await form.get_by_role("button", name="Open it").click()
    row = page.get_by_role("table", name="Breakers").get_by_role("row").filter(has_text="courier")
    await expect(row).to_contain_text("open")
    found = await record(stage, "courier")
    assert (found.status, found.forced, found.changed_by) == ("open", True, "oskar")

    await row.get_by_role("link", name="courier").click()
    await expect(heading(page, "courier")).to_be_visible()
    history = page.get_by_role("table", name="What happened to the breaker of courier, newest first")
    await expect(history).to_contain_text("opened by hand")
    await page.get_by_role("button", name="Reset").click()
    await expect(history).to_contain_text("closed by hand")
    assert (await record(stage, "courier")).status == "closed"
    await expect(page.get_by_role("button", name="Reset")).to_have_count(0)


async def test_one_that_opens_by_itself_appears_and_is_reset_from_the_list(browsing: Browsing):
    """The worker's own: enough calls fail, so it opens, and its tasks go back uncharged."""
    app = browsing.stage.app
    page = await browsing.open("/breakers")
    await settled(page)
    handles = [await app.get_task("mail.by_pigeon").aenqueue(lost=True) for _ in range(12)]
    row = page.get_by_role("table", name="Breakers").get_by_role("row").filter(has_text="pigeons")
    await expect(row).to_contain_text("open")
    found = await record(browsing.stage, "pigeons")
    assert (found.forced, found.failures > 0) == (False, True)
    await page.get_by_role("button", name="Reset the breaker of pigeons").click()
    await expect(row).to_contain_text("closed")
    assert (await record(browsing.stage, "pigeons")).status == "closed"
    # What it did by itself stays on the list, behind what was done by hand since.
    await row.get_by_role("link", name="pigeons").click()
    history = page.get_by_role("table", name="What happened to the breaker of pigeons, newest first")
    await expect(history.get_by_role("row").filter(has_text="closed by hand")).to_contain_text("oskar")
    await expect(history.get_by_role("row").filter(has_text="calls failed")).not_to_have_count(0)
    for handle in handles:
        await handle.acancel()


async def test_who_may_not_act_sees_no_buttons(browsing: Browsing):
    await browsing.stage.app.breakers.aopen("balloon", by="ada")
    page = await browsing.open("/breakers", "vera")
    await expect(page.get_by_role("table", name="Breakers")).to_contain_text("balloon")
    await expect(page.get_by_role("main").get_by_role("button")).to_have_count(0)
