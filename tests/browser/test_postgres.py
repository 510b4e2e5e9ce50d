"""The same pages on PostgreSQL: every screen is opened once, and one act of each kind is done."""

import re
from collections.abc import Iterable

import pytest

from tests.browser.browsing import WIDE, Browsing, heading
from tests.browser.driver import expect
from tests.browser.scene import Scene
from tests.browser.screens import SCREENS, Screen, show
from tests.support.waiting import eventually

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(300)]


def once(screens: Iterable[Screen], scene: Scene) -> list[Screen]:
    """Of screens of one route the first: what is on them besides has nothing to do with the database."""
    routes = {re.sub(r"/\d+", "/id", screen.address(scene)): screen for screen in reversed(tuple(screens))}
    return list(routes.values())


async def test_every_screen_opens(postgres_browsing: Browsing, postgres_scene: Scene):
    """What a page complains of fails the test by itself."""
    for screen in once(SCREENS, postgres_scene):
        page = await show(postgres_browsing, screen, postgres_scene, size=WIDE)
        await expect(page.get_by_role("main").get_by_role("alert")).to_have_count(0)
        await postgres_browsing.close()


async def test_a_task_is_enqueued_followed_and_retried(postgres_browsing: Browsing):
    stage = postgres_browsing.stage
    page = await postgres_browsing.open("/tasks/new?name=images.fragile")
    await page.get_by_label("gate", exact=True).fill("over there")
    await page.get_by_role("button", name="Enqueue", exact=True).click()
    await expect(page).to_have_url(re.compile(r"/tasks/\d+$"))
    handle = stage.app.tasks.handle(int(page.url.rpartition("/")[2]))
    # It failed, and the page says so by itself.
    await expect(page.get_by_role("region", name="Error", exact=True)).to_contain_text("no gate over there")
    stage.open_gate("over there")
    await page.get_by_role("button", name="Retry", exact=True).click()
    await expect(page.get_by_text("It runs again")).to_be_visible()
    assert await handle.aresult(timeout=30) == "over there"
    await expect(page.get_by_role("region", name="the result")).to_contain_text("over there")


async def test_many_are_cancelled_a_queue_is_paused_and_letters_are_replayed(postgres_browsing: Browsing):
    stage = postgres_browsing.stage
    page = await postgres_browsing.open("/queues/dock")
    await page.get_by_role("button", name="Pause").click()
    await expect(page.get_by_role("button", name="Resume")).to_be_visible()
    unload = stage.app.get_task("harbour.unload").using(tags=["pg"])
    handles = await unload.aenqueue_many({"crates": number} for number in range(60))
    await page.goto("/tasks?q=tag:pg+state:pending")
    await expect(page.get_by_role("table", name="Tasks")).to_contain_text(f"#{handles[-1].id}")
    await page.get_by_role("checkbox", name=re.compile("^Select all")).check()
    bar = page.get_by_role("region", name="Chosen tasks")
    await bar.get_by_role("button", name="Choose all that are found").click()
    await bar.get_by_role("button", name="Cancel").click()
    await page.get_by_role("dialog").get_by_role("button", name="Cancel 60 tasks").click()
    await expect(page.get_by_text("60 cancelled")).to_be_visible()
    assert {str((await handle.arecord()).state) for handle in handles} == {"cancelled"}

    letter = await stage.app.get_task("orders.charge").using(queue="crypt").aenqueue(order=1, card="slow")

    async def dead() -> bool:
        return (await letter.arecord()).dead_letter

    async def again() -> bool:
        return (await letter.arecord()).run_no == 2

    await eventually(dead)
    await page.goto("/dead-letters?queue=crypt")
    await page.get_by_role("button", name=re.compile("^Replay TimeoutError")).click()
    await page.get_by_role("dialog").get_by_role("button", name=re.compile("^Replay")).click()
    await eventually(again)


async def test_a_job_moves_and_is_cancelled(postgres_browsing: Browsing, postgres_scene: Scene):
    page = await postgres_browsing.open(f"/jobs/{postgres_scene.going}")
    await expect(heading(page, "winter album")).to_be_visible()
    await expect(page.get_by_role("application")).to_be_visible()
    await page.get_by_role("button", name="Cancel job").click()
    await page.get_by_role("dialog").get_by_role("button", name=re.compile(r"^Cancel \d+ tasks$")).click()

    async def cancelled() -> bool:
        return (await postgres_browsing.stage.app.jobs.aget(postgres_scene.going)).state == "cancelled"

    await eventually(cancelled)
    await expect(page.get_by_role("button", name="Cancel job")).to_have_count(0)
