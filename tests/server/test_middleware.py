"""What happens to every request: limits, compression, headers, other origins."""

import gzip

import httpx
import pytest
from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from headrace.server.middleware.rates import Bucket, Rates, take
from tests.server.serving import Serve, Serving

router = APIRouter()


@router.get("/large")
async def large() -> list[str]:
    return ["a line that repeats itself"] * 1000


@router.get("/stream")
async def stream() -> StreamingResponse:
    return StreamingResponse(iter(["data: x\n\n"] * 1000), media_type="text/event-stream")


def with_routes(server: Serving) -> None:
    server.api.include_router(router, prefix="/try")


async def test_large_answers_are_compressed_and_streams_are_not(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server:
        with_routes(server)
        async with server.nobody.stream("GET", "/try/large", headers={"Accept-Encoding": "gzip"}) as answer:
            raw = b"".join([part async for part in answer.aiter_raw()])
        events = await server.nobody.get("/try/stream", headers={"Accept-Encoding": "gzip"})
        plain = await server.nobody.get("/try/large", headers={"Accept-Encoding": "identity"})
    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(raw) == plain.content
    assert len(raw) < len(plain.content) / 10
    assert "content-encoding" not in events.headers
    assert "content-encoding" not in plain.headers


async def test_answers_are_not_kept_not_framed_and_not_guessed_at(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server:
        answers = [
            await server.admin.get("/api/v1/users"),
            await server.nobody.get("/api/v1/users"),
            await server.nobody.get("/nowhere"),
        ]
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"


async def test_other_origins_may_read_only_when_they_are_named(serve_sqlite: Serve) -> None:
    asked = {"Origin": "https://app.example", "Access-Control-Request-Method": "GET"}
    async with serve_sqlite() as server:
        closed = await server.nobody.options("/api/v1/users", headers=asked)
        read = await server.admin.get("/api/v1/users", headers={"Origin": "https://app.example"})
    assert closed.status_code == 405
    assert "access-control-allow-origin" not in {*closed.headers, *read.headers}
    async with serve_sqlite(cors_origins=("https://app.example",)) as server:
        opened = await server.nobody.options("/api/v1/users", headers=asked)
        foreign = await server.nobody.options("/api/v1/users", headers={**asked, "Origin": "https://evil.example"})
    assert opened.headers["access-control-allow-origin"] == "https://app.example"
    assert "access-control-allow-credentials" not in opened.headers
    assert "access-control-allow-origin" not in foreign.headers


async def test_too_many_requests_are_told_when_to_come_again(serve_sqlite: Serve) -> None:
    async with serve_sqlite(requests_per_minute=5) as server:
        answers = [await server.admin.get("/api/v1/session") for _ in range(8)]
        other = await server.operator.get("/api/v1/session")
        probe = await server.nobody.get("/live")
    codes = [answer.status_code for answer in answers]
    # The first is counted for its address: nothing is known of its token before.
    assert codes[:6] == [200] * 6
    assert codes[6:] == [429] * 2
    assert answers[-1].headers["content-type"] == "application/problem+json"
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 12
    assert answers[1].headers["ratelimit-limit"] == "5"
    assert answers[1].headers["ratelimit-remaining"] == "4"
    assert answers[-1].headers["ratelimit-remaining"] == "0"
    assert other.status_code == 200, "another token has a bucket of its own"
    assert probe.status_code != 429


async def test_tokens_that_do_not_exist_are_counted_for_their_address(serve_sqlite: Serve) -> None:
    async with serve_sqlite(requests_per_minute=5) as server:
        codes = [(await server.client(f"hr_{number:043d}").get("/api/v1/session")).status_code for number in range(7)]
    assert codes == [401] * 5 + [429] * 2


def test_a_bucket_fills_again() -> None:
    bucket: Bucket | None = None
    for _ in range(60):
        taken = take(bucket, per_minute=60, now=0.0)
        assert taken.granted
        bucket = taken.bucket
    refused = take(bucket, per_minute=60, now=0.5)
    assert (refused.granted, refused.wait) == (False, 0.5)
    assert take(refused.bucket, per_minute=60, now=1.0).granted
    assert take(refused.bucket, per_minute=60, now=1e6).bucket.left == 59


async def test_buckets_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.server.middleware.rates._MOST_KEYS", 100)

    async def nothing(scope: Scope, receive: Receive, send: Send) -> None: ...

    now = 0.0
    rates = Rates(nothing, per_minute=60, name_of=lambda scope: scope["who"], clock=lambda: now)
    for number in range(1000):
        now += 0.001
        await rates({"type": "http", "path": "/", "who": f"one of many {number}"}, None, None)  # type: ignore[arg-type]
    assert 0 < len(rates._buckets) <= 100


async def test_without_users_only_loopback_names_and_our_own_pages_act(serve_sqlite: Serve) -> None:
    async with serve_sqlite(auth=False) as server:
        answers = {
            "program": await server.nobody.get("/api/v1/users"),
            "rebound": await server.nobody.get("/api/v1/users", headers={"Host": "evil.example"}),
            "page": await server.nobody.post("/api/v1/users", json={}, headers={"Origin": "https://evil.example"}),
            "ours": await server.nobody.post("/api/v1/users", json={}, headers={"Origin": "http://127.0.0.1:8000"}),
        }
    codes = {name: answer.status_code for name, answer in answers.items()}
    assert codes == {"program": 200, "rebound": 403, "page": 403, "ours": 422}
    async with serve_sqlite(auth=False, open_to_all=True, host="0.0.0.0") as server:
        answer: httpx.Response = await server.nobody.get("/api/v1/users", headers={"Host": "tasks.example"})
    assert answer.status_code == 200


@pytest.mark.parametrize("address", ["http://[", "http://[::1", "http://127.0.0.1]:8000", "http://[v1]"])
async def test_an_address_that_is_none_is_foreign(serve_sqlite: Serve, address: str) -> None:
    async with serve_sqlite(auth=False) as server:
        origin = await server.nobody.post("/api/v1/users", json={}, headers={"Origin": address})
        host = await server.nobody.get("/api/v1/users", headers={"Host": address.removeprefix("http://")})
    assert (origin.status_code, host.status_code) == (403, 403)
