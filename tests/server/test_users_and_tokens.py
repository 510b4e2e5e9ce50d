"""Admins and users; everyone and their tokens. Every act is on the list."""

import asyncio
import json
from typing import Any

import pytest

from headrace.core.accounts import Role, Scope
from headrace.server.auth import authenticating, passwords
from headrace.server.auth.authenticating import CSRF_HEADER
from tests.server.serving import Serve, Serving

PASSWORD = "correct horse battery"


async def audit(server: Serving, **wanted: Any) -> list[tuple[str, str, str, str | None]]:
    found = await server.app.engine.run(lambda store: store.audit(**wanted))
    return [(entry.actor, entry.act, entry.subject, entry.outcome) for entry in found]


async def test_an_admin_adds_changes_and_disables_users(serve: Serve) -> None:
    async with serve() as server:
        made = await server.admin.post("/api/v1/users", json={"name": "ada", "role": "user", "password": PASSWORD})
        assert (made.status_code, made.headers["location"]) == (201, "/api/v1/users/ada")
        assert (made.json()["has_password"], made.json()["disabled"]) == (True, False)
        assert PASSWORD not in made.text
        assert "argon2" not in made.text
        twice = await server.admin.post("/api/v1/users", json={"name": "ada", "role": "viewer"})
        assert (twice.status_code, twice.json()["error"]) == (409, "WrongState")
        changed = await server.admin.patch("/api/v1/users/ada", json={"role": "operator", "password": PASSWORD})
        assert changed.json()["role"] == "operator"
        disabled = await server.admin.patch("/api/v1/users/ada", json={"disabled": True})
        assert disabled.json()["disabled"] is True
        assert (await server.admin.get("/api/v1/users/ada")).json() == disabled.json()
        names = [user["name"] for user in (await server.admin.get("/api/v1/users")).json()["items"]]
        assert names == ["ada", "admin", "operator", "other", "user", "viewer"]
        assert (await server.admin.get("/api/v1/users/nobody")).status_code == 404
        assert (await server.admin.patch("/api/v1/users/nobody", json={"disabled": True})).status_code == 404
        last = await server.admin.patch("/api/v1/users/admin", json={"role": "user"})
        assert (last.status_code, last.json()["error"]) == (409, "WrongState")
        assert await audit(server, actor="admin") == [
            ("admin", "users.change", "user/admin", "Conflict"),
            ("admin", "users.change", "user/nobody", "Not Found"),
            ("admin", "users.change", "user/ada", "done"),
            ("admin", "users.change", "user/ada", "done"),
            ("admin", "users.add", "user/ada", "Conflict"),
            ("admin", "users.add", "user/ada", "done"),
        ]
        details = [entry.detail for entry in await server.app.engine.run(lambda store: store.audit())]
        assert not any(PASSWORD in detail for detail in details)
        assert json.loads(details[-3]) == {"role": "operator", "disabled": None, "new_login": True}


BAD_USERS: list[dict[str, Any]] = [
    {"name": "", "role": "user"},
    {"name": "a b", "role": "user"},
    {"name": "ada\n", "role": "user"},
    {"name": "x" * 65, "role": "user"},
    {"name": "ada", "role": "root"},
    {"name": "ada"},
    {"name": "ada", "role": "user", "password": "short"},
    {"name": "ada", "role": "user", "password": "x" * 1001},
    {"name": "ada", "role": "user", "is_admin": True},
    {"name": ["ada"], "role": "user"},
]


