"""`app.dead_letters`: what failed for good under a policy that keeps it. Look, run again, remove."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import Literal, TypedDict, Unpack

from headrace.client.bridge import sync_form
from headrace.client.engine import Engine
from headrace.client.selecting import COUNTED, Selection, Tally, act_on, closed_at, expected_of
from headrace.core.errors import ArgumentError
from headrace.core.states import TaskState
from headrace.core.task import TaskRecord
from headrace.store.base import Store

type Verb = Literal["replay", "discard"]
type Chosen = list[int] | Selection


class Criteria(TypedDict, total=False):
    """Which dead letters: an error is a dotted class or its last word, the instants are those of the failure."""

    queues: Iterable[str]
    names: Iterable[str]
    errors: Iterable[str]
    owner: str | None
    since: datetime | None
    until: datetime | None


def dead_letters(limit: int | None = None, **criteria: Unpack[Criteria]) -> Selection:
    if limit is not None and limit < 1:
        raise ArgumentError(f"limit is how many dead letters at most, from 1 on, not {limit!r}")
    return Selection(
        dead_letter=True,
        queues=tuple(criteria.get("queues", ())),
        names=tuple(criteria.get("names", ())),
        errors=tuple(criteria.get("errors", ())),
        owner=criteria.get("owner"),
        since=criteria.get("since"),
        until=criteria.get("until"),
        limit=limit,
    )


async def close_choice(store: Store, chosen: Chosen, *, most: int = COUNTED) -> tuple[int, Chosen]:
    """How many there are, counted up to `most`, and the choice without whatever fails from now on."""
    if isinstance(chosen, list):
        return sum(record.dead_letter for record in (await store.get(chosen)).values()), chosen
    closed = await chosen.up_to_now(store)
    return await closed.count(store, most=most), closed


async def act(
    store: Store, verb: Verb, chosen: Chosen, tally: Tally, advance: Callable[[int], object] = lambda _: None
) -> None:
    """Replay or discard, page by page; a page is one transaction. What somebody else replays meanwhile is theirs."""
    until = await closed_at(store, None if isinstance(chosen, list) else chosen.until)
    still_dead = expected_of((TaskState.FAILED,), dead_letter=True, until=until)

    async def replay(ids: Sequence[int]) -> Sequence[int]:
        return await store.retry(ids, expected=still_dead)

    write: Callable[[Sequence[int]], Awaitable[Sequence[int]]] = replay if verb == "replay" else store.purge
    if isinstance(chosen, list):
        dead = [id for id, record in (await store.get(chosen)).items() if record.dead_letter]
        tally.add(chosen, await write(dead))
    else:
        await act_on(store, chosen, write, tally, advance)


class DeadLetters:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def alist(
        self, *, limit: int = 100, before: tuple[datetime, int] | None = None, **criteria: Unpack[Criteria]
    ) -> list[TaskRecord]:
        """Dead letters, newest first. For the next page give `before` the (finished_at, id) of the last one seen."""
        selection = dead_letters(limit, **criteria)

        async def read(store: Store) -> list[TaskRecord]:
            return [record async for page in selection.pages(store, before=before) for record in page]

        return await self._engine.run(read)

    async def acount(self, *, most: int = COUNTED, **criteria: Unpack[Criteria]) -> int:
        """How many there are, up to one more than `most`."""
        selection = dead_letters(**criteria)
        return await self._engine.run(lambda store: selection.count(store, most=most))

    async def areplay(self, *ids: int, limit: int | None = None, **criteria: Unpack[Criteria]) -> Tally:
        """Run dead letters once more, with a fresh budget: these, or those that match, or all of them.

        What fails from now on is not taken. The answer says how many matched, how many were `changed`, and names the
        first that were not.
        """
        tally = await self._act("replay", ids, limit, criteria)
        await self._engine.readied()
        return tally

    async def adiscard(self, *ids: int, limit: int | None = None, **criteria: Unpack[Criteria]) -> Tally:
        """Remove dead letters for good, with their attempts and logs: these, or those that match, or all of them. As
        `replay`."""
        return await self._act("discard", ids, limit, criteria)

    async def _act(self, verb: Verb, ids: tuple[int, ...], limit: int | None, criteria: Criteria) -> Tally:
        if ids and (criteria or limit is not None):
            raise ArgumentError("ids, or a choice by what they are: not both")
        selection, tally = dead_letters(limit, **criteria), Tally()

        async def work(store: Store) -> None:
            await act(store, verb, [*dict.fromkeys(ids)] if ids else await selection.up_to_now(store), tally)

        await self._engine.run(work)
        return tally

    list = sync_form(alist)
    count = sync_form(acount)
    replay = sync_form(areplay)
    discard = sync_form(adiscard)
