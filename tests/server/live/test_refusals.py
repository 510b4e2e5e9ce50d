"""Who may watch what, and how they are told when they may not."""

from contextlib import suppress
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from headrace.client.accounts import hint_of
from headrace.server.live.pace import Pace
from tests.server.live.watching import closed, numbers, receive, receive_until, streaming, watching
from tests.server.live.writing import Writer, store_of
from tests.server.serving import Serve, listening
from tests.support.waiting import CEILING, eventually


@pytest.mark.requirement("R90")
async def test_close_codes(serve_sqlite: Serve) -> None:
    """R90: not authenticated is 4401, no access 4403; and what does not exist is 4404, nonsense 4400."""
    async with serve_sqlite() as server, listening(server.api) as url, store_of(server.app) as store:
        writer = await Writer.begin(store, owner="user")
        job, task, secrets = writer.job, writer.task, server.secrets
        codes: dict[tuple[str, str], int | None] = {}
        asked = [
            *((path, who) for path in (f"job/{job}/status/", f"job/{job}/logs/", f"task/{task}/")
              for who in ("nobody", "wrong", "other")),
            ("queues/", "nobody"), ("system/", "nobody"),
            ("job/999999/logs/", "user"), ("job/99999999999999999999999/status/", "user"), ("job/x/logs/", "user"),
            ("task/999999/", "user"), (f"job/{job}/logs/?after=soon", "user"), (f"job/{job}/logs/?after=1.2", "user"),
        ]  # fmt: skip
        for path, who in asked:
            token = {"nobody": None, "wrong": "hr_wrong"}.get(who, secrets.get(who))
            async with watching(url, f"/ws/{path}", token) as client:
                codes[path, who] = await closed(client)
        await writer.say(2)
        for who in ("user", "viewer", "operator", "admin"):
            async with watching(url, f"/ws/job/{job}/logs/", secrets[who]) as client:
                assert numbers(await receive_until(client, 1)) == [0, 1]
    expected = {"nobody": 4401, "wrong": 4401, "other": 4403}
    assert {key: code for key, code in codes.items() if key[1] != "user"} == {
        key: expected[key[1]] for key in codes if key[1] != "user"
    }
    assert [code for (_, who), code in codes.items() if who == "user"] == [4404, 4404, 4404, 4404, 4400, 4400]


