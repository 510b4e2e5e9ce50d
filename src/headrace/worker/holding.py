"""What this worker holds: each claim from the moment it arrived until the ledger took its outcome."""

import asyncio
from enum import IntEnum

from headrace.core.task import ClaimedTask, Pool, Ref
from headrace.telemetry.tracing import Trace


class Stage(IntEnum):
    BUFFERED = 0
    RUNNING = 1
    SETTLING = 2  # its outcome is known and on its way to the ledger


class Held:
    """One claim. `since` is the monotonic instant at which the claim was *asked for*, so it is never too young."""

    __slots__ = (
        "abandoned",
        "cancelling",
        "claim",
        "entered",
        "landed",
        "place",
        "pool",
        "ref",
        "since",
        "stage",
        "start_written",
        "suspect",
        "task",
        "trace",
    )

    def __init__(self, claim: ClaimedTask, since: float) -> None:
        self.claim = claim
        self.ref = Ref._make(claim[:2])
        self.pool: Pool = claim.pool
        self.since = since
        self.stage = Stage.BUFFERED
        self.entered: float | None = None
        self.start_written = False
        self.cancelling = False
        self.abandoned = False  # the claim is no longer ours: whatever it does is not reported
        self.place: int | None = None  # where the slot table says that it waits
        self.task: asyncio.Task[None] | None = None
        self.suspect = claim.losses > 0  # its worker died once before it could be said whether it had started
        self.trace: Trace | None = None
        self.landed: asyncio.Event | None = None  # for a suspect: the ledger has its outcome


class Holding:
    """All claims in hand by fence. `changed` is called when it becomes empty or stops being so."""

    def __init__(self) -> None:
        # By plain pairs, which equal their Refs: a thousand are looked up at once.
        self._held: dict[tuple[int, int], Held] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, ref: Ref) -> bool:
        return ref in self._held

    def add(self, held: Held) -> None:
        self._held[held.ref] = held

    def get(self, ref: Ref) -> Held | None:
        return self._held.get(ref)

    def drop(self, ref: tuple[int, int]) -> Held | None:
        return self._held.pop(ref, None)

    def all(self) -> list[Held]:
        return list(self._held.values())

    def at(self, stage: Stage) -> list[Held]:
        return [held for held in self._held.values() if held.stage is stage]
