"""Breakers that processes share: one row a service, each verb one conditional statement."""

from collections.abc import Mapping
from typing import Any

from headrace.core.breaker import BreakerChange, BreakerRecord, BreakerStatus
from headrace.store.circuits import CHANGES_KEPT
from headrace.store.postgres.connection import Database
from headrace.store.texts import is_storable


def _record(row: Any) -> BreakerRecord:
    values = dict(row)
    status = BreakerStatus(values.pop("status"))
    return BreakerRecord(status=status, **values)


def _change(row: Any) -> BreakerChange:
    values = dict(row)
    status = BreakerStatus(values.pop("status"))
    return BreakerChange(status=status, **values)


class Circuits:
    def __init__(self, database: Database, queries: Mapping[str, str]) -> None:
        self._database = database
        self._queries = queries

    async def breakers(self) -> list[BreakerRecord]:
        return [_record(row) for row in await self._database.fetch(self._queries["breakers"], None, repeatable=True)]

    async def breaker_changes(self, service: str) -> list[BreakerChange]:
        if not is_storable(service):
            return []
        rows = await self._database.fetch(self._queries["breaker_changes"], service, CHANGES_KEPT, repeatable=True)
        return [_change(row) for row in rows]

    async def open_breaker(
        self, service: str, *, by: str, timeout: float, calls: int = 0, failures: int = 0, forced: bool = False
    ) -> BreakerRecord:
        # A repeat finds it open, and leaves it.
        arguments = (service, by, timeout, calls, failures, forced, CHANGES_KEPT)
        await self._database.fetch(self._queries["open_breaker"], *arguments, repeatable=True)
        return await self._one(service)

    async def probe_breaker(self, service: str, *, by: str, revision: int, patience: float) -> bool:
        query = self._queries["probe_breaker"]
        return bool(await self._database.fetch(query, service, by, revision, patience, repeatable=True))

    async def close_breaker(self, service: str, *, by: str, revision: int) -> bool:
        # Not repeated: a second try would find what the first has written, and take it for another's.
        return bool(await self._database.fetch(self._queries["close_breaker"], service, by, revision, CHANGES_KEPT))

    async def reset_breaker(self, service: str, *, by: str) -> BreakerRecord:
        await self._database.fetch(self._queries["reset_breaker"], service, by, CHANGES_KEPT, repeatable=True)
        return await self._one(service)

    async def _one(self, service: str) -> BreakerRecord:
        """As it is now: rows are never taken away."""
        [row] = await self._database.fetch(self._queries["breakers"], service, repeatable=True)
        return _record(row)
