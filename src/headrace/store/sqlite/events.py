"""Events, and tasks that give their slot back until one comes or another task has ended."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import orjson

from headrace.core.errors import LeaseLost
from headrace.core.states import TaskState
from headrace.core.task import Received, Ref
from headrace.store.base import EventRecord, EventSkim, Program, Statement
from headrace.store.instants import from_micros, to_micros
from headrace.store.sqlite.connection import Part, Transaction
from headrace.store.sqlite.ending import ids_json
from headrace.store.sqlite.enqueueing import seconds_to_micros
from headrace.store.sqlite.subscriptions import publish, publish_program
from headrace.store.texts import is_storable

# Tasks that a send resumes itself; more of them are left to `deliver`.
_RESUMED_AT_ONCE = 1000
_EVENTS_AT_ONCE = 500  # by one transaction
_BATCHES_AT_ONCE = 20
_EVER = 2**62


def send_program(queries: Mapping[str, str], event: str, key: str, payload: str, now: int) -> Program[int]:
    answer = yield Statement(queries["take_ids"], (1,))
    id = int(answer[0][0]) - 1
    yield Statement(queries["insert_event"], (id, event, key, payload, now))
    yield from publish_program(queries, event, key, payload, now)
    return id


def send(transaction: Transaction, event: str, key: str, payload: str) -> int:
    row = transaction.row("take_ids", (1,))
    assert row is not None
    transaction.run("insert_event", (row[0] - 1, event, key, payload, transaction.now))
    publish(transaction, event, key, payload)
    waiting = transaction.rows("waiting_for_event", {"event": event, "key": key, "limit": _RESUMED_AT_ONCE})
    _resume(transaction, (task for (task,) in waiting))
    return row[0] - 1


def _resume(transaction: Transaction, ids: Iterable[int]) -> int:
    queues = transaction.rows("resume", {"ids": ids_json(ids), "now": transaction.now})
    transaction.wakes.update(queue for (queue,) in queues)
    return len(queues)


def receive(
    transaction: Transaction, worker: str, ref: Ref, step: str, *, event: str, key: str, timeout: float | None
) -> Received | None:
    fence = {"task": ref.id, "claim_no": ref.claim_no, "worker": worker}
    run = transaction.row("run_of_claim", fence)
    if run is None:
        raise LeaseLost(f"task {ref.id} is no longer in the hands of {worker}; its wait {step!r} is not looked at")
    stored = transaction.row("checkpoint_that_stands", {**fence, "name": step})
    if stored is not None:
        return _received(stored[0])
    expires_at = None if timeout is None else transaction.now + seconds_to_micros(timeout)
    [(expires_at,)] = transaction.rows(
        "note_wait", {"task": ref.id, "step": step, "event": event, "key": key, "expires_at": expires_at}
    )
    since, behind = run
    wanted = {"task": ref.id, "event": event, "key": key, "since": since, "behind": behind, "expires_at": expires_at}
    found = transaction.row("event_for_wait", wanted)
    if found is None and (expires_at is None or expires_at > transaction.now):
        return None
    taken, payload = found or (None, None)
    transaction.run("end_wait", {"task": ref.id, "step": step, "taken": taken})
    text = orjson.dumps({"payload": payload}).decode()
    transaction.run("save_checkpoint", {**fence, "name": step, "value": text, "now": transaction.now})
    return Received(payload=payload)


def _received(stored: str) -> Received:
    """The payload is text within the text: what an app encrypts is no JSON."""
    return Received(payload=orjson.loads(stored)["payload"])


def suspended(transaction: Transaction, task: int, awaits: str | int) -> tuple[TaskState, str | None]:
    """The state of a task that gives its slot back, and what it waits for; pending where that has come meanwhile."""
    if isinstance(awaits, int):
        return _await_task(transaction, task, awaits), None
    wait = transaction.row("state_of_wait", {"task": task, "step": awaits, "now": transaction.now})
    if wait is None or not wait[2]:
        return TaskState.PENDING, None
    return TaskState.BLOCKED, f"event:{wait[0]}/{wait[1]}"


def _await_task(transaction: Transaction, task: int, upstream: int) -> TaskState:
    if upstream == task:
        return TaskState.PENDING
    is_live = bool(transaction.rows("is_live", (upstream,)))
    if is_live or transaction.rows("ended_ids", (ids_json([upstream]),)):
        # Also to one that has ended: what it returned is kept for as long as somebody has an edge to it.
        transaction.run("add_edge", {"task": task, "upstream": upstream})
    transaction.run("mark_awaited" if is_live else "mark_ended_awaited", (upstream,))
    if not is_live:
        return TaskState.PENDING
    transaction.run("clear_lowered")
    transaction.run("note_counted", (ids_json([task]),))
    transaction.run("count_barriers")
    return TaskState.BLOCKED


def deliver(transaction: Transaction, limit: int) -> tuple[int, bool]:
    """How many it resumed, and whether there may be more events to go through."""
    resumed, more = _deliver_events(transaction, limit)
    if resumed < limit and not more:
        late = transaction.rows("waiting_too_long", {"now": transaction.now, "limit": limit - resumed})
        resumed += _resume(transaction, (task for (task,) in late))
        transaction.run("drop_waits_of_ended", {"now": transaction.now, "limit": limit})
    return resumed, more


def _deliver_events(transaction: Transaction, limit: int) -> tuple[int, bool]:
    """Of events that nobody has gone through yet: those that came with a user's own transaction, above all."""
    [(seen, *_)] = transaction.rows("delivery", {"now": transaction.now})
    [(last, looked_at)] = transaction.rows("last_of_events", {"seen": seen, "limit": _EVENTS_AT_ONCE})
    if last is None:
        return 0, False
    waiting = transaction.rows("waiting_for_events", {"seen": seen, "last": last, "limit": limit})
    resumed = _resume(transaction, (task for (task,) in waiting))
    if len(waiting) >= limit:
        return resumed, True
    transaction.run("move_delivery", (str(last),))
    return resumed, looked_at == _EVENTS_AT_ONCE


