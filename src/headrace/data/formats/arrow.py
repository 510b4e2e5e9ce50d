"""Tables as Parquet files in folders: `<root>/<id>/part-….parquet`, and `object.json`, which is written last.

The manifest names the files with the rows of each of their row groups. So a count reads no data, a slice opens only the
row groups that it needs, and what is not named does not exist: a writer that died left files that nobody sees. The runs
of a sort or join have a format of their own, for they are read a part at a time: see `runs`.
"""

import dataclasses
import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, cast
from uuid import uuid4

import pyarrow
import pyarrow.parquet

from headrace.core.errors import DataError, NotFound, ObjectExists
from headrace.data.backend import Draft, ObjectMeta, RecordBatch, Schema
from headrace.data.formats import runs
from headrace.data.formats.files import Files
from headrace.data.formats.manifest import MANIFEST, File, Stored, dumped, loaded
from headrace.data.formats.schemas import shown_schema
from headrace.data.ids import is_id
from headrace.runtime.faults import reached

pa: Any = cast("Any", pyarrow)
pq: Any = cast("Any", pyarrow.parquet)

# As many rows as a chunk has by default: the chunks of a map then share no row group, so none is decoded twice. With
# 65,536 a chunk cost 3.6 ms instead of 1.0, and a scan of all took 0.73 s of 10 million rows instead of 1.1.
_GROUP_ROWS = 10_000
_GROUP_BYTES = 16 << 20
# A footer is read whole by everyone who opens the file: 0.3 ms for these, 5 ms for a thousand groups.
_GROUPS_PER_FILE = 64


