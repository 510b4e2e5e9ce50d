"""Schedules: made, run now, paused, changed and removed; wrong ones are refused beside the field."""

import json
import re
from datetime import timedelta

import pytest

from headrace import Schedule, errors
from tests.browser.browsing import Browsing, heading
from tests.browser.driver import Locator, Page, expect
from tests.support.waiting import eventually


def row(page: Page, name: str) -> Locator:
    return (
        page.get_by_role("table", name="Schedules").get_by_role("row").filter(has=page.get_by_role("link", name=name))
    )


@pytest.mark.requirement("R103")
async def test_a_schedule_is_made_run_changed_and_removed(browsing: Browsing):
    """R103: what the pages make, change and remove is what `app.schedules` then says: the same ledger, behind the UI
    through the API's routes."""
    browsing.complaints.forgive("status of 422")
    app = browsing.stage.app
    page = await browsing.open("/schedules")
    await page.get_by_role("button", name="New schedule").click()
    form = page.get_by_role("dialog", name="A new schedule")
    await form.get_by_label("Name").fill("evening-report")
    await form.get_by_role("textbox", name="Cron").fill("0 99 * * *")
    await form.get_by_label("Time zone").fill("Europe/Berlin")
    await form.get_by_label("Task", exact=True).fill("reports.daily")
    await form.get_by_label("Arguments of each run").fill('{"region": "east"}')
    await form.get_by_role("button", name="Make the schedule").click()
    await expect(form.get_by_role("textbox", name="Cron")).to_have_attribute("aria-invalid", "true")
    await form.get_by_role("textbox", name="Cron").fill("30 18 * * *")
    await form.get_by_role("button", name="Make the schedule").click()
    await expect(heading(page, "evening-report")).to_be_visible()
    made = await app.schedules.aget("evening-report")
    assert made.describe() == "At 18:30 every day (Europe/Berlin)"
    fires = page.get_by_role("region", name="Next fires")
    ticks = fires.locator("tbody").get_by_role("row")
    await expect(ticks).to_have_count(10)
    # Pages of these tests are in Tokyo; the schedule is on the clocks of Berlin.
    await expect(fires.get_by_role("columnheader").nth(1)).to_contain_text("Europe/Berlin")
    await expect(ticks.first.get_by_role("cell").nth(1)).to_contain_text("18:30:00")
    await expect(ticks.first.get_by_role("cell").nth(0)).not_to_contain_text("18:30:00")

    await page.get_by_role("button", name="Run now").click()
    runs = page.get_by_role("table", name="Runs of evening-report, newest first")
    await expect(runs).to_contain_text("by hand")
    await expect(runs).to_contain_text("completed")
    (run,) = await app.schedules.aruns("evening-report")
    assert run.manual
    assert await app.tasks.handle(run.task).aresult(timeout=30) == "report for east"
    await expect(runs.get_by_role("link", name=str(run.task))).to_be_visible()

    await page.get_by_role("button", name="Pause").click()
    await expect(ticks).to_have_count(0)
    assert (await app.schedules.aget("evening-report")).paused
    await page.get_by_role("button", name="Resume").click()
    await expect(ticks).to_have_count(10)
    assert not (await app.schedules.aget("evening-report")).paused

    await page.get_by_role("button", name="Edit").click()
    form = page.get_by_role("dialog", name="Edit evening-report")
    save = form.get_by_role("button", name="Save the changes")
    await expect(save).to_be_disabled()
    await form.get_by_label("At intervals").check()
    await form.get_by_label("Every").fill("6")
    await form.get_by_label("Unit").select_option("hours")
    await save.click()
    await expect(form).to_have_count(0)
    changed = await app.schedules.aget("evening-report")
    fired = changed.upcoming(2)
    assert fired[1] - fired[0] == timedelta(hours=6)

    await page.get_by_role("button", name="Remove").click()
    await page.get_by_role("dialog").get_by_role("button", name="Remove the schedule").click()
    await expect(heading(page, "Schedules")).to_be_visible()
    with pytest.raises(errors.NotFound):
        await app.schedules.aget("evening-report")


async def test_a_schedule_is_run_and_paused_from_the_list(browsing: Browsing):
    app = browsing.stage.app
    await app.schedules.aadd(app.get_task("reports.daily"), Schedule("0 4 * * *", name="list-report"), region="west")
    page = await browsing.open("/schedules")
    await expect(row(page, "list-report")).to_contain_text("At 04:00 every day")
    await page.get_by_role("button", name="Run list-report now").click()
    await expect(row(page, "list-report").get_by_role("link", name=re.compile("^completed, by hand"))).to_be_visible()
    await page.get_by_role("button", name="Pause list-report").click()
    await expect(row(page, "list-report")).to_contain_text("paused")
    assert (await app.schedules.aget("list-report")).paused

    async def resumed() -> bool:
        return not (await app.schedules.aget("list-report")).paused

    await page.get_by_role("button", name="Resume list-report").click()
    await eventually(resumed)


async def test_a_queue_that_was_chosen_for_a_schedule_stays_when_its_arguments_change(browsing: Browsing):
    app = browsing.stage.app
    task = app.get_task("reports.daily").using(queue="parked")
    await app.schedules.aadd(task, Schedule("0 5 * * *", name="parked-report"), region="west")
    page = await browsing.open("/schedules/parked-report?edit=yes")
    form = page.get_by_role("dialog", name="Edit parked-report")
    await expect(form).to_contain_text("It stays in the queue parked, which was chosen for it.")
    await form.get_by_label("Arguments of each run").fill('{"region": "south"}')
    await form.get_by_role("button", name="Save the changes").click()
    await expect(form).to_have_count(0)
    changed = (await app.schedules.aget("parked-report")).record.task
    assert (changed.queue, json.loads(changed.arguments)) == ("parked", {"region": "south"})
    await app.schedules.aremove("parked-report")


async def test_what_the_code_declares_says_so(browsing: Browsing):
    page = await browsing.open("/schedules/reports.daily")
    await expect(page.get_by_role("region", name="What")).to_contain_text("the code of shop:app")


async def test_who_may_not_act_looks_and_who_sees_their_own_sees_none(browsing: Browsing):
    page = await browsing.open("/schedules", "vera")
    await expect(row(page, "reports.daily")).to_be_visible()
    await expect(page.get_by_role("button", name="New schedule")).to_have_count(0)
    await expect(page.get_by_role("button", name=re.compile("^(Run|Pause)"))).to_have_count(0)
    page = await browsing.open("/schedules", "uma")
    await expect(page.get_by_text("Your role does not reach this")).to_be_visible()
