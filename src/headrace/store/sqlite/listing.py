"""Lists by filter: which index serves which question, and one order over live and done tasks.

The order is by the latest instant first: the end of a task that ended, the creation of one that has not.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from headrace.core.states import TERMINAL, TaskState
from headrace.core.task import TaskFilter
from headrace.store.instants import to_micros
from headrace.store.sqlite.connection import Row, Transaction
from headrace.store.texts import is_storable

_LATEST = 2**62


def list_ids(transaction: Transaction, criteria: TaskFilter) -> list[int]:
    """The ids of one page."""
    return [id for _, id in list_places(transaction, criteria)]


def list_places(transaction: Transaction, criteria: TaskFilter) -> list[tuple[int, int]]:
    """The instants and ids of one page."""
    if not is_storable(criteria.owner):
        return []
    found: list[tuple[int, int]] = []
    parameters = parameters_of(criteria)
    if criteria.dead_letter is not True and _wanted(criteria, terminal=False):
        query = "list_live" if criteria.owner is None else "list_live_of_owner"
        query = query if criteria.job is None else "list_live_of_job"
        found += [(at, id) for id, at in transaction.rows(query, parameters)]
    found.sort(reverse=True)
    if _wanted(criteria, terminal=True):
        for query, place in _done_probes(transaction, criteria):
            rows = transaction.rows(query, {**parameters, **place, "since": _since(found, criteria.limit)})
            found = sorted(found + [(at, id) for id, at in rows], reverse=True)[: criteria.limit]
    return found


def _since(found: list[tuple[int, int]], limit: int) -> int:
    """When there are enough, what ended before the last of them is not on the page."""
    return found[-1][0] if found and len(found) >= limit else -_LATEST


def _wanted(criteria: TaskFilter, *, terminal: bool) -> bool:
    return not criteria.states or any(TaskState(state).terminal is terminal for state in criteria.states)


def _done_probes(transaction: Transaction, criteria: TaskFilter) -> Iterator[tuple[str, dict[str, str]]]:
    """The queries that together have the page, each of which stops at the limit: one per state, or per queue, name and
    state. Queues and names that were not asked for by name are those that there are."""
    states = sorted({state.value for state in criteria.states or TERMINAL if state.terminal})
    if criteria.job is not None:
        yield "list_done_of_job", {}
    elif criteria.dead_letter:
        yield "list_dead_letters", {}
    elif criteria.owner is not None:
        yield "list_done_of_owner", {}
    elif not criteria.queues and not criteria.names:
        for state in states:
            yield "list_done_by_state", {"state": state}
    else:
        for queue in set(criteria.queues) or _column(transaction.rows("done_queues")):
            for name in set(criteria.names) or _column(transaction.rows("done_names", {"queue": queue})):
                for state in states:
                    yield "list_done_by_name", {"queue": queue, "name": name, "state": state}


def _column(rows: Sequence[Row]) -> list[str]:
    return [value for (value,) in rows]


def parameters_of(criteria: TaskFilter) -> dict[str, Any]:
    before = criteria.before
    at = to_micros(before[0]) if before else None
    id = before[1] if before else None
    return {
        "states": _json(criteria.states),
        "queues": _json(criteria.queues),
        "names": _json(criteria.names),
        "job": criteria.job,
        "worker": criteria.worker,
        "owner": criteria.owner,
        "dead": criteria.dead_letter,
        "limit": criteria.limit,
        "at": at,
        "id": id,
        "before_at": _LATEST if at is None else at,
        "before_id": _LATEST if id is None else id,
    }


def _json(values: tuple[str, ...]) -> str | None:
    return orjson.dumps(values).decode() if values else None