class ArrowBackend:
    """Any number of processes may use the same place at once."""

    def __init__(self, files: Files) -> None:
        self._files = files

    @property
    def url(self) -> str:
        return self._files.url

    @property
    def shared(self) -> bool:
        return self._files.shared

    def write(
        self, draft: Draft, schema: Schema, batches: Iterable[RecordBatch], *, replace: bool = False
    ) -> ObjectMeta:
        self._refuse_taken(draft.id, replace)
        writer = f"part-{uuid4().hex[:12]}"
        written: list[File] = []
        groups = _row_groups(batches, schema)
        try:
            for number in itertools.count():
                first = next(groups, None)
                if first is None:
                    break
                name = f"{writer}-{number:05}.parquet"
                taken = itertools.chain([first], itertools.islice(groups, _GROUPS_PER_FILE - 1))
                written.append(self._write_file(draft.id, name, schema, taken))
            return self._publish(draft, schema, written, replace)
        except BaseException:
            self._discard(draft.id, [file.name for file in written])
            raise

    def concat(self, draft: Draft, parts: Sequence[str], *, replace: bool = False) -> ObjectMeta:
        self._refuse_taken(draft.id, replace)
        found = {part: self._stored(part) for part in dict.fromkeys(parts)}
        schema = found[parts[0]].meta.schema
        for part in found.values():
            if not part.meta.schema.equals(schema):
                raise DataError(
                    f"objects {parts[0]} and {part.meta.id} cannot become one: their columns differ: "
                    f"{shown_schema(schema)} and {shown_schema(part.meta.schema)}"
                )
        writer = f"part-{uuid4().hex[:12]}"
        made: list[File] = []
        try:
            for part in parts:
                for file in found[part].files:
                    name = f"{writer}-{len(made):05}{'.parquet' if file.parts is None else runs.SUFFIX}"
                    self._files.copy((part, file.name), (draft.id, name))
                    made.append(file._replace(name=name))
            return self._publish(draft, schema, made, replace)
        except FileNotFoundError as error:
            self._discard(draft.id, [file.name for file in made])
            raise NotFound(f"a part of object {draft.id} was dropped while they were put together: {error}") from error
        except BaseException:
            self._discard(draft.id, [file.name for file in made])
            raise

    def write_run(
        self, draft: Draft, schema: Schema, parts: Sequence[Sequence[RecordBatch]], *, replace: bool = False
    ) -> ObjectMeta:
        self._refuse_taken(draft.id, replace)
        for batch in itertools.chain.from_iterable(parts):
            if not batch.schema.equals(schema):
                raise DataError(f"a batch has {shown_schema(batch.schema)}, and not {shown_schema(schema)}")
        name = f"part-{uuid4().hex[:12]}-00000{runs.SUFFIX}"
        content = runs.packed(parts, schema)
        rows = sum(batch.num_rows for part in parts for batch in part)
        try:
            with self._files.write(draft.id, name) as sink:
                sink.writelines(content)
            # One number for all its rows: whoever wants a part reads the manifest as well.
            file = File(name, (rows,), sum(map(len, content)), len(parts))
            return self._publish(draft, schema, [file], replace)
        except BaseException:
            self._discard(draft.id, [name])
            raise

    def read_part(self, ids: Sequence[str], part: int) -> Iterator[RecordBatch]:
        schema = self._stored(ids[0]).meta.schema if ids else None
        for id in ids:
            for file in self._run_files(id):
                if "parts" not in file:
                    raise DataError(f"object {id} is not cut into parts: only what write_run wrote has them")
                if part < file["parts"]:
                    yield from self._part(id, file["name"], part, schema)

    def query(self, draft: Draft, sql: str, *, replace: bool = False) -> ObjectMeta:
        raise DataError(
            f"{self.url} cannot run a query, it holds files; say where to run it: SQL(query, url or connection)"
        )

    def meta(self, id: str) -> ObjectMeta | None:
        stored = self._find(id)
        return None if stored is None else stored.meta

    def read(
        self, id: str, *, offset: int = 0, limit: int | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[RecordBatch]:
        stored = self._stored(id)
        schema = _chosen(stored.meta, columns)
        try:
            for batch in self._batches(stored, offset, limit, columns):
                # Parquet has fewer types than Arrow; what came back as a near relative becomes what it was.
                yield batch if batch.schema.equals(schema) else batch.cast(schema)
        except FileNotFoundError as error:
            raise NotFound(f"object {id} was dropped or replaced while it was read, at {error.filename}") from error

    def drop(self, id: str) -> bool:
        stored = self._find(id)
        if stored is None:
            return False
        self._files.remove(id, MANIFEST)
        # Only what it named: somebody may be writing the next one of this id.
        self._discard(id, [file.name for file in stored.files])
        return True

    def list(self) -> Iterator[ObjectMeta]:
        for folder in self._files.folders():
            if (stored := self._find(folder)) is not None:
                yield stored.meta

    def prune(self, before: datetime) -> int:
        pruned = 0
        for folder in self._files.folders():
            if not is_id(folder):
                continue
            entries = self._files.entries(folder)
            stored = self._find(folder)
            # After the listing: a file that was named since is not one that was forgotten.
            named = {MANIFEST, *(file.name for file in stored.files)} if stored else {MANIFEST}
            writers: defaultdict[str, dict[str, datetime]] = defaultdict(dict)
            for entry in entries:
                if entry.name not in named:
                    writers[entry.name.rpartition("-")[0]][entry.name] = entry.touched
            for left in writers.values():
                # The first files of a writer that has been busy for long are old, and not forgotten.
                if max(left.values()) < before:
                    self._discard(folder, list(left))
                    pruned += len(left)
            if not entries:
                self._files.remove_if_empty(folder)
        return pruned

    def close(self) -> None:
        pass

    def _write_file(self, id: str, name: str, schema: Schema, groups: Iterable[Any]) -> File:
        rows: list[int] = []
        with self._files.write(id, name) as sink:
            try:
                # Statistics would make every footer longer, and nobody here asks for them.
                writer = pq.ParquetWriter(
                    sink, schema, compression="lz4", use_dictionary=_repetitive(schema), write_statistics=False
                )
            except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
                raise DataError(f"object {id}: Parquet cannot store {shown_schema(schema)}: {error}") from error
            with writer:
                for group in groups:
                    writer.write_table(group, row_group_size=group.num_rows)
                    rows.append(group.num_rows)
                    reached("data.group_written")
        return File(name, tuple(rows), self._files.size(id, name))

    def _publish(self, draft: Draft, schema: Schema, files: Sequence[File], replace: bool) -> ObjectMeta:
        meta = ObjectMeta(
            **{field.name: getattr(draft, field.name) for field in dataclasses.fields(Draft)},
            rows=sum(file.rows for file in files),
            bytes=sum(file.bytes for file in files),
            schema=schema,
        )
        reached("data.before_publish")
        try:
            self._files.publish(draft.id, MANIFEST, dumped(Stored(meta, tuple(files))), replace=replace)
        except FileExistsError:
            raise _taken(draft.id) from None
        return meta

    def _discard(self, id: str, names: Sequence[str]) -> None:
        for name in names:
            self._files.remove(id, name)
        self._files.remove_if_empty(id)

    def _refuse_taken(self, id: str, replace: bool) -> None:
        """Early, before the work; `_publish` decides."""
        if not is_id(id):
            raise DataError(f"{id!r} cannot be the id of an object: write obj_ and small letters, digits or _")
        if not replace and self._find(id) is not None:
            raise _taken(id)

    def _stored(self, id: str) -> Stored:
        found = self._find(id)
        if found is None:
            raise self._missing(id)
        return found

    def _missing(self, id: str) -> NotFound:
        return NotFound(f"there is no object {id!r} in {self.url}: it was never completed, or was dropped")

    def _find(self, id: str) -> Stored | None:
        if not is_id(id):
            return None
        try:
            return loaded(self._files.load(id, MANIFEST))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"object {id}: its {MANIFEST} in {self.url} cannot be read: {error!r}") from error

    def _run_files(self, id: str) -> Sequence[dict[str, Any]]:
        """Of the manifest only what says where the parts are: its schema is the same for all runs, and there are as
        many runs to each part as there are parts."""
        try:
            return json.loads(self._files.load(id, MANIFEST))["files"]
        except FileNotFoundError:
            raise self._missing(id) from None

    def _part(self, id: str, name: str, part: int, schema: Schema) -> Sequence[RecordBatch]:
        try:
            with self._files.ranges(id, name) as load:
                return list(runs.part_of(load, part, schema))
        except FileNotFoundError as error:
            raise NotFound(f"object {id} was dropped or replaced while it was read, at {name}") from error

    def _batches(
        self, stored: Stored, offset: int, limit: int | None, columns: Sequence[str] | None
    ) -> Iterator[RecordBatch]:
        end = stored.meta.rows if limit is None else min(stored.meta.rows, offset + limit)
        start = 0
        for file in stored.files:
            if start >= end:
                return
            if start + file.rows > offset and file.parts is not None:
                yield from _cut(self._run_batches(stored, file, columns), start, offset, end)
            elif start + file.rows > offset:
                with self._files.open(stored.meta.id, file.name) as source:
                    yield from _slices(source, file, start, offset, end, columns)
            start += file.rows

    def _run_batches(self, stored: Stored, file: File, columns: Sequence[str] | None) -> Iterator[RecordBatch]:
        for part in range(file.parts or 0):
            for batch in self._part(stored.meta.id, file.name, part, stored.meta.schema):
                yield batch if columns is None else batch.select(list(columns))


