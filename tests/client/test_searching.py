"""A search: everything that matches once, newest first, in pages of whatever size, however little time a look has."""

import itertools
import random
from dataclasses import replace
from typing import Any

import pytest

from headrace.client.failing import failing
from headrace.client.searching import BEGINNING, Found, Search, answer_found, count, search
from headrace.core.states import TaskState
from headrace.core.task import ErrorInfo, TaskFilter, TaskRecord
from headrace.store.base import Store
from headrace.store.connect import connect
from headrace.store.expecting import Expected
from headrace.testing.store_conformance.ledger import Ledger, completed, failed_for_good, task
from tests.support.waiting import eventually

NAMES = ("mail.send", "mail.read", "work")
MESSAGES = ("no answer within 3 s", "password=hunter2 was wrong", "user 'ada' is gone")


async def make(store_url: str) -> Ledger:
    """Some sixty tasks: most of them ended, in an order of their own."""
    ledger = Ledger(lambda: connect(store_url), None)
    await ledger.open()
    rng = random.Random(7)
    new = [
        task(
            rng.choice(NAMES),
            queue="default" if n % 3 else "mail",
            owner=rng.choice((None, "ada", "bob")),
            dead_letter=n % 2 == 0,
            options=rng.choice(("{}", '{"tags":["red"]}', '{"tags":["blue","token=abcdef0123456789"],"label":"step"}')),
        )
        for n in range(60)
    ]
    await ledger.enqueue(*new)
    claims = [*await ledger.claim("w1", 25), *await ledger.claim("w2", 10, queue="mail")]
    rng.shuffle(claims)
    for n, claim in enumerate(claims[5:]):
        error = ErrorInfo(error_class=rng.choice(("builtins.TimeoutError", "app.Gone")), message=rng.choice(MESSAGES))
        worker = "w2" if claim.queue == "mail" else "w1"
        settlement = completed(claim) if n % 2 else failed_for_good(claim, error, dead_letter=True)
        await ledger.finish(worker, settlement)
    return ledger


async def walk(store: Store, wanted: Search, limit: int, seconds: float) -> list[TaskRecord]:
    found: list[TaskRecord] = []
    place = BEGINNING
    for _ in range(1000):
        page: Found = await search(store, wanted, place=place, limit=limit, seconds=seconds)
        assert len(page.records) <= limit
        found += page.records
        if page.place is None:
            return found
        assert page.place != place
        place = page.place
    raise AssertionError("a walk that does not end")


def instant(record: TaskRecord) -> Any:
    return (record.finished_at or record.created_at, record.id)


WANTED: dict[str, Search] = {
    "everything": Search(),
    "a state": Search(criteria=TaskFilter(states=(TaskState.FAILED,))),
    "live": Search(criteria=TaskFilter(states=(TaskState.PENDING, TaskState.CLAIMED))),
    "a queue": Search(criteria=TaskFilter(queues=("mail",))),
    "a name": Search(criteria=TaskFilter(names=("work",))),
    "beginnings of names": Search(prefixes=("mail.",)),
    "a beginning or a name": Search(criteria=TaskFilter(names=("work",)), prefixes=("mail.s",)),
    "a worker": Search(criteria=TaskFilter(worker="w1")),
    "an owner": Search(criteria=TaskFilter(owner="ada")),
    "an owner and a name": Search(criteria=TaskFilter(owner="ada", names=("work",))),
    "dead letters": Search(criteria=TaskFilter(dead_letter=True)),
    "no dead letters": Search(criteria=TaskFilter(dead_letter=False)),
    "dead letters of an owner": Search(criteria=TaskFilter(dead_letter=True, owner="bob")),
    "an error": Search(errors=("TimeoutError",)),
    "a part of a message": Search(errors=("ANSWER WITHIN",)),
    "a tag": Search(tags=("red",)),
    "a word": Search(text="gone"),
    "words": Search(text="MAIL timeout"),
    "nothing": Search(text="nothing-like-it"),
}