async def test_event_streams_refuse_with_problems(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server, listening(server.api) as url, store_of(server.app) as store:
        writer = await Writer.begin(store, owner="user")
        answers: list[tuple[int, str]] = []
        async with httpx.AsyncClient(base_url=f"{url}/api/v1/live", timeout=CEILING) as client:
            for path, who in (
                (f"/jobs/{writer.job}/logs", None),
                (f"/tasks/{writer.task}", "other"),
                ("/jobs/999999/status", "user"),
                (f"/jobs/{writer.job}/logs?after=soon", "user"),
            ):
                headers = {} if who is None else {"Authorization": f"Bearer {server.secrets[who]}"}
                answer = await client.get(path, headers=headers)
                answers.append((answer.status_code, answer.headers["content-type"]))
    assert answers == [(status, "application/problem+json") for status in (401, 403, 404, 422)]


async def test_a_browser_sends_its_token_as_a_subprotocol(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server, listening(server.api) as url, store_of(server.app) as store:
        writer = await Writer.begin(store)
        await writer.say()
        path, token = f"/ws/job/{writer.job}/logs/", f"headrace.token.{server.secrets['viewer']}"
        async with watching(
            url, path, subprotocols=["headrace.live", token], origin="https://elsewhere.test"
        ) as client:
            assert client.subprotocol == "headrace.live"
            assert (await receive(client))["seq"] == 0
        async with watching(url, path, subprotocols=[token]) as client:
            assert client.subprotocol == token
            assert (await receive(client))["seq"] == 0
        async with watching(url, path, subprotocols=["headrace.live", "headrace.token.hr_wrong"]) as client:
            assert await closed(client) == 4401
        async with watching(url, f"{path}?token={server.secrets['viewer']}") as client:
            assert await closed(client) == 4401, "a token in a URL ends in the logs of every proxy"


async def test_pages_of_others_watch_nothing(serve_sqlite: Serve) -> None:
    """Without users everybody who reaches it may look, but not with the browser of somebody who does."""
    async with serve_sqlite(auth=False) as server, listening(server.api) as url:
        async with watching(url, "/ws/queues/", origin="https://elsewhere.test") as client:
            assert await closed(client) == 4403
        async with watching(url, "/ws/queues/", origin=url) as client:
            assert (await receive(client))["type"] == "queues"
        with suppress(InvalidStatus):
            async with watching(url, "/ws/nothing/") as client:
                raise AssertionError("there is no such address")


async def test_a_token_that_was_revoked_shows_nothing_more(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server, listening(server.api) as url, store_of(server.app) as store:
        server.api.state.hub.pace = Pace(ping=0.2, comment=0.2)
        writer = await Writer.begin(store)
        await writer.say()
        secret = await server.token("viewer")
        async with (
            watching(url, f"/ws/job/{writer.job}/logs/", secret) as client,
            streaming(url, f"/jobs/{writer.job}/logs", secret) as events,
        ):
            assert (await receive(client))["seq"] == 0
            (revoked,) = [token for token in await store.tokens(user="viewer") if token.hint == hint_of(secret)]
            await store.revoke_token(revoked.id)
            server.api.state.authenticate.forget(token=revoked.id)  # as the server that revokes it does
            assert await closed(client) == 4401
            assert [event["event"] async for event in events if "event" in event] == ["task_log_message", "refused"]


@pytest.mark.parametrize("by", ["header", "subprotocol"])
async def test_handshakes_are_requests(serve_sqlite: Serve, by: str) -> None:
    """So many a minute of one token, however it is shown; more are refused before anything is accepted."""
    async with serve_sqlite(requests_per_minute=5) as server, listening(server.api) as url:
        secret = server.secrets["viewer"]
        assert (await server.viewer.get("/api/v1/session")).status_code == 200, "from here on its token is known"
        shown: dict[str, Any] = {"token": secret} if by == "header" else {"subprotocols": [f"headrace.token.{secret}"]}
        for _ in range(5):
            async with watching(url, "/ws/system/", **shown) as client:
                assert (await receive(client))["type"] == "system"
        with pytest.raises(InvalidStatus) as refused:
            async with watching(url, "/ws/system/", **shown):
                raise AssertionError("one too many")
        async with watching(url, "/ws/system/", server.secrets["admin"]) as client:
            assert (await receive(client))["type"] == "system", "another token has a bucket of its own"
    assert refused.value.response.status_code == 429
    assert 1 <= int(refused.value.response.headers["retry-after"]) <= 12


@pytest.mark.parametrize("auth", [True, False])
async def test_nobody_takes_all_places(serve_sqlite: Serve, auth: bool) -> None:
    """Of one token, or of one address where there are no users; whoever goes makes room."""
    async with (
        serve_sqlite(watchers_per_caller=2, auth=auth) as server,
        listening(server.api) as url,
        store_of(server.app) as store,
    ):
        writer = await Writer.begin(store)
        await writer.say()
        path, secret = f"/ws/job/{writer.job}/logs/", server.secrets.get("viewer")
        headers = {"Authorization": f"Bearer {secret}"} if auth else {}
        async with watching(url, path, secret) as first, streaming(url, f"/jobs/{writer.job}/logs", secret) as second:
            assert (await receive(first))["seq"] == 0
            assert (await anext(second))["id"] == "0"
            async with watching(url, path, secret) as third:
                assert await closed(third) == 4429
            async with httpx.AsyncClient(base_url=url, headers=headers, timeout=CEILING) as client:
                refused = await client.get(f"/api/v1/live/jobs/{writer.job}/logs")
            if auth:
                async with watching(url, path, server.secrets["admin"]) as other:
                    assert (await receive(other))["seq"] == 0
        await eventually(lambda: server.api.state.hub.watchers == 0)
        async with watching(url, path, secret) as again:
            assert (await receive(again))["seq"] == 0
    assert (refused.status_code, refused.headers["content-type"]) == (429, "application/problem+json")
    assert "retry-after" in refused.headers
