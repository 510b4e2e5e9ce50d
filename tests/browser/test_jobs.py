"""Jobs: a list that moves, a job as a graph, a table, bars over time and lines; cancelled, retried, added to."""

import re

from headrace import chain, chord
from headrace.client.job_handle import JobHandle
from tests.browser.browsing import Browsing, heading, newest_row, row_of, settled
from tests.browser.driver import Page, expect
from tests.browser.scene import Scene
from tests.browser.stage import Stage
from tests.support.waiting import eventually


async def album(stage: Stage, name: str, gate: str | None, pictures: int = 5) -> JobHandle[object]:
    """Pictures that wait before a gate, and a book that waits for them."""
    shrink, bind = stage.app.get_task("images.shrink"), stage.app.get_task("images.bind")
    return await chord([shrink.s(number, gate) for number in range(pictures)], bind.s()).aenqueue(name=name)


async def in_state(job: JobHandle[object], state: str) -> bool:
    return await job.astate() == state


def row(page: Page, name: str):
    return page.get_by_role("table", name="Jobs").get_by_role("row").filter(has_text=name)


async def test_the_list_moves_and_its_filters_live_in_the_address(browsing: Browsing, scene: Scene):
    stage = browsing.stage
    page = await browsing.open("/jobs")
    await settled(page)
    job = await album(stage, "garden album", "garden")
    await expect(row(page, "garden album")).to_contain_text("running")
    stage.open_gate("garden")
    await job.await_(timeout=30)
    await expect(row(page, "garden album")).to_contain_text("completed")

    await page.get_by_role("group", name="States").get_by_role("button", name="failed").click()
    await expect(row(page, "spring album")).to_be_visible()
    await expect(row(page, "garden album")).to_have_count(0)
    assert page.url.endswith("?state=failed")
    await page.reload()
    await expect(row(page, "spring album")).to_be_visible()
    await expect(row(page, "garden album")).to_have_count(0)
    await page.get_by_label("Name").fill("spring")
    await page.keyboard.press("Enter")
    await expect(row(page, "spring album")).to_be_visible()
    await expect(page).to_have_url(re.compile("text=spring"))
    await page.get_by_label("Name").fill("no such words")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("No job is like that")).to_be_visible()
    await page.get_by_label("Name").fill("")
    await expect(row(page, "spring album")).to_be_visible()
    await page.get_by_label("Owner").fill("nobody")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("No job is like that")).to_be_visible()
    await page.get_by_role("button", name="Clear filters").click()
    await row(page, "garden album").get_by_role("link").first.click()
    await expect(heading(page, "garden album")).to_be_visible()


async def test_the_graph_is_gone_through_by_keys_and_large_groups_are_folded(browsing: Browsing, scene: Scene):
    page = await browsing.open(f"/jobs/{scene.album}")
    graph = page.get_by_role("group", name="Graph of summer album")
    canvas = graph.get_by_role("application", name=re.compile("summer album: 3 groups of tasks"))
    await expect(canvas).to_be_visible()
    said = graph.get_by_role("status")
    await canvas.focus()
    await page.keyboard.press("Shift+ArrowRight")
    await expect(said).to_contain_text("images.find")
    await page.keyboard.press("Shift+ArrowRight")
    await expect(said).to_have_text("shrink, 12 tasks, 12 completed")
    await page.keyboard.press("Enter")
    unfolded = page.get_by_role("list", name="Groups that are unfolded")
    await expect(unfolded).to_contain_text("shrink")
    await expect(page).to_have_url(re.compile("open="))
    await page.reload()
    await expect(unfolded).to_contain_text("shrink")
    await unfolded.get_by_role("button", name=re.compile("^Fold .*shrink")).click()
    await expect(unfolded).to_have_count(0)
    await canvas.focus()
    await page.keyboard.press("Shift+ArrowRight")
    await expect(said).to_contain_text("images.find")
    await page.keyboard.press("Enter")
    await expect(heading(page, "images.find")).to_be_visible()