def expected(records: list[TaskRecord], wanted: Search) -> set[int]:
    """By another way: over whole records."""
    criteria = wanted.criteria

    def takes(record: TaskRecord) -> bool:
        said = " ".join(
            str(part)
            for part in (
                record.id, record.name, record.queue, record.state, record.worker or "", record.owner or "",
                record.options, record.error_class or "", record.error_message or "",
            )
        ).lower()  # fmt: skip
        error = f"{record.error_class} {record.error_message}".lower() if record.state.terminal else ""
        return (
            (not criteria.states or record.state in criteria.states)
            and (not criteria.queues or record.queue in criteria.queues)
            and (
                not (criteria.names or wanted.prefixes)
                or record.name in criteria.names
                or any(record.name.startswith(prefix) for prefix in wanted.prefixes)
            )
            and criteria.worker in (None, record.worker)
            and criteria.owner in (None, record.owner)
            and criteria.dead_letter in (None, record.dead_letter)
            and all(each.lower() in error for each in wanted.errors)
            and all(f'"{tag}"' in record.options for tag in wanted.tags)
            and all(word.lower() in said for word in (wanted.text or "").split())
        )

    return {record.id for record in records if takes(record)}


async def test_every_search_finds_everything_once(store_url: str) -> None:
    ledger = await make(store_url)
    try:
        everything = await ledger.store.list(TaskFilter(limit=1000))
        assert len(everything) == 60
        for (what, wanted), limit, seconds in itertools.product(WANTED.items(), (1, 7, 100), (0.0, 10.0)):
            found = await walk(ledger.store, wanted, limit, seconds)
            ids = [record.id for record in found]
            assert len(ids) == len(set(ids)), (what, limit, seconds)
            assert set(ids) == expected(everything, wanted), (what, limit, seconds)
            if seconds:
                ended = [record for record in found if record.state.terminal]
                assert ended == sorted(ended, key=instant, reverse=True), (what, limit)
                live = [record.id for record in found if not record.state.terminal]
                assert live == sorted(live, reverse=True), (what, limit)
            n, more, _ = await count(ledger.store, wanted, most=1000, seconds=10)
            assert (n, more) == (len(ids), False), what
        n = len(expected(everything, WANTED["a name"]))
        assert (await count(ledger.store, WANTED["a name"], most=n, seconds=10))[:2] == (n, False)
        assert (await count(ledger.store, WANTED["a name"], most=n - 1, seconds=10))[:2] == (n - 1, True)
        assert (await count(ledger.store, replace(WANTED["a name"], limit=2), most=1000, seconds=10))[:2] == (2, False)
        # The whole list is in one order, live and ended together.
        page = await search(ledger.store, Search(), limit=1000, seconds=10)
        assert page.records == sorted(page.records, key=instant, reverse=True)
        assert (page.looked.complete, page.looked.back_to, page.place) == (True, None, None)
    finally:
        await ledger.close()


async def test_named_ones(store_url: str) -> None:
    ledger = await make(store_url)
    try:
        everything = await ledger.store.list(TaskFilter(limit=1000))
        ids = tuple(record.id for record in everything[::7])
        found = await walk(ledger.store, Search(ids=(*ids, 2**40)), 100, 1)
        assert [record.id for record in found] == list(ids)
        failed = Search(ids=ids, criteria=TaskFilter(states=(TaskState.FAILED,)))
        assert {record.id for record in await walk(ledger.store, failed, 100, 1)} == {
            record.id for record in everything if record.id in ids and record.state is TaskState.FAILED
        }
    finally:
        await ledger.close()


async def test_nothing_is_found_by_what_is_not_shown(store_url: str) -> None:
    ledger = await make(store_url)
    try:

        def shown(text: str) -> str:
            return text.replace("hunter2", "[redacted]").replace("abcdef0123456789", "[redacted]")

        for hidden in (Search(text="hunter2"), Search(errors=("hunter2",)), Search(tags=("token=abcdef0123456789",))):
            assert await walk(ledger.store, hidden, 100, 10)
            assert await walk(ledger.store, replace(hidden, shown=shown), 100, 10) == []
        assert await walk(ledger.store, Search(text="password was", shown=shown), 100, 10)
    finally:
        await ledger.close()


