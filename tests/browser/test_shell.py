"""What is around every page: coming in, going out, who may see what, keys, themes, and a server that goes away."""

import re

import pytest

from tests.browser.browsing import NARROW, Browsing, heading, settled
from tests.browser.driver import Page, expect
from tests.browser.people import PASSWORD, PEOPLE, hashed_password
from tests.browser.scene import Scene


async def log_in(page: Page, name: str, password: str) -> None:
    await page.get_by_label("Name").fill(name)
    await page.get_by_label("Password").fill(password)
    await page.get_by_role("button", name="Log in").click()


async def test_who_logs_in_comes_to_the_page_that_was_asked_for(browsing: Browsing, scene: Scene):
    browsing.complaints.forgive("status of 401")
    page = await browsing.open(f"/tasks/{scene.completed}", None)
    await expect(heading(page, "Log in to Headrace")).to_be_visible()
    await log_in(page, "oskar", PASSWORD)
    await expect(heading(page, re.compile("mail.welcome"))).to_be_visible()
    assert page.url.endswith(f"/tasks/{scene.completed}")
    tokens = await browsing.stage.app.tokens.alist(user="oskar", kind="session")
    assert any("Chrome" in token.label and token.revoked_at is None for token in tokens), tokens


async def test_a_wrong_password_says_so_and_what_comes_after_five_of_them(browsing: Browsing):
    browsing.complaints.forgive("status of 401")
    app = browsing.stage.app
    await app.users.aadd("lena", "viewer", password_hash=hashed_password())
    page = await browsing.open("/", None)
    for tries in range(1, 6):
        await log_in(page, "lena", f"wrong {tries}")
        alert = page.get_by_role("alert")
        await expect(alert).to_contain_text("That did not let you in")
        await expect(alert).to_contain_text("after 5 wrong ones in a row nobody can log in by that name for 15 minutes")
        await expect(page.get_by_label("Password")).to_have_value("")
    assert (await app.users.aget("lena")).locked_until is not None
    await log_in(page, "lena", PASSWORD)
    await expect(page.get_by_label("Password")).to_have_value("")
    await expect(page.get_by_role("alert")).to_contain_text("for 15 minutes")
    await expect(heading(page, "Log in to Headrace")).to_be_visible()


async def test_who_logs_out_is_out_and_the_session_is_over(browsing: Browsing):
    browsing.complaints.forgive("status of 401")
    app = browsing.stage.app
    # Another test may have left a login of theirs.
    before = {token.id for token in await app.tokens.alist(user="ugo", kind="session")}
    page = await browsing.open("/", None)
    await log_in(page, "ugo", PASSWORD)
    await expect(heading(page, "Overview")).to_be_visible()
    await page.get_by_role("button", name="Log out").click()
    await expect(heading(page, "Log in to Headrace")).to_be_visible()
    (made,) = [token for token in await app.tokens.alist(user="ugo", kind="session") if token.id not in before]
    assert made.revoked_at is not None
    await page.reload()
    await expect(heading(page, "Log in to Headrace")).to_be_visible()


async def test_a_token_lets_its_user_in_and_survives_the_logout(browsing: Browsing):
    browsing.complaints.forgive("status of 401")
    app = browsing.stage.app
    made = await app.tokens.acreate("oskar", label="printed")
    page = await browsing.open("/queues", None)
    await page.get_by_role("button", name="With a token").click()
    await page.get_by_label("Token").fill(made.secret)
    await page.get_by_role("button", name="Log in").click()
    await expect(heading(page, "Queues")).to_be_visible()
    await page.reload()
    await expect(page.get_by_text("oskar")).to_be_visible()
    await page.get_by_role("button", name="Log out").click()
    await expect(heading(page, "Log in to Headrace")).to_be_visible()
    found = next(token for token in await app.tokens.alist(user="oskar", kind="api") if token.label == "printed")
    assert found.revoked_at is None


# The navigation of each role: what it forbids is not there.
_EVERYBODY = ["Overview", "Tasks", "Jobs"]
_OVERSEERS = ["Workers", "Queues", "Schedules", "Breakers", "Dead letters"]
SEES = {
    "vera": {*_EVERYBODY, *_OVERSEERS},
    "oskar": {*_EVERYBODY, *_OVERSEERS, "Approvals"},
    "ada": {*_EVERYBODY, *_OVERSEERS, "Approvals", "Audit"},
}


