"""The first page: what ended, how fast, what waits, what fails; and nobody's own things in another's figures."""

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from headrace.core.task import QueueRecord
from headrace.server.overview.buckets import Bucket, Buckets
from headrace.server.overview.keeping import keep, worth_keeping
from headrace.server.overview.percentiles import percentiles
from headrace.server.overview.ranges import RANGES
from headrace.store.figures import EndedTask, OutcomeSum
from headrace.testing import adrain
from tests.server.routed import routed
from tests.server.serving import Serve
from tests.support.waiting import eventually


def test_percentiles_go_by_weight() -> None:
    assert percentiles([], [0.5]) == {}
    assert percentiles([(3.0, 1.0)], [0.5, 1.0]) == {0.5: 3.0, 1.0: 3.0}
    hundred = [(float(n), 1.0) for n in range(1, 101)]
    assert percentiles(hundred, [0.5, 0.95, 0.99, 1.0]) == {0.5: 50.0, 0.95: 95.0, 0.99: 99.0, 1.0: 100.0}
    # One that stands for nine hundred of a thousand is the median, though it is one of a hundred.
    assert percentiles([(1.0, 900.0), *((float(n), 1.0) for n in range(2, 101))], [0.5, 0.99]) == {0.5: 1.0, 0.99: 91.0}


def test_ranges_begin_at_whole_buckets() -> None:
    now = datetime(2026, 5, 1, 12, 34, 56, tzinfo=UTC)
    for range in RANGES.values():
        starts = range.starts(now)
        assert len(starts) == range.buckets
        assert starts[-1] <= now < starts[-1] + timedelta(seconds=range.bucket)
        assert all(at.timestamp() % range.bucket == 0 for at in starts)


