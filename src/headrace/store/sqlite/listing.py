"""Lists by filter: which index serves which question, and one order over live and done tasks.

The order is by the latest instant first: the end of a task that ended, the creation of one that has not.
"""

from typing import Any

import orjson

from headrace.core.states import TaskState
from headrace.core.task import TaskFilter
from headrace.store.instants import to_micros
from headrace.store.sqlite.connection import Transaction

_LATEST = 2**62


def list_ids(transaction: Transaction, criteria: TaskFilter) -> list[int]:
    """The ids of one page."""
    found: list[tuple[int, int]] = []
    parameters = _parameters(criteria)
    if criteria.dead_letter is not True and _wanted(criteria, terminal=False):
        query = "list_live" if criteria.job is None else "list_live_of_job"
        found += [(at, id) for id, at in transaction.rows(query, parameters)]
    if _wanted(criteria, terminal=True):
        found += [(at, id) for id, at in transaction.rows(_done_query(criteria), parameters)]
    found.sort(reverse=True)
    return [id for _, id in found[: criteria.limit]]


def _wanted(criteria: TaskFilter, *, terminal: bool) -> bool:
    return not criteria.states or any(TaskState(state).terminal is terminal for state in criteria.states)


def _done_query(criteria: TaskFilter) -> str:
    if criteria.job is not None:
        return "list_done_of_job"
    if criteria.dead_letter:
        return "list_dead_letters"
    if len(criteria.names) == 1:
        return "list_done_by_name"
    if len(criteria.queues) == 1:
        return "list_done_by_queue"
    if len(_done_states(criteria)) == 1:
        return "list_done_by_state"
    return "list_done"


def _done_states(criteria: TaskFilter) -> list[TaskState]:
    return [state for state in criteria.states if state.terminal]


def _parameters(criteria: TaskFilter) -> dict[str, Any]:
    before = criteria.before
    at = to_micros(before[0]) if before else None
    id = before[1] if before else None
    done = _done_states(criteria)
    return {
        "states": _json(criteria.states),
        "state": done[0].value if done else None,
        "queues": _json(criteria.queues),
        "queue": criteria.queues[0] if criteria.queues else None,
        "names": _json(criteria.names),
        "name": criteria.names[0] if criteria.names else None,
        "job": criteria.job,
        "worker": criteria.worker,
        "dead": criteria.dead_letter,
        "limit": criteria.limit,
        "at": at,
        "id": id,
        "before_at": _LATEST if at is None else at,
        "before_id": _LATEST if id is None else id,
    }


def _json(values: tuple[str, ...]) -> str | None:
    return orjson.dumps(values).decode() if values else None
