"""A new task by a form that is made of its arguments, and one that is changed and enqueued again."""

import json
import re
from datetime import UTC, datetime, timedelta

from tests.browser.browsing import Browsing, heading, settled
from tests.browser.driver import Page, expect


async def enqueued(page: Page) -> int:
    """The task that the form became: its page is shown."""
    await expect(page).to_have_url(re.compile(r"/tasks/\d+$"))
    return int(page.url.rpartition("/")[2])


async def test_a_task_is_enqueued_by_a_form_of_its_arguments(browsing: Browsing):
    app = browsing.stage.app
    page = await browsing.open("/tasks", "uma")
    await page.get_by_role("link", name="New task").first.click()
    await page.get_by_label("Find a task").fill("greet somebody")
    await page.get_by_role("list", name="Tasks").get_by_role("link", name=re.compile("mail.welcome")).click()
    await expect(heading(page, "mail.welcome")).to_be_visible()
    await expect(page.get_by_text("Greet somebody who is new.")).to_be_visible()

    user_id = page.get_by_label("user_id", exact=True)
    await page.get_by_role("button", name="Enqueue", exact=True).click()
    await expect(user_id).to_have_attribute("aria-invalid", "true")
    await expect(user_id).to_be_focused()
    await user_id.fill("four")
    await page.get_by_role("button", name="Enqueue", exact=True).click()
    await expect(user_id).to_have_attribute("aria-invalid", "true")
    await user_id.fill("4")
    await page.get_by_label("greeting", exact=True).fill("good day")
    await page.get_by_label("urgent", exact=True).select_option("true")
    await page.get_by_label("Tags").fill("by-form")
    await page.get_by_role("button", name="Enqueue", exact=True).click()
    id = await enqueued(page)
    assert await app.tasks.handle(id).aresult(timeout=30) == "good day 4! x1"
    record = await app.tasks.aget(id)
    assert (record.owner, record.queue) == ("uma", "mail")
    assert json.loads(record.options)["tags"] == ["by-form"]
    await expect(page.get_by_role("region", name="the result")).to_contain_text("good day 4! x1")


async def test_lists_choices_and_maps_are_fields_and_json_is_as_good(browsing: Browsing):
    app = browsing.stage.app
    page = await browsing.open("/tasks/new?name=orders.place")
    await page.get_by_role("button", name="Add one to articles").click()
    await page.get_by_role("textbox", name="articles 1").fill("a kettle")
    await page.get_by_role("button", name="Add another to articles").click()
    await page.get_by_role("textbox", name="articles 2").fill("two cups")
    await page.get_by_label("speed", exact=True).select_option("fast")
    await page.get_by_role("tab", name="JSON").click()
    written = page.get_by_label("Arguments by name")
    await expect(written).to_have_value(re.compile(r'"two cups"'))
    await written.fill('{"articles": ["a kettle"], "speed": "faster"}')
    await page.get_by_role("button", name="Enqueue", exact=True).click()
    await expect(written).to_have_attribute("aria-invalid", "true")
    await written.fill('{"articles": ["a kettle"], "speed": "fast", "pieces": {"a kettle": 2}}')
    await page.get_by_role("tab", name="Fields").click()
    await expect(page.get_by_role("textbox", name="articles 1")).to_have_value("a kettle")
    await page.get_by_role("button", name="Enqueue", exact=True).click()
    id = await enqueued(page)
    assert await app.tasks.handle(id).aresult(timeout=30) == {
        "articles": ["a kettle"],
        "speed": "fast",
        "pieces": {"a kettle": 2},
    }


async def test_when_and_where_it_runs_can_be_said(browsing: Browsing):
    app = browsing.stage.app
    page = await browsing.open("/tasks/new?name=orders.ship")
    await page.get_by_label("order", exact=True).fill("12")
    await page.get_by_label("Queue", exact=True).fill("jetty")
    await page.get_by_label("Priority").fill("7")
    await page.get_by_label("Start", exact=True).select_option("delay")
    await page.get_by_label("After", exact=True).fill("2h")
    await page.get_by_role("button", name="Enqueue", exact=True).click()
    record = await app.tasks.aget(await enqueued(page))
    assert (record.queue, record.priority) == ("jetty", 7)
    assert timedelta(hours=1.9) < record.eligible_at - datetime.now(UTC) < timedelta(hours=2.1)


async def test_a_command_is_submitted_and_a_users_waits_for_approval(browsing: Browsing):
    app = browsing.stage.app
    page = await browsing.open("/tasks/new?command", "oskar")
    await page.get_by_role("textbox", name="Command").fill("echo 'hello there'")
    await page.get_by_role("button", name="Enqueue", exact=True).click()
    result = await app.tasks.handle(await enqueued(page)).aresult(timeout=30)
    assert result["stdout"] == "hello there\n"

    page = await browsing.open("/tasks/new?name=orders.refund", "uma")
    await expect(page.get_by_text("waits for approval first")).to_be_visible()
    await page.get_by_label("order", exact=True).fill("3")
    await page.get_by_label("cents", exact=True).fill("100")
    await page.get_by_role("button", name="Enqueue", exact=True).click()
    assert (await app.tasks.aget(await enqueued(page))).state == "pending_approval"


async def test_a_task_is_changed_and_enqueued_again_and_its_secret_is_kept(browsing: Browsing):
    app = browsing.stage.app
    before = await app.get_task("mail.welcome").aenqueue(user_id=31, password="hunter2")
    assert await before.aresult(timeout=30) == "hello 31 x1 sealed"
    page = await browsing.open(f"/tasks/{before.id}")
    await page.get_by_role("link", name="Edit and enqueue again").click()
    await expect(heading(page, "Edit and enqueue again")).to_be_visible()
    await settled(page)
    await expect(page.get_by_label("user_id", exact=True)).to_have_value("31")
    await expect(page.get_by_text("It is taken as it was.")).to_be_visible()
    assert "hunter2" not in await page.content()
    await page.get_by_label("greeting", exact=True).fill("good evening")
    await page.get_by_role("button", name="Enqueue the copy").click()
    await expect(page).not_to_have_url(re.compile("edit"))
    id = await enqueued(page)
    assert id != before.id
    assert await app.tasks.handle(id).aresult(timeout=30) == "good evening 31 x1 sealed"
    assert (await before.arecord()).run_no == 1
    await expect(page.get_by_role("link", name=f"#{before.id}")).to_be_visible()
