"""Workers: who is alive with what they hold, who is silent, who has stopped."""

import pytest

from tests.browser.browsing import Browsing, heading
from tests.browser.driver import expect
from tests.browser.processes import Command
from tests.browser.scene import Scene


@pytest.mark.timeout(240)
async def test_a_worker_comes_holds_something_and_is_killed(browsing: Browsing):
    stage = browsing.stage
    options = ("--queues", "harbour", "--children", "0", "--lease", "2", "--no-scheduler")
    helper = Command(stage.folder, "worker", "shop:app", *options, **stage.variables)
    page = await browsing.open("/workers")
    working = page.get_by_role("table", name="Workers that are heard of")
    await expect(working.locator("tbody").get_by_role("row")).to_have_count(1)
    helper.start()
    try:
        await expect(working.locator("tbody").get_by_role("row")).to_have_count(2)
        load = stage.app.get_task("catalogue.load").using(queue="harbour")
        row = working.get_by_role("row").filter(has_text="harbour")
        with stage.frozen_worker():  # else it could take the task, and would take it over before it was seen
            handle = await load.aenqueue(gate="not in this test", rows=10)
            await expect(row).to_contain_text("catalogue.load")
            await row.get_by_role("link").first.click()
            held = page.get_by_role("table", name="Tasks that it holds")
            await expect(held).to_contain_text(f"{handle.id} catalogue.load")
            await expect(held).to_contain_text("row 9")
            helper.kill()
            said = "It has not been heard of for longer than its lease"
            await expect(page.get_by_role("alert")).to_contain_text(said)
            await page.get_by_role("link", name="Workers").last.click()
            await expect(page.get_by_role("table", name="Workers that are silent")).to_be_visible()
    finally:
        helper.stop()
    # The other one takes over.
    await expect(page.get_by_role("table", name="Workers that are silent")).to_have_count(0)
    await expect(working.locator("tbody").get_by_role("row")).to_have_count(1)
    await expect(working).to_contain_text("catalogue.load")
    await handle.acancel()


async def test_a_worker_leads_to_its_tasks(browsing: Browsing, scene: Scene):
    page = await browsing.open(f"/workers/{scene.worker}")
    await expect(page.get_by_role("table", name="Tasks that it holds")).to_contain_text("catalogue.load")
    await page.get_by_role("link", name="All of its tasks").click()
    await expect(heading(page, "Tasks")).to_be_visible()
    await expect(page.get_by_role("table", name="Tasks").locator("tbody").get_by_role("row").first).to_be_visible()
