"""Keys: at most one task holds a name."""

from typing import Any

from headrace.core.errors import DuplicateTask
from headrace.core.task import Key, NewTask, OnConflict
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import (
    Ledger,
    completed,
    failed,
    failed_for_good,
    ref,
    refused,
    stopped,
    task,
)

cases = Cases("keys")


def unique(key: str = "k", on_conflict: OnConflict = "return", ttl: float | None = None, **options: Any) -> NewTask:
    return task(keys=(Key(scope="unique", key=key, on_conflict=on_conflict, ttl=ttl),), **options)


def idempotent(key: str = "k", ttl: float = 0.3, on_conflict: OnConflict = "return", **options: Any) -> NewTask:
    return task(keys=(Key(scope="idem", key=key, ttl=ttl, on_conflict=on_conflict),), **options)


@cases.add()
async def a_held_key_returns_its_task(ledger: Ledger) -> None:
    (first,) = await ledger.store.enqueue([unique(arguments='{"n":1}')])
    (second,) = await ledger.store.enqueue([unique(arguments='{"n":2}')])
    assert first.created
    assert second == (first.id, False)
    assert (await ledger.get(first.id)).arguments == '{"n":1}'
    assert len(await ledger.claim()) == 1


@cases.add()
async def duplicates_within_one_call_are_folded(ledger: Ledger) -> None:
    answers = await ledger.store.enqueue([unique("x"), task(), unique("x"), unique("y"), unique("x")])
    assert [answer.created for answer in answers] == [True, True, False, True, False]
    assert answers[0].id == answers[2].id == answers[4].id
    assert len({answer.id for answer in answers}) == 3
    assert (await ledger.store.counts())["pending"] == 3


@cases.add()
async def a_key_is_held_while_the_task_is_claimed_or_waits_for_a_retry(ledger: Ledger) -> None:
    (first,) = await ledger.store.enqueue([unique()])
    claim = await ledger.claim_one()
    assert await ledger.store.enqueue([unique()]) == [(first.id, False)]
    await ledger.store.start("a", [ref(claim)])
    assert await ledger.store.enqueue([unique()]) == [(first.id, False)]
    await ledger.finish("a", failed(claim))
    assert await ledger.store.enqueue([unique()]) == [(first.id, False)]


@cases.add()
async def a_key_is_free_once_its_task_ended_in_any_way(ledger: Ledger) -> None:
    for end in (completed, failed_for_good, stopped):
        (first,) = await ledger.store.enqueue([unique()])
        assert first.created
        await ledger.finish("a", end(await ledger.claim_one()))
    (last,) = await ledger.store.enqueue([unique()])
    await ledger.store.cancel([last.id])
    (again,) = await ledger.store.enqueue([unique()])
    assert again.created


@cases.add()
async def reject_raises_and_writes_nothing(ledger: Ledger) -> None:
    (first,) = await ledger.store.enqueue([unique()])
    error = await refused(ledger.store.enqueue([task(), unique(on_conflict="reject"), task()]), DuplicateTask)
    assert (error.key, error.task_id) == ("k", first.id)
    assert (await ledger.store.counts())["pending"] == 1


@cases.add()
async def replace_gives_a_waiting_task_the_new_content(ledger: Ledger) -> None:
    """Debounce: of two calls the last one's arguments and options count, once, under the id of the first."""
    (first,) = await ledger.store.enqueue([unique(arguments='{"n":1}')])
    newer = unique(
        on_conflict="replace", arguments='{"n":2}', priority=7, max_attempts=9, max_age=60.0, options='{"x":1}'
    )
    assert await ledger.store.enqueue([newer]) == [(first.id, False)]
    record = await ledger.get(first.id)
    assert (record.arguments, record.options, record.priority, record.max_attempts) == ('{"n":2}', '{"x":1}', 7, 9)
    assert record.expires_at is not None
    (claim,) = await ledger.claim()
    assert (claim.id, claim.arguments) == (first.id, '{"n":2}')
    assert await ledger.store.enqueue([unique()]) == [(first.id, False)]


@cases.add()
async def replace_does_not_touch_what_runs(ledger: Ledger) -> None:
    """A claimed task keeps running with its own arguments and its outcome is accepted."""
    (first,) = await ledger.store.enqueue([unique(arguments='{"n":1}')])
    claim = await ledger.claim_one()
    await ledger.store.start("a", [ref(claim)])
    (second,) = await ledger.store.enqueue([unique(on_conflict="replace", arguments='{"n":2}')])
    assert second.created, "an event that arrives during the run is not lost"
    running = await ledger.get(first.id)
    assert (running.arguments, running.state.value) == ('{"n":1}', "running")
    report = await ledger.store.finish("a", [completed(claim, "1")])
    assert ref(claim) in report.accepted
    assert (await ledger.get(first.id)).result == "1"
    # The key went over: the first task's end must not free it.
    assert await ledger.store.enqueue([unique()]) == [(second.id, False)]


@cases.add()
async def replace_gives_a_task_that_waits_for_approval_the_new_content(ledger: Ledger) -> None:
    """It goes on waiting for the approval."""
    (first,) = await ledger.store.enqueue([unique(arguments='{"n":1}', approval=True)])
    newer = unique(on_conflict="replace", arguments='{"n":2}', approval=True)
    assert await ledger.store.enqueue([newer]) == [(first.id, False)]
    record = await ledger.get(first.id)
    assert (record.arguments, record.state.value) == ('{"n":2}', "pending_approval")
    assert await ledger.claim() == []


