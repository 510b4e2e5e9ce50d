"""Breakers that processes share: one opening, one probe, and nothing that an old sight of them could undo."""

import asyncio
from datetime import timedelta

from headrace.core.breaker import BreakerRecord, BreakerStatus
from headrace.store.circuits import CHANGES_KEPT
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger

cases = Cases("circuits")


async def _only(ledger: Ledger) -> BreakerRecord:
    [record] = await ledger.store.breakers()
    return record


async def _half_open(ledger: Ledger, service: str = "mail") -> BreakerRecord:
    """Opened for a moment that is over."""
    await ledger.store.open_breaker(service, by="opener", timeout=0.05)
    await ledger.let_pass(0.1)
    [record] = [record for record in await ledger.store.breakers() if record.service == service]
    assert record.status is BreakerStatus.HALF_OPEN
    return record


@cases.add()
async def one_that_opened_is_seen_with_what_its_opener_counted(ledger: Ledger) -> None:
    assert await ledger.store.breakers() == []
    before = await ledger.store.now()
    opened = await ledger.store.open_breaker("mail", by="a", timeout=60, calls=12, failures=7)
    assert (opened.status, opened.forced, opened.revision) == (BreakerStatus.OPEN, False, 1)
    assert (opened.calls, opened.failures, opened.changed_by, opened.probe_by) == (12, 7, "a", None)
    assert opened.until is not None
    assert opened.until >= before + timedelta(seconds=60)
    other = await ledger.another_store()
    assert await other.breakers() == [opened]


@cases.add()
async def many_openers_at_once_make_one_revision(ledger: Ledger) -> None:
    stores = [ledger.store] + [await ledger.another_store() for _ in range(2)]
    opened = await asyncio.gather(
        *[stores[n % 3].open_breaker("mail", by=f"w{n}", timeout=60, failures=n) for n in range(12)]
    )
    assert {record.revision for record in opened} == {1}
    assert len({record.changed_by for record in opened}) == 1
    assert (await _only(ledger)).revision == 1


@cases.add()
async def an_open_one_becomes_half_open_by_the_clock_and_can_open_anew(ledger: Ledger) -> None:
    record = await _half_open(ledger)
    again = await ledger.store.open_breaker("mail", by="b", timeout=60)
    assert (again.status, again.revision, again.changed_by) == (BreakerStatus.OPEN, record.revision + 1, "b")
    assert record.until is not None
    assert again.until is not None
    assert again.until > record.until


@cases.add()
async def of_many_probers_exactly_one_gets_the_probe(ledger: Ledger) -> None:
    record = await _half_open(ledger)
    stores = [ledger.store] + [await ledger.another_store() for _ in range(2)]

    async def probe(n: int) -> bool:
        return await stores[n % 3].probe_breaker("mail", by=f"w{n}", revision=record.revision, patience=60)

    answers = await asyncio.gather(*[probe(n) for n in range(12)])
    assert sum(answers) == 1
    probing = await _only(ledger)
    assert probing.probe_by == f"w{answers.index(True)}"
    assert probing.revision == record.revision, "the probe alone changes nothing"
    assert await probe(answers.index(True)), "whoever has it has it: its answer may have been lost"


@cases.add()
async def no_probe_before_its_time_of_another_revision_or_of_one_that_is_closed(ledger: Ledger) -> None:
    store = ledger.store
    assert not await store.probe_breaker("mail", by="a", revision=1, patience=60)
    opened = await store.open_breaker("mail", by="a", timeout=60)
    assert not await store.probe_breaker("mail", by="a", revision=opened.revision, patience=60)
    await store.reset_breaker("mail", by="operator")
    record = await _half_open(ledger)
    assert not await store.probe_breaker("mail", by="a", revision=record.revision - 1, patience=60)
    assert await store.probe_breaker("mail", by="a", revision=record.revision, patience=60)
    assert await store.close_breaker("mail", by="a", revision=record.revision)
    assert not await store.probe_breaker("mail", by="a", revision=record.revision + 1, patience=60)


@cases.add()
async def the_probe_that_went_well_closes_for_all(ledger: Ledger) -> None:
    record = await _half_open(ledger)
    assert await ledger.store.probe_breaker("mail", by="a", revision=record.revision, patience=60)
    assert await ledger.store.close_breaker("mail", by="a", revision=record.revision)
    closed = await _only(ledger)
    assert (closed.status, closed.revision) == (BreakerStatus.CLOSED, record.revision + 1)
    assert (closed.until, closed.probe_by, closed.calls, closed.failures) == (None, None, 0, 0)
    assert (await ledger.store.open_breaker("mail", by="b", timeout=60)).revision == record.revision + 2


@cases.add()
async def a_close_with_an_old_revision_or_of_a_stranger_is_refused(ledger: Ledger) -> None:
    record = await _half_open(ledger)
    assert await ledger.store.probe_breaker("mail", by="a", revision=record.revision, patience=60)
    assert not await ledger.store.close_breaker("mail", by="b", revision=record.revision), "it has no probe"
    opened = await ledger.store.open_breaker("mail", by="b", timeout=60)
    assert not await ledger.store.close_breaker("mail", by="a", revision=record.revision)
    assert await _only(ledger) == opened


