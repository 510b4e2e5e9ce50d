"""One task: what it shows of its life, what it says while it runs, and each act on it."""

import re
from pathlib import Path

from headrace import Retry, chain
from tests.browser.browsing import Browsing, heading, newest_row, row_of, settled
from tests.browser.driver import Locator, expect
from tests.browser.scene import Scene
from tests.support.waiting import eventually


async def test_a_failure_is_shown_by_its_frames(browsing: Browsing):
    handle = await browsing.stage.app.get_task("orders.read").aenqueue(text="{no order")
    await eventually(lambda: _is(handle, "failed"))
    page = await browsing.open(f"/tasks/{handle.id}")
    await expect(heading(page, re.compile("orders.read"))).to_be_visible()
    error = page.get_by_role("region", name="Error", exact=True)
    await expect(error).to_contain_text("json.decoder.JSONDecodeError")
    await expect(error).to_contain_text("Expecting property name enclosed in double quotes")
    # One's own code is seen at once; frames of libraries are folded, and can be seen.
    await expect(error.get_by_text('return json.loads(text)["order"]')).to_be_visible()
    await expect(error.get_by_text("in raw_decode")).to_have_count(0)
    await error.get_by_role("button", name=re.compile(r"frames in .*json")).click()
    await expect(error.get_by_text("in raw_decode")).to_be_visible()
    await expect(error.get_by_text("raised here").first).to_be_visible()
    await error.get_by_role("button", name="As Python printed it").click()
    await expect(error.get_by_role("region", name="Traceback")).to_contain_text("Traceback (most recent call last)")
    timeline = page.get_by_role("region", name="Timeline")
    await expect(timeline.get_by_role("row")).to_have_count(2)
    await expect(timeline).to_contain_text("failed")


async def test_secrets_are_not_shown(browsing: Browsing, scene: Scene):
    page = await browsing.open(f"/tasks/{scene.completed}")
    arguments = page.get_by_role("region", name="the arguments")
    await expect(arguments).to_contain_text("[redacted]")
    await expect(page.locator("body")).not_to_contain_text("hunter2")
    assert "hunter2" not in await page.content()
    await expect(page.get_by_role("region", name="the result")).to_contain_text("hello 0 x1 sealed")


async def test_lines_are_followed_searched_and_taken_away(browsing: Browsing, tmp_path: Path):
    stage = browsing.stage
    handle = await stage.app.get_task("catalogue.load").aenqueue(gate="lines", rows=1_000)
    page = await browsing.open(f"/tasks/{handle.id}")
    log = page.get_by_role("region", name="Log", exact=True)
    lines = log.get_by_role("region", name="Log lines")
    newest, row = newest_row(lines), 0
    for _ in range(3):
        # The view, which has room for 23, keeps to the end by itself.
        row = await eventually(lambda row=row: _beyond(newest, row + 9))
        await lines.scroll_into_view_if_needed()
        await expect(newest).to_be_in_viewport()
    bar = page.get_by_role("progressbar", name="Progress")
    first = int(await bar.get_attribute("aria-valuenow") or 0)
    await eventually(lambda: _grown(bar, first))

    await lines.hover()
    await page.mouse.wheel(0, -400)
    await expect(log.get_by_role("button", name="Follow", exact=True)).to_be_visible()
    stage.open_gate("lines")
    await handle.aresult(timeout=30)
    await expect(page.get_by_role("region", name="the result")).to_contain_text("1000")

    await log.get_by_label("Search in the log").fill("row 7 of")
    await expect(log.get_by_role("status").filter(has_text=re.compile("^1$"))).to_be_visible()
    await log.get_by_label("Search in the log").press("Enter")
    await expect(lines.locator("mark").first).to_be_in_viewport()
    await log.get_by_role("checkbox", name="Only lines with it").check()
    await expect(lines.get_by_text("of the catalogue")).to_have_count(1)

    async with page.expect_download() as started:
        await log.get_by_role("link", name="Download").click()
    file = tmp_path / "lines.txt"
    await (await started.value).save_as(file)
    written = file.read_text()
    stored = [line.line for line in await stage.app.tasks.alogs(handle.id)]
    assert len(stored) > 20
    assert [line for line in stored if line not in written] == []


