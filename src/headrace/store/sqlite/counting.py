"""Counts for people and services: over indexes, each up to a cap, so that none grows with the backlog."""

from collections import Counter

from headrace.core.lanes import Lane
from headrace.core.queue_settings import settings_from_json
from headrace.core.states import TERMINAL, TaskState
from headrace.core.task import QueueRecord
from headrace.store.base import COUNTED_AT_MOST
from headrace.store.sqlite.connection import Transaction

_DEPTHS = ("primary", "retry", "scheduled", "waiting", "claimed", "running")
_DAY = 86_400_000_000


def live_counts(transaction: Transaction) -> dict[str, int]:
    cap = (COUNTED_AT_MOST,)
    found: Counter[str] = Counter()
    for (n,) in transaction.rows("ready_count", cap):
        found[TaskState.PENDING] += n
    for _, n in transaction.rows("scheduled_counts", cap):
        found[TaskState.PENDING] += n
    for query in ("waiting_counts", "held_counts"):
        for _, state, n in transaction.rows(query, cap):
            found[state] += n
    return {str(state): min(n, COUNTED_AT_MOST) for state, n in found.items() if n}


def counts(transaction: Transaction) -> dict[str, int]:
    live = live_counts(transaction)
    outcomes: dict[str, int] = dict(transaction.rows("outcome_counts", (transaction.now - _DAY,)))
    return {key: live.get(key, 0) + outcomes.get(key, 0) for key in live | outcomes}


def ended_counts(transaction: Transaction, cap: int) -> dict[TaskState, int]:
    rows = {state: transaction.rows("ended_count", {"state": state.value, "cap": cap}) for state in TERMINAL}
    return {state: n for state, ((n,),) in rows.items() if n}


def queue_names(transaction: Transaction) -> list[str]:
    return [name for (name,) in transaction.rows("queue_names")]


def queues(transaction: Transaction) -> list[QueueRecord]:
    cap = (COUNTED_AT_MOST,)
    depths: dict[str, Counter[str]] = {}
    for name in queue_names(transaction):
        depths[name] = Counter()
        for lane, depth in ((Lane.PRIMARY, "primary"), (Lane.RETRY, "retry")):
            parameters = {"queue": name, "lane": int(lane), "cap": COUNTED_AT_MOST}
            for (n,) in transaction.rows("ready_depth", parameters):
                depths[name][depth] = n
    for queue, n in transaction.rows("scheduled_counts", cap):
        depths.setdefault(queue, Counter())["scheduled"] += n
    for queue, _, n in transaction.rows("waiting_counts", cap):
        depths.setdefault(queue, Counter())["waiting"] += n
    for queue, state, n in transaction.rows("held_counts", cap):
        depths.setdefault(queue, Counter())["claimed" if state == TaskState.CLAIMED else "running"] += n
    rows = transaction.rows("queue_rows")
    known = {name: (bool(paused), *settings_from_json(settings)) for name, paused, settings in rows}
    unknown = (False, None, None)
    return [
        QueueRecord(
            name=name, paused=paused, depths={depth: depths[name][depth] for depth in _DEPTHS}, limit=limit, rate=rate
        )
        for name, (paused, limit, rate) in ((name, known.get(name, unknown)) for name in sorted(depths))
    ]