class Ledger:
    """Sums and samples for each minute, and what was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[datetime, datetime]] = []

    async def outcome_sums(self, *, since: datetime, until: datetime, bucket: int) -> list[OutcomeSum]:
        self.asked.append((since, until))
        n = int((until - since).total_seconds() // bucket)
        return [OutcomeSum(since + timedelta(seconds=bucket * k), "q", "t", "completed", 7) for k in range(n)]

    async def sample_ends(self, *_: Any, **__: Any) -> list[EndedTask]:
        return []


async def test_a_bucket_that_is_over_is_read_once() -> None:
    buckets, ledger, now = Buckets(), Ledger(), datetime(2026, 5, 1, 12, 34, 56, tzinfo=UTC)
    store: Any = ledger
    found, complete = await buckets.look(store, RANGES["1h"], now, seconds=10)
    assert complete
    assert [bucket.outcomes["completed"] for bucket in found] == [7] * 60
    assert len(ledger.asked) == 1
    ledger.asked.clear()
    found, complete = await buckets.look(store, RANGES["1h"], now + timedelta(seconds=10), seconds=10)
    assert len(found) == 60
    # Of the one that goes on, and, shortly after its end, of the one before.
    assert all(until - since <= timedelta(minutes=2) for since, until in ledger.asked)
    # A look that has no time reads the newest part, and says that it is not all.
    ledger.asked.clear()
    found, complete = await Buckets().look(store, RANGES["7d"], now, seconds=0)
    assert not complete
    assert len(ledger.asked) == 1
    assert found[-1].outcomes["completed"] == 7
    assert found[0].outcomes["completed"] == 0


@pytest.mark.parametrize("range", ["5m", "1h", "24h", "7d"])
async def test_what_it_shows(serve: Serve, range: str) -> None:
    async with routed(serve) as server:
        add, fail, greet = (server.app.get_task(name) for name in ("add", "fail", "greet"))
        await server.app.engine.enqueue([add.prepare(1, 2) for _ in (1, 2, 3)])
        await server.app.engine.enqueue([fail.prepare(why=f"user {n} said 'no {n}'") for n in (1, 2)])
        await server.app.engine.enqueue([fail.prepare(why="password=hunter2 is wrong")])
        await adrain(server.app, raise_on_failure=False)
        counts = [("w", "default", "add", "completed", 3), ("w", "default", "fail", "failed", 3)]
        await server.app.engine.run(lambda store: store.count_outcomes(counts))
        await greet.using(run_after=3600).aenqueue("ada")

        async def read() -> httpx.Response | None:
            found = await server.viewer.get(f"/api/v1/overview?range={range}")
            assert found.status_code == 200, found.text
            return found if found.json()["finished"]["complete"] else None  # a busy machine may need another look

        answer = await eventually(read)
        assert answer is not None
        body = answer.json()
        assert (body["range"], body["whose"], body["bucket"]) == (range, "all", RANGES[range].bucket)  # type: ignore[index]
        assert len(body["finished"]["series"]) == len(body["latency"]["series"]) == RANGES[range].buckets  # type: ignore[index]
        assert body["finished"]["totals"] == {"completed": 3, "failed": 3, "cancelled": 0, "rejected": 0}
        [queue] = body["finished"]["queues"]
        assert (queue["queue"], queue["completed"], queue["failed"]) == ("default", 3, 3)
        assert queue["per_second"] > 0
        assert {each["name"] for each in body["finished"]["names"]} == {"add", "fail"}
        assert body["latency"]["sampled"] == 6
        assert body["latency"]["waiting"]["p50"] >= 0
        assert body["latency"]["running"]["p99"] <= body["latency"]["running"]["max"] < 60
        assert body["states"]["pending"] == {"n": 1, "more": False}
        assert body["dead_letters"] == {"n": 3, "more": False}
        [mail] = [queue for queue in body["queues"] if queue["name"] == "mail"]
        assert mail["depths"]["scheduled"] == 1
        failing = body["failing"]["items"]
        assert [(each["error_class"], each["message"], each["count"]["n"]) for each in failing] == [
            ("builtins.ValueError", "password=[redacted] is wrong", 1),
            ("builtins.ValueError", "user # said '…'", 2),
        ]
        assert failing[1]["names"] == ["fail"]
        assert "hunter2" not in answer.text


async def test_how_deep_queues_were(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noted by one server of all, each minute; shown of all queues together and of each."""
    monkeypatch.setattr("headrace.server.overview.keeping._FIRST", 3600.0)  # not by itself
    async with routed(serve) as server:
        greet = server.app.get_task("greet")
        await greet.aenqueue("ada")
        await greet.using(run_after=3600).aenqueue("bob")

        async def look(identity: str) -> float:
            return await server.app.engine.run(lambda store: keep(store, identity))

        assert 0 < await look("one") <= 61
        await greet.aenqueue("eve")
        await look("another")  # which does not lead
        for path in ("overview?range=1h", "queues/mail/rates?range=1h", "overview?range=7d"):
            depths = (await server.viewer.get(f"/api/v1/{path}")).json()["depths"]
            assert [each["depths"] for each in depths] == [{"primary": 1, "scheduled": 1}]
        assert (await server.viewer.get("/api/v1/queues/other/rates")).json()["depths"] == []


