"""The place: objects as tables of one ClickHouse database."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import batched
from typing import Any, cast

import pyarrow

from headrace.core.errors import DataError, NotFound, ObjectExists, StoreUnavailable
from headrace.data.backend import Draft, ObjectMeta, RecordBatch, Schema
from headrace.data.formats.clickhouse.address import parse
from headrace.data.formats.clickhouse.columns import (
    PART,
    ROW,
    VERSION,
    Column,
    columns_of,
    decode,
    in_one_line,
    literal,
    quoted,
    shown_name,
)
from headrace.data.formats.clickhouse.connection import UNKNOWN_TABLE, Connections, Refused, require_drivers
from headrace.data.formats.clickhouse.record import Record, from_comment
from headrace.data.formats.clickhouse.staging import PREFIX, Stage, drop_statement, refuse_duplicates
from headrace.data.ids import is_id

pa: Any = cast("Any", pyarrow)

# What Arrow would give as a bare number or as bytes: the query's values become what a person means by them.
_AS_TEXT = re.compile(r"(Nullable\()?(UUID|IPv4|IPv6|Enum8|Enum16|JSON|Object|Dynamic|Variant)\b")
_AS_DATETIME64 = re.compile(r"(?:Nullable\()?DateTime(?:\(('[^']*')\))?\)?")
_PARTS_AT_ONCE = 100  # of an object that is put together: one statement, one insert on the disk
_RUN = "_headrace_run"
_WIDE = re.compile(r"\bU?Int(128|256)\b")


class ClickHouseBackend:
    """`chdb:///folder`, `clickhouse://user:password@host:port/database` or `clickhouses://...`."""

    def __init__(self, url: str) -> None:
        self._address = parse(url)
        require_drivers(self._address)
        self._connections = Connections(self._address)

    def __repr__(self) -> str:
        return f"ClickHouseBackend({self.url!r})"

    @property
    def url(self) -> str:
        return self._address.url

    @property
    def shared(self) -> bool:
        return self._address.path is None

    def close(self) -> None:
        self._connections.close()

    # --- writing ------------------------------------------------------------------------------------------------------

    def write(
        self, draft: Draft, schema: Schema, batches: Iterable[RecordBatch], *, replace: bool = False
    ) -> ObjectMeta:
        stage = self._stage(draft, schema, replace=replace)
        with stage.open():
            stage.insert(batches)
            return stage.publish(replace=replace)

    def concat(self, draft: Draft, parts: Sequence[str], *, replace: bool = False) -> ObjectMeta:
        _refuse_impossible(draft.id)
        if not parts:
            raise DataError(f"object {draft.id}: there is nothing to make it of; name at least one part")
        found = self._records(set(parts))
        records = [found[part] if part in found else self._record(part) for part in parts]
        schema = records[0].meta.schema
        for record in records[1:]:
            if not record.meta.schema.equals(schema):
                raise DataError(
                    f"objects {records[0].meta.id} and {record.meta.id} have different schemas, and an object has one: "
                    f"{in_one_line(schema)} and {in_one_line(record.meta.schema)}"
                )
        stage = self._stage(draft, schema, replace=replace)
        with stage.open():
            for some in batched(records, _PARTS_AT_ONCE):
                selects: list[str] = []
                for record in some:
                    chosen = ", ".join([*(quoted(name) for name in stage.names), f"{quoted(ROW)} + {stage.rows}"])
                    whole = f"{quoted(record.meta.id)} WHERE {quoted(VERSION)} = {record.version}"
                    selects.append(f"SELECT {chosen} FROM {whole}")
                    stage.rows += record.meta.rows
                try:
                    stage.select(" UNION ALL ".join(selects))
                except Refused as error:
                    names = ", ".join(record.meta.id for record in some)
                    raise (_gone(names) if error.code == UNKNOWN_TABLE else error) from None
            return stage.publish(replace=replace)

    def write_run(
        self, draft: Draft, schema: Schema, parts: Sequence[Sequence[RecordBatch]], *, replace: bool = False
    ) -> ObjectMeta:
        stage = self._stage(draft, schema, replace=replace, run=True)
        with stage.open():
            stage.insert(_numbered(number, batch) for number, part in enumerate(parts) for batch in part)
            return stage.publish(replace=replace)

    def query(self, draft: Draft, sql: str, *, replace: bool = False) -> ObjectMeta:
        # As a subquery it can be nothing but a SELECT; the line break ends a comment in its last line.
        source = f"({sql.strip().rstrip(';')}\n)"
        with self._connections.client() as client:
            found = [(row[0], row[1]) for row in client.query(f"DESCRIBE {source}").result_rows]
            # `SELECT *` over two joined tables may name their hidden columns.
            found = [(name, kind) for name, kind in found if "_headrace_" not in name]
            refuse_duplicates([name for name, _ in found])
            expressions = [_meant(name, kind) for name, kind in found]
            chosen = ", ".join(f"{what} AS {quoted(name)}" for what, (name, _) in zip(expressions, found, strict=True))
            empty = client.raw_query(f"SELECT {chosen} FROM {source} LIMIT 0", fmt="ArrowStream")
        schema: Any = pa.ipc.open_stream(empty).schema
        schema = pa.schema([field.with_name(shown_name(field.name)).remove_metadata() for field in schema])
        stage = self._stage(draft, schema, replace=replace)
        with stage.open():
            stage.select(f"SELECT {', '.join([*expressions, 'rowNumberInAllBlocks()'])} FROM {source}")
            stage.rows = stage.count()
            return stage.publish(replace=replace)

    # --- reading ------------------------------------------------------------------------------------------------------

    def meta(self, id: str) -> ObjectMeta | None:
        record = self._find(id)
        return None if record is None else record.meta

    def list(self) -> Iterator[ObjectMeta]:
        with self._connections.client() as client:
            found = client.query(
                "SELECT name, comment FROM system.tables "
                "WHERE database = currentDatabase() AND startsWith(name, 'obj_') ORDER BY name"
            ).result_rows
        for _, comment in found:
            if (record := from_comment(comment)) is not None:
                yield record.meta

    def read(
        self, id: str, *, offset: int = 0, limit: int | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[RecordBatch]:
        record = self._record(id)
        return self._pages(record, _chosen(record.meta, columns), offset, limit)

    def read_part(self, ids: Sequence[str], part: int) -> Iterator[RecordBatch]:
        """A hundred runs in one statement. Whether a run was replaced meanwhile makes no difference, since it is the
        same then; but that all of its rows came must be asked."""
        if unknown := [id for id in ids if not is_id(id)]:
            raise self._missing(unknown[0])
        for some in batched(ids, _PARTS_AT_ONCE):
            record = self._record(some[0])
            columns = columns_of(record.meta.schema)
            names = [name for column in columns for name in column.names] or [ROW]
            chosen = ", ".join(quoted(name) for name in names)
            where = [f"FROM {quoted(id)} WHERE {quoted(PART)} = {part}" for id in some]
            counts = " UNION ALL ".join(
                f"SELECT {run} AS run, count() AS rows {each}" for run, each in enumerate(where)
            )
            try:
                with self._connections.client() as client:
                    found = {run: rows for run, rows in client.query(counts).result_rows if rows}
                if not found:
                    continue
                selects = (
                    f"SELECT {chosen}, {run} AS {_RUN}, {quoted(ROW)} AS {_RUN}_row {where[run]}" for run in found
                )
                statement = f"SELECT {chosen} FROM ({' UNION ALL '.join(selects)}) ORDER BY {_RUN}, {_RUN}_row"
                with self._connections.client() as client:
                    answer = client.raw_query(statement, fmt="ArrowStream")
                batches: Any = [batch for batch in pa.ipc.open_stream(answer) if batch.num_rows]
            except Refused as error:
                if error.code == UNKNOWN_TABLE:
                    raise _gone(f"{some[0]}, or one after it,") from None
                raise
            except pa.ArrowInvalid as error:
                raise _cut_off(some[0], str(error)) from None
            if (came := sum(batch.num_rows for batch in batches)) != sum(found.values()):
                raise _cut_off(some[0], f"{came} rows came of {sum(found.values())}")
            for batch in batches:
                yield decode(batch, columns)

    def _pages(
        self, record: Record, columns: Sequence[Column], offset: int, limit: int | None
    ) -> Iterator[RecordBatch]:
        """Page by page, each a range of the sorting key: neither side holds more, and no statement stays open while
        the caller works."""
        names = [name for column in columns for name in column.names] or [ROW]
        end = record.meta.rows if limit is None else min(offset + limit, record.meta.rows)
        for first in range(offset, end, record.page):
            last = min(first + record.page, end)
            statement = page_statement(record, names, first, last)
            try:
                with self._connections.client() as client:
                    answer = client.raw_query(statement, fmt="ArrowStream")
                batches: Any = [batch for batch in pa.ipc.open_stream(answer) if batch.num_rows]
            except Refused as error:
                raise (_gone(record.meta.id) if error.code == UNKNOWN_TABLE else error) from None
            except pa.ArrowInvalid as error:
                raise _cut_off(record.meta.id, str(error)) from None
            if not batches:
                raise _gone(record.meta.id)
            if (found := sum(batch.num_rows for batch in batches)) != last - first:
                raise _cut_off(record.meta.id, f"{found} rows came of {last - first}")
            for batch in batches:
                yield decode(batch, columns)

    def _records(self, ids: Collection[str]) -> dict[str, Record]:
        names = ", ".join(literal(id) for id in ids if is_id(id))
        with self._connections.client() as client:
            found = client.query(
                "SELECT name, comment FROM system.tables "
                f"WHERE database = currentDatabase() AND name IN ({names or literal('')})"
            ).result_rows
        return {name: record for name, comment in found if (record := from_comment(comment)) is not None}

    def _record(self, id: str) -> Record:
        record = self._find(id)
        if record is None:
            raise self._missing(id)
        return record

    def _missing(self, id: str) -> NotFound:
        return NotFound(f"there is no object {id} in {self.url}")

    def _find(self, id: str) -> Record | None:
        return self._records([id]).get(id) if is_id(id) else None

    # --- removing -----------------------------------------------------------------------------------------------------

    def drop(self, id: str) -> bool:
        if self._find(id) is None:  # not there, or a table of somebody else
            return False
        try:
            with self._connections.client() as client:
                client.command(drop_statement(quoted(id)))
        except Refused as error:
            if error.code == UNKNOWN_TABLE:
                return False
            raise
        return True

    def prune(self, before: datetime) -> int:
        with self._connections.client() as client:
            found = client.query(
                "SELECT name, toUnixTimestamp(metadata_modification_time) FROM system.tables "
                f"WHERE database = currentDatabase() AND startsWith(name, {literal(PREFIX)})"
            ).result_rows
            parts = client.query(
                "SELECT table, max(toUnixTimestamp(modification_time)) FROM system.parts "
                f"WHERE database = currentDatabase() AND startsWith(table, {literal(PREFIX)}) GROUP BY table"
            ).result_rows
        written = dict(parts)
        pruned = 0
        for name, made in found:
            # ClickHouse says whole seconds, so it may have been a second later.
            if max(made, written.get(name, 0)) + 1 <= before.timestamp():
                with self._connections.client() as client:
                    client.command(drop_statement(f"IF EXISTS {quoted(name)}"))
                pruned += 1
        return pruned

    def _stage(self, draft: Draft, schema: Schema, *, replace: bool, run: bool = False) -> Stage:
        _refuse_impossible(draft.id)
        stage = Stage(self._connections, draft, schema, run=run)
        if not replace and self._find(draft.id) is not None:
            raise ObjectExists(f"object {draft.id} exists already; nothing changed")
        return stage


def _refuse_impossible(id: str) -> None:
    if not is_id(id):
        raise DataError(f"{id!r} cannot be the id of an object: write obj_ and small letters, digits or _")


def _numbered(part: int, batch: RecordBatch) -> RecordBatch:
    return batch.append_column(PART, pa.repeat(pa.scalar(part, pa.uint32()), batch.num_rows))


def page_statement(record: Record, names: Sequence[str], first: int, last: int) -> str:
    """Rows `first` to `last` - 1. No row of a table that replaced this one has the version."""
    return (
        f"SELECT {', '.join(quoted(name) for name in names)} FROM {quoted(record.meta.id)} "
        f"WHERE {quoted(ROW)} >= {first} AND {quoted(ROW)} < {last} AND {quoted(VERSION)} = {record.version} "
        f"ORDER BY {quoted(ROW)}"
    )


def _chosen(meta: ObjectMeta, names: Sequence[str] | None) -> list[Column]:
    columns = columns_of(meta.schema)
    if names is None:
        return columns
    known = {column.field.name: column for column in columns}
    if unknown := [name for name in names if name not in known]:
        raise DataError(f"object {meta.id} has no column {', '.join(map(repr, unknown))}; it has {', '.join(known)}")
    return [known[name] for name in names]


def _meant(name: str, kind: str) -> str:
    """The expression for a column of a query, in a type that Arrow says well."""
    column = quoted(name)
    if _AS_TEXT.match(kind):
        return f"toString({column})"
    if plain := _AS_DATETIME64.fullmatch(kind):
        return f"toDateTime64({column}, 0{', ' + plain[1] if plain[1] else ''})"
    if inner := _WIDE.search(kind) or _AS_TEXT.search(kind) or re.search(r"\bDateTime\b", kind):
        raise DataError(f"the query's column {name!r} is {kind}, and Arrow has no {inner[0]}; cast it in the query")
    return column


def _gone(id: str) -> NotFound:
    return NotFound(f"object {id} was dropped or replaced while it was read; read it again")


def _cut_off(id: str, words: str) -> StoreUnavailable:
    return StoreUnavailable(f"the answer with rows of object {id} was cut off, read them again: {words}")