async def test_a_bad_user_is_refused_and_nothing_is_written(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server:
        for body in BAD_USERS:
            answer = await server.admin.post("/api/v1/users", json=body)
            assert answer.status_code == 422, body
            assert answer.json()["errors"]
        assert len((await server.admin.get("/api/v1/users")).json()["items"]) == 5
        assert await audit(server) == []


async def test_users_are_for_admins(serve: Serve) -> None:
    async with serve() as server:
        narrow = server.client(await server.token("admin", Scope.READ, Scope.SUBMIT, Scope.CONTROL))
        for who in (server.viewer, server.user, server.operator, narrow):
            body = {"name": "eve", "role": "admin"}
            answers = [
                await who.get("/api/v1/users"),
                await who.get("/api/v1/users/admin"),
                await who.post("/api/v1/users", json=body),
                await who.patch("/api/v1/users/admin", json={"disabled": True}),
            ]
            assert [each.status_code for each in answers] == [403] * 4
        assert await audit(server) == []


async def test_a_token_is_shown_once_and_allows_no_more_than_what_made_it(serve: Serve) -> None:
    async with serve() as server:
        made = (await server.user.post("/api/v1/tokens", json={"label": "ci", "scopes": ["read"], "ttl": 60})).json()
        assert made["secret"].startswith("hr_")
        assert len(made["secret"]) == 46
        assert made["secret"].startswith(made["hint"])
        assert made["expires_at"] is not None
        theirs = await server.user.get("/api/v1/tokens")
        assert made["secret"] not in theirs.text
        assert [each["label"] for each in theirs.json()["items"]] == ["ci", "test"]
        narrow = server.client(made["secret"])
        me = (await narrow.get("/api/v1/session")).json()
        assert (me["name"], me["scopes"], me["kind"]) == ("user", ["read"], "api")
        # Neither more than their role nor more than the token in hand.
        steering = server.client(await server.token("user", Scope.READ, Scope.CONTROL))
        for client, scopes in ((server.user, ["admin"]), (steering, ["read", "submit"]), (server.viewer, ["control"])):
            refused = await client.post("/api/v1/tokens", json={"scopes": scopes})
            assert refused.status_code == 403
        assert (await server.user.post("/api/v1/tokens", json={"scopes": []})).status_code == 422
        everything = (await steering.post("/api/v1/tokens", json={})).json()
        assert everything["scopes"] == ["control", "read"]
        done = await server.user.delete(f"/api/v1/tokens/{made['id']}")
        assert done.status_code == 204
        assert (await narrow.get("/api/v1/session")).status_code == 401, "revoked here, it is refused here at once"
        revoked = {each["id"]: each["revoked_at"] for each in (await server.user.get("/api/v1/tokens")).json()["items"]}
        assert revoked[made["id"]] is not None
        assert [act for _, act, _, outcome in await audit(server) if outcome == "done"] == [
            "tokens.revoke",
            "tokens.create",
            "tokens.create",
        ]


async def test_a_token_to_look_with_makes_and_revokes_no_other(serve: Serve) -> None:
    async with serve() as server:
        [before] = (await server.user.get("/api/v1/tokens")).json()["items"]
        for scopes in ((Scope.READ,), (Scope.READ, Scope.SUBMIT)):
            looking = server.client(await server.token("user", *scopes))
            mine = (await looking.get("/api/v1/tokens")).json()["items"][0]["id"]
            for body in ({}, {"scopes": ["read"], "ttl": 1}):
                assert (await looking.post("/api/v1/tokens", json=body)).status_code == 403
            assert (await looking.delete(f"/api/v1/tokens/{before['id']}")).status_code == 403
            assert (await server.user.get("/api/v1/session")).status_code == 200
            # Itself it may end.
            assert (await looking.delete(f"/api/v1/tokens/{mine}")).status_code == 204
            assert (await looking.get("/api/v1/session")).status_code == 401
        assert len((await server.user.get("/api/v1/tokens")).json()["items"]) == 3, "none was made"


async def test_a_token_ends_no_later_than_the_one_that_made_it(serve: Serve) -> None:
    async with serve() as server:
        for who, whose in (("user", "user"), ("admin", "other")):
            ending = server.client(await server.token(who, ttl=3600))
            until = (await ending.get("/api/v1/session")).json()["expires_at"]
            for ttl in (None, 86_400):
                made = await ending.post("/api/v1/tokens", params={"user": whose}, json={"ttl": ttl})
                assert (made.status_code, made.json()["expires_at"]) == (201, until)
            shorter = await ending.post("/api/v1/tokens", params={"user": whose}, json={"ttl": 60})
            assert shorter.json()["expires_at"] < until
        endless = await server.user.post("/api/v1/tokens", json={})
        assert endless.json()["expires_at"] is None
        # Whoever logs in may make one that outlives the session, be it to look with.
        hashed = passwords.hash_password(PASSWORD)
        await server.app.engine.run(lambda store: store.add_user("ada", Role.VIEWER, password=hashed))
        page = server.client()
        session = (await page.post("/api/v1/session", json={"name": "ada", "password": PASSWORD})).json()
        made = await page.post("/api/v1/tokens", json={}, headers={CSRF_HEADER: session["csrf"]})
        assert (made.status_code, made.json()["expires_at"], made.json()["scopes"]) == (201, None, ["read"])
        gone = await page.delete(f"/api/v1/tokens/{made.json()['id']}", headers={CSRF_HEADER: session["csrf"]})
        assert gone.status_code == 204


async def test_tokens_of_others_are_for_admins(serve: Serve) -> None:
    async with serve() as server:
        [foreign] = (await server.other.get("/api/v1/tokens")).json()["items"]
        for who in (server.viewer, server.user, server.operator):
            answers = [
                await who.get("/api/v1/tokens", params={"user": "other"}),
                await who.get("/api/v1/tokens", params={"everyone": True}),
                await who.post("/api/v1/tokens", params={"user": "other"}, json={}),
            ]
            assert [each.status_code for each in answers] == [403] * 3
            unseen = 403 if who is server.viewer else 404
            assert (await who.delete(f"/api/v1/tokens/{foreign['id']}")).status_code == unseen
        assert (await server.other.get("/api/v1/session")).status_code == 200
        everyone = (await server.admin.get("/api/v1/tokens", params={"everyone": True})).json()["items"]
        assert {each["user"] for each in everyone} == {"viewer", "user", "other", "operator", "admin"}
        given = (await server.admin.post("/api/v1/tokens", params={"user": "other"}, json={"label": "new"})).json()
        assert (given["user"], given["scopes"]) == ("other", ["control", "read", "submit"])
        more = await server.admin.post("/api/v1/tokens", params={"user": "other"}, json={"scopes": ["admin"]})
        assert more.status_code == 403
        assert (await server.admin.post("/api/v1/tokens", params={"user": "x"}, json={})).status_code == 404
        assert (await server.admin.delete(f"/api/v1/tokens/{foreign['id']}")).status_code == 204
        assert (await server.other.get("/api/v1/session")).status_code == 401


async def test_a_credential_is_asked_for_once_and_a_revocation_elsewhere_is_seen_when_it_is_old(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    async with serve() as server:
        door = server.api.state.authenticate
        monkeypatch.setattr(door, "_clock", lambda: now)
        asked: list[str] = []
        ask = door._ask

        async def counted(generation: int, digest: str) -> Any:
            asked.append(digest)
            return await ask(generation, digest)

        monkeypatch.setattr(door, "_ask", counted)
        for _ in range(5):
            assert (await server.user.get("/api/v1/session")).status_code == 200
        assert len(asked) == 1
        [token] = await server.app.engine.run(lambda store: store.tokens(user="user"))
        assert await server.app.engine.run(lambda store: store.revoke_token(token.id))  # by another server
        assert (await server.user.get("/api/v1/session")).status_code == 200
        now += authenticating._GOOD_FOR
        assert (await server.user.get("/api/v1/session")).status_code == 401
        assert len(asked) == 2


async def test_when_a_token_was_used_is_gathered(serve: Serve) -> None:
    async with serve() as server:
        for _ in range(3):
            await server.user.get("/api/v1/session")
        [before] = await server.app.engine.run(lambda store: store.tokens(user="user"))
        await server.api.state.authenticate.touch_once()
        [after] = await server.app.engine.run(lambda store: store.tokens(user="user"))
    assert before.last_used_at is None
    assert after.last_used_at is not None


BAD_TOKENS = [
    "", "Bearer", "Bearer ", "Basic YTpi", "Bearer hr_short", "Bearer hr_" + "x" * 43, "Bearer " + "x" * 5000,
    "Bearer hr_" + "\xe4" * 43,
]  # fmt: skip


async def test_what_is_no_good_token_is_refused_alike(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server:
        for header in BAD_TOKENS:
            answer = await server.nobody.get("/api/v1/session", headers=[(b"Authorization", header.encode("latin-1"))])
            assert answer.status_code == 401, header
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert answer.json()["title"] == "Unauthorized"


async def test_an_act_that_the_server_failed_at_is_closed_as_failed(
    serve_sqlite: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve_sqlite() as server:
        store = await server.app.engine.opened_store()

        async def broken(*_: object, **__: object) -> None:
            raise RuntimeError("a bug")

        monkeypatch.setattr(store, "add_user", broken)
        answer = await server.admin.post(
            "/api/v1/users", json={"name": "ada", "role": "user"}, headers={"X-Request-ID": "r-1"}
        )
        assert answer.status_code == 500
        [entry] = await server.app.engine.run(lambda store: store.audit())
    assert (entry.outcome, entry.request) == ("Internal Server Error", "r-1")


async def test_what_was_asked_before_a_revocation_is_not_kept_after_it(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at the ledger that is under way while its token is revoked has seen it, and does not bring it back."""
    async with serve() as server:
        secret = await server.token("viewer")
        tokens = (await server.client(secret).get("/api/v1/tokens")).json()["items"]
        shown = max(int(token["id"]) for token in tokens)
        authenticate: authenticating.Authenticator = server.api.state.authenticate
        authenticate.forget(token=shown)
        looked, go_on = asyncio.Event(), asyncio.Event()
        run = server.app.engine.run

        async def late(*arguments: Any, **more: Any) -> Any:
            found = await run(*arguments, **more)
            looked.set()
            await go_on.wait()
            return found

        monkeypatch.setattr(server.app.engine, "run", late)
        asking = asyncio.create_task(authenticate.find(secret))
        await asyncio.wait_for(looked.wait(), 30)
        monkeypatch.undo()
        assert (await server.admin.delete(f"/api/v1/tokens/{shown}")).status_code == 204
        during = await asyncio.wait_for(server.client(secret).get("/api/v1/session"), 30)  # it asks for itself
        go_on.set()
        assert await asking is not None, "it was asked before"
        after = await server.client(secret).get("/api/v1/session")
    assert (during.status_code, after.status_code) == (401, 401)
