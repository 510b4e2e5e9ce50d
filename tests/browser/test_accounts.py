"""Users and tokens: made, changed, shut out, revoked; a secret is shown once."""

import re

import httpx

from headrace.server.auth.passwords import verify_password
from tests.browser.browsing import Browsing, heading, settled
from tests.browser.driver import expect
from tests.support.waiting import eventually


async def test_a_user_is_let_in_changed_and_shut_out(browsing: Browsing):
    browsing.complaints.forgive("status of (409|422)")
    users = browsing.stage.app.users
    page = await browsing.open("/accounts", "ada")
    await page.get_by_role("button", name="New user").click()
    form = page.get_by_role("dialog", name="A new user")
    await form.get_by_label("Name").fill("grace")
    await form.get_by_label("Role").select_option("viewer")
    await form.get_by_label("Password").fill("short")
    await form.get_by_role("button", name="Let them in").click()
    await expect(form.get_by_label("Password")).to_have_attribute("aria-invalid", "true")
    await form.get_by_label("Password").fill("long enough by far")
    await form.get_by_role("button", name="Let them in").click()
    await expect(heading(page, "grace")).to_be_visible()
    made = await users.aget("grace")
    assert made.role == "viewer"
    assert verify_password(made.password, "long enough by far").good

    await page.get_by_label("Role of grace").select_option("operator")
    await page.get_by_role("button", name="Give the role").click()
    await expect(page.get_by_text("grace is operator")).to_be_visible()
    assert (await users.aget("grace")).role == "operator"

    await page.get_by_label("New password").fill("another one that is good")
    await page.get_by_role("button", name="Set the password").click()
    await expect(page.get_by_text("grace has a new password")).to_be_visible()
    assert verify_password((await users.aget("grace")).password, "another one that is good").good

    await page.get_by_role("button", name="Disable grace").click()
    await page.get_by_role("dialog").get_by_role("button", name="Keep as it is").click()
    assert not (await users.aget("grace")).disabled
    await page.get_by_role("button", name="Disable grace").click()
    await page.get_by_role("dialog").get_by_role("button", name="Disable grace").click()
    await expect(page.get_by_role("button", name="Enable grace")).to_be_visible()
    assert (await users.aget("grace")).disabled
    await page.get_by_role("button", name="Enable grace").click()
    await expect(page.get_by_role("button", name="Disable grace")).to_be_visible()
    assert not (await users.aget("grace")).disabled

    await page.goto("/accounts")
    await page.get_by_role("button", name="New user").click()
    await form.get_by_label("Name").fill("grace")
    await form.get_by_role("button", name="Let them in").click()
    await expect(form.get_by_role("alert")).to_contain_text("grace")


async def test_the_last_admin_stays(browsing: Browsing):
    browsing.complaints.forgive("status of 409")
    page = await browsing.open("/accounts/ada", "ada")
    await page.get_by_label("Role of ada").select_option("viewer")
    await page.get_by_role("button", name="Give the role").click()
    await expect(page.get_by_role("alert")).to_contain_text("The role was not changed")
    assert (await browsing.stage.app.users.aget("ada")).role == "admin"


async def test_a_token_is_shown_once_works_and_is_revoked(browsing: Browsing):
    stage = browsing.stage
    page = await browsing.open("/accounts?tab=mine", "oskar")
    await page.get_by_role("button", name="New token").click()
    form = page.get_by_role("dialog", name="A new token of yours")
    await form.get_by_label("Label").fill("deploy script")
    await form.get_by_role("checkbox", name=re.compile("^control")).uncheck()
    await form.get_by_label("Lasts").select_option(index=1)
    await form.get_by_role("button", name="Make the token").click()
    secret = await page.get_by_role("dialog").locator("code").filter(has_text=re.compile("^hr_")).inner_text()
    await page.get_by_role("button", name="Copy the token").click()

    async def copied() -> bool:
        return await page.evaluate("() => navigator.clipboard.readText()") == secret

    await eventually(copied)
    await page.get_by_role("button", name="I have copied it").click()
    await expect(page.get_by_text(secret)).to_have_count(0)

    (token,) = [
        each for each in await stage.app.tokens.alist(user="oskar", kind="api") if each.label == "deploy script"
    ]
    assert set(token.scopes) == {"read", "submit"}

    def answer() -> int:
        headers = {"Authorization": f"Bearer {secret}"}
        return httpx.get(f"{stage.address}/api/v1/session", headers=headers, timeout=30).status_code

    assert answer() == 200
    await page.get_by_role("button", name="Revoke deploy script").click()
    await page.get_by_role("dialog").get_by_role("button", name="Revoke the token").click()
    await expect(page.get_by_role("button", name="Revoke deploy script")).to_have_count(0)
    assert answer() == 401
    (token,) = [each for each in await stage.app.tokens.alist(user="oskar", kind="api") if each.id == token.id]
    assert token.revoked_at is not None
    await page.get_by_role("checkbox", name=re.compile("that ended")).first.check()
    await expect(page.get_by_role("row").filter(has_text="deploy script")).to_contain_text("revoked")


async def test_an_admin_makes_the_token_of_another_and_ends_a_login(browsing: Browsing):
    stage = browsing.stage
    page = await browsing.open("/accounts/vera", "ada")
    await page.get_by_role("button", name="New token").click()
    form = page.get_by_role("dialog", name="A new token of vera")
    await expect(form.get_by_role("checkbox")).to_have_count(1)
    await form.get_by_label("Label").fill("a screen in the hall")
    await form.get_by_role("button", name="Make the token").click()
    await page.get_by_role("button", name="I have copied it").click()
    (token,) = await stage.app.tokens.alist(user="vera", kind="api")
    assert (token.label, set(token.scopes)) == ("a screen in the hall", {"read"})

    stage.sessions.log_in("ugo")
    made = (await stage.app.tokens.alist(user="ugo", kind="session"))[0].id
    await page.goto("/accounts/ugo")
    await settled(page)
    await page.get_by_role("button", name=f"End the login {made}").click()
    await page.get_by_role("dialog").get_by_role("button", name="End the login").click()
    await expect(page.get_by_role("button", name=f"End the login {made}")).to_have_count(0)
    tokens = {each.id: each for each in await stage.app.tokens.alist(user="ugo", kind="session")}
    assert tokens[made].revoked_at is not None


async def test_who_is_no_admin_sees_their_own_tokens_alone(browsing: Browsing):
    page = await browsing.open("/accounts", "uma")
    await expect(heading(page, "Tokens")).to_be_visible()
    await expect(page.get_by_role("button", name="New user")).to_have_count(0)
    await expect(page.get_by_role("tab", name="Users")).to_have_count(0)
    await page.goto("/accounts/ada")
    await expect(page.get_by_text("Users are for admins")).to_be_visible()