async def test_a_server_notes_depths_by_itself(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.server.overview.keeping._FIRST", 0.01)
    async with routed(serve) as server:
        await server.app.get_task("greet").aenqueue("ada")

        async def noted() -> list[Any]:
            return (await server.viewer.get("/api/v1/overview?range=5m")).json()["depths"]

        assert await eventually(noted)


def test_the_deepest_queues_are_noted_and_the_sum_of_all() -> None:
    queues = [QueueRecord(name=f"q{n:03}", paused=False, depths={"primary": n, "running": 1}) for n in range(150)]
    kept = worth_keeping(queues)
    assert kept[""] == {"primary": sum(range(150)), "running": 150}
    assert sorted(kept)[1:] == [f"q{n:03}" for n in range(50, 150)]


async def test_a_count_that_stopped_says_so(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dead letters of all are looked at from the last on, for a while: one's own may be behind."""
    monkeypatch.setattr("headrace.server.overview.looking.COUNTED_AT_MOST", 2)
    async with routed(serve) as server:
        fail = server.app.get_task("fail").prepare()
        for owner, n in (("user", 1), ("other", 3)):
            await server.app.engine.enqueue([dataclasses.replace(fail, owner=owner)] * n)
            await adrain(server.app, raise_on_failure=False)
        assert (await server.user.get("/api/v1/overview")).json()["dead_letters"] == {"n": 0, "more": True}
        assert (await server.other.get("/api/v1/overview")).json()["dead_letters"] == {"n": 2, "more": True}


async def test_a_user_sees_their_own_in_it(serve: Serve) -> None:
    async with routed(serve) as server:
        fail = server.app.get_task("fail")
        mine = dataclasses.replace(fail.prepare(why="mine"), owner="user")
        others = dataclasses.replace(fail.prepare(why="zebra"), owner="other")
        await server.app.engine.enqueue([mine, others, others])
        await adrain(server.app, raise_on_failure=False)
        await server.app.engine.run(lambda store: store.count_outcomes([("w", "default", "fail", "failed", 3)]))
        answer = await server.user.get("/api/v1/overview")
        body = answer.json()
        assert body["whose"] == "own"
        assert body["finished"]["totals"]["failed"] == 1
        assert body["dead_letters"] == {"n": 1, "more": False}
        assert [each["message"] for each in body["failing"]["items"]] == ["mine"]
        assert body["latency"]["sampled"] == 1
        assert "zebra" not in answer.text
        assert (await server.operator.get("/api/v1/overview")).json()["finished"]["totals"]["failed"] == 3


def test_more_queues_than_a_bucket_keeps_apart_are_counted_together() -> None:
    bucket = Bucket(datetime(2026, 5, 1, 12, tzinfo=UTC))
    for number in range(2000):
        bucket.count(f"queue {number}", "task", "completed", 2)
    assert bucket.of_queue("queue 1999")["completed"] == 2
    assert not bucket.cut
    bucket.count("queue 2000", "task", "completed", 5)
    assert bucket.cut
    assert bucket.of_queue("queue 2000")["completed"] == 0
    assert bucket.outcomes["completed"] == 4005


async def test_rates_of_one_queue(serve: Serve) -> None:
    async with routed(serve) as server:
        counts = [("w", "mail", "greet", "completed", 30), ("w", "mail", "fail", "failed", 3)]
        many = [("w", "default", f"task {n}", "completed", 100) for n in range(600)]
        await server.app.engine.run(
            lambda store: store.count_outcomes([*many, *counts, ("v", "mail", "a", "completed", 7)])
        )

        async def read() -> dict[str, Any] | None:
            found = await server.viewer.get("/api/v1/queues/mail/rates?range=1h")
            assert found.status_code == 200, found.text
            return found.json() if found.json()["complete"] else None

        body = await eventually(read)
        assert body is not None
        assert (body["queue"], body["range"], body["bucket"], body["whose"]) == ("mail", "1h", 60, "all")
        # However many names others have.
        assert body["totals"] == {"completed": 37, "failed": 3, "cancelled": 0, "rejected": 0}
        assert len(body["series"]) == 60
        assert sum(each["completed"] for each in body["series"]) == 37
        assert sum(each["failed"] for each in body["series"][-2:]) == 3  # now, or a minute ago
        assert body["per_second"] > 0
        unknown = (await server.viewer.get("/api/v1/queues/no-such/rates?range=5m")).json()
        assert unknown["totals"]["completed"] == 0
        assert len(unknown["series"]) == 5
        assert (await server.viewer.get("/api/v1/queues/mail/rates?range=2h")).status_code == 422
        assert (await server.viewer.get("/api/v1/queues/a,b/rates")).status_code == 422


async def test_a_user_sees_the_rates_of_their_own(serve: Serve) -> None:
    async with routed(serve) as server:
        add = server.app.get_task("add")
        mine, others = (dataclasses.replace(add.prepare(1, 2), owner=owner) for owner in ("user", "other"))
        await server.app.engine.enqueue([mine, others, others])
        await adrain(server.app)
        await server.app.engine.run(lambda store: store.count_outcomes([("w", "default", "add", "completed", 3)]))
        body = (await server.user.get("/api/v1/queues/default/rates")).json()
        assert (body["whose"], body["totals"]["completed"]) == ("own", 1)


async def test_figures_are_shared_for_a_second(serve_sqlite: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    async with routed(serve_sqlite) as server:
        monkeypatch.setattr(server.api.state.overview, "_clock", lambda: 0.0)
        first = (await server.viewer.get("/api/v1/overview")).json()
        second = (await server.admin.get("/api/v1/overview")).json()
        assert first["as_of"] == second["as_of"]
        assert (await server.viewer.get("/api/v1/overview?range=2h")).status_code == 422