async def _beyond(line: Locator, row: int) -> int | None:
    found = await row_of(line)
    return found if found >= row else None


async def _grown(bar: object, first: int) -> bool:
    return int(await bar.get_attribute("aria-valuenow") or 0) > first  # type: ignore[attr-defined]


async def test_a_failed_task_is_retried(browsing: Browsing):
    stage = browsing.stage
    handle = await stage.app.get_task("images.fragile").aenqueue("retry-me")
    await eventually(lambda: _is(handle, "failed"))
    page = await browsing.open(f"/tasks/{handle.id}")
    stage.open_gate("retry-me")
    await page.get_by_role("button", name="Retry", exact=True).click()
    await expect(page.get_by_text("It runs again")).to_be_visible()
    assert await handle.aresult(timeout=30) == "retry-me"
    assert (await handle.arecord()).run_no == 2
    await expect(page.get_by_role("region", name="the result")).to_contain_text("retry-me")
    timeline = page.get_by_role("region", name="Timeline")
    await expect(timeline.get_by_role("row")).to_have_count(3)
    await timeline.get_by_role("button", name="Error").click()
    await expect(page.get_by_role("region", name="Error", exact=True)).to_contain_text("no gate retry-me")
    await expect(page).to_have_url(re.compile("attempt="))


async def _is(handle: object, state: str) -> bool:
    return (await handle.arecord()).state == state  # type: ignore[attr-defined]


async def test_a_running_task_is_cancelled_after_a_question(browsing: Browsing):
    handle = await browsing.stage.app.get_task("catalogue.load").aenqueue(gate="never-opened")
    page = await browsing.open(f"/tasks/{handle.id}")
    await expect(page.get_by_role("progressbar", name="Progress")).to_be_visible()
    await page.keyboard.press("c")
    question = page.get_by_role("dialog", name=f"Cancel task {handle.id}?")
    await question.get_by_role("button", name="Keep as it is").click()
    assert (await handle.arecord()).state == "running"
    await page.get_by_role("button", name="Cancel", exact=True).click()
    await question.get_by_role("button", name="Cancel the task").click()
    await eventually(lambda: _is(handle, "cancelled"))
    await expect(page.get_by_role("button", name="Retry", exact=True)).to_be_visible()


async def test_a_task_is_deleted_and_its_address_says_so(browsing: Browsing):
    browsing.complaints.forgive("status of 404")
    stage = browsing.stage
    handle = await stage.app.get_task("orders.ship").aenqueue(order=5)
    await handle.aresult(timeout=30)
    page = await browsing.open(f"/tasks/{handle.id}")
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete the task").click()
    await expect(heading(page, "Tasks")).to_be_visible()
    assert [each.id for each in await stage.app.tasks.alist(limit=1_000) if each.id == handle.id] == []
    await page.goto(f"/tasks/{handle.id}")
    await expect(page.get_by_text(f"There is no task {handle.id}")).to_be_visible()


async def test_a_task_is_cleared_with_what_follows_after_it_was_shown(browsing: Browsing):
    app = browsing.stage.app
    find, bind, ship = app.get_task("images.find"), app.get_task("images.bind"), app.get_task("orders.ship")
    job = await chain(find.si("clearing"), bind.si([1, 2]), ship.si(3)).aenqueue()
    await job.await_(timeout=30)
    first, second, third = [node.id for node in (await job.agraph()).nodes]
    page = await browsing.open(f"/tasks/{second}")
    await page.get_by_role("button", name="Clear with what follows").click()
    dialog = page.get_by_role("dialog", name="Clear with what follows")
    plan = dialog.get_by_role("list", name="What would run again")
    await expect(plan.get_by_role("listitem")).to_have_count(2)
    await expect(plan).to_contain_text(f"#{second}")
    await expect(plan).to_contain_text(f"#{third}")
    await dialog.get_by_role("button", name="Run 2 tasks again").click()
    await expect(page.get_by_text("2 run again")).to_be_visible()
    await job.await_(timeout=30)
    runs = [(await app.tasks.aget(id)).run_no for id in (first, second, third)]
    assert runs == [1, 2, 2]


