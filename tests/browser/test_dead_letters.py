"""Dead letters: put together by what went wrong, replayed or discarded by the group, after their number was said."""

import re

from headrace import Handle
from tests.browser.browsing import Browsing, heading, settled
from tests.browser.driver import Locator, Page, expect
from tests.browser.stage import Stage
from tests.support.waiting import eventually


async def bury(stage: Stage, queue: str, *cards: str) -> list[Handle[object]]:
    charge = stage.app.get_task("orders.charge").using(queue=queue)
    handles = [await charge.aenqueue(order=number, card=card) for number, card in enumerate(cards, 100)]
    for handle in handles:
        await eventually(lambda handle=handle: _dead(handle))
    return handles


async def _dead(handle: Handle[object]) -> bool:
    return (await handle.arecord()).dead_letter


async def runs(handles: list[Handle[object]]) -> list[int]:
    return [(await handle.arecord()).run_no for handle in handles]


def row(page: Page, text: str) -> Locator:
    return page.get_by_role("table", name="Dead letters by error").get_by_role("row").filter(has_text=text)


async def test_a_group_is_replayed_and_another_discarded(browsing: Browsing):
    stage = browsing.stage
    letters = await bury(stage, "crypt", "declined", "declined", "declined", "slow", "slow")
    page = await browsing.open("/dead-letters?queue=crypt")
    await expect(row(page, "CardDeclined")).to_contain_text("card of order # was declined by the bank")
    await expect(row(page, "CardDeclined").get_by_role("cell").nth(1)).to_have_text("3")
    await expect(row(page, "TimeoutError").get_by_role("cell").nth(1)).to_have_text("2")

    await page.get_by_role("button", name=re.compile("^Replay CardDeclined")).click()
    question = page.get_by_role("dialog")
    await expect(question).to_contain_text("3 are concerned")
    await question.get_by_role("button", name="Keep as it is").click()
    assert await runs(letters) == [1, 1, 1, 1, 1]
    await page.get_by_role("button", name=re.compile("^Replay CardDeclined")).click()
    await question.get_by_role("button", name=re.compile("^Replay")).click()
    await expect(page.get_by_role("region", name="Replayed from here")).to_contain_text("3")
    await eventually(lambda: _runs_are(letters, [2, 2, 2, 1, 1]))

    await page.get_by_role("button", name=re.compile("^Discard TimeoutError")).click()
    await expect(question).to_contain_text("2 are concerned")
    await question.get_by_role("button", name=re.compile("^Discard")).click()
    await expect(row(page, "TimeoutError")).to_have_count(0)
    left = {letter.id for letter in await stage.app.dead_letters.alist(limit=1_000)}
    assert not left & {letters[3].id, letters[4].id}
    assert {letter.id for letter in letters[:3]} <= {each.id for each in await stage.app.tasks.alist(limit=10_000)}


async def _runs_are(handles: list[Handle[object]], wanted: list[int]) -> bool:
    return await runs(handles) == wanted


async def test_the_members_of_a_group_are_chosen_one_by_one(browsing: Browsing):
    stage = browsing.stage
    letters = await bury(stage, "vault", "garbled", "garbled", "garbled")
    page = await browsing.open("/dead-letters?queue=vault")
    await row(page, "ValueError").get_by_role("link").first.click()
    await expect(heading(page, "ValueError")).to_be_visible()
    await settled(page)
    members = page.get_by_role("table", name=re.compile("^Dead letters of this failure"))
    await expect(members.locator("tbody").get_by_role("row")).to_have_count(3)
    await page.get_by_role("button", name=f"Discard task {letters[0].id}").click()
    await page.get_by_role("dialog").get_by_role("button", name=re.compile("^Discard")).click()
    await expect(members.locator("tbody").get_by_role("row")).to_have_count(2)
    # The end of an act takes back what is chosen, and comes a moment after the list that it has read.
    await expect(page.get_by_role("button", name=f"Discard task {letters[1].id}")).to_be_enabled()
    await page.get_by_role("checkbox", name=f"Select task {letters[1].id}").check()
    await page.get_by_role("checkbox", name=f"Select task {letters[2].id}").check()
    bar = page.get_by_role("toolbar", name="Acts on those that are chosen")
    await expect(bar).to_contain_text("2 chosen")
    await bar.get_by_role("button", name="Replay").click()
    await page.get_by_role("dialog").get_by_role("button", name=re.compile("^Replay")).click()
    await eventually(lambda: _runs_are(letters[1:], [2, 2]))
    assert letters[0].id not in {each.id for each in await stage.app.dead_letters.alist(limit=1_000)}


async def test_filters_live_in_the_address(browsing: Browsing):
    await bury(browsing.stage, "tomb", "slow")
    page = await browsing.open("/dead-letters")
    await page.get_by_label("Task").select_option("orders.charge")
    await expect(page).to_have_url(re.compile("name=orders.charge"))
    await page.reload()
    await expect(page.get_by_label("Task")).to_have_value("orders.charge")
    await page.goto("/dead-letters?queue=tomb")
    await expect(
        page.get_by_role("table", name="Dead letters by error").locator("tbody").get_by_role("row")
    ).to_have_count(1)
    await page.goto("/dead-letters?queue=nowhere")
    await expect(page.get_by_text("No dead letter fits")).to_be_visible()


async def test_who_may_not_act_sees_what_went_wrong(browsing: Browsing):
    await bury(browsing.stage, "barrow", "declined")
    page = await browsing.open("/dead-letters?queue=barrow", "vera")
    await expect(row(page, "CardDeclined")).to_be_visible()
    await expect(page.get_by_role("button", name=re.compile("^(Replay|Discard)"))).to_have_count(0)
