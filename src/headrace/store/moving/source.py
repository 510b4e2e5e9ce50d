"""The SQLite end of a move: what stands in its `meta`, and the transactions in which rows leave it.

`move` is the record of the move (its id, the number of the last parcel, what was counted), `moved_to` the URL that
handles follow and that ends all claims, `outgoing <number> <part>` a parcel on its way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from headrace.core.errors import MoveError
from headrace.store.moving.packing import OUTGOING, Packer
from headrace.store.moving.parcels import Parcel, Received
from headrace.store.sqlite.connection import Database, Transaction
from headrace.store.sqlite.store import SQLiteStore

type Copy = tuple[int, int, int]  # of an ended task in the target: its id, run_no, claim_no

_HISTORY = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The record of a move in its source."""

    id: str
    target: str  # as it is shown: without a password
    number: int = 0  # of the last parcel
    compared: bool = False  # since the flip: the target has no copy of what changed here after it was copied
    received: Received = field(default_factory=Received)

    def to_text(self) -> str:
        plain = {
            "id": self.id,
            "target": self.target,
            "number": self.number,
            "compared": self.compared,
            "received": self.received.to_plain(),
        }
        return orjson.dumps(plain).decode()

    @classmethod
    def from_text(cls, text: str) -> "Move":
        plain: dict[str, Any] = orjson.loads(text)
        received = Received.from_plain(plain["received"])
        return cls(
            id=plain["id"],
            target=plain["target"],
            number=plain["number"],
            compared=plain.get("compared", True),  # before it was noted, parcels went at once
            received=received,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What the source still has."""

    tasks: int
    held: int
    history: int
    jobs: int
    schedules: int  # that nobody fires here any more
    schedule_runs: int
    on_its_way: int  # parts of a parcel

    @property
    def nothing(self) -> bool:
        units = self.tasks or self.history or self.jobs
        return not (units or self.schedules or self.schedule_runs or self.on_its_way)


class Source:
    def __init__(self, store: SQLiteStore) -> None:
        self.store = store
        self._name = store.database.options.name

    @property
    def _database(self) -> Database:
        return self.store.database

    async def _read[T](self, work: Callable[[Packer], T]) -> T:
        return await self._database.read(lambda transaction: work(self._packer(transaction)))

    async def _write[T](self, verb: str, work: Callable[[Packer], T]) -> T:
        return await self._database.write(lambda transaction: work(self._packer(transaction)), verb=verb)

    def _packer(self, transaction: Transaction) -> Packer:
        return Packer(transaction.connection, self._name)

    # The record.

    async def move(self) -> tuple[Move | None, str | None]:
        """The record, and the URL once the ledger has moved."""
        return await self._read(lambda packer: (_move(packer), _meta(packer, "moved_to")))

    async def begin(self, move: Move) -> Move:
        """Note the move; the one that stands, where another process was first. One to another target that never came
        to its flip is forgotten."""

        def work(packer: Packer) -> Move:
            found = _move(packer)
            if found is not None and (found.target == move.target or _meta(packer, "moved_to")):
                return found
            _write_move(packer, move)
            return move

        return await self._write("move_begin", work)

    async def highest_id(self) -> int:
        return (await self._read(lambda packer: packer.ids("SELECT coalesce(max(next), 1) FROM {ids}")))[0] - 1

    async def flip(self, move_id: str, url: str, *, while_workers_run: bool) -> None:
        """From this commit on nobody claims here; enqueues still land. MoveError where the ledger is by now of a move
        to another target, here as in all that follows: two targets would be sent the same parcel."""

        def work(transaction: Transaction) -> None:
            packer = self._packer(transaction)
            move = self._own(packer, move_id)
            if not while_workers_run and (running := _running(packer, transaction.now)):
                raise MoveError(
                    f"{len(running)} workers still run on {self._database.path} ({', '.join(running[:3])}): stop them, "
                    "or move while they run with --follow. Nothing was moved"
                )
            if _meta(packer, "moved_to") is None:
                _write_move(packer, replace(move, compared=False))
            packer.rows(
                "INSERT INTO {meta} (key, value) VALUES ('moved_to', ?) ON CONFLICT (key) DO UPDATE"
                " SET value = excluded.value",
                (url,),
            )

        await self._database.write(work, verb="move_flip")

    async def running_workers(self) -> list[str]:
        return await self._database.read(lambda transaction: _running(self._packer(transaction), transaction.now))

    # What is stale in the target.

    async def stale(self, move_id: str, copies: Sequence[Copy]) -> list[Copy] | None:
        """Of these copies of ended tasks, those that are not ended tasks here any more: retried, or purged. None once
        that is over: from then on tasks leave this ledger, and one that is not here tells nothing.

        Where someone has retried the copy in the target, and it ran, that run stands: two retries are one."""

        def work(packer: Packer) -> list[Copy] | None:
            if self._own(packer, move_id).compared:
                return None
            ids = orjson.dumps([id for id, _, _ in copies]).decode()
            among = "id IN (SELECT value FROM json_each(?))"
            ended = set(packer.ids(f"SELECT id FROM {{history}} WHERE {among}", (ids,)))
            live = dict(packer.rows(f"SELECT id, run_no FROM {{tasks}} WHERE {among}", (ids,)))
            return [copy for copy in copies if copy[0] not in ended and copy[1] < live.get(copy[0], copy[1] + 1)]

        return await self._read(work)

    async def compared(self, move_id: str) -> None:
        await self._write(
            "move_compared", lambda packer: _write_move(packer, replace(self._own(packer, move_id), compared=True))
        )

    # Parcels.

    async def pack_tasks(self, move_id: str) -> bool:
        return await self._pack(move_id, lambda packer: packer.free_tasks(), _take_free_tasks)

    async def pack_jobs(self, move_id: str) -> bool:
        return await self._pack(move_id, lambda packer: packer.free_jobs(), _take_free_jobs)

    async def pack_alone(self, move_id: str) -> bool:
        return await self._pack(move_id, lambda _: [0], lambda packer, _: packer.take_alone())

    async def pack_whatever(self, move_id: str) -> bool:
        """All that nobody holds, in one parcel: jobs and tasks that wait for each other's order keys."""

        def take(packer: Packer, _: list[int]) -> None:
            for job in packer.all_free_jobs():
                packer.take_job(job)
            ids = "SELECT id FROM {tasks} WHERE worker IS NULL AND order_key IS NOT NULL AND job IS NULL"
            packer.take_tasks("tasks", packer.with_bundles(packer.ids(ids)))

        return await self._pack(move_id, lambda _: [0], take)

    async def _pack(
        self, move_id: str, look: Callable[[Packer], list[int]], take: Callable[[Packer, list[int]], None]
    ) -> bool:
        """True when something is on its way now. The look comes first, and locks nobody."""
        found, waiting = await self._read(lambda packer: (look(packer), packer.outgoing()))
        if not found:
            return bool(waiting)

        def work(packer: Packer) -> bool:
            move = self._own(packer, move_id)
            assert move.compared, "what is stale in the target goes before anything is sent"
            if packer.outgoing():
                return True  # another mover's, or from before a kill: that goes first
            take(packer, found)
            number = move.number + 1
            parts = 0
            for place, part in enumerate(packer.parts()):
                parts += 1
                key = f"{OUTGOING}{number:012d} {place:06d}"
                packer.rows("INSERT INTO {meta} (key, value) VALUES (?, ?)", (key, part.to_text()))
            if parts:
                _write_move(packer, replace(move, number=number))
            return bool(parts)

        return await self._write("move_pack", work)

    async def outgoing(self, move_id: str) -> tuple[int, list[str]] | None:
        """The number of the parcel on its way, and the keys of its parts. There is none before the flip, and after it
        the move stays the same."""
        _, keys = await self._read(lambda packer: (self._own(packer, move_id), packer.outgoing()))
        return (int(keys[0].split()[1]), sorted(keys)) if keys else None

    async def part(self, key: str) -> Parcel | None:
        """None where another mover was faster."""
        text = await self._read(lambda packer: _meta(packer, key))
        return None if text is None else Parcel.from_text(text)

    async def sent(self, move_id: str, number: int, received: Received) -> None:
        """The target has it: forget the parcel."""

        def work(packer: Packer) -> None:
            move = self._own(packer, move_id)
            prefix = f"{OUTGOING}{number:012d} "
            if [key for key in packer.outgoing() if key.startswith(prefix)]:
                packer.rows("DELETE FROM {meta} WHERE key >= ? AND key < ?", (prefix, f"{prefix}~"))
                self._count(packer, move, received)

        await self._write("move_sent", work)

    # History.

    async def history(self, after: int) -> Parcel:
        """Some tasks that ended, by their ids, but for those whose job is still here."""

        def work(packer: Packer) -> Parcel:
            sql = (
                "SELECT h.id FROM {history} AS h WHERE h.id > ?"
                " AND NOT EXISTS (SELECT 1 FROM {jobs} AS j WHERE j.id = h.job) ORDER BY h.id LIMIT ?"
            )
            ids = packer.ids(sql, (after, _HISTORY))
            return packer.with_tasks("history", packer.fitting("history", ids))

        return await self._read(work)

    async def clear_history(self, move_id: str, parcel: Parcel, received: Received) -> int:
        """The target has these: remove them here, if they are still the same; how many were. One that was retried
        meanwhile is a live task of this ledger, and goes as such."""

        def work(packer: Packer) -> int:
            move = self._own(packer, move_id)
            assert move.compared, "what is stale in the target goes while it is known here"
            then, now = parcel.by_task(), packer.with_tasks("history", parcel.task_ids).by_task()
            same = [id for id in parcel.task_ids if now.get(id) == then[id]]
            packer.remove_tasks("history", same)
            if len(same) == len(then):
                self._count(packer, move, received)
            elif same:
                changed = set(then) - set(same)
                left = parcel.without_tasks(changed).checks
                self._count(packer, move, Received(sent=left, found=left))
            return len(same)

        return await self._write("move_clear", work)

    async def left(self) -> Left:
        def work(packer: Packer) -> Left:
            def count(sql: str) -> int:
                return packer.ids(f"SELECT count(*) FROM (SELECT 1 FROM {sql} LIMIT 100000)")[0]

            return Left(
                tasks=count("{tasks}"),
                held=count("{tasks} WHERE worker IS NOT NULL"),
                history=count("{history}"),
                jobs=count("{jobs}"),
                schedules=count("{schedules}"),
                schedule_runs=count("{schedule_runs}"),
                on_its_way=len(packer.outgoing()),
            )

        return await self._read(work)

    def _count(self, packer: Packer, move: Move, received: Received) -> None:
        _write_move(packer, replace(move, received=move.received + received))

    def _own(self, packer: Packer, move_id: str) -> Move:
        """The record, in the transaction that acts on it."""
        move = _move(packer)
        if move is None or move.id != move_id:
            where = "nowhere" if move is None else move.target
            raise MoveError(
                f"{self._database.path} is being moved to {where} by another command: this one has sent nothing since. "
                "Run one of the two again"
            )
        return move


def _take_free_tasks(packer: Packer, ids: list[int]) -> None:
    packer.take_tasks("tasks", packer.still_free_tasks(ids))
    packer.take_additions_of_gone_jobs()


def _take_free_jobs(packer: Packer, jobs: list[int]) -> None:
    for job in packer.still_free_jobs(jobs):
        packer.take_job(job)


def _running(packer: Packer, now: int) -> list[str]:
    """Workers that have beaten within their lease."""
    sql = (
        "SELECT id FROM {workers} WHERE state <> 'stopped' AND last_heartbeat + CAST(lease * 1000000 AS INTEGER) > ?"
        " ORDER BY started_at"
    )
    return [id for (id,) in packer.rows(sql, (now,))]


def _meta(packer: Packer, key: str) -> str | None:
    found = packer.rows("SELECT value FROM {meta} WHERE key = ?", (key,))
    return found[0][0] if found else None


def _move(packer: Packer) -> Move | None:
    text = _meta(packer, "move")
    return None if text is None else Move.from_text(text)


def _write_move(packer: Packer, move: Move) -> None:
    packer.rows(
        "INSERT INTO {meta} (key, value) VALUES ('move', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (move.to_text(),),
    )
