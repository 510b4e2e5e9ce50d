"""Events: kept, and taken by whoever waits for them."""

from collections.abc import Mapping
from datetime import UTC, datetime

import orjson

from headrace.core.errors import LeaseLost
from headrace.core.task import Received, Ref
from headrace.store.base import EventRecord, EventSkim, Program, Statement
from headrace.store.postgres.connection import Database
from headrace.store.postgres.enqueueing import Enqueueing
from headrace.store.texts import is_storable

_EVER = datetime.max.replace(tzinfo=UTC)


class Events:
    def __init__(self, database: Database, queries: Mapping[str, str], enqueueing: Enqueueing) -> None:
        self._database = database
        self._queries = queries
        self._enqueueing = enqueueing
        self._delivered = 0  # the task up to which the last look at all waits came

    async def send(self, event: str, key: str, payload: str) -> int:
        # The id is known before: a repeat after a lost COMMIT is the same event.
        [number] = await self._enqueueing.take_ids(1)
        await self._database.fetch(self._queries["send"], number, event, key, payload, repeatable=True)
        return number

    def send_program(self, event: str, key: str, payload: str) -> Program[int]:
        [row] = yield Statement(self._queries["send_in_transaction"], (event, key, payload))
        yield Statement(self._queries["publish"], (event, key, payload))
        return row[0]

    async def receive(
        self, worker: str, ref: Ref, step: str, *, event: str, key: str, timeout: float | None
    ) -> Received | None:
        [(fate, value)] = await self._database.fetch(
            self._queries["receive"], worker, ref.id, ref.claim_no, step, event, key, timeout, repeatable=True
        )
        match fate:
            case "lost":
                raise LeaseLost(
                    f"task {ref.id} is no longer in the hands of {worker}; its wait {step!r} is not looked at"
                )
            case "told":
                return Received(payload=orjson.loads(value)["payload"])
            case _:
                return None

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
        place = before or (_EVER, 0)
        query, whose = ("events", ()) if event is None else ("events_of_key", (event, key))
        rows = await self._database.fetch(self._queries[query], *place, limit, *whose, repeatable=True)
        return [EventRecord(**row) for row in rows]

    async def skim_events(
        self, event: str, *, before: tuple[datetime, int] | None = None, window: int = 1000
    ) -> EventSkim:
        if not is_storable(event):
            return EventSkim([], None)
        place = before or (_EVER, 0)
        rows = await self._database.fetch(self._queries["skim_events"], *place, window, event, repeatable=True)
        behind = (rows[-1]["created_at"], rows[-1]["id"]) if len(rows) == window else None
        return EventSkim([EventRecord(**row) for row in rows if row["name"] == event], behind)

    async def deliver(self, *, limit: int = 500) -> int:
        [(resumed, reached)] = await self._database.fetch(self._queries["deliver"], limit, self._delivered)
        # The next look goes on where this one stops, unless there is more of the same to do.
        self._delivered = reached if resumed < limit else self._delivered
        return resumed
