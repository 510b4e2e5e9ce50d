"""The target of a move: takes parcels of rows, each once, and looks whether they arrived before it commits.

The row `moved_from` in `meta` holds the id of the move and the number of the last parcel. The transaction that writes a
parcel raises the number, under the row's lock: a parcel that comes again, after a kill or from a second mover, is
known by its number, even if its tasks have run and left every table since.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import orjson

from headrace.core.errors import MoveError
from headrace.store.instants import FIRST_POSTGRES_ID
from headrace.store.moving.parcels import Checks, Parcel, Received, check
from headrace.store.moving.tables import OF_TASK, Layout, Values, alone, layouts
from headrace.store.postgres.connection import Connection, Database
from headrace.store.postgres.merging import merge_schedules

type Parts = Sequence[Callable[[], Awaitable[Parcel | None]]]

# What a ledger that was used has; settings and workers may be there before.
_FOREIGN = ("tasks", "history", "jobs", "keys")
# Where the target may have such a row of its own.
_CONFLICTS = {
    # Whoever took the key here keeps it, unless its time has passed.
    "keys": "DO UPDATE SET task = excluded.task, ttl = excluded.ttl, expires_at = excluded.expires_at"
    " WHERE mine.expires_at <= clock_timestamp()",
    # Counts of a worker that went on counting in the source.
    "outcomes": "DO UPDATE SET n = mine.n + excluded.n",
    # Who was let in before there was a ledger here to move: what that ledger says of them stands.
    "users": "DO UPDATE SET role = excluded.role, password = excluded.password, disabled = excluded.disabled,"
    " failed_logins = excluded.failed_logins, locked_until = excluded.locked_until,"
    " created_at = excluded.created_at, changed_at = excluded.changed_at",
    # The last word on a queue is the one that came last.
    "queues": "DO UPDATE SET paused = excluded.paused, settings = excluded.settings",
}
_SHARED = ("meta",)
_COPIES = 2000  # that are compared at once


class Receiving:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._name = database.name

    async def begin(self, move: str, source: str) -> None:
        """Note the move; MoveError where the target has tasks of another origin."""

        async def work(connection: Connection) -> None:
            # The first time the target must be empty; from then on it has what this very move brought.
            first = await connection.fetchval(
                f"INSERT INTO {self._name}.meta (key, value) VALUES ('moved_from', $1)"
                " ON CONFLICT (key) DO NOTHING RETURNING true",
                _record(move, 0, Received(), source),
            )
            noted = orjson.loads(
                await connection.fetchval(f"SELECT value FROM {self._name}.meta WHERE key = 'moved_from'")
            )
            if noted["move"] != move:
                raise MoveError(
                    f"{self._database.masked} already took in another ledger ({noted['source']}): a ledger moves into "
                    "an empty one. Nothing was moved"
                )
            for table in _FOREIGN if first else ():
                if await connection.fetchval(f"SELECT EXISTS (SELECT FROM {self._name}.{table})"):
                    raise MoveError(
                        f"{self._database.masked} has {table} of its own in the schema {self._name!r}: a ledger moves "
                        "into an empty one. Nothing was moved"
                    )

        await self._database.run(work, repeatable=True)

    async def is_of(self, move: str) -> bool:
        """Whether it is this move that it takes in, by whatever URL it is reached."""
        found = await self._database.fetch(
            f"SELECT value FROM {self._name}.meta WHERE key = 'moved_from'", repeatable=True
        )
        return bool(found) and orjson.loads(found[0][0])["move"] == move

    async def number(self, move: str) -> int:
        """Of the last parcel that was taken."""
        [(text,)] = await self._database.fetch(
            f"SELECT value FROM {self._name}.meta WHERE key = 'moved_from'", repeatable=True
        )
        return int(_of_move(text, move)["number"])

    async def receive(self, move: str, number: int, parts: Parts) -> Received:
        """Write a parcel, unless it was written: all of its parts in one transaction."""

        async def work(connection: Connection) -> Received:
            text = await connection.fetchval(f"SELECT value FROM {self._name}.meta WHERE key = 'moved_from' FOR UPDATE")
            noted = _of_move(text, move)
            if noted["number"] >= number:
                return Received.from_plain(noted["received"])
            total = Received()
            for part in parts:
                parcel = await part()
                if parcel is None:
                    raise MoveError(f"parcel {number} of the move is gone from the source; run the same command again")
                total += await self._write(connection, parcel)
            await connection.execute(
                f"UPDATE {self._name}.meta SET value = $1 WHERE key = 'moved_from'",
                _record(move, number, total, noted["source"]),
            )
            return total

        return await self._database.run(work, repeatable=True, verb="move_receive")

    async def ensure(self, parcel: Parcel) -> Received:
        """Have these ended tasks as they are in the source, whatever an earlier look brought."""

        async def work(connection: Connection) -> Received:
            sent, found = parcel.checks, await self._checks(connection, parcel)
            if sent == found:
                return Received(sent=sent, found=found)
            return await self._write(connection, parcel)

        return await self._database.run(work, repeatable=True, verb="move_copy")

    async def copies(self, after: int) -> list[tuple[int, int, int]]:
        """Some ended tasks of the source that were copied, by their ids: id, run_no and claim_no."""
        found = await self._database.fetch(
            f"SELECT id, run_no, claim_no FROM {self._name}.history WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3",
            after,
            FIRST_POSTGRES_ID,
            _COPIES,
            repeatable=True,
        )
        return [(id, run_no, claim_no) for id, run_no, claim_no in found]

    async def forget(self, move: str, copies: Sequence[tuple[int, int, int]]) -> None:
        """Remove these copies, unless they are other runs by now: a second mover may be ahead of who looked."""

        async def work(connection: Connection) -> None:
            _of_move(
                await connection.fetchval(f"SELECT value FROM {self._name}.meta WHERE key = 'moved_from' FOR UPDATE"),
                move,
            )
            gone = await connection.fetch(
                f"DELETE FROM {self._name}.history h"
                " USING unnest($1::bigint[], $2::integer[], $3::integer[]) AS given(id, run_no, claim_no)"
                " WHERE (h.id, h.run_no, h.claim_no) = (given.id, given.run_no, given.claim_no) RETURNING h.id",
                *(list(column) for column in zip(*copies, strict=True)),
            )
            for table, task in OF_TASK.items():
                await connection.execute(
                    f"DELETE FROM {self._name}.{table} WHERE {task} = ANY ($1::bigint[])", [id for (id,) in gone]
                )

        await self._database.run(work, repeatable=True, verb="move_forget")

    async def _write(self, connection: Connection, parcel: Parcel) -> Received:
        whole, parcel = parcel, await self._without_newer(connection, parcel)
        ids = parcel.task_ids
        for table, task in OF_TASK.items():
            await connection.execute(f"DELETE FROM {self._name}.{table} WHERE {task} = ANY ($1::bigint[])", ids)
        merged = {table: n for table, rows in whole.rows.items() if (n := len(rows) - len(parcel.rows.get(table, ())))}
        expected = Parcel()
        for table, layout in layouts().items():
            rows = parcel.rows.get(table, [])
            if not rows:
                continue
            theirs = await self._theirs(connection, layout, rows)
            expected.add(table, [row for row in rows if layout.key_of(row) not in theirs])
            if theirs:
                merged[table] = merged.get(table, 0) + len(theirs)
        sent, found = expected.checks, await self._checks(connection, expected)
        if sent != found:
            wrong = sorted(table for table in {**sent, **found} if sent.get(table) != found.get(table))
            raise MoveError(
                f"{self._database.masked} does not have what was sent ({_told(sent, found, wrong)}): it was rolled "
                "back, and the source still has it"
            )
        queues = sorted(set(parcel.column("tasks", "queue")))
        for queue in queues:
            await connection.execute("SELECT pg_notify($1, $2)", self._name, queue)
        return Received(sent=sent, found=found, merged=merged)

    async def _without_newer(self, connection: Connection, parcel: Parcel) -> Parcel:
        """Remove the copies of these tasks from an earlier look. Where someone here has retried such a task by hand,
        that run stands: two retries at both ends are one, as two at one end are.
        """
        rows = [
            run
            for table in ("tasks", "history")
            for run in zip(*(parcel.column(table, column) for column in ("id", "run_no", "claim_no")), strict=True)
        ]
        if not rows:
            return parcel
        columns = [list(column) for column in zip(*rows, strict=True)]
        # First the delete, which waits for a retry that is under way; the next statement sees what came of it.
        await connection.execute(
            f"DELETE FROM {self._name}.history h"
            " USING unnest($1::bigint[], $2::integer[], $3::integer[]) AS given(id, run_no, claim_no)"
            " WHERE h.id = given.id AND (h.run_no, h.claim_no) <= (given.run_no, given.claim_no)",
            *columns,
        )
        newer = await connection.fetch(
            f"SELECT id FROM {self._name}.tasks WHERE id = ANY ($1::bigint[])"
            f" UNION SELECT id FROM {self._name}.history WHERE id = ANY ($1::bigint[])",
            columns[0],
        )
        return parcel.without_tasks({id for (id,) in newer}) if newer else parcel

    async def _theirs(self, connection: Connection, layout: Layout, rows: list[Values]) -> set[tuple[Any, ...]]:
        """Insert the rows; the keys of those where the target had one of its own, and the two became one."""
        table = layout.table
        known = table in _CONFLICTS
        if not known and table not in _SHARED and table not in {other.table for other in alone()}:
            await self._insert(connection, layout, rows, "")
            return set()
        if table == "schedules":
            await merge_schedules(connection, self._name, _json(layout, rows))
        theirs = {layout.key_of(row) for row in await self._stored(connection, layout, rows)}
        # Of a table that is known by its key alone: whatever of the target's stands in the way of a row, stays.
        conflict = f"ON CONFLICT ({', '.join(layout.key)}) {_CONFLICTS[table]}" if known else "ON CONFLICT DO NOTHING"
        await self._insert(connection, layout, rows, conflict)
        arrived = {layout.key_of(row) for row in await self._stored(connection, layout, rows)}
        return theirs | ({layout.key_of(row) for row in rows} - arrived)

    async def _insert(self, connection: Connection, layout: Layout, rows: list[Values], conflict: str) -> None:
        columns = ", ".join(f'"{column}"' for column in layout.columns)
        await connection.execute(
            f"INSERT INTO {self._name}.{layout.table} AS mine ({columns})"
            f" SELECT {columns} FROM json_populate_recordset(NULL::{self._name}.{layout.table}, $1::text::json)"
            f" {conflict}",
            _json(layout, rows),
        )

    async def _stored(self, connection: Connection, layout: Layout, rows: list[Values]) -> list[Values]:
        """The rows of the same keys, as they stand here."""
        columns = ", ".join(f'mine."{column}"' for column in layout.columns)
        same = " AND ".join(f'mine."{column}" = given."{column}"' for column in layout.key)
        found = await connection.fetch(
            f"SELECT {columns} FROM json_populate_recordset(NULL::{self._name}.{layout.table}, $1::text::json) AS given"
            f" JOIN {self._name}.{layout.table} AS mine ON {same}",
            orjson.dumps([layout.key_to_postgres(row) for row in rows]).decode(),
        )
        return [layout.from_postgres(row) for row in found]

    async def _checks(self, connection: Connection, parcel: Parcel) -> Checks:
        """Of what stands here under the parcel's keys."""
        found: Checks = {}
        for table, rows in parcel.rows.items():
            stored = check(await self._stored(connection, layouts()[table], rows)) if rows else None
            if stored is not None and stored.rows:
                found[table] = stored
        return found


def _json(layout: Layout, rows: list[Values]) -> str:
    return orjson.dumps([layout.to_postgres(row) for row in rows]).decode()


def _record(move: str, number: int, received: Received, source: str) -> str:
    plain = {"move": move, "number": number, "received": received.to_plain(), "source": source}
    return orjson.dumps(plain).decode()


def _of_move(text: str | None, move: str) -> dict[str, Any]:
    noted: dict[str, Any] = orjson.loads(text or "{}")
    if noted.get("move") != move:
        raise MoveError("the target is of another move by now; nothing more is sent there")
    return noted


def _told(sent: Checks, found: Checks, tables: list[str]) -> str:
    def rows(checks: Checks, table: str) -> int:
        return checks[table].rows if table in checks else 0

    return ", ".join(f"{table}: {rows(sent, table)} rows sent, {rows(found, table)} found" for table in tables)
