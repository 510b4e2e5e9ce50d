"""What waits for an operator's word: it appears by itself, is approved or rejected, and goes on or ends."""

import json

from headrace import approve, chain
from tests.browser.browsing import Browsing, settled
from tests.browser.driver import Locator, Page, expect
from tests.browser.stage import Stage


def asked(page: Page, id: int) -> Locator:
    return page.get_by_role("article").filter(has=page.get_by_text(f"task {id},"))


def ask_for_refund(stage: Stage, order: int) -> int:
    with stage.sessions.client("uma") as uma:
        answer = uma.post("/tasks", json={"name": "orders.refund", "kwargs": {"order": order, "cents": 500}})
    assert (answer.status_code, answer.json()["state"]) == (201, "pending_approval"), answer.text
    return answer.json()["id"]


async def test_what_is_asked_for_appears_is_approved_and_runs(browsing: Browsing):
    app = browsing.stage.app
    page = await browsing.open("/approvals")
    await settled(page)
    id = ask_for_refund(browsing.stage, 901)
    request = asked(page, id)
    await expect(request).to_contain_text("uma")
    await expect(request).to_contain_text("901")
    await expect(request).to_contain_text("an operator")
    await request.get_by_label("Reason").fill("they sent it back")
    await request.get_by_role("button", name="Approve").click()
    await expect(request).to_have_count(0)
    assert await app.tasks.handle(id).aresult(timeout=30) == "500 cents for order 901"
    (entry,) = await app.audit.alist(act="tasks.approve", subject=f"task/{id}")
    assert (entry.actor, json.loads(entry.detail)["note"]) == ("oskar", "they sent it back")


async def test_to_reject_takes_a_reason(browsing: Browsing):
    app = browsing.stage.app
    id = ask_for_refund(browsing.stage, 902)
    page = await browsing.open("/approvals")
    request = asked(page, id)
    await request.get_by_role("button", name="Reject").click()
    await expect(request.get_by_label("Reason")).to_have_attribute("aria-invalid", "true")
    assert (await app.tasks.aget(id)).state == "pending_approval"
    await request.get_by_label("Reason").fill("paid out already")
    await request.get_by_role("button", name="Reject").click()
    await expect(request).to_have_count(0)
    assert (await app.tasks.aget(id)).state == "rejected"


async def test_whose_word_it_waits_for_is_said_and_it_is_left_to_them(browsing: Browsing):
    ship = browsing.stage.app.get_task("orders.ship")
    job = await chain(approve(role="finance", name="pay it?"), ship.si(903)).aenqueue(name="a question of money")
    id = next(node.id for node in (await job.agraph()).nodes if node.name == "pay it?")
    page = await browsing.open("/approvals")
    request = asked(page, id)
    await expect(request).to_contain_text("it waits for finance, by an admin")
    await expect(request.get_by_role("button", name="Approve")).to_have_count(0)
    await page.goto(f"/tasks/{id}")
    await expect(page.get_by_text("asks for finance")).to_be_visible()
    await expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    page = await browsing.open("/approvals", "ada")
    await asked(page, id).get_by_role("button", name="Approve").click()
    await expect(asked(page, id)).to_have_count(0)
    assert await job.await_(timeout=30) == "completed"


async def test_a_command_of_a_user_is_shown_as_it_would_run(browsing: Browsing):
    with browsing.stage.sessions.client("uma") as uma:
        id = uma.post("/tasks", json={"command": {"argv": ["echo", "two words", "$HOME"]}}).json()["id"]
    page = await browsing.open("/approvals", "ada")
    request = asked(page, id)
    await expect(request.get_by_label("command", exact=True)).to_have_text("echo 'two words' '$HOME'")
    await request.get_by_role("button", name="Approve").click()
    await expect(request).to_have_count(0)
    result = await browsing.stage.app.tasks.handle(id).aresult(timeout=30)
    assert result["stdout"] == "two words $HOME\n"