async def test_the_graph_is_zoomed_and_moved_by_the_mouse(browsing: Browsing, scene: Scene):
    page = await browsing.open(f"/jobs/{scene.album}")
    canvas = page.get_by_role("application")
    await expect(canvas).to_be_visible()
    await settled(page)

    async def picture() -> str:
        await page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return await canvas.evaluate("canvas => canvas.toDataURL()")

    whole = await picture()
    assert len(whole) > 2_000, "something is drawn"
    await page.get_by_role("button", name="Larger").click()
    larger = await picture()
    assert larger != whole
    box = await canvas.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    await page.mouse.move(x, y)
    await page.mouse.down()
    await page.mouse.move(x + 80, y + 10, steps=5)
    await page.mouse.up()
    moved = await picture()
    assert moved not in (larger, whole)
    await page.get_by_role("button", name="Fit to the screen").click()
    await eventually(lambda: _same(picture, whole))


async def _same(picture: object, wanted: str) -> bool:
    return await picture() == wanted  # type: ignore[operator]


async def test_a_job_moves_by_itself_in_each_of_its_views(browsing: Browsing):
    stage = browsing.stage
    job = await album(stage, "moving album", "moving-album", pictures=12)
    page = await browsing.open(f"/jobs/{job.id}?tab=tasks")
    table = page.get_by_role("treegrid", name="Tasks of the job, by group")
    await expect(table).to_contain_text("12 running")
    await table.get_by_role("button", name=re.compile("^Unfold .*shrink")).click()
    await expect(table.get_by_role("link", name=re.compile("shrink"))).to_have_count(12)
    stage.open_gate("moving-album")
    await job.await_(timeout=30)
    await expect(table).to_contain_text("12 completed")
    await expect(page.get_by_role("heading", level=1).locator("..")).to_contain_text("completed")

    await page.get_by_role("tab", name="Gantt").click()
    bars = page.get_by_role("region", name="When each task ran")
    await expect(bars).to_contain_text("shrink")
    await expect(bars).to_contain_text("bind")
    await page.get_by_role("tab", name="Events").click()
    await expect(
        page.get_by_role("table", name="Events of the job").locator("tbody").get_by_role("row").first
    ).to_be_visible()
    await expect(page).to_have_url(re.compile("tab=events"))


async def test_lines_of_all_its_tasks_are_followed(browsing: Browsing):
    app = browsing.stage.app
    load, find = app.get_task("catalogue.load"), app.get_task("images.find")
    job = await chain(find.si("lines"), load.si("job-lines", 1_000)).aenqueue(name="talking job")
    page = await browsing.open(f"/jobs/{job.id}?tab=logs")
    log = page.get_by_role("log", name="Lines of the job")
    newest = newest_row(log)
    first = await row_of(newest)

    async def followed() -> bool:
        return await row_of(newest) >= first + 7

    await eventually(followed)
    await expect(newest).to_be_visible()
    browsing.stage.open_gate("job-lines")
    await job.await_(timeout=30)
    await page.get_by_label("Find in the lines").fill("row 2 of")
    await expect(log.get_by_text("row 2 of the catalogue")).to_be_visible()


async def test_a_job_is_cancelled_with_its_number_before(browsing: Browsing):
    job = await album(browsing.stage, "unwanted album", "never")
    await eventually(lambda: in_state(job, "running"))
    page = await browsing.open(f"/jobs/{job.id}")
    await page.get_by_role("button", name="Cancel job").click()
    question = page.get_by_role("dialog", name="Cancel unwanted album?")
    await expect(question).to_contain_text("6 are concerned")
    await question.get_by_role("button", name="Keep as it is").click()
    assert await job.astate() == "running"
    await page.get_by_role("button", name="Cancel job").click()
    await question.get_by_role("button", name="Cancel 6 tasks").click()
    await eventually(lambda: in_state(job, "cancelled"))
    await expect(page.get_by_role("button", name="Cancel job")).to_have_count(0)