async def test_failures_are_put_together(store_url: str) -> None:
    ledger = await make(store_url)
    try:
        wanted = Search(criteria=TaskFilter(states=(TaskState.FAILED,)))
        found = await failing(ledger.store, wanted, most=1000, groups=100, seconds=10)
        failed = await ledger.store.list(TaskFilter(states=(TaskState.FAILED,), limit=1000))
        assert sum(failure.count for failure in found.failures) == len(failed)
        assert found.looked.complete
        pairs = {(record.error_class, record.error_message) for record in failed}
        assert {(failure.error_class, failure.message) for failure in found.failures} == {
            (error, (message or "").replace("3", "#").replace("'ada'", "'…'").replace("hunter2", "hunter#"))
            for error, message in pairs
        }
        assert found.failures[0].newest.id == failed[0].id
        for failure in found.failures:
            members = await walk(ledger.store, replace(wanted, failure=failure.key), 7, 10)
            assert len(members) == failure.count
            assert {member.error_class for member in members} == {failure.error_class}
        few = await failing(ledger.store, wanted, most=3, groups=100, seconds=10)
        assert not few.looked.complete
        assert few.looked.back_to is not None
    finally:
        await ledger.close()


@pytest.mark.parametrize("limit", [None, 3])
async def test_an_act_on_what_is_found(store_url: str, limit: int | None) -> None:
    ledger = await make(store_url)
    try:
        wanted = Search(criteria=TaskFilter(states=(TaskState.FAILED,)), errors=("TimeoutError",), limit=limit)
        before = {record.id for record in await walk(ledger.store, wanted, 100, 10)}
        seen: list[int] = []

        async def retry(page: Any, expected: Expected) -> list[str]:
            ids = [record.id for record in page]
            seen.extend(ids)
            again = await ledger.store.retry(ids, expected=expected)
            return ["retried" if id in again else "refused" for id in ids]

        answers = await answer_found(ledger.store, wanted, retry)
        assert len(before) > 3
        if limit is None:
            assert set(seen) == before
            assert answers == {"retried": len(before)}
            assert (await count(ledger.store, wanted, most=100, seconds=10))[:2] == (0, False)
        else:
            assert answers == {"retried": 3}
        assert len(seen) == len(set(seen))
        assert set(seen) <= before
    finally:
        await ledger.close()


async def test_what_comes_meanwhile_is_not_acted_on(store_url: str) -> None:
    ledger = await make(store_url)
    try:
        wanted = Search(criteria=TaskFilter(states=(TaskState.PENDING,), names=("new",)))
        await ledger.enqueue(task("new"))
        start = await ledger.store.now()
        await eventually(lambda: _later(ledger.store, start))
        made = 0

        async def add(page: Any, _: Expected) -> list[str]:
            nonlocal made
            made += 1
            await ledger.enqueue(task("new"))
            return ["seen" for _ in page]

        assert await answer_found(ledger.store, wanted, add) == {"seen": 1}
        assert made == 1
    finally:
        await ledger.close()


async def test_what_another_has_replayed_meanwhile_is_not_deleted(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page is acted on in batches, each a moment after it was looked at. Another replays one of the batch in hand and
    all of the rest: they are neither deleted nor, where they have completed by then, run a third time."""
    monkeypatch.setattr("headrace.client.searching.PAGE", 3)
    ledger = await make(store_url)
    try:
        wanted = Search(criteria=TaskFilter(dead_letter=True))
        letters = [record.id for record in await walk(ledger.store, wanted, 100, 10)]
        assert len(letters) > 6
        replayed: list[int] = []
        gone: set[int] = set()

        async def discard(page: Any, expected: Expected) -> list[str]:
            assert not replayed, "what was replayed before its turn is not acted on"
            ids = [record.id for record in page]
            if gone:  # the second look has found all the others at once
                replayed.extend([ids[0], *(id for id in letters if id not in ids and id not in gone)])
                assert set(await ledger.store.retry(replayed)) == set(replayed)
            answers = await ledger.store.delete(ids, expected=expected)
            gone.update(id for id, answer in answers.items() if answer == "deleted")
            return [answer.value for answer in answers.values()]

        assert await answer_found(ledger.store, wanted, discard) == {"deleted": 5, "changed_meanwhile": 1}
        left = await ledger.store.get(letters)
        assert sorted(left) == sorted(replayed)
        assert {record.state for record in left.values()} == {TaskState.PENDING}
    finally:
        await ledger.close()


async def _later(store: Store, than: Any) -> bool:
    return await store.now() > than
