"""Breakers that processes share: one row a service, each verb one conditional statement under the write lock."""

from typing import Any

from headrace.core.breaker import BreakerChange, BreakerRecord, BreakerStatus
from headrace.store.circuits import CHANGES_KEPT
from headrace.store.instants import from_micros
from headrace.store.sqlite.connection import Part, Row, Transaction
from headrace.store.sqlite.enqueueing import seconds_to_micros
from headrace.store.texts import is_storable


def _record(row: Row) -> BreakerRecord:
    service, status, forced, until, probe_by, calls, failures, revision, changed_at, changed_by = row
    return BreakerRecord(
        service=service,
        status=BreakerStatus(status),
        forced=bool(forced),
        until=None if until is None else from_micros(until),
        probe_by=probe_by,
        calls=calls,
        failures=failures,
        revision=revision,
        changed_at=from_micros(changed_at),
        changed_by=changed_by,
    )


def breakers(transaction: Transaction, service: str | None = None) -> list[BreakerRecord]:
    rows = transaction.rows("breakers", {"service": service, "now": transaction.now})
    return [_record(row) for row in rows]


def _change(row: Row) -> BreakerChange:
    revision, status, forced, until, calls, failures, changed_at, changed_by = row
    return BreakerChange(
        revision=revision,
        status=BreakerStatus(status),
        forced=bool(forced),
        until=None if until is None else from_micros(until),
        calls=calls,
        failures=failures,
        changed_at=from_micros(changed_at),
        changed_by=changed_by,
    )


def _make(transaction: Transaction, change: str, parameters: dict[str, Any]) -> bool:
    """Whether the statement changed the breaker; what it is then is kept, and the oldest that was kept goes."""
    if transaction.run(change, parameters) != 1:
        return False
    service = parameters["service"]
    transaction.run("keep_breaker_change", {"service": service})
    transaction.run("drop_breaker_changes", {"service": service, "kept": CHANGES_KEPT})
    return True


class Breaking(Part):
    async def breakers(self) -> list[BreakerRecord]:
        return await self.database.read(breakers)

    async def breaker_changes(self, service: str) -> list[BreakerChange]:
        if not is_storable(service):
            return []
        parameters = {"service": service, "limit": CHANGES_KEPT}
        rows = await self.database.read(lambda transaction: transaction.rows("breaker_changes", parameters))
        return [_change(row) for row in rows]

    async def open_breaker(
        self, service: str, *, by: str, timeout: float, calls: int = 0, failures: int = 0, forced: bool = False
    ) -> BreakerRecord:
        def write(transaction: Transaction) -> BreakerRecord:
            parameters = {
                "service": service,
                "by": by,
                "now": transaction.now,
                "until": transaction.now + seconds_to_micros(timeout),
                "calls": calls,
                "failures": failures,
                "forced": int(forced),
            }
            _make(transaction, "open_breaker", parameters)
            [record] = breakers(transaction, service)
            return record

        return await self.database.write(write)

    async def probe_breaker(self, service: str, *, by: str, revision: int, patience: float) -> bool:
        def write(transaction: Transaction) -> bool:
            parameters = {
                "service": service,
                "by": by,
                "revision": revision,
                "patience": seconds_to_micros(patience),
                "now": transaction.now,
            }
            return transaction.run("probe_breaker", parameters) == 1

        return await self.database.write(write)

    async def close_breaker(self, service: str, *, by: str, revision: int) -> bool:
        def write(transaction: Transaction) -> bool:
            parameters = {"service": service, "by": by, "revision": revision, "now": transaction.now}
            return _make(transaction, "close_breaker", parameters)

        return await self.database.write(write)

    async def reset_breaker(self, service: str, *, by: str) -> BreakerRecord:
        def write(transaction: Transaction) -> BreakerRecord:
            _make(transaction, "reset_breaker", {"service": service, "by": by, "now": transaction.now})
            [record] = breakers(transaction, service)
            return record

        return await self.database.write(write)
