"""The audit log: an act in a page stands there, with who did it, and is found again by an address."""

import re

from tests.browser.browsing import Browsing, heading, settled
from tests.browser.driver import expect


async def test_an_act_in_a_page_stands_in_the_log(browsing: Browsing):
    page = await browsing.open("/queues/wharf", "oskar")
    await page.get_by_role("button", name="Pause").click()
    await expect(page.get_by_text("wharf is paused")).to_be_visible()
    (entry,) = await browsing.stage.app.audit.alist(subject="queue/wharf")
    assert (entry.actor, entry.act, entry.outcome) == ("oskar", "queues.pause", "done")

    log = await browsing.open("/audit", "ada")
    table = log.get_by_role("table", name="What was done, newest first")
    await expect(table).to_contain_text("queue/wharf")
    search = log.get_by_role("search", name="Audit log")
    await search.get_by_label("Who").fill("oskar")
    await search.get_by_label("To what").fill("queue/wharf")
    await search.get_by_role("button", name="Filter").click()
    await expect(table.get_by_role("row")).to_have_count(2)
    await expect(log).to_have_url(re.compile(re.escape("?actor=oskar&subject=queue%2Fwharf") + "$"))
    await log.reload()
    await settled(log)
    await expect(table.get_by_role("row")).to_have_count(2)
    await expect(search.get_by_label("To what")).to_have_value("queue/wharf")

    await log.get_by_role("button", name="Show queues.pause by oskar").click()
    shown = log.get_by_role("dialog", name="queues.pause")
    await expect(shown).to_contain_text(entry.request or "no request")
    await log.keyboard.press("Escape")
    await expect(shown).to_have_count(0)
    await table.get_by_role("link", name="queue/wharf").click()
    await expect(heading(log, "wharf")).to_be_visible()
    await log.go_back()
    await expect(table.get_by_role("row")).to_have_count(2)
    await search.get_by_role("button", name="Clear").click()
    await expect(log).to_have_url(re.compile("/audit$"))


async def test_what_nobody_did_says_so(browsing: Browsing):
    page = await browsing.open("/audit?actor=nobody", "ada")
    await expect(page.get_by_text("Nothing was done that fits")).to_be_visible()