def _cut(batches: Iterable[RecordBatch], start: int, offset: int, end: int) -> Iterator[RecordBatch]:
    """The rows [offset, end) of the object that are in these batches, whose first row is `start`."""
    for batch in batches:
        if start >= end:
            return
        first = max(0, offset - start)
        if first < batch.num_rows:
            yield batch.slice(first, min(batch.num_rows, end - start) - first)
        start += batch.num_rows


def _slices(
    source: Any, file: File, start: int, offset: int, end: int, columns: Sequence[str] | None
) -> Iterator[RecordBatch]:
    """The rows [offset, end) of the object that lie in this file, whose first row is `start`."""
    reader = pq.ParquetFile(source, pre_buffer=False)
    names = None if columns is None else list(columns)
    for number, rows in enumerate(file.groups):
        if start >= end:
            return
        if start + rows > offset:
            # Several columns are decoded by as many threads elsewhere; a worker's cores have tasks of their own.
            group = reader.read_row_group(number, columns=names, use_threads=False)
            first = max(0, offset - start)
            wanted = group.slice(first, min(rows, end - start) - first)
            # Parquet gives columns in the order of the file.
            yield from (wanted if names is None else wanted.select(names)).combine_chunks().to_batches()
        start += rows


def _row_groups(batches: Iterable[RecordBatch], schema: Schema) -> Iterator[Any]:
    """Tables of the size of a row group, whatever the size of the batches."""
    waiting: list[RecordBatch] = []
    rows = size = 0
    for number, batch in enumerate(batches):
        if not batch.schema.equals(schema):
            raise DataError(f"batch {number} has {shown_schema(batch.schema)}, and not {shown_schema(schema)}")
        if not batch.num_rows:
            continue
        if not len(schema):
            raise DataError("a table without columns has no rows")
        each = batch.nbytes / batch.num_rows
        position = 0
        while position < batch.num_rows:
            room = min(_GROUP_ROWS - rows, int((_GROUP_BYTES - size) / each) if each else _GROUP_ROWS)
            part = batch.slice(position, max(1, room))
            waiting.append(part)
            position += part.num_rows
            rows += part.num_rows
            size += int(part.num_rows * each)
            if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
                yield pa.Table.from_batches(waiting, schema)
                waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting, schema)


def _repetitive(schema: Schema) -> list[str] | bool:
    """Columns worth a dictionary. To try it on numbers doubled the time of a write, and made the file larger."""
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_dictionary)
    return [field.name for field in schema if any(kind(field.type) for kind in kinds)] or False


def _chosen(meta: ObjectMeta, columns: Sequence[str] | None) -> Schema:
    if columns is None:
        return meta.schema
    known = meta.schema.names
    for name in columns:
        if name not in known:
            raise DataError(f"object {meta.id} has no column {name!r}; it has {', '.join(known) or 'none'}")
    return pa.schema([meta.schema.field(name) for name in columns])


def _taken(id: str) -> ObjectExists:
    return ObjectExists(f"object {id} is there already and stays as it is; drop it first, or take another id")
