"""The list of tasks: searched, kept in the address, stable while tasks arrive, and acted on by the hundred."""

import re
from collections import Counter

from headrace import Handle
from tests.browser.browsing import Browsing, heading, settled
from tests.browser.driver import Locator, Page, expect
from tests.browser.scene import Scene
from tests.browser.stage import Stage
from tests.support.waiting import eventually


def table(page: Page) -> Locator:
    return page.get_by_role("table", name="Tasks")


def rows(page: Page) -> Locator:
    return table(page).locator("tbody").get_by_role("row")


async def parked(stage: Stage, count: int, tag: str) -> list[int]:
    """Tasks that wait in a queue that nobody works on, in the order in which they were enqueued."""
    await stage.app.queues.apause("parked")
    task = stage.app.get_task("harbour.unload").using(queue="parked", tags=[tag])
    return [handle.id for handle in await task.aenqueue_many({"crates": number} for number in range(count))]


async def failed(stage: Stage, count: int, tag: str) -> list[Handle[object]]:
    task = stage.app.get_task("orders.charge").using(tags=[tag])
    handles = await task.aenqueue_many({"order": number, "card": "declined"} for number in range(count))
    for handle in handles:
        await eventually(lambda handle=handle: _in(handle, "failed"))
    return handles


async def _in(handle: Handle[object], state: str) -> bool:
    return (await handle.arecord()).state == state


async def states(stage: Stage, ids: list[int]) -> set[str]:
    return {str((await stage.app.tasks.aget(id)).state) for id in ids}


async def search(page: Page, text: str) -> None:
    field = page.get_by_role("combobox", name="Search tasks")
    await field.fill(text)
    await field.press("Enter")
    await settled(page)


async def test_a_search_finds_lives_in_the_address_and_survives_a_reload(browsing: Browsing, scene: Scene):
    page = await browsing.open("/tasks")
    await search(page, "state:failed queue:orders error:TimeoutError")
    await expect(rows(page)).to_have_count(3)
    await expect(rows(page).first).to_contain_text("no answer for order")
    assert "q=state" in page.url
    await page.reload()
    await expect(rows(page)).to_have_count(3)
    await expect(page.get_by_role("combobox", name="Search tasks")).to_have_value(
        "state:failed queue:orders error:TimeoutError"
    )
    await search(page, "queue:orders garbled number")
    await expect(page.get_by_text("Nothing is found")).to_be_visible()
    await search(page, "queue:orders which is no number")
    await expect(rows(page)).to_have_count(2)
    await rows(page).first.get_by_role("link").first.click()
    await expect(heading(page, re.compile("orders.charge"))).to_be_visible()
    await page.go_back()
    await expect(rows(page)).to_have_count(2)


async def test_a_search_that_cannot_be_read_says_where_it_is_wrong(browsing: Browsing):
    page = await browsing.open("/tasks?q=state:upside-down")
    await expect(page.get_by_role("alert")).to_contain_text("upside-down")
    await expect(page.get_by_text("This search cannot be read")).to_be_visible()


async def test_keys_and_values_are_completed(browsing: Browsing, scene: Scene):
    page = await browsing.open("/tasks")
    await settled(page)
    await page.keyboard.press("f")
    field = page.get_by_role("combobox", name="Search tasks")
    await expect(field).to_be_focused()
    await page.keyboard.type("que")
    suggestions = page.get_by_role("listbox", name="Suggestions").get_by_role("option")
    await expect(suggestions.first).to_contain_text("queue:")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(field).to_have_value("queue:")
    await settled(page)
    await page.keyboard.type("ord")
    await expect(suggestions.first).to_contain_text("orders")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(field).to_have_value(re.compile("^queue:orders"))


async def test_chosen_tasks_are_retried_with_their_number_before(browsing: Browsing):
    stage = browsing.stage
    handles = await failed(stage, 4, "again")
    page = await browsing.open("/tasks?q=tag:again")
    await expect(rows(page)).to_have_count(4)
    for handle in handles[:2]:
        await page.get_by_role("checkbox", name=f"Select orders.charge {handle.id}").check()
    bar = page.get_by_role("region", name="Chosen tasks")
    await expect(bar).to_contain_text("2 chosen")
    await bar.get_by_role("button", name="Retry").click()
    question = page.get_by_role("dialog", name="Retry 2 tasks?")
    await question.get_by_role("button", name="Keep as it is").click()
    assert [(await handle.arecord()).run_no for handle in handles] == [1, 1, 1, 1]
    await bar.get_by_role("button", name="Retry").click()
    await question.get_by_role("button", name="Retry 2 tasks").click()
    await expect(page.get_by_text("2 retried")).to_be_visible()
    assert [(await handle.arecord()).run_no for handle in handles] == [2, 2, 1, 1]
    await expect(bar).to_have_count(0)