def _before(place: tuple[datetime, int] | None, limit: int) -> dict[str, Any]:
    at, id = (_EVER, 0) if place is None else (to_micros(place[0]), place[1])
    return {"at": at, "id": id, "limit": limit}


def _event(row: tuple[Any, ...]) -> EventRecord:
    id, name, key, payload, at = row
    return EventRecord(id=id, name=name, key=key, payload=payload, created_at=from_micros(at))


class Happening(Part):
    async def events(
        self,
        *,
        event: str | None = None,
        key: str | None = None,
        before: tuple[datetime, int] | None = None,
        limit: int = 100,
    ) -> list[EventRecord]:
        if not is_storable(event) or not is_storable(key):
            return []
        query, parameters = "events", _before(before, limit)
        if event is not None:
            query, parameters = "events_of_key", {**parameters, "event": event, "key": key}
        rows = await self.database.read(lambda transaction: transaction.rows(query, parameters))
        return [_event(row) for row in rows]

    async def skim_events(
        self, event: str, *, before: tuple[datetime, int] | None = None, window: int = 1000
    ) -> EventSkim:
        if not is_storable(event):
            return EventSkim([], None)
        parameters = {**_before(before, window), "event": event}
        rows = await self.database.read(lambda transaction: transaction.rows("skim_events", parameters))
        last = rows[-1] if len(rows) == window else None
        place = None if last is None else (from_micros(last[4]), last[0])
        return EventSkim([_event(row) for row in rows if row[1] == event], place)

    async def send(self, event: str, key: str, payload: str) -> int:
        return await self.database.write(lambda transaction: send(transaction, event, key, payload))

    def send_program(self, event: str, key: str, payload: str) -> Program[int]:
        return send_program(self.database.queries, event, key, payload, self.database.now())

    async def receive(
        self, worker: str, ref: Ref, step: str, *, event: str, key: str, timeout: float | None
    ) -> Received | None:
        return await self.database.write(
            lambda transaction: receive(transaction, worker, ref, step, event=event, key=key, timeout=timeout)
        )

    async def deliver(self, *, limit: int = 500) -> int:
        # Mostly there is nothing: whoever only looks takes no lock.
        [(_, *anything)] = await self.database.read(
            lambda transaction: transaction.rows("delivery", {"now": transaction.now})
        )
        if not any(anything):
            return 0
        resumed = 0
        # Mostly nobody waits for them: what comes behind many events of others is not left for later.
        for _ in range(_BATCHES_AT_ONCE):
            most = limit - resumed
            n, more = await self.database.write(lambda transaction, most=most: deliver(transaction, most))
            resumed += n
            if not more or resumed >= limit:
                break
        return resumed
