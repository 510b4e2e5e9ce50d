"""The part of the seam that breakers share: one row per service, changed under conditions."""

from typing import Protocol

from headrace.core.breaker import BreakerChange, BreakerRecord

CHANGES_KEPT = 100  # of each breaker


class Circuits(Protocol):
    async def breakers(self) -> list[BreakerRecord]:
        """Every breaker that ever opened or was touched by hand, by service."""
        ...

    async def breaker_changes(self, service: str) -> list[BreakerChange]:
        """Its last CHANGES_KEPT changes, the newest first; each is kept by the statement that makes it."""
        ...

    async def open_breaker(
        self, service: str, *, by: str, timeout: float, calls: int = 0, failures: int = 0, forced: bool = False
    ) -> BreakerRecord:
        """Open it for `timeout` seconds by the store's clock; a new revision. One that is open stays as it is, unless
        `forced`: then it stays open until `reset_breaker`."""
        ...

    async def probe_breaker(self, service: str, *, by: str, revision: int, patience: float) -> bool:
        """Take the one probe of a breaker whose time is over: True for exactly one caller. A probe of which nothing was
        heard for `patience` seconds may be taken by another."""
        ...

    async def close_breaker(self, service: str, *, by: str, revision: int) -> bool:
        """The probe went well. False when the breaker has changed meanwhile."""
        ...

    async def reset_breaker(self, service: str, *, by: str) -> BreakerRecord:
        """Close it by hand, forced or not, and make it known even when nobody has seen it."""
        ...