async def test_all_that_are_found_are_cancelled_and_many_take_their_number(browsing: Browsing):
    stage = browsing.stage
    ids = await parked(stage, 1_050, "flood")
    others = await parked(stage, 2, "dry")
    page = await browsing.open("/tasks?q=tag:flood+state:pending")
    await expect(rows(page).first).to_be_visible()
    shown = await rows(page).count()
    assert shown < 1_050
    await page.get_by_role("checkbox", name=re.compile("^Select all")).check()
    bar = page.get_by_role("region", name="Chosen tasks")
    await expect(bar).to_contain_text(f"{shown} chosen")
    await bar.get_by_role("button", name="Choose all that are found").click()
    await bar.get_by_role("button", name="Cancel").click()
    question = page.get_by_role("dialog", name="Cancel 1,050 tasks?")
    await expect(question).to_contain_text("1,050 are concerned")
    act = question.get_by_role("button", name="Cancel 1,050 tasks")
    await expect(act).to_be_disabled()
    await question.get_by_role("textbox").fill("105")
    await expect(act).to_be_disabled()
    await question.get_by_role("textbox").fill("1050")
    await act.click()
    await expect(page.get_by_text("1,050 cancelled")).to_be_visible()
    assert await states(stage, others) == {"pending"}
    counts = Counter([str((await stage.app.tasks.aget(id)).state) for id in ids])
    assert counts == {"cancelled": 1_050}


async def test_chosen_tasks_are_deleted(browsing: Browsing):
    stage = browsing.stage
    ids = [handle.id for handle in await failed(stage, 3, "away")]
    page = await browsing.open("/tasks?q=tag:away")
    await expect(rows(page)).to_have_count(3)
    await page.get_by_role("checkbox", name=re.compile("^Select all")).check()
    await page.get_by_role("region", name="Chosen tasks").get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog", name="Delete 3 tasks?").get_by_role("button", name="Delete 3 tasks").click()
    await expect(rows(page)).to_have_count(0)
    assert [each.id for each in await stage.app.tasks.alist(limit=1_000) if each.id in ids] == []


async def test_rows_stay_where_they_are_while_others_arrive(browsing: Browsing):
    """Pages follow each other without a gap and without a row twice, whatever is enqueued meanwhile."""
    stage = browsing.stage
    first = await parked(stage, 130, "tide")
    page = await browsing.open("/tasks?q=name:harbour.unload+queue:parked+tag:tide")
    await expect(rows(page).first).to_contain_text(f"#{first[-1]}")
    top = await rows(page).first.inner_text()
    late = await parked(stage, 7, "tide")
    news = page.get_by_role("button", name=re.compile("7 new"))
    await expect(news).to_be_visible()
    assert (await rows(page).first.inner_text()).partition("\n")[0] == top.partition("\n")[0]
    more = page.get_by_role("button", name="Show more")
    while await more.is_visible():
        # What comes may be few rows, or none: the server looks for a moment, and then says that it has not seen all.
        async with page.expect_response(re.compile(r"/api/v1/tasks\?.*cursor=")):
            await more.click()
        await settled(page)
    shown = [int(each) for each in re.findall(r"#(\d+)", await table(page).inner_text())]
    assert shown == sorted(first, reverse=True)
    await news.click()
    await expect(rows(page).first).to_contain_text(f"#{late[-1]}")


async def test_a_row_that_is_shown_changes_by_itself(browsing: Browsing):
    stage = browsing.stage
    handle = await stage.app.get_task("catalogue.load").using(tags=["moving"]).aenqueue(gate="moving", rows=10)
    page = await browsing.open("/tasks?q=tag:moving")
    await expect(rows(page).first).to_contain_text("running")
    await expect(rows(page).first.get_by_role("progressbar")).to_be_visible()
    stage.open_gate("moving")
    await handle.aresult(timeout=30)
    await expect(rows(page).first).to_contain_text("completed")


async def test_a_list_is_gone_through_by_keys(browsing: Browsing):
    ids = await parked(browsing.stage, 3, "keys")
    page = await browsing.open("/tasks?q=tag:keys")
    await expect(rows(page)).to_have_count(3)
    await page.keyboard.press("j")
    await expect(rows(page).nth(0)).to_be_focused()
    await page.keyboard.press("j")
    await page.keyboard.press("x")
    await expect(page.get_by_role("region", name="Chosen tasks")).to_contain_text("1 chosen")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(f"/tasks/{ids[1]}$"))


async def test_who_may_only_look_chooses_nothing(browsing: Browsing, scene: Scene):
    page = await browsing.open("/tasks", "vera")
    await expect(rows(page).first).to_be_visible()
    await expect(table(page).get_by_role("checkbox")).to_have_count(0)
    await expect(page.get_by_role("link", name="New task")).to_have_count(0)
    await page.goto("/tasks/new")
    await settled(page)
    await expect(page.get_by_role("button", name=re.compile("Enqueue|Submit"))).to_have_count(0)


async def test_a_user_sees_their_own_tasks(browsing: Browsing, scene: Scene):
    page = await browsing.open("/tasks", "uma")
    owned = rows(page).filter(has=page.get_by_text(f"#{scene.owned}", exact=True))
    await expect(owned).to_have_count(1)
    await expect(rows(page).filter(has_text="orders.charge")).to_have_count(0)
    browsing.complaints.forgive("status of 403")
    await page.goto(f"/tasks/{scene.failed}")
    await expect(page.get_by_role("alert")).to_be_visible()
    await page.goto("/tasks")
    await owned.get_by_role("link").first.click()
    await expect(heading(page, re.compile("mail.welcome"))).to_be_visible()
