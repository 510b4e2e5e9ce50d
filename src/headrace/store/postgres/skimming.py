"""Narrow rows for whoever searches: which index a look goes by, and how far it came."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from headrace.core.states import HELD, TERMINAL, JobState, TaskState
from headrace.core.task import TaskFilter
from headrace.store.postgres.connection import Database, column
from headrace.store.skimming import NO_HINT, SKIMMED_MESSAGE, Hint, Skim, Skimmed, SkimmedJob
from headrace.store.texts import is_storable

_UNAPPROVED = frozenset({TaskState.PENDING_APPROVAL, TaskState.LOST})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Skimming:
    def __init__(self, database: Database, queries: Mapping[str, str]) -> None:
        self._database = database
        self._queries = queries

    async def skim_live(
        self, criteria: TaskFilter, *, below: int, window: int, limit: int, hint: Hint = NO_HINT
    ) -> Skim[int]:
        wanted = {state for state in criteria.states if not state.terminal}
        if not _possible(criteria) or criteria.dead_letter or (criteria.states and not wanted):
            return Skim([], 0, 0, True)
        states, queues, names = [state.value for state in wanted], [*criteria.queues], [*criteria.names]
        owner, worker, spared = criteria.owner, criteria.worker, (hint.tagged, hint.word)
        if criteria.job is not None:
            whose = (criteria.job, states, queues, names, owner, limit, worker)
            return await self._whole("skim_live_of_job", limit, below, *whose, *spared)
        if worker is not None or (wanted and wanted <= HELD):
            return await self._whole("skim_held", limit, below, worker, states, queues, names, owner, limit, *spared)
        if wanted and wanted <= _UNAPPROVED:
            return await self._whole("skim_unapproved", limit, below, states, queues, names, owner, limit, *spared)
        suffix, whose = ("", ()) if owner is None else ("_of_owner", (owner,))
        [(looked, floor)] = await self._fetch(f"live_window{suffix}", below, window, *whose)
        if not looked:
            return Skim([], 0, 0, True)
        asked = (below, floor, states, queues, names, *whose, limit, *spared)
        rows = await self._skim(f"skim_live{suffix}", *asked)
        if len(rows) < limit:
            return Skim(rows, looked, floor, looked < window)
        return Skim(rows, min(looked, below - rows[-1].id), rows[-1].id, False)

    async def skim_ended(
        self, criteria: TaskFilter, *, window: int, hint: Hint = NO_HINT
    ) -> Skim[tuple[datetime, int]]:
        start = criteria.before or (_EPOCH, 0)
        states = [state.value for state in criteria.states if state.terminal]
        if not _possible(criteria) or (criteria.states and not states):
            return Skim([], 0, start, True)
        ids = column(list(await self._places(criteria, states or [state.value for state in TERMINAL], window)))
        if not ids:
            return Skim([], 0, start, True)
        wanted = (SKIMMED_MESSAGE, criteria.worker, hint.tagged, hint.word)
        rows = await self._skim("skim_done", ids, ids[-1], *wanted)
        place = (rows[-1].at, rows[-1].id) if rows else start
        # One that was removed between the two looks: from where this one began, it is looked at again.
        return Skim(rows, len(ids), place, len(ids) < window)

    async def skim_jobs(
        self, *, below: int, window: int, name: str | None = None, owner: str | None = None
    ) -> list[SkimmedJob]:
        if not is_storable(name) or not is_storable(owner):
            return []
        suffix, whose = ("", ()) if owner is None else ("_of_owner", (owner,))
        if name is not None:
            suffix, whose = "_of_name", (name,)
        rows = await self._fetch(f"skim_jobs{suffix}", below, window, *whose)
        return [SkimmedJob(id, called, JobState(state), owner) for id, called, state, owner in rows]

    async def _places(self, criteria: TaskFilter, states: list[str], window: int) -> Sequence[Any]:
        at, id = criteria.before or (None, None)
        if criteria.job is not None:
            return await self._fetch("ended_places_of_job", criteria.job, states, at, id, window)
        if criteria.dead_letter:
            return await self._fetch("ended_places_of_dead_letters", at, id, window)
        if criteria.owner is not None:
            return await self._fetch("ended_places_of_owner", criteria.owner, at, id, window)
        return await self._fetch("ended_places", states, [*criteria.queues], [*criteria.names], at, id, window)

    async def _whole(self, query: str, limit: int, *arguments: Any) -> Skim[int]:
        """By an index that holds nothing else than what was asked for."""
        rows = await self._skim(query, *arguments)
        return Skim(rows, len(rows), rows[-1].id if rows else 0, len(rows) < limit)

    async def _skim(self, query: str, *arguments: Any) -> list[Skimmed]:
        return [_skimmed(row) for row in await self._fetch(query, *arguments)]

    async def _fetch(self, query: str, *arguments: Any) -> Sequence[Any]:
        return await self._database.fetch(self._queries[query], *arguments, repeatable=True)


def _possible(criteria: TaskFilter) -> bool:
    return is_storable(criteria.owner) and is_storable(criteria.worker)


def _skimmed(row: Any) -> Skimmed:
    id, at, name, queue, state, *rest = row
    return Skimmed(id, at, name, queue, TaskState(state), *rest)
