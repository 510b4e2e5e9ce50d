"""A table that is being written. Nobody sees it before it gets the name of its object."""

import contextlib
import io
import secrets
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any, cast

import pyarrow

from headrace.core.errors import DataError, HeadraceError, ObjectExists, StoreUnavailable
from headrace.data.backend import Draft, ObjectMeta, RecordBatch, Schema
from headrace.data.formats.clickhouse.columns import (
    PART,
    ROW,
    VERSION,
    Column,
    columns_of,
    encode,
    in_one_line,
    literal,
    quoted,
)
from headrace.data.formats.clickhouse.connection import TABLE_EXISTS, UNKNOWN_TABLE, Connections, Refused
from headrace.data.formats.clickhouse.record import Record, complete, to_comment

pa: Any = cast("Any", pyarrow)

PREFIX = "stage_"
_BLOCK_ROWS, _BLOCK_BYTES = 1_000_000, 16 << 20
_PAGE_BYTES = 8 << 20
_TABLE_SETTINGS = {
    # What is acknowledged is on the disk.
    "fsync_after_insert": 1,
    "fsync_part_directory": 1,
    # A block that the driver sent twice, because the answer was lost, is stored once.
    "non_replicated_deduplication_window": 10_000,
    # Rows come in the order of the key and never change, so large parts gain nothing by being merged: everything would
    # be written several times, which took chDB 100 MB more. And no insert is to wait for merges that do not come.
    "max_bytes_to_merge_at_max_space_in_pool": 64 << 20,
    "parts_to_delay_insert": 1_000_000,
    "parts_to_throw_insert": 1_000_000,
}