@cases.add()
async def the_probe_of_one_that_died_is_taken_over_after_its_patience(ledger: Ledger) -> None:
    record = await _half_open(ledger)
    assert await ledger.store.probe_breaker("mail", by="dead", revision=record.revision, patience=0.2)
    assert not await ledger.store.probe_breaker("mail", by="b", revision=record.revision, patience=60)
    await ledger.let_pass(0.3)
    assert await ledger.store.probe_breaker("mail", by="b", revision=record.revision, patience=0.2)
    assert not await ledger.store.close_breaker("mail", by="dead", revision=record.revision)
    assert await ledger.store.close_breaker("mail", by="b", revision=record.revision)


@cases.add()
async def opened_by_hand_it_stays_open_until_it_is_reset(ledger: Ledger) -> None:
    store = ledger.store
    await store.open_breaker("mail", by="a", timeout=60)
    forced = await store.open_breaker("mail", by="operator", timeout=0.01, forced=True)
    assert (forced.status, forced.forced, forced.until, forced.revision) == (BreakerStatus.OPEN, True, None, 2)
    await ledger.let_pass(0.1)
    assert not await store.probe_breaker("mail", by="a", revision=2, patience=60)
    assert not await store.close_breaker("mail", by="a", revision=2)
    assert await store.open_breaker("mail", by="a", timeout=60) == forced
    assert await store.open_breaker("mail", by="b", timeout=60, forced=True) == forced
    reset = await store.reset_breaker("mail", by="operator")
    assert (reset.status, reset.forced, reset.revision) == (BreakerStatus.CLOSED, False, 3)


@cases.add()
async def a_reset_makes_it_known_and_takes_the_probe_away(ledger: Ledger) -> None:
    known = await ledger.store.reset_breaker("silent", by="operator")
    assert (known.status, known.revision, known.changed_by) == (BreakerStatus.CLOSED, 1, "operator")
    record = await _half_open(ledger)
    assert await ledger.store.probe_breaker("mail", by="a", revision=record.revision, patience=60)
    await ledger.store.reset_breaker("mail", by="operator")
    assert not await ledger.store.close_breaker("mail", by="a", revision=record.revision)
    assert [record.service for record in await ledger.store.breakers()] == ["mail", "silent"]


@cases.add()
async def what_it_was_is_kept_each_change_once(ledger: Ledger) -> None:
    store = ledger.store
    assert await store.breaker_changes("mail") == []
    first = await store.open_breaker("mail", by="a", timeout=0.05, calls=12, failures=7)
    await store.open_breaker("mail", by="late", timeout=60)
    await ledger.let_pass(0.1)
    assert await store.probe_breaker("mail", by="b", revision=first.revision, patience=60)
    assert not await store.close_breaker("mail", by="stranger", revision=first.revision)
    assert await store.close_breaker("mail", by="b", revision=first.revision)
    await store.open_breaker("mail", by="operator", timeout=60, forced=True)
    await store.open_breaker("mail", by="a", timeout=60)
    await store.reset_breaker("mail", by="operator")
    await store.reset_breaker("other", by="operator")
    changes = await (await ledger.another_store()).breaker_changes("mail")
    closed, opened = BreakerStatus.CLOSED, BreakerStatus.OPEN
    assert [(each.revision, each.status, each.forced, each.changed_by) for each in changes] == [
        (4, closed, False, "operator"),
        (3, opened, True, "operator"),
        (2, closed, False, "b"),
        (1, opened, False, "a"),
    ]
    assert (changes[-1].calls, changes[-1].failures, changes[-1].until) == (12, 7, first.until)
    assert changes[-1].changed_at == first.changed_at
    assert [each.changed_at for each in changes] == sorted((each.changed_at for each in changes), reverse=True)
    assert [each.revision for each in await store.breaker_changes("other")] == [1]


@cases.add()
async def no_more_of_its_past_is_kept_than_its_last_changes(ledger: Ledger) -> None:
    for n in range(CHANGES_KEPT + 20):
        await ledger.store.reset_breaker("mail", by=f"w{n}")
    await ledger.store.reset_breaker("quiet", by="operator")
    changes = await ledger.store.breaker_changes("mail")
    assert [each.revision for each in changes] == list(range(CHANGES_KEPT + 20, 20, -1))
    assert changes[0].changed_by == f"w{CHANGES_KEPT + 19}"
    assert len(await ledger.store.breaker_changes("quiet")) == 1


@cases.add()
async def changes_of_many_at_once_are_all_kept(ledger: Ledger) -> None:
    stores = [ledger.store] + [await ledger.another_store() for _ in range(2)]
    await asyncio.gather(*[stores[n % 3].reset_breaker("mail", by=f"w{n}") for n in range(12)])
    changes = await ledger.store.breaker_changes("mail")
    assert [each.revision for each in changes] == list(range(12, 0, -1))
    assert {each.changed_by for each in changes} == {f"w{n}" for n in range(12)}
