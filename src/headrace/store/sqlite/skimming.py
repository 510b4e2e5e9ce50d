"""Narrow rows for whoever searches: which index a look goes by, and how far it came."""

import dataclasses
from datetime import datetime
from typing import Any

from headrace.core.states import HELD, TERMINAL, JobState, TaskState
from headrace.core.task import TaskFilter
from headrace.store.instants import from_micros
from headrace.store.skimming import NO_HINT, SKIMMED_MESSAGE, Hint, Skim, Skimmed, SkimmedJob
from headrace.store.sqlite.connection import Part, Row, Transaction
from headrace.store.sqlite.ending import ids_json
from headrace.store.sqlite.listing import list_places, parameters_of
from headrace.store.texts import is_storable

_UNAPPROVED = frozenset({TaskState.PENDING_APPROVAL, TaskState.LOST})


class Skimming(Part):
    async def skim_live(
        self, criteria: TaskFilter, *, below: int, window: int, limit: int, hint: Hint = NO_HINT
    ) -> Skim[int]:
        return await self.database.read(lambda transaction: _live(transaction, criteria, below, window, limit, hint))

    async def skim_ended(
        self, criteria: TaskFilter, *, window: int, hint: Hint = NO_HINT
    ) -> Skim[tuple[datetime, int]]:
        return await self.database.read(lambda transaction: _ended(transaction, criteria, window, hint))

    async def skim_jobs(
        self, *, below: int, window: int, name: str | None = None, owner: str | None = None
    ) -> list[SkimmedJob]:
        if not is_storable(name) or not is_storable(owner):
            return []
        query = "skim_jobs_of_name" if name is not None else "skim_jobs" if owner is None else "skim_jobs_of_owner"
        parameters = {"below": below, "window": window, "name": name, "owner": owner}
        rows = await self.database.read(lambda transaction: transaction.rows(query, parameters))
        return [SkimmedJob(id, called, JobState(state), whose) for id, called, state, whose in rows]


def _live(transaction: Transaction, criteria: TaskFilter, below: int, window: int, limit: int, hint: Hint) -> Skim[int]:
    wanted = {state for state in criteria.states if not state.terminal}
    if not _possible(criteria) or criteria.dead_letter or (criteria.states and not wanted):
        return Skim([], 0, 0, True)
    parameters = {**parameters_of(criteria), **_hints(hint), "below": below, "limit": limit}
    if criteria.job is not None:
        return _whole(transaction, "skim_live_of_job", parameters, limit)
    if criteria.worker is not None or (wanted and wanted <= HELD):
        return _whole(transaction, "skim_held", parameters, limit)
    if wanted and wanted <= _UNAPPROVED:
        return _whole(transaction, "skim_unapproved", parameters, limit)
    whose = "" if criteria.owner is None else "_of_owner"
    sizes = {"below": below, "window": window, **({} if criteria.owner is None else {"owner": criteria.owner})}
    [(looked, floor)] = transaction.rows(f"live_window{whose}", sizes)
    if not looked:
        return Skim([], 0, 0, True)
    rows = [_skimmed(row) for row in transaction.rows(f"skim_live{whose}", {**parameters, "floor": floor})]
    if len(rows) < limit:
        return Skim(rows, looked, floor, looked < window)
    return Skim(rows, min(looked, below - rows[-1].id), rows[-1].id, False)


def _whole(transaction: Transaction, query: str, parameters: dict[str, Any], limit: int) -> Skim[int]:
    """By an index that holds nothing else than what was asked for."""
    rows = [_skimmed(row) for row in transaction.rows(query, parameters)]
    return Skim(rows, len(rows), rows[-1].id if rows else 0, len(rows) < limit)


def _ended(transaction: Transaction, criteria: TaskFilter, window: int, hint: Hint) -> Skim[tuple[datetime, int]]:
    start = criteria.before or (from_micros(0), 0)
    states = tuple(state for state in criteria.states if state.terminal)
    if not _possible(criteria) or (criteria.states and not states):
        return Skim([], 0, start, True)
    places = list_places(transaction, _served(criteria, states or tuple(TERMINAL), window))
    if not places:
        return Skim([], 0, start, True)
    ids = ids_json([id for _, id in places])
    parameters = {**_hints(hint), "ids": ids, "worker": criteria.worker, "characters": SKIMMED_MESSAGE}
    rows = [_skimmed(row) for row in transaction.rows("skim_done", parameters)]
    rows.sort(key=lambda row: (row.at, row.id), reverse=True)
    at, id = places[-1]
    return Skim(rows, len(places), (from_micros(at), id), len(places) < window)


def _hints(hint: Hint) -> dict[str, Any]:
    return {"word": hint.word, "tagged": hint.tagged or None}


def _served(criteria: TaskFilter, states: tuple[TaskState, ...], window: int) -> TaskFilter:
    """What the index knows that serves most of it."""
    if criteria.job is not None:
        return dataclasses.replace(criteria, states=states, limit=window)
    asked = TaskFilter(states=tuple(TERMINAL), limit=window, before=criteria.before)
    if criteria.dead_letter:
        return dataclasses.replace(asked, dead_letter=True)
    if criteria.owner is not None:
        return dataclasses.replace(asked, owner=criteria.owner)
    return dataclasses.replace(asked, states=states, queues=criteria.queues, names=criteria.names)


def _possible(criteria: TaskFilter) -> bool:
    return is_storable(criteria.owner) and is_storable(criteria.worker)


def _skimmed(row: Row) -> Skimmed:
    id, at, name, queue, state, dead, *rest = row
    return Skimmed(id, from_micros(at), name, queue, TaskState(state), bool(dead), *rest)