class Stage:
    """Rows are numbered from 0 as they come; `rows` is how many came so far. Those of a run have the number of their
    part as well, which comes as the last column of its batches."""

    def __init__(self, connections: Connections, draft: Draft, schema: Schema, *, run: bool = False) -> None:
        self.draft, self.schema = draft, schema
        self.columns: list[Column] = columns_of(schema)
        self.rows = 0
        self._run = run
        self._connections = connections
        self._version = secrets.randbits(63)
        self.table = quoted(f"{PREFIX}{draft.id}_{self._version:x}")

    @property
    def names(self) -> list[str]:
        """Everything that is stored for a row, but its number."""
        return [name for column in self.columns for name in column.names]

    @contextlib.contextmanager
    def open(self) -> Generator["Stage"]:
        """The table exists from here on. An error removes it; a crash leaves it to `prune`."""
        definitions = [definition for column in self.columns for definition in column.definitions]
        if self._run:
            definitions.append(f"{quoted(PART)} UInt32 CODEC(Delta, LZ4)")
        self.command(
            f"CREATE TABLE {self.table} ({quoted(ROW)} UInt64 CODEC(Delta, LZ4), "
            + "".join(f"{definition}, " for definition in definitions)
            # Every statement of a reader asks for it: one that began before a replacement gets no row of the new table.
            + f"{quoted(VERSION)} UInt64 ALIAS {self._version}) ENGINE = MergeTree ORDER BY {quoted(ROW)} "
            + f"SETTINGS {', '.join(f'{name} = {value}' for name, value in _TABLE_SETTINGS.items())}"
        )
        try:
            yield self
        except BaseException:
            with contextlib.suppress(HeadraceError):
                self._drop()
            raise

    def insert(self, batches: Iterable[RecordBatch]) -> None:
        for block in blocks(batches):
            encoded: list[Any] = []
            for given in block:
                parts = given.columns[-1] if self._run else None
                batch = given if parts is None else given.select(range(given.num_columns - 1))
                if not batch.schema.equals(self.schema):
                    raise DataError(
                        f"object {self.draft.id} has {in_one_line(self.schema)}, and a batch that came for it has "
                        f"{in_one_line(batch.schema)}; nothing was kept"
                    )
                rows = encode(batch, self.columns, self.rows)
                encoded.append(rows if parts is None else rows.append_column(PART, parts))
                self.rows += batch.num_rows
            sink = io.BytesIO()
            with pa.ipc.new_stream(sink, encoded[0].schema) as writer:
                for batch in encoded:
                    writer.write_batch(batch)
            with self._connections.client() as client:
                client.raw_insert(self.table, encoded[0].schema.names, sink.getvalue(), fmt="ArrowStream")

    def select(self, query: str) -> None:
        """Rows that ClickHouse itself brings: their columns are those of `names`, and then their number."""
        columns = ", ".join(quoted(name) for name in [*self.names, ROW])
        self.command(f"INSERT INTO {self.table} ({columns}) {query}")

    def publish(self, *, replace: bool) -> ObjectMeta:
        """Complete it, and give it its name. ObjectExists when that is taken."""
        record = self._record()
        # Hidden from SELECT *. With no column but hidden ones there would be no table.
        hidden = [
            (ROW, "UInt64"),
            *([(PART, "UInt32")] if self._run else []),
            *((column.mask, "Bool") for column in self.columns if column.mask is not None),
        ]
        hiding = [f"MODIFY COLUMN {quoted(name)} {kind} MATERIALIZED 0" for name, kind in hidden if self.columns]
        self.command(
            f"ALTER TABLE {self.table} {', '.join([*hiding, f'MODIFY COMMENT {literal(to_comment(record))}'])}"
        )
        self._name(replace=replace)
        return record.meta

    def command(self, statement: str) -> Any:
        with self._connections.client() as client:
            return client.command(statement)

    def count(self) -> int:
        with self._connections.client() as client:
            return int(client.query(f"SELECT count() FROM {self.table}").result_rows[0][0])

    def _record(self) -> Record:
        with self._connections.client() as client:
            count, total = client.query(f"SELECT count(), sum({quoted(ROW)}) FROM {self.table}").result_rows[0]
            # The sum of 0 ... n - 1, as 64 bits hold it: no number is missing and none is there twice.
            if (count, total) != (self.rows, self.rows * (self.rows - 1) // 2 % (1 << 64)):
                raise StoreUnavailable(
                    f"object {self.draft.id}: {self.rows} rows were sent, {count} are stored; none was kept, try again"
                )
            plain, stored = client.query(
                "SELECT sum(data_uncompressed_bytes), sum(bytes_on_disk) FROM system.parts "
                f"WHERE database = currentDatabase() AND table = {literal(self.table.strip('`'))} AND active"
            ).result_rows[0]
        width = plain // self.rows + 1 if self.rows else 1
        return Record(
            meta=complete(self.draft, rows=self.rows, bytes=stored, schema=self.schema),
            version=self._version,
            page=min(max(_PAGE_BYTES // width, 1), 1 << 17),
        )

    def _name(self, *, replace: bool) -> None:
        name = quoted(self.draft.id)
        while True:
            try:
                self.command(f"RENAME TABLE {self.table} TO {name}")
                return
            except Refused as error:
                if error.code != TABLE_EXISTS:
                    raise
                if not replace:
                    raise ObjectExists(f"object {self.draft.id} exists already; nothing changed") from None
            try:
                self.command(f"EXCHANGE TABLES {self.table} AND {name}")
            except Refused as error:
                if error.code != UNKNOWN_TABLE or not self._is_there():
                    raise
                continue  # the former one was dropped meanwhile
            # It is done; if this fails, `prune` removes the former one.
            with contextlib.suppress(HeadraceError):
                self._drop()
            return

    def _is_there(self) -> bool:
        with self._connections.client() as client:
            return bool(client.query(f"EXISTS TABLE {self.table}").result_rows[0][0])

    def _drop(self) -> None:
        self.command(drop_statement(self.table))


def drop_statement(table: str) -> str:
    """Gone from the disk too when it returns; a server's guard against dropping large tables is for people."""
    return f"DROP TABLE {table} SYNC SETTINGS max_table_size_to_drop = 0"


def blocks(batches: Iterable[RecordBatch]) -> Iterator[list[RecordBatch]]:
    """Few and large inserts, since each makes a part on the disk; bounded, since each is in memory."""
    block: list[RecordBatch] = []
    rows = size = 0
    for batch in batches:
        for piece in _pieces(batch):
            block.append(piece)
            rows, size = rows + piece.num_rows, size + piece.nbytes
            if rows >= _BLOCK_ROWS or size >= _BLOCK_BYTES:
                yield block
                block, rows, size = [], 0, 0
    if block:
        yield block


def _pieces(batch: RecordBatch) -> Iterator[RecordBatch]:
    step = max(min(_BLOCK_ROWS, batch.num_rows * _BLOCK_BYTES // (batch.nbytes + 1)), 1)
    for first in range(0, batch.num_rows, step):
        yield batch.slice(first, step)


def refuse_duplicates(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise DataError(f"the query gives two columns of one name among {', '.join(names)}; name them with AS")