@cases.add()
async def replace_within_the_window_of_a_task_that_ended_is_a_new_task(ledger: Ledger) -> None:
    """What it would replace has run already: the event must not be lost. The key goes over, with its own window."""
    for new in (unique, idempotent):
        (first,) = await ledger.store.enqueue([new(ttl=600.0)])
        await ledger.finish("a", completed(await ledger.claim_one()))
        assert await ledger.store.enqueue([new(ttl=600.0)]) == [(first.id, False)]
        (second,) = await ledger.store.enqueue([new(ttl=600.0, on_conflict="replace", arguments='{"n":2}')])
        assert second.created
        assert await ledger.store.enqueue([new(ttl=600.0)]) == [(second.id, False)]
        claim = await ledger.claim_one()
        assert (claim.id, claim.arguments) == (second.id, '{"n":2}')
        await ledger.finish("a", completed(claim))
        assert await ledger.store.enqueue([new(ttl=600.0)]) == [(second.id, False)]
    assert await ledger.store.check() == [], "no key is held for ever"


@cases.add()
async def replaced_again_and_again_a_task_is_not_later_than_max_wait(ledger: Ledger) -> None:
    (first,) = await ledger.store.enqueue([unique(delay=0.2, max_wait=0.5)])
    created = (await ledger.get(first.id)).created_at
    latest = first.id
    for _ in range(4):
        await ledger.let_pass(0.1)
        (answer,) = await ledger.store.enqueue([unique(on_conflict="replace", delay=0.2, max_wait=0.5)])
        latest = answer.id
    due = (await ledger.get(latest)).eligible_at
    assert (due - created).total_seconds() <= 0.5 + 1e-6
    await ledger.let_pass(0.2)
    assert [claim.id for claim in await ledger.claim()] == [latest]


@cases.add()
async def an_idempotency_key_outlives_its_task(ledger: Ledger) -> None:
    (first,) = await ledger.store.enqueue([idempotent(ttl=0.4)])
    await ledger.finish("a", completed(await ledger.claim_one()))
    assert await ledger.store.enqueue([idempotent(ttl=0.4)]) == [(first.id, False)]
    await ledger.let_pass(0.5)
    (second,) = await ledger.store.enqueue([idempotent(ttl=0.4)])
    assert second.created
    assert second.id != first.id


@cases.add()
async def an_unfinished_task_keeps_its_idempotency_key_for_its_time_only(ledger: Ledger) -> None:
    """The retention counts from the enqueue on."""
    (first,) = await ledger.store.enqueue([idempotent(ttl=0.2)])
    await ledger.let_pass(0.3)
    (second,) = await ledger.store.enqueue([idempotent(ttl=60.0)])
    assert second.created
    # The first one's end does not free what the second holds now.
    for claim in await ledger.claim():
        if claim.id == first.id:
            await ledger.finish("a", completed(claim))
    assert await ledger.store.enqueue([idempotent(ttl=60.0)]) == [(second.id, False)]


@cases.add()
async def scopes_do_not_mix(ledger: Ledger) -> None:
    (a,) = await ledger.store.enqueue([unique("same")])
    (b,) = await ledger.store.enqueue([idempotent("same")])
    assert a.created
    assert b.created


@cases.add()
async def two_keys_of_one_task(ledger: Ledger) -> None:
    both = (Key(scope="unique", key="u"), Key(scope="idem", key="i", ttl=60.0))
    (first,) = await ledger.store.enqueue([task(keys=both)])
    assert await ledger.store.enqueue([unique("u")]) == [(first.id, False)]
    assert await ledger.store.enqueue([idempotent("i")]) == [(first.id, False)]
    await ledger.finish("a", completed(await ledger.claim_one()))
    (second,) = await ledger.store.enqueue([unique("u")])
    assert second.created
    assert await ledger.store.enqueue([idempotent("i")]) == [(first.id, False)]


@cases.add()
async def a_unique_window_outlives_its_task(ledger: Ledger) -> None:
    """A window is an expiry: with a ttl the key stays for that long after the end."""
    (first,) = await ledger.store.enqueue([unique(ttl=0.3)])
    await ledger.finish("a", completed(await ledger.claim_one()))
    assert await ledger.store.enqueue([unique(ttl=0.3)]) == [(first.id, False)]
    await ledger.let_pass(0.4)
    (second,) = await ledger.store.enqueue([unique(ttl=0.3)])
    assert second.created


@cases.add()
async def a_manual_retry_takes_the_key_back_or_leaves_it_to_its_new_holder(ledger: Ledger) -> None:
    """However the store decides, two unfinished tasks never hold one key, and the newcomer keeps it."""
    (first,) = await ledger.store.enqueue([unique()])
    await ledger.finish("a", failed_for_good(await ledger.claim_one()))
    (second,) = await ledger.store.enqueue([unique()])
    assert second.created
    await ledger.store.retry([first.id])
    assert await ledger.store.enqueue([unique()]) == [(second.id, False)]


@cases.add()
async def who_holds_a_key_is_seen(ledger: Ledger) -> None:
    keys = (Key(scope="unique", key="k"), Key(scope="idem", key="k"), Key(scope="idem", key="short"))
    assert await ledger.store.key_holders(keys) == {}
    assert await ledger.store.key_holders([]) == {}
    unique, idem, _ = await ledger.store.enqueue(
        [
            task(keys=(Key(scope="unique", key="k"),)),
            task(keys=(Key(scope="idem", key="k", ttl=60.0),)),
            task(keys=(Key(scope="idem", key="short", ttl=0.05),)),
        ]
    )
    await ledger.let_pass(0.06)
    odd = (Key(scope="unique", key="a\0"), Key(scope="unique", key="\ud800"))
    assert await ledger.store.key_holders([*keys, *keys, *odd]) == {
        ("unique", "k"): unique.id,
        ("idem", "k"): idem.id,
    }
