"""Logging in, acting by cookie, being locked out."""

import asyncio
from datetime import UTC, datetime

import argon2
import httpx
import pytest

from headrace._version import __version__
from headrace.core.accounts import Role, Scope
from headrace.server.auth import passwords
from headrace.server.auth.authenticating import CSRF_HEADER
from tests.server.serving import Serve, Serving

PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def _cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same algorithm with less memory: a check takes a millisecond."""
    monkeypatch.setattr(passwords, "_HASHER", argon2.PasswordHasher(time_cost=1, memory_cost=64, parallelism=1))
    passwords._of_nobody.cache_clear()


async def add_ada(server: Serving, role: Role = Role.OPERATOR) -> None:
    hashed = passwords.hash_password(PASSWORD)
    await server.app.engine.run(lambda store: store.add_user("ada", role, password=hashed))


async def log_in(client: httpx.AsyncClient, password: str = PASSWORD, name: str = "ada") -> httpx.Response:
    return await client.post("/api/v1/session", json={"name": name, "password": password})


async def test_a_session_is_a_cookie_and_acts_need_the_token_of_it(serve: Serve) -> None:
    async with serve() as server:
        await add_ada(server)
        page = server.client()
        begun = await log_in(page)
        assert begun.status_code == 201, begun.text
        hidden, shown = (line.lower() for line in begun.headers.get_list("set-cookie"))
        assert "headrace_session=hr_" in hidden
        assert "httponly" in hidden
        assert "httponly" not in shown
        assert all("samesite=lax" in line and "secure" not in line for line in (hidden, shown))
        csrf = begun.json()["csrf"]
        assert page.cookies["headrace_csrf"] == csrf

        me = (await page.get("/api/v1/session")).json()
        assert (me["name"], me["role"], me["kind"], me["csrf"]) == ("ada", "operator", "session", csrf)
        assert me["scopes"] == ["control", "read", "submit"]
        assert datetime.fromisoformat(me["expires_at"]) > datetime.now(UTC)

        refused = await page.delete("/api/v1/session")
        wrong = await page.delete("/api/v1/session", headers={CSRF_HEADER: "0" * 64})
        strange = await page.delete("/api/v1/session", headers={CSRF_HEADER: "ä".encode()})
        foreign = {"Origin": "https://evil.example", CSRF_HEADER: csrf}
        elsewhere = await page.delete("/api/v1/session", headers=foreign)
        fetched = await page.delete("/api/v1/session", headers={"Sec-Fetch-Site": "cross-site", CSRF_HEADER: csrf})
        assert [each.status_code for each in (refused, wrong, strange, elsewhere, fetched)] == [403] * 5
        ours = {"Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin", CSRF_HEADER: csrf}
        secret = page.cookies["headrace_session"]
        ended = await page.delete("/api/v1/session", headers=ours)
        assert ended.status_code == 204
        assert "headrace_session" not in page.cookies
        again = await server.client(cookies={"headrace_session": secret}).get("/api/v1/session")
        assert again.status_code == 401
        acts = [entry.act for entry in await server.app.engine.run(lambda store: store.audit(actor="ada"))]
        assert acts == ["session.end", "session.begin"]


async def test_a_session_is_no_bearer_token(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server:
        await add_ada(server)
        page = server.client()
        await log_in(page)
        as_token = await server.client(page.cookies["headrace_session"]).get("/api/v1/session")
        ended = await server.admin.delete("/api/v1/session")
    assert (as_token.status_code, ended.status_code) == (401, 409)


async def by_token(client: httpx.AsyncClient, token: str) -> httpx.Response:
    return await client.post("/api/v1/session/token", json={"token": token})


async def test_a_token_logs_in_and_acts_by_its_cookie_need_the_token_of_it(serve: Serve) -> None:
    async with serve() as server:
        page, secret = server.client(), server.secrets["admin"]
        begun = await by_token(page, secret)
        assert begun.status_code == 201, begun.text
        assert secret not in begun.text
        csrf = begun.json()["csrf"]
        me = (await page.get("/api/v1/session")).json()
        assert (me["name"], me["role"], me["kind"], me["csrf"]) == ("admin", "admin", "api", csrf)
        label = {"label": "laptop"}
        refused = await page.post("/api/v1/tokens", json=label)
        foreign = await page.post(
            "/api/v1/tokens", json=label, headers={"Origin": "https://evil.example", CSRF_HEADER: csrf}
        )
        made = await page.post("/api/v1/tokens", json=label, headers={CSRF_HEADER: csrf})
        assert [each.status_code for each in (refused, foreign, made)] == [403, 403, 201]
        ended = await page.delete("/api/v1/session", headers={CSRF_HEADER: csrf})
        assert ended.status_code == 204
        assert "headrace_session" not in page.cookies
        assert (await server.client(secret).get("/api/v1/session")).status_code == 200, "the token goes on"
        acts = [entry.act for entry in await server.app.engine.run(lambda store: store.audit(actor="admin"))]
        assert acts == ["session.end", "tokens.create", "session.begin"]


async def test_a_login_by_token_ends_with_it_and_allows_no_more(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server:
        narrow = {"label": "board", "scopes": ["read"], "ttl": 60}
        made = (await server.admin.post("/api/v1/tokens", json=narrow)).json()
        page = server.client()
        begun = await by_token(page, made["secret"])
        ages = [
            int(line.lower().partition("max-age=")[2].partition(";")[0])
            for line in begun.headers.get_list("set-cookie")
        ]
        assert all(0 < age <= 60 for age in ages), ages
        assert begun.json()["permissions"]["administer"] is False
        csrf = {CSRF_HEADER: begun.json()["csrf"]}
        assert (await page.post("/api/v1/tokens", json={"label": "more"}, headers=csrf)).status_code == 403
        assert (await server.admin.delete(f"/api/v1/tokens/{made['id']}")).status_code == 204
        assert (await page.get("/api/v1/session")).status_code == 401


async def test_nothing_else_logs_in_as_a_token(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server:
        await add_ada(server)
        page = server.client()
        await log_in(page)
        session = await by_token(server.client(), page.cookies["headrace_session"])
        unknown = await by_token(server.client(), "hr_" + "x" * 43)
        strange = await by_token(server.client(), "ä")
        headers = {"Origin": "https://evil.example"}
        body = {"token": server.secrets["admin"]}
        elsewhere = await server.client().post("/api/v1/session/token", json=body, headers=headers)
        answers = (session, unknown, strange, elsewhere)
        assert [each.status_code for each in answers] == [401, 401, 401, 403]
        assert all("set-cookie" not in each.headers for each in answers)
    async with serve_sqlite(auth=False) as server:
        assert (await by_token(server.nobody, "hr_" + "x" * 43)).status_code == 409


async def test_five_wrong_passwords_lock_and_the_answer_is_always_the_same(serve: Serve) -> None:
    async with serve(lockout=900.0) as server:
        await add_ada(server)
        unknown = await log_in(server.nobody, name="nobody-of-that-name")
        without = await log_in(server.nobody, name="viewer")
        wrong = [await log_in(server.nobody, "wrong") for _ in range(5)]
        locked = await log_in(server.nobody)
        user = await server.app.engine.run(lambda store: store.get_user("ada"))
        answers = [unknown, without, *wrong, locked]
        assert {each.status_code for each in answers} == {401}
        assert len({each.json()["detail"] for each in answers}) == 1
        assert user is not None
        assert user.locked_until is not None
        assert user.locked_until > datetime.now(UTC)
        opened = await server.admin.patch("/api/v1/users/ada", json={"password": PASSWORD + "!"})
        assert (opened.status_code, opened.json()["locked_until"]) == (200, None)
        assert (await log_in(server.nobody, PASSWORD + "!")).status_code == 201


async def test_guesses_at_once_are_counted_one_by_one(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server:
        await add_ada(server)
        guesses = [log_in(server.nobody, f"guess {number}") for number in range(20)]
        answers = await asyncio.gather(*guesses, log_in(server.nobody))
        assert {each.status_code for each in answers} == {401}, "the right one came after five wrong ones"


async def test_a_right_password_forgets_the_wrong_ones(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server:
        await add_ada(server)
        for _ in range(3):
            for _ in range(4):
                assert (await log_in(server.nobody, "wrong")).status_code == 401
            assert (await log_in(server.client())).status_code == 201


async def test_an_old_hash_is_made_anew_at_login(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server:
        old = argon2.PasswordHasher(time_cost=1, memory_cost=32, parallelism=1).hash(PASSWORD)
        await server.app.engine.run(lambda store: store.add_user("ada", Role.USER, password=old))
        assert (await log_in(server.nobody)).status_code == 201
        user = await server.app.engine.run(lambda store: store.get_user("ada"))
        assert user is not None
        assert user.password != old
        assert (await log_in(server.client())).status_code == 201


async def test_a_hash_made_anew_ends_no_session_and_undoes_no_new_password(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = argon2.PasswordHasher(time_cost=1, memory_cost=32, parallelism=1).hash(PASSWORD)
    async with serve() as server:
        await add_ada(server)
        page = server.client()
        assert (await log_in(page)).status_code == 201
        fresh = await server.app.engine.run(lambda store: store.get_user("ada"))
        assert fresh is not None
        assert fresh.password is not None
        made = fresh.password
        renewed = await server.app.engine.run(lambda store: store.renew_password("ada", verified=made, fresh=old))
        assert renewed is not None
        assert (await log_in(server.client())).status_code == 201
        assert (await page.get("/api/v1/session")).status_code == 200
        user = await server.app.engine.run(lambda store: store.get_user("ada"))
        assert user is not None
        assert user.password not in (old, made)
        # Another password is set between the look at the old one and the writing of its new hash.
        stale = user.password or ""
        await server.app.engine.run(lambda store: store.renew_password("ada", verified=stale, fresh=old))
        hash = passwords.Passwords.hash
        other = passwords.hash_password("quite another one")

        async def late(self: passwords.Passwords, password: str) -> str:
            await server.app.engine.run(lambda store: store.change_user("ada", password=other))
            return await hash(self, password)

        monkeypatch.setattr(passwords.Passwords, "hash", late)
        assert (await log_in(server.client())).status_code == 401
        after = await server.app.engine.run(lambda store: store.get_user("ada"))
        assert after is not None
        assert after.password == other
        assert (await log_in(server.client(), "quite another one")).status_code == 201


async def test_two_servers_that_hash_anew_at_once_both_let_them_in(
    serve_sqlite: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = argon2.PasswordHasher(time_cost=1, memory_cost=32, parallelism=1).hash(PASSWORD)
    theirs = passwords.hash_password(PASSWORD)
    async with serve_sqlite() as server:
        await server.app.engine.run(lambda store: store.add_user("ada", Role.USER, password=old))
        hash = passwords.Passwords.hash

        async def late(self: passwords.Passwords, password: str) -> str:
            await server.app.engine.run(lambda store: store.renew_password("ada", verified=old, fresh=theirs))
            return await hash(self, password)

        monkeypatch.setattr(passwords.Passwords, "hash", late)
        assert (await log_in(server.client())).status_code == 201
        user = await server.app.engine.run(lambda store: store.get_user("ada"))
        assert user is not None
        assert user.password == theirs


async def test_a_new_password_and_disabling_end_sessions(serve: Serve) -> None:
    async with serve() as server:
        await add_ada(server)
        for change in ({"password": PASSWORD}, {"disabled": True}):
            page = server.client()
            assert (await log_in(page)).status_code == 201
            assert (await page.get("/api/v1/session")).status_code == 200
            assert (await server.admin.patch("/api/v1/users/ada", json=change)).status_code == 200
            assert (await page.get("/api/v1/session")).status_code == 401
        assert (await log_in(server.nobody)).status_code == 401


async def test_cookies_are_secure_behind_tls_and_sessions_expire(serve_sqlite: Serve) -> None:
    async with serve_sqlite(secure_cookies=True, session_ttl=0.001) as server:
        await add_ada(server)
        begun = await log_in(server.nobody)
        assert all("Secure" in line for line in begun.headers.get_list("set-cookie"))
        secret = begun.headers["set-cookie"].partition("=")[2].partition(";")[0]
        await asyncio.sleep(0.005)
        gone = await server.client(cookies={"headrace_session": secret}).get("/api/v1/session")
    assert gone.status_code == 401


async def test_a_page_of_another_origin_cannot_log_anybody_in(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server:
        await add_ada(server)
        body = {"name": "ada", "password": PASSWORD}
        answer = await server.nobody.post("/api/v1/session", json=body, headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403


async def test_a_server_without_users_has_no_sessions(serve_sqlite: Serve) -> None:
    async with serve_sqlite(auth=False) as server:
        me = (await server.nobody.get("/api/v1/session")).json()
        assert (me["name"], me["role"], me["auth"], me["kind"]) == ("", "admin", False, None)
        assert (await log_in(server.nobody)).status_code == 409


async def test_a_password_is_never_stored_as_it_is() -> None:
    hashed = passwords.hash_password(PASSWORD)
    assert hashed.startswith("$argon2id$")
    assert PASSWORD not in hashed
    assert passwords.verify_password(hashed, PASSWORD).good
    assert not passwords.verify_password(hashed, PASSWORD + " ").good
    assert not passwords.verify_password(None, PASSWORD).good
    assert not passwords.verify_password("not a hash", PASSWORD).good


async def test_what_a_page_needs_to_know(serve_sqlite: Serve):
    async with serve_sqlite() as server:
        expected = {
            "viewer": {"see_all"},
            "user": {"submit", "control", "manage_tokens"},
            "operator": {"submit", "control", "operate", "see_all", "manage_tokens"},
            "admin": {"submit", "control", "operate", "administer", "see_all", "manage_tokens"},
        }
        for person, allowed in expected.items():
            body = (await server.of(person).get("/api/v1/session")).json()
            assert {name for name, may in body["permissions"].items() if may} == allowed, person
            assert body["version"] == __version__
        reading = server.client(await server.token("admin", Scope.READ))
        body = (await reading.get("/api/v1/session")).json()
        assert {name for name, may in body["permissions"].items() if may} == {"see_all"}
        await reading.aclose()


async def test_a_server_without_users_lets_everybody_do_everything(serve_sqlite: Serve):
    async with serve_sqlite(auth=False) as server:
        body = (await server.nobody.get("/api/v1/session")).json()
        assert (body["auth"], body["name"], body["csrf"], body["kind"]) == (False, "", None, None)
        assert {name for name, may in body["permissions"].items() if not may} == {"manage_tokens"}
