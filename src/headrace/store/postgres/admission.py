"""Admission: gated claims pass their limits, rates and order keys, or are parked.

All decisions are made under the row locks of the gates involved, so no slot or token is given twice and no parked task
is forgotten: whoever frees a slot takes the same lock and sees who waits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headrace.core.limits import Gate, gates_from_json, gates_to_json, take
from headrace.core.queue_settings import gates_now
from headrace.core.task import ClaimedTask, Ref
from headrace.store.base import Admission
from headrace.store.postgres.claims import HandedClaims
from headrace.store.postgres.connection import Connection, Database, Rows


class Admitting:
    def __init__(self, database: Database, queries: Mapping[str, str], claims: HandedClaims) -> None:
        self._database = database
        self._queries = queries
        self._claims = claims

    async def admit(self, worker: str, claims: Sequence[ClaimedTask]) -> Admission:
        ungated = frozenset(Ref(claim.id, claim.claim_no) for claim in claims if not claim.gated)
        gated = [claim for claim in claims if claim.gated]
        if not gated:
            return Admission(admitted=ungated)

        async def write(connection: Connection) -> Admission:
            return await self._admit(connection, worker, gated)

        answer = await self._database.run(write, repeatable=True)
        self._claims.forget(worker, answer.parked)
        return Admission(admitted=answer.admitted | ungated, parked=answer.parked)

    async def _admit(self, connection: Connection, worker: str, claims: Sequence[ClaimedTask]) -> Admission:
        rows = await connection.fetch(self._queries["gated_claims"], worker, [claim.id for claim in claims])
        stored: dict[Ref, str | None] = {Ref(row["id"], row["claim_no"]): row["gates"] for row in rows}
        held = {ref: claim.queue for claim in claims if (ref := Ref(claim.id, claim.claim_no)) in stored}
        gates = await self._present_gates(connection, held, stored)
        free = frozenset(ref for ref in held if not gates[ref])  # what was set for its queue is lifted
        refs = [ref for ref in held if gates[ref]]
        if not refs:
            return Admission(admitted=free)
        keys = sorted({gate_key(gate) for ref in refs for gate in gates[ref]})
        orders = sorted({gate.key for ref in refs for gate in gates[ref] if gate.kind == "order"})
        locked: Rows = []
        while len(locked) < len(keys):  # `prune` may take one away between the two
            await connection.execute(self._queries["make_gates"], keys)
            locked = await connection.fetch(self._queries["lock_gates"], keys)
        room = Room.read(
            locked,
            await connection.fetch(self._queries["slots"], keys),
            await connection.fetch(self._queries["heads"], orders) if orders else [],
        )
        for ref in refs:
            room.pass_or_park(ref, gates[ref])
        await self._write(connection, room, gates)
        return Admission(admitted=free.union(room.admitted), parked=frozenset(room.parked))

    async def _present_gates(
        self, connection: Connection, queues: Mapping[Ref, str], stored: Mapping[Ref, str | None]
    ) -> dict[Ref, tuple[Gate, ...]]:
        """With what is set for the queues today; written to the tasks, whose end frees what their rows name."""
        rows = await connection.fetch(self._queries["queue_settings"], sorted(set(queues.values())))
        settings: dict[str, str] = {row["name"]: row["settings"] for row in rows}
        gates = {ref: gates_now(queue, stored[ref], settings.get(queue)) for ref, queue in queues.items()}
        changed = {ref: gates_to_json(gates[ref]) for ref in queues if gates[ref] != gates_from_json(stored[ref])}
        if changed:
            await connection.execute(self._queries["set_gates"], [ref.id for ref in changed], list(changed.values()))
        return gates

    async def _write(self, connection: Connection, room: "Room", gates: Mapping[Ref, Sequence[Gate]]) -> None:
        if room.taken:
            keys, slots, refs = zip(*room.taken, strict=True)
            await connection.execute(
                self._queries["take_slots"], keys, slots, [ref.id for ref in refs], [ref.claim_no for ref in refs]
            )
        if room.spent:
            await connection.execute(
                self._queries["write_tokens"],
                list(room.spent),
                [room.buckets[key].tokens for key in room.spent],
                [room.buckets[key].updated_at for key in room.spent],
                list(room.spent.values()),
            )
        if room.parked:
            waits = [room.parked[ref] for ref in room.parked]
            await connection.execute(
                self._queries["park"], [ref.id for ref in room.parked], [key for key, _ in waits], [s for _, s in waits]
            )
            # A task that was readied for one gate and stopped at another leaves its room to the next one there.
            several = [gates_to_json(gates[ref]) for ref in room.parked if len(gates[ref]) > 1]
            if several:
                await connection.execute(self._queries["wake_gates"], several)


@dataclass(slots=True)
class Bucket:
    tokens: float | None
    updated_at: float
    denied: int = 0


@dataclass(slots=True, kw_only=True)
class Room:
    """What the gates have to give, and to whom it went."""

    now: float
    buckets: dict[str, Bucket]
    slots: dict[str, dict[int, Ref]]
    heads: dict[str, int]
    admitted: list[Ref] = field(default_factory=list[Ref])
    taken: list[tuple[str, int, Ref]] = field(default_factory=list[tuple[str, int, Ref]])
    parked: dict[Ref, tuple[str | None, float]] = field(default_factory=dict[Ref, tuple[str | None, float]])
    spent: dict[str, float] = field(default_factory=dict[str, float])  # the seconds in which an empty bucket fills

    @classmethod
    def read(cls, gates: Rows, slots: Rows, heads: Rows) -> "Room":
        room = cls(
            now=max(row["now"] for row in gates),
            buckets={row["key"]: Bucket(row["tokens"], row["updated_at"] or 0.0) for row in gates},
            slots={row["key"]: {} for row in gates},
            heads={row["key"]: row["task"] for row in heads},
        )
        for row in slots:
            room.slots[row["key"]][row["slot"]] = Ref(row["task"], row["claim_no"])
        return room

    def pass_or_park(self, ref: Ref, gates: Sequence[Gate]) -> None:
        wanted: list[tuple[str, int]] = []
        if any(ref in self.slots[gate_key(gate)].values() for gate in gates):
            # An earlier try was written, and its answer lost: it paid, and it must not be parked with its slots.
            self.admitted.append(ref)
            return
        for gate in gates:
            if gate.kind == "rate":
                continue
            key = gate_key(gate)
            slot = self._slot(ref, gate)
            if slot is None:
                self.parked[ref] = (key, 0.0)
                return
            wanted.append((key, slot))
        rates = [gate for gate in gates if gate.kind == "rate"]
        wait = self._spend(rates)
        if wait > 0:
            self.parked[ref] = (None, wait)
            return
        for key, slot in wanted:
            self.slots[key][slot] = ref
            self.taken.append((key, slot, ref))
        self.admitted.append(ref)

    def _slot(self, ref: Ref, gate: Gate) -> int | None:
        """A free one."""
        taken = self.slots[gate_key(gate)]
        if gate.kind == "order":
            return 0 if self.heads.get(gate.key) == ref.id and 0 not in taken else None
        if len(taken) >= gate.n:
            return None  # more may be taken than there are: the limit was lowered
        return next((slot for slot in range(gate.n) if slot not in taken), None)

    def _spend(self, rates: Sequence[Gate]) -> float:
        """Take a token of every rate, or of none; the seconds to wait."""
        left: dict[str, tuple[float, float]] = {}
        longest = 0.0
        for gate in rates:
            key = gate_key(gate)
            bucket = self.buckets[key]
            full = bucket.tokens is None
            granted, tokens, wait = take(
                float(gate.capacity) if bucket.tokens is None else bucket.tokens,
                self.now if full else bucket.updated_at,
                now=self.now,
                rate_per_second=gate.rate_per_second,
                burst=gate.capacity,
                wanted=1,
            )
            if granted:
                left[key] = (tokens, gate.capacity / gate.rate_per_second)
            else:
                # Those turned away in one go come back one after the other, not all for the same token.
                longest = max(longest, wait + bucket.denied / gate.rate_per_second, 1e-6)
                bucket.denied += 1
        if longest == 0.0:
            for key, (tokens, fills_in) in left.items():
                bucket = self.buckets[key]
                bucket.tokens, bucket.updated_at = tokens, max(self.now, bucket.updated_at)
                self.spent[key] = fills_in
        return longest


def gate_key(gate: Gate) -> str:
    """A gate's row: a limit and a rate of the same name are two."""
    return f"{gate.kind}:{gate.key}"