async def test_executions_of_long_ago_are_read_when_they_are_asked_for(browsing: Browsing):
    """A task page has the last 200 at once."""
    fragile = browsing.stage.app.get_task("images.fragile")
    often = Retry(max_attempts=215, backoff="fixed", base=0.001, jitter=0)
    handle = await fragile.using(retry=often).aenqueue("never at all")
    await eventually(lambda: _is(handle, "failed"), timeout=60)
    assert len(await browsing.stage.app.tasks.aattempts(handle.id)) == 215
    page = await browsing.open(f"/tasks/{handle.id}")
    timeline = page.get_by_role("region", name="Timeline")
    rows = timeline.get_by_role("table").locator("tbody").get_by_role("row")
    await timeline.get_by_role("button", name="175 earlier ones, and more before them").click()
    await expect(rows).to_have_count(200)
    await timeline.get_by_role("button", name="Earlier ones", exact=True).click()
    await expect(rows).to_have_count(215)
    await expect(timeline.get_by_role("button", name="Earlier ones", exact=True)).to_have_count(0)
    await rows.first.get_by_role("button", name="Error").click()
    error = page.get_by_role("region", name="Error", exact=True)
    await expect(error).to_contain_text("of attempt 1,")
    # An address that names one of them leads to it.
    await page.reload()
    await expect(error).to_contain_text("of attempt 1,")


async def test_why_a_task_waits_is_said_with_a_button_that_mends_it(browsing: Browsing):
    app = browsing.stage.app
    await app.queues.apause("dock")
    handle = await app.get_task("harbour.unload").aenqueue(crates=9)
    page = await browsing.open(f"/tasks/{handle.id}")
    why = page.get_by_role("region", name="Why does this wait?")
    await expect(why).to_contain_text("dock is paused")
    await why.get_by_role("button", name="Resume dock").click()
    assert await handle.aresult(timeout=30) == 9
    await expect(page.get_by_role("region", name="the result")).to_contain_text("9")


async def test_a_task_leads_to_its_job_its_parents_and_children(browsing: Browsing, scene: Scene):
    page = await browsing.open(f"/tasks/{scene.shrink}")
    belongs = page.get_by_role("region", name="Where it belongs")
    await expect(belongs.get_by_role("link", name="summer album")).to_be_visible()
    await belongs.get_by_role("link", name=re.compile("images.find")).click()
    await expect(heading(page, re.compile("images.find"))).to_be_visible()
    children = page.get_by_role("region", name="Where it belongs").get_by_role("link", name=re.compile("images.shrink"))
    await expect(children).to_have_count(12)


async def test_times_are_of_the_viewers_zone_with_utc_on_hover(browsing: Browsing, scene: Scene):
    record = await browsing.stage.app.tasks.aget(scene.completed)
    page = await browsing.open(f"/tasks/{scene.completed}")
    created = page.get_by_role("region", name="Details").locator("time").first
    title = await created.get_attribute("title") or ""
    there = (record.created_at.hour + 9) % 24  # the pages of these tests are in Tokyo
    assert f"{there:02d}:{record.created_at:%M}" in title
    assert re.search(rf"{record.created_at:%H:%M}.*UTC", title), title


async def test_who_may_not_act_sees_no_acts(browsing: Browsing, scene: Scene):
    page = await browsing.open(f"/tasks/{scene.failed}", "vera")
    await expect(heading(page, re.compile("orders.charge"))).to_be_visible()
    await settled(page)
    for name in ("Retry", "Cancel", "Delete", "Clear with what follows", "Edit and enqueue again"):
        await expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
        await expect(page.get_by_role("link", name=name, exact=True)).to_have_count(0)
    await page.goto(f"/tasks/{scene.refund}")
    await settled(page)
    await expect(page.get_by_role("button", name="Approve")).to_have_count(0)


async def test_what_is_no_number_is_no_task(browsing: Browsing):
    page = await browsing.open("/tasks/seventeen")
    await expect(page.get_by_text("is no id of a task")).to_be_visible()