async def test_what_failed_in_a_job_is_retried(browsing: Browsing):
    stage = browsing.stage
    find, fragile, bind = (stage.app.get_task(f"images.{name}") for name in ("find", "fragile", "bind"))
    job = await chain(find.si("torn"), fragile.si("glue"), bind.si([1, 2])).aenqueue(name="torn album")
    await eventually(lambda: in_state(job, "failed"))
    page = await browsing.open(f"/jobs/{job.id}")
    stage.open_gate("glue")
    await page.get_by_role("button", name="Retry failed").click()
    question = page.get_by_role("dialog", name="Retry what failed in torn album?")
    await question.get_by_role("button", name="Retry 1 task").click()
    await expect(page.get_by_text("2 tasks run again")).to_be_visible()
    assert await job.await_(timeout=30) == "completed"
    runs = {node.name: (await stage.app.tasks.aget(node.id)).run_no for node in (await job.agraph()).nodes}
    assert runs == {"images.find": 1, "images.fragile": 2, "images.bind": 2}
    await expect(page.get_by_role("button", name="Retry failed")).to_have_count(0)


async def test_what_the_end_of_a_job_enqueues_is_shown_and_followed(browsing: Browsing):
    stage = browsing.stage
    shrink, daily, ship = (stage.app.get_task(name) for name in ("images.shrink", "reports.daily", "orders.ship"))
    job = await stage.app.jobs.acreate(
        "album with a report", [shrink.prepare(1, "report")], on_success=daily.s("album"), on_failure=ship.s(1)
    )
    page = await browsing.open(f"/jobs/{job.id}?tab=details")
    ends = page.get_by_role("region", name="When it ends")
    await expect(ends).to_contain_text("reports.daily waits for the end")
    await expect(ends).to_contain_text("orders.ship waits for the end")
    stage.open_gate("report")
    await expect(ends).to_contain_text("reports.daily was enqueued")
    await expect(ends).to_contain_text("orders.ship does not run")
    await ends.get_by_role("link", name="reports.daily").click()
    await expect(heading(page, "Tasks")).to_be_visible()
    await expect(page.get_by_role("table", name="Tasks")).to_contain_text("reports.daily")
    assert page.url.endswith("q=name%3Areports.daily")


async def test_a_task_is_added_to_a_job_that_is_not_over(browsing: Browsing):
    browsing.complaints.forgive("status of 422")
    stage = browsing.stage
    job = await album(stage, "growing album", "growing")
    first = (await job.agraph()).nodes[0].id
    page = await browsing.open(f"/jobs/{job.id}")
    await page.get_by_role("button", name="Add a task").click()
    form = page.get_by_role("dialog", name="Add a task to growing album")
    await form.get_by_label("Task", exact=True).fill("orders.ship")
    await form.get_by_label("Arguments").fill('{"order": "not a number"}')
    await form.get_by_label("Waits for").fill(str(first))
    await form.get_by_role("button", name="Add", exact=True).click()
    await expect(form.get_by_role("alert")).to_contain_text("The task was not added")
    await form.get_by_label("Arguments").fill('{"order": 9}')
    await form.get_by_role("button", name="Add", exact=True).click()
    await expect(form).to_have_count(0)
    stage.open_gate("growing")
    await job.await_(timeout=30)
    assert "orders.ship" in {node.name for node in (await job.agraph()).nodes}


async def test_who_may_not_act_looks_at_jobs_and_strangers_see_none(browsing: Browsing, scene: Scene):
    browsing.complaints.forgive("status of 40[34]")
    page = await browsing.open(f"/jobs/{scene.going}", "vera")
    await expect(heading(page, "winter album")).to_be_visible()
    await settled(page)
    for name in ("Cancel job", "Retry failed", "Add a task"):
        await expect(page.get_by_role("button", name=name)).to_have_count(0)
    page = await browsing.open(f"/jobs/{scene.going}", "uma")
    await expect(page.get_by_role("alert")).to_contain_text(f"Job {scene.going} could not be read")
