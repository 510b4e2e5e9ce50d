"""Subscriptions: kept by name. Whoever sends an event enqueues their tasks, within the database."""

from collections.abc import Mapping, Sequence

from headrace.core.subscription import NewSubscription, SubscriptionRecord
from headrace.store import subscriptions as rules
from headrace.store.postgres.connection import Connection, Database


class Subscribing:
    def __init__(self, database: Database, queries: Mapping[str, str]) -> None:
        self._database = database
        self._queries = queries

    async def declare_subscriptions(self, declared_by: str, subscriptions: Sequence[NewSubscription]) -> None:
        async def plan(connection: Connection) -> rules.Changes:
            names = [new.name for new in subscriptions]
            found = await connection.fetch(self._queries["subscriptions"], names, declared_by)
            return rules.declare(found, declared_by, subscriptions)

        async def write(connection: Connection) -> rules.Changes:
            await connection.execute(self._queries["lock_subscriptions"])
            changes = await plan(connection)
            for name, event, task in changes.put:
                await connection.execute(self._queries["put_subscription"], name, event, task, declared_by)
            if changes.removed:
                await connection.fetch(self._queries["remove_subscriptions"], changes.removed)
            return changes

        # Every process of an app declares at its start, and mostly what is there already: no need to lock for that.
        if await self._database.run(plan, repeatable=True, transaction=False):
            rules.tell(declared_by, await self._database.run(write, repeatable=True))

    async def subscriptions(self) -> list[SubscriptionRecord]:
        rows = await self._database.fetch(self._queries["subscriptions"], None, None, repeatable=True)
        return [rules.record(row, row["changed_at"]) for row in rows]

    async def remove_subscription(self, name: str) -> bool:
        return bool(await self._database.fetch(self._queries["remove_subscriptions"], [name]))
