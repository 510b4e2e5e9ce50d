"""The overview: figures that move by themselves, over the time that was asked for, and lead to what they count."""

import re

from tests.browser.browsing import Browsing, heading, settled
from tests.browser.driver import Locator, Page, expect
from tests.browser.scene import Scene
from tests.support.waiting import eventually


def stat(page: Page, label: str) -> Locator:
    return page.get_by_label("At a glance").locator("*", has=page.get_by_text(label, exact=True)).last


async def running(page: Page) -> int:
    found = re.search(r"Running\s*(\d+)", await page.get_by_label("At a glance").inner_text())
    assert found is not None
    return int(found[1])


async def test_figures_move_without_a_reload(browsing: Browsing, scene: Scene):
    app = browsing.stage.app
    page = await browsing.open("/", "vera")
    await settled(page)
    glance = page.get_by_label("At a glance")

    async def agrees() -> bool:
        # Not by so many more than before: what another test has left may end at any moment.
        counts = await app.tasks.acounts()
        return await running(page) == counts.get("running", 0) + counts.get("claimed", 0)

    await eventually(agrees)
    loads = [await app.get_task("catalogue.load").aenqueue(gate="overview") for _ in range(3)]

    async def all_run() -> bool:
        return {str((await load.arecord()).state) for load in loads} == {"running"}

    await eventually(all_run)
    await eventually(agrees)
    queues = page.get_by_role("table", name="Queues and lanes")
    await expect(queues.get_by_role("row").filter(has_text="parked")).to_contain_text("paused")
    browsing.stage.open_gate("overview")
    for load in loads:
        await load.aresult(timeout=30)
    await eventually(agrees)
    await expect(glance).to_contain_text(re.compile(r"Workers alive\s*1(?!\d)"))


async def test_figures_fill_their_lines(browsing: Browsing, scene: Scene):
    page = await browsing.open("/")
    await settled(page)
    for width in (1280, 1100, 820, 390):
        await page.set_viewport_size({"width": width, "height": 900})
        ends: list[float] = await page.get_by_label("At a glance").evaluate(
            """box => {
              const right = new Map();
              for (const each of box.children) {
                const { top, right: end } = each.getBoundingClientRect();
                right.set(Math.round(top), end);
              }
              return [...right.values()].map(end => Math.round(box.getBoundingClientRect().right - end));
            }"""
        )
        assert all(0 <= gap <= 2 for gap in ends), (width, ends)


async def test_what_fails_is_gathered_by_its_error_and_leads_to_the_tasks(browsing: Browsing, scene: Scene):
    page = await browsing.open("/")
    failing = page.get_by_role("table", name="Failing tasks by error")
    row = failing.get_by_role("row").filter(has_text="CardDeclined")
    # Four orders of different numbers are one error.
    await expect(row).to_contain_text("card of order # was declined by the bank")
    await row.get_by_role("link").click()
    await expect(heading(page, "Tasks")).to_be_visible()
    await expect(page).to_have_url(re.compile(r"q=state(:|%3A)failed"))
    await expect(page.get_by_role("table", name="Tasks").get_by_text("orders.charge").first).to_be_visible()


async def test_the_time_range_lives_in_the_address(browsing: Browsing, scene: Scene):
    page = await browsing.open("/")
    await settled(page)
    choice = page.get_by_label("Time range")
    async with page.expect_response(re.compile("overview.*range=24h")):
        await choice.select_option("24h")
    await expect(page).to_have_url(re.compile("range=24h"))
    async with page.expect_response(re.compile("overview.*range=24h")):
        await page.reload()
    await expect(choice).to_have_value("24h")


async def test_behind_every_chart_is_a_table(browsing: Browsing, scene: Scene):
    # The scene may be older than the range.
    await (await browsing.stage.app.get_task("mail.welcome").aenqueue(user_id=5)).aresult(timeout=30)
    page = await browsing.open("/?range=5m")
    await settled(page)
    charts = page.get_by_role("figure")
    assert await charts.count() >= 4
    for at in range(await charts.count()):
        chart = charts.nth(at)
        await chart.get_by_role("button", name=re.compile("^Table of")).click()
        table = chart.get_by_role("table")
        await expect(table.get_by_role("columnheader").first).to_have_text("Time")
        await expect(table.get_by_role("row").nth(1)).to_be_visible()
    ended = page.get_by_role("table", name="Finished tasks")

    async def says_what_ended() -> bool:
        # Workers write what they counted each few seconds.
        numbers = re.findall(r"[\d.]+/s", await ended.inner_text())
        return any(float(each.removesuffix("/s")) > 0 for each in numbers)

    await eventually(says_what_ended)


async def test_a_user_sees_figures_of_their_own(browsing: Browsing, scene: Scene):
    page = await browsing.open("/", "uma")
    await settled(page)
    busiest = page.get_by_role("table", name="Busiest tasks")
    await expect(busiest).to_contain_text("mail.welcome")
    await expect(busiest).not_to_contain_text("orders.charge")
    await expect(page.get_by_text("Nothing failed")).to_be_visible()
