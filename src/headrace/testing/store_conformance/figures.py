"""Figures of the whole ledger: sums by time, samples of what ended, and what is newest."""

from datetime import datetime, timedelta

from headrace.core.states import TaskState
from headrace.store.figures import Newest
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, completed, failed_for_good, task

cases = Cases("figures")

_HOUR = 3600


def _begin(at: datetime, bucket: int) -> datetime:
    """Of the bucket that this instant is in."""
    return at - timedelta(seconds=at.timestamp() % bucket)


@cases.add()
async def sums_are_by_bucket_queue_name_and_outcome(ledger: Ledger) -> None:
    now = await ledger.store.now()
    counts = [("a", "mail", "send", "completed", 3), ("b", "mail", "send", "completed", 4)]
    await ledger.store.count_outcomes(
        [*counts, ("a", "mail", "send", "failed", 2), ("a", "other", "work", "failed", 1)]
    )
    begin = _begin(now, _HOUR)
    found = await ledger.store.outcome_sums(since=begin, until=begin + timedelta(hours=2), bucket=_HOUR)
    # The hour may have changed between the two looks at the clock.
    assert {each.at for each in found} <= {begin, begin + timedelta(hours=1)}
    assert [each[1:] for each in found] == [
        ("mail", "send", "completed", 7),
        ("mail", "send", "failed", 2),
        ("other", "work", "failed", 1),
    ]
    assert await ledger.store.outcome_sums(since=begin - timedelta(hours=3), until=begin, bucket=_HOUR) == []


@cases.add()
async def depths_are_noted_once_a_minute(ledger: Ledger) -> None:
    """By the store's own minute; whoever comes second changes nothing, and what nobody looked at has no entry."""
    store, hour = ledger.store, timedelta(hours=1)
    written = 0
    for n in (5, 6):  # a new minute may begin between the two
        written += await store.keep_depths(
            {"": {"primary": n, "retry": 0}, "mail": {"primary": n}, "idle": {}}, kept=60
        )
    now = await store.now()
    since = _begin(now - hour, 60)
    found = await store.depth_series("mail", since=since, bucket=60, buckets=62)
    assert [each.depths for each in found] == [{"primary": 5}, {"primary": 6}][:written]
    assert all(each.at <= now and each.at.timestamp() % 60 == 0 for each in found)
    whole = await store.depth_series("", since=_begin(now - hour, _HOUR), bucket=_HOUR, buckets=3)
    assert whole[0].depths == {"primary": 5}
    assert [each.depths for each in await store.depth_series("idle", since=since, bucket=60, buckets=62)] == [
        {}
    ] * written
    assert await store.depth_series("nobody", since=since, bucket=60, buckets=62) == []
    assert await store.depth_series("\0", since=since, bucket=60, buckets=62) == []
    assert await store.depth_series("mail", since=since - 9 * hour, bucket=60, buckets=62) == []


@cases.add()
async def depths_that_are_too_old_go(ledger: Ledger) -> None:
    store = ledger.store
    since = _begin(await store.now() - timedelta(hours=1), 60)
    assert await store.keep_depths({"": {"primary": 1}}, kept=3600)
    await store.keep_depths({"": {"primary": 2}}, kept=3600)
    assert await store.depth_series("", since=since, bucket=60, buckets=63)
    # As if an hour had passed: all that was noted before the next minute is too old.
    await store.keep_depths({}, kept=-120)
    assert await store.depth_series("", since=since, bucket=60, buckets=63) == []


@cases.add()
async def a_sample_has_the_last_of_each_state_in_each_bucket(ledger: Ledger) -> None:
    begin = _begin(await ledger.store.now(), 60)
    ids = await ledger.enqueue(*(task() for _ in range(5)))
    by_id = {claim.id: claim for claim in await ledger.claim()}
    for id in ids[:3]:
        await ledger.finish("a", completed(by_id[id]))
        await ledger.let_pass(0.001)
    await ledger.finish("a", failed_for_good(by_id[ids[3]]))
    states = (TaskState.COMPLETED, TaskState.FAILED)
    found = await ledger.store.sample_ends(states, since=begin, bucket=60, buckets=3, each=2)
    assert {each.id for each in found} == {ids[1], ids[2], ids[3]}
    for each in found:
        assert each.name == "conformance.work"
        assert each.queue == "default"
        assert each.started_at is not None
        assert each.eligible_at <= each.finished_at
    only = await ledger.store.sample_ends(states[:1], since=begin, bucket=60, buckets=3, each=50)
    assert {each.state for each in only} == {TaskState.COMPLETED}
    earlier = begin - timedelta(minutes=10)
    assert await ledger.store.sample_ends(states, since=earlier, bucket=60, buckets=5, each=50) == []


@cases.add()
async def ones_own_ends(ledger: Ledger) -> None:
    since = await ledger.store.now() - timedelta(minutes=1)
    await ledger.enqueue(task(owner="ada"), task(owner="ada"), task(owner="bob"), task())
    for claim in await ledger.claim():
        await ledger.finish("a", completed(claim))
    found = await ledger.store.own_ends("ada", since=since, limit=10)
    records = await ledger.store.get([each.id for each in found])
    assert {record.owner for record in records.values()} == {"ada"}
    assert len(found) == 2
    assert len(await ledger.store.own_ends("ada", since=since, limit=1)) == 1
    assert await ledger.store.own_ends("ada", since=since + timedelta(hours=1), limit=10) == []
    assert await ledger.store.own_ends("\0", since=since, limit=10) == []


@cases.add()
async def what_is_newest(ledger: Ledger) -> None:
    assert await ledger.store.newest() == Newest(None, None, None)
    assert await ledger.store.newest(owner="ada") == Newest(None, None, None)
    first, second = await ledger.enqueue(task(owner="ada"), task())
    assert (await ledger.store.newest()).live == max(first, second)
    assert (await ledger.store.newest(owner="ada")).live == first
    for claim in await ledger.claim():
        if claim.id == first:
            await ledger.finish("a", completed(claim))
    found = await ledger.store.newest()
    assert (found.live, found.ended) == (second, first)
    assert found.ended_at == (await ledger.get(first)).finished_at
    assert await ledger.store.newest(owner="ada") == Newest(None, first, found.ended_at)
    assert await ledger.store.newest(owner="bob") == Newest(None, None, None)


@cases.add()
async def what_workers_hold_is_counted_up_to_a_cap(ledger: Ledger) -> None:
    await ledger.enqueue(*(task() for _ in range(4)))
    await ledger.claim("a", 3)
    await ledger.claim("b", 3)
    assert await ledger.store.holding(["a", "b", "c"], cap=10) == {"a": 3, "b": 1}
    assert await ledger.store.holding(["a"], cap=2) == {"a": 2}
    assert await ledger.store.holding([], cap=2) == {}


@cases.add()
async def live_tasks_by_state(ledger: Ledger) -> None:
    assert await ledger.store.live_counts() == {}
    await ledger.enqueue(task(), task(), task(queue="mail"), task(queue="mail", delay=60), task(approval=True))
    [claim, _] = await ledger.claim()
    await ledger.finish("a", completed(claim))
    assert await ledger.store.live_counts() == {
        TaskState.PENDING: 2,
        TaskState.CLAIMED: 1,
        TaskState.PENDING_APPROVAL: 1,
    }
