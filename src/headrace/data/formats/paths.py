"""Parquet and CSV by path or URL, read as they are asked for."""

import contextlib
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import pyarrow
import pyarrow.csv
import pyarrow.parquet

from headrace.core.errors import DataError
from headrace.data.backend import RecordBatch, Schema
from headrace.data.formats.rows import BATCH_ROWS, Incoming
from headrace.store.connect import masked_url

pa: Any = cast("Any", pyarrow)
pq: Any = cast("Any", pyarrow.parquet)
csv: Any = cast("Any", pyarrow.csv)

_PARQUET = (".parquet", ".pq")
_CSV = (".csv", ".csv.gz")


@contextlib.contextmanager
def open_path(place: str, schema: Schema | None) -> Generator[Incoming]:
    with contextlib.ExitStack() as stack:
        if "://" in place and not place.startswith("file://"):
            source = stack.enter_context(_open_url(place))
            yield _parquet([source]) if place.endswith(_PARQUET) else _csv(source, place, schema)
            return
        path = Path(unquote(urlsplit(place).path) if place.startswith("file://") else place)
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if file.suffix in _PARQUET and file.is_file())
            if not files:
                raise DataError(f"there is no Parquet file in the folder {place}")
            yield _parquet(files)
        elif not path.exists():
            raise DataError(f"there is no file {place}; to open an object by its id, use Object.open")
        elif path.name.endswith(_PARQUET):
            yield _parquet([path])
        elif path.name.endswith(_CSV):
            yield _csv(str(path), place, schema)
        else:
            raise _unknown(place)


@contextlib.contextmanager
def _open_url(url: str) -> Generator[Any]:
    if not url.endswith((*_PARQUET, ".csv")):
        raise _unknown(masked_url(url))
    from headrace.data.places import fsspec_files

    folder, _, name = url.rpartition("/")
    with fsspec_files(folder).open("", name) as file:
        yield file


def _unknown(place: str) -> DataError:
    return DataError(f"{place}: a table is made of .parquet, of a folder of them, or of .csv")


def _parquet(files: Sequence[Any]) -> Incoming:
    return Incoming(pq.read_schema(files[0]), _parquet_batches(files))


def _parquet_batches(files: Sequence[Any]) -> Iterator[RecordBatch]:
    for file in files:
        # Else it would read ahead, and a file of 256 MB made the process grow by 199.
        with pq.ParquetFile(file, pre_buffer=False) as reader:
            for group in range(reader.num_row_groups):
                yield from reader.iter_batches(batch_size=BATCH_ROWS, row_groups=[group], use_threads=False)


def _csv(source: Any, place: str, schema: Schema | None) -> Incoming:
    """Types are found in the first megabyte, unless a schema says them."""
    types = None if schema is None else {field.name: field.type for field in schema}
    try:
        reader = csv.open_csv(
            source,
            read_options=csv.ReadOptions(use_threads=False),
            convert_options=csv.ConvertOptions(column_types=types),
        )
    except pa.ArrowInvalid as error:
        raise DataError(f"{place} cannot be read as CSV: {error}") from error
    return Incoming(reader.schema, _csv_batches(reader, place))


def _csv_batches(reader: Any, place: str) -> Iterator[RecordBatch]:
    try:
        yield from reader
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{place} cannot be read as CSV: {error}; types are found in its first megabyte, give schema= for others"
        ) from error
