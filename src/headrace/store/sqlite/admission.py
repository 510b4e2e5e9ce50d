"""Gates: limits, rates and order keys. A task without them never comes here."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from headrace.core.limits import SET_BY_HAND, Gate, gates_from_json, gates_to_json, take
from headrace.core.queue_settings import gates_now, settings_from_json
from headrace.core.task import ClaimedTask, Ref
from headrace.store.base import Admission
from headrace.store.sqlite.claiming import refs_json
from headrace.store.sqlite.connection import Part, Transaction

_SECOND = 1_000_000
_EVERYBODY = 1_000_000
READIED_AT_ONCE = 500


def gate_key(gate: Gate) -> str:
    """The key in slots, buckets and `waiting_on`: a limit and an order may have the same name."""
    return f"{gate.kind}:{gate.key}"


@dataclass(slots=True)
class _Bucket:
    tokens: float
    updated_at: int
    full_after: float  # seconds in which it fills when it is empty
    owed: int = 0  # how many of this batch already wait for a token


@dataclass(slots=True)
class _Rooms:
    """What one admit has looked up: the write lock keeps it true until the commit."""

    transaction: Transaction
    slots: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    buckets: dict[str, _Bucket] = field(default_factory=dict[str, _Bucket])

    def taken(self, key: str) -> set[int]:
        if key not in self.slots:
            self.slots[key] = {slot for (slot,) in self.transaction.rows("slots_taken", (key,))}
        return self.slots[key]

    def free_slot(self, key: str, n: int) -> int | None:
        taken = self.taken(key)
        if len(taken) >= n:
            return None  # more may be taken than there are: the limit was lowered
        return next((slot for slot in range(n) if slot not in taken), None)

    def bucket(self, key: str, gate: Gate) -> _Bucket:
        if key not in self.buckets:
            row, now = self.transaction.row("bucket", (key,)), self.transaction.now
            # The instant is read under the write lock, so one that lies ahead means that the clock was set back: time
            # counts from here again. Nothing would start until the clock came by there once more.
            tokens, updated_at = (row[0], min(row[1], now)) if row else (float(gate.capacity), now)
            self.buckets[key] = _Bucket(tokens, updated_at, gate.capacity / gate.rate_per_second)
        return self.buckets[key]

    def wait_for_token(self, key: str, gate: Gate, *, spend: bool) -> float:
        """Seconds until this rate lets one more start; 0 when it does now."""
        bucket, now = self.bucket(key, gate), self.transaction.now
        rate = gate.rate_per_second
        granted, left, wait = take(
            bucket.tokens,
            bucket.updated_at / _SECOND,
            now=now / _SECOND,
            rate_per_second=rate,
            burst=gate.capacity,
            wanted=1,
        )
        if granted:
            if spend:
                bucket.tokens, bucket.updated_at = left, max(now, bucket.updated_at)
            return 0.0
        # The next of this batch waits for the token after: they do not all come back at one instant.
        wait += bucket.owed / rate
        bucket.owed += 1
        return wait

    def write_buckets(self) -> None:
        rows = [
            {
                "key": key,
                "tokens": bucket.tokens,
                "updated_at": bucket.updated_at,
                "full_at": bucket.updated_at + round(bucket.full_after * _SECOND),
            }
            for key, bucket in self.buckets.items()
        ]
        self.transaction.run_many("write_bucket", rows)


def admit(transaction: Transaction, worker: str, claims: Sequence[ClaimedTask]) -> Admission:
    refs = [Ref(claim.id, claim.claim_no) for claim in claims]
    rows = {row[0]: row for row in transaction.rows("fenced", {"refs": refs_json(refs), "worker": worker})}
    settings = settings_of(transaction, {claim.queue for claim in claims})
    queues = {claim.id: claim.queue for claim in claims}
    rooms = _Rooms(transaction)
    admitted: set[Ref] = set()
    parked: set[Ref] = set()
    freed: set[str] = set()
    for ref in refs:
        if ref.id not in rows:
            continue
        _, _, state, stored, created_at, *_ = rows[ref.id]
        if state == "cancelling":
            # It must not run any more, so it gets no room; like a lost claim it is in neither set.
            continue
        gates = _present_gates(transaction, ref, queues[ref.id], stored, settings)
        if _has_room(transaction, ref) or _admit_one(rooms, ref, gates, created_at):
            admitted.add(ref)
            continue
        parked.add(ref)
        freed.update(gate_key(gate) for gate in gates if gate.kind != "rate")
    rooms.write_buckets()
    # A task that was woken for one gate and stopped at another leaves room behind: the next one gets it.
    for key in sorted(freed):
        ready_next(transaction, key, most=1)
    return Admission(admitted=frozenset(admitted), parked=frozenset(parked))


def settings_of(transaction: Transaction, queues: Iterable[str]) -> dict[str, str]:
    return dict(transaction.rows("queue_settings", (orjson.dumps(sorted(queues)).decode(),)))


def _present_gates(
    transaction: Transaction, ref: Ref, queue: str, stored: str | None, settings: Mapping[str, str]
) -> Sequence[Gate]:
    """With what is set for the queue today; written to the task, whose end frees what its row names."""
    gates = gates_now(queue, stored, settings.get(queue))
    if gates != gates_from_json(stored):
        transaction.run("set_gates", {"task": ref.id, "gates": gates_to_json(gates)})
    return gates


def _has_room(transaction: Transaction, ref: Ref) -> bool:
    """An earlier try of the same admit was written, and its answer lost."""
    return transaction.row("slots_of_claim", (ref.id, ref.claim_no)) is not None


def _admit_one(rooms: _Rooms, ref: Ref, gates: Sequence[Gate], created_at: int) -> bool:
    transaction = rooms.transaction
    if (full := _full_gate(rooms, ref, gates, created_at)) is not None:
        transaction.run("park", {"task": ref.id, "waiting_on": gate_key(full), "eligible_at": None})
        return False
    rates = [gate for gate in gates if gate.kind == "rate"]
    wait = max((rooms.wait_for_token(gate_key(gate), gate, spend=False) for gate in rates), default=0.0)
    if wait > 0:
        eligible_at = transaction.now + max(1, round(wait * _SECOND))
        transaction.run("park", {"task": ref.id, "waiting_on": None, "eligible_at": eligible_at})
        return False
    for gate in rates:
        rooms.wait_for_token(gate_key(gate), gate, spend=True)
    for gate in gates:
        if gate.kind == "rate":
            continue
        key = gate_key(gate)
        slot = rooms.free_slot(key, gate.n if gate.kind == "limit" else 1)
        assert slot is not None
        transaction.run("take_slot", {"key": key, "slot": slot, "task": ref.id, "claim_no": ref.claim_no})
        rooms.taken(key).add(slot)
    return True


def _full_gate(rooms: _Rooms, ref: Ref, gates: Sequence[Gate], created_at: int) -> Gate | None:
    for gate in gates:
        if gate.kind == "limit" and rooms.free_slot(gate_key(gate), gate.n) is None:
            return gate
        if gate.kind == "order":
            place = {"order_key": gate.key, "created_at": created_at, "task": ref.id}
            if rooms.free_slot(gate_key(gate), 1) is None or rooms.transaction.row("older_in_order", place):
                return gate
    return None


def release_gates(transaction: Transaction, gated: Iterable[tuple[int, str | None]]) -> None:
    """Free the slots of tasks that no longer run, and ready those who wait for them."""
    gated = list(gated)
    ids = orjson.dumps([task for task, _ in gated]).decode()
    freed: dict[str, int] = {}
    for (key,) in transaction.rows("free_slots", (ids,)):
        freed[key] = freed.get(key, 0) + 1
    # Also a task that held nothing may have been the one others wait for: woken and then cancelled, or first in order.
    for _, stored in gated:
        for gate in gates_from_json(stored):
            if gate.kind != "rate":
                freed.setdefault(gate_key(gate), 1)
    for key in sorted(freed):
        ready_next(transaction, key, most=freed[key])


def ready_next(transaction: Transaction, key: str, *, most: int = _EVERYBODY) -> int:
    """Ready tasks that wait for this gate, as many as it has room for, at most `most`; how many."""
    kind, _, name = key.partition(":")
    if kind == "order":
        row = transaction.row("first_in_order", (name,))
        if row is None or row[2] != key or transaction.rows("slots_taken", (key,)):
            return 0
        return _ready(transaction, row[0], row[1])
    waiting = transaction.rows("waiting", {"key": key, "limit": min(most, READIED_AT_ONCE)})
    if not waiting:
        return 0
    if name.startswith(SET_BY_HAND):
        # By what is set now: those who wait carry what was set when they came.
        settings = settings_of(transaction, [name.removeprefix(SET_BY_HAND)]).values()
        n = next((limit for limit, _ in map(settings_from_json, settings) if limit is not None), _EVERYBODY)
    else:
        every = (gate for _, _, stored in waiting for gate in gates_from_json(stored) if gate_key(gate) == key)
        n = max((gate.n for gate in every), default=1)
    room = n - len(transaction.rows("slots_taken", (key,)))
    return sum(_ready(transaction, task, queue) for task, queue, _ in waiting[: max(room, 0)])


def _ready(transaction: Transaction, task: int, queue: str) -> int:
    transaction.wakes.add(queue)
    return transaction.run("ready_waiting", {"task": task, "now": transaction.now})


class Admitting(Part):
    async def admit(self, worker: str, claims: Sequence[ClaimedTask]) -> Admission:
        return await self.database.write(lambda transaction: admit(transaction, worker, claims))
