"""Narrow rows for whoever searches: which index a look goes by, and how far it came."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from headrace.core.states import HELD, TERMINAL, TaskState
from headrace.core.task import TaskFilter
from headrace.store.postgres.connection import Database
from headrace.store.skimming import SKIMMED_MESSAGE, Skim, Skimmed
from headrace.store.texts import is_storable

_UNAPPROVED = frozenset({TaskState.PENDING_APPROVAL, TaskState.LOST})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Skimming:
    def __init__(self, database: Database, queries: Mapping[str, str]) -> None:
        self._database = database
        self._queries = queries

    async def skim_live(self, criteria: TaskFilter, *, below: int, window: int, limit: int) -> Skim[int]:
        wanted = {state for state in criteria.states if not state.terminal}
        if not _possible(criteria) or criteria.dead_letter or (criteria.states and not wanted):
            return Skim([], 0, 0, True)
        states, queues, names = [state.value for state in wanted], [*criteria.queues], [*criteria.names]
        owner, worker = criteria.owner, criteria.worker
        if criteria.job is not None:
            job = criteria.job
            return await self._whole("skim_live_of_job", limit, below, job, states, queues, names, owner, limit, worker)
        if worker is not None or (wanted and wanted <= HELD):
            return await self._whole("skim_held", limit, below, worker, states, queues, names, owner, limit)
        if wanted and wanted <= _UNAPPROVED:
            return await self._whole("skim_unapproved", limit, below, states, queues, names, owner, limit)
        if owner is None:
            [(looked, floor)] = await self._fetch("live_window", below, window)
        else:
            [(looked, floor)] = await self._fetch("live_window_of_owner", below, window, owner)
        if not looked:
            return Skim([], 0, 0, True)
        rows = await self._skim("skim_live", below, floor, states, queues, names, owner, limit)
        if len(rows) < limit:
            return Skim(rows, looked, floor, looked < window)
        return Skim(rows, min(looked, below - rows[-1].id), rows[-1].id, False)

    async def skim_ended(self, criteria: TaskFilter, *, window: int) -> Skim[tuple[datetime, int]]:
        start = criteria.before or (_EPOCH, 0)
        states = [state.value for state in criteria.states if state.terminal]
        if not _possible(criteria) or (criteria.states and not states):
            return Skim([], 0, start, True)
        states = states or [state.value for state in TERMINAL]
        at, id = criteria.before or (None, None)
        if criteria.job is not None:
            rows = await self._skim("skim_done_of_job", criteria.job, states, at, id, window, SKIMMED_MESSAGE)
        elif criteria.dead_letter:
            rows = await self._skim("skim_dead_letters", at, id, window, SKIMMED_MESSAGE)
        elif criteria.owner is not None:
            rows = await self._skim("skim_done_of_owner", criteria.owner, at, id, window, SKIMMED_MESSAGE)
        else:
            queues, names = [*criteria.queues], [*criteria.names]
            rows = await self._skim("skim_done", states, queues, names, at, id, window, SKIMMED_MESSAGE)
        return Skim(rows, len(rows), (rows[-1].at, rows[-1].id) if rows else start, len(rows) < window)

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