async def test_a_page_that_the_role_forbids_says_so(browsing: Browsing):
    page = await browsing.open("/audit", "oskar")
    await expect(page.get_by_text("Your role does not reach this")).to_be_visible()
    await expect(page.get_by_role("navigation", name="Main").get_by_role("link", name="Audit")).to_have_count(0)


async def test_an_address_that_nobody_has_says_so_and_leads_back(browsing: Browsing):
    page = await browsing.open("/no/such/place")
    await expect(heading(page, "Not found")).to_be_visible()
    await page.get_by_role("link", name="Go to the overview").click()
    await expect(heading(page, "Overview")).to_be_visible()


async def test_the_palette_finds_pages_and_tasks_by_keys_alone(browsing: Browsing, scene: Scene):
    page = await browsing.open("/")
    await settled(page)
    await page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Commands")
    await expect(palette.get_by_role("combobox")).to_be_focused()
    await page.keyboard.type("queu")
    await expect(palette.get_by_role("option").first).to_contain_text("Go to Queues")
    await page.keyboard.press("Enter")
    await expect(heading(page, "Queues")).to_be_visible()

    await page.keyboard.press("Control+k")
    await expect(palette.get_by_role("combobox")).to_be_focused()
    await page.keyboard.type(str(scene.completed))
    await expect(palette.get_by_role("option").first).to_contain_text(f"Open task {scene.completed}")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(f"/tasks/{scene.completed}$"))

    await page.keyboard.press("Control+k")
    await expect(palette).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(palette).to_have_count(0)
    await page.keyboard.press("g")
    await page.keyboard.press("j")
    await expect(heading(page, "Jobs")).to_be_visible()


async def test_the_theme_is_as_the_system_has_it_until_it_is_chosen(browsing: Browsing):
    async def background(page: Page) -> str:
        return await page.evaluate("() => getComputedStyle(document.body).backgroundColor")

    async def theme(page: Page) -> str | None:
        return await page.locator("html").get_attribute("data-theme")

    page = await browsing.open("/", scheme="dark")
    await settled(page)
    assert await theme(page) == "dark"
    dark = await background(page)
    await page.emulate_media(color_scheme="light")
    await expect(page.locator("html")).to_have_attribute("data-theme", "light")
    light = await background(page)
    assert light != dark
    await page.get_by_role("button", name=re.compile("Change to dark")).click()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert await background(page) == dark
    await page.reload()
    await settled(page)
    assert (await theme(page), await background(page)) == ("dark", dark)


async def test_the_menu_of_a_narrow_screen_opens_and_closes_behind_the_choice(browsing: Browsing):
    page = await browsing.open("/", size=NARROW)
    await settled(page)
    navigation = page.get_by_role("navigation", name="Main")
    await expect(navigation.get_by_role("link", name="Tasks")).not_to_be_in_viewport()
    await page.get_by_role("button", name="Open the menu").click()
    await navigation.get_by_role("link", name="Tasks").click()
    await expect(heading(page, "Tasks")).to_be_visible()
    await expect(navigation.get_by_role("link", name="Tasks")).not_to_be_in_viewport()


@pytest.mark.timeout(240)
async def test_a_banner_is_shown_while_the_server_is_away_and_what_happened_meanwhile_is_seen_after(
    browsing: Browsing, scene: Scene
):
    browsing.complaints.forgive("ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|WebSocket|ERR_SOCKET")
    stage = browsing.stage
    task = await stage.app.get_task("catalogue.load").aenqueue(gate="reconnect")
    page = await browsing.open(f"/tasks/{task.id}")
    await expect(page.get_by_text("running").first).to_be_visible()
    stage.server.kill()
    try:
        banner = page.get_by_role("status").filter(has_text="Reconnecting")
        await expect(banner).to_be_visible()
        await banner.get_by_role("button", name="Try now").click()
        await expect(banner).to_be_visible()
        stage.open_gate("reconnect")
        await task.aresult(timeout=30)
    finally:
        stage.server.start()
    # By itself.
    await expect(banner).to_have_count(0)
    await expect(page.get_by_text("completed").first).to_be_visible()


@pytest.mark.parametrize("person", PEOPLE)
async def test_the_bar_says_who_is_there(browsing: Browsing, person: str):
    page = await browsing.open("/", person)
    await expect(page.get_by_role("banner")).to_contain_text(f"{person} {PEOPLE[person]}")
