"""Subscriptions: kept by name, looked up by event, and served in the transaction that sends it."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from headrace.core.states import TaskState
from headrace.core.subscription import NewSubscription, SubscriptionRecord
from headrace.core.task import Enqueued
from headrace.store import subscriptions as rules
from headrace.store.base import Program, Statement
from headrace.store.instants import from_micros
from headrace.store.sqlite.connection import Part, Row, Transaction
from headrace.store.sqlite.ending import Ending, ids_json
from headrace.store.sqlite.enqueueing import enqueue_anyway, enqueue_program


def publish(transaction: Transaction, event: str, key: str, payload: str) -> None:
    """Enqueue the tasks that subscribe to an event: one look into an index where none does."""
    if found := transaction.rows("subscriptions_of", (event,)):
        enqueue_anyway(transaction, [rules.subscribed_task(template, event, key, payload) for (template,) in found])


def publish_program(
    queries: Mapping[str, str], event: str, key: str, payload: str, now: int
) -> Program[list[Enqueued]]:
    """The same in a transaction of the user's."""
    found = yield Statement(queries["subscriptions_of"], (event,))
    tasks = [rules.subscribed_task(template, event, key, payload) for (template,) in found]
    return (yield from enqueue_program(queries, tasks, now=now, own=False))


def publish_failures(transaction: Transaction, endings: Sequence[Ending]) -> None:
    """Of tasks that are in history by now. Not of what such an event enqueued: it would go on for ever."""
    failed = [ending.row.id for ending in endings if ending.state is TaskState.FAILED]
    if not failed or not transaction.rows("failure_subscriptions", (rules.FAILED, rules.DEAD_LETTER)):
        return
    for id, name, queue, error_class, error_message, is_dead_letter in transaction.rows(
        "failures_to_tell", (ids_json(failed),)
    ):
        error = {"class": error_class, "message": error_message}
        payload = orjson.dumps({"error": error, "name": name, "queue": queue, "task": id}).decode()
        publish(transaction, rules.FAILED, str(id), payload)
        if is_dead_letter:
            publish(transaction, rules.DEAD_LETTER, str(id), payload)


def _rows(found: Sequence[Row]) -> list[dict[str, Any]]:
    return [dict(zip(rules.COLUMNS, row, strict=True)) for row in found]


def _planned(transaction: Transaction, declared_by: str, subscriptions: Sequence[NewSubscription]) -> rules.Changes:
    names = orjson.dumps([new.name for new in subscriptions]).decode()
    found = _rows(transaction.rows("subscriptions_declared", {"names": names, "declared_by": declared_by}))
    return rules.declare(found, declared_by, subscriptions)


def _declare(transaction: Transaction, declared_by: str, subscriptions: Sequence[NewSubscription]) -> rules.Changes:
    changes = _planned(transaction, declared_by, subscriptions)
    transaction.run_many(
        "put_subscription",
        [
            {"name": name, "event": event, "task": task, "declared_by": declared_by, "now": transaction.now}
            for name, event, task in changes.put
        ],
    )
    if changes.removed:
        transaction.run("remove_subscriptions", (orjson.dumps(changes.removed).decode(),))
    return changes


class Subscribing(Part):
    async def declare_subscriptions(self, declared_by: str, subscriptions: Sequence[NewSubscription]) -> None:
        # Every process of an app declares at its start, and mostly what is there already: no need to write for that.
        if await self.database.read(lambda transaction: _planned(transaction, declared_by, subscriptions)):
            changes = await self.database.write(lambda transaction: _declare(transaction, declared_by, subscriptions))
            rules.tell(declared_by, changes)

    async def subscriptions(self) -> list[SubscriptionRecord]:
        found = await self.database.read(lambda transaction: transaction.rows("all_subscriptions"))
        return [rules.record(row, from_micros(row["changed_at"])) for row in _rows(found)]

    async def remove_subscription(self, name: str) -> bool:
        names = orjson.dumps([name]).decode()
        return bool(await self.database.write(lambda transaction: transaction.run("remove_subscriptions", (names,))))
