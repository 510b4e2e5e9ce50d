"""A run, in one file: a table that is cut into parts, each of which is read alone.

Positions first, one more than there are parts, 8 bytes each; then the rows of one part after the other. So whoever
wants a part reads the two numbers around it and then its rows, whatever the number of parts. Parquet with a row group
for each would have a footer as long as they are many, and everyone who opens the file reads all of it.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import pyarrow

from headrace.data.backend import RecordBatch, Schema
from headrace.data.formats.files import Load

pa: Any = cast("Any", pyarrow)

SUFFIX = ".run"

_POSITION = 8
_HEAD = struct.Struct("<?7xQ")  # whether it is a stream, which says its schema; the bytes before compression


def packed(parts: Iterable[Sequence[RecordBatch]], schema: Schema) -> list[bytes]:
    """The content of the file, in pieces: the positions, and each part. All of a run are in memory, compressed, since
    the positions come first; its rows are as well."""
    pieces = [_packed([batch for batch in part if batch.num_rows], schema) for part in parts]
    positions = [_POSITION * (len(pieces) + 1)]
    for piece in pieces:
        positions.append(positions[-1] + len(piece))
    return [struct.pack(f"<{len(positions)}Q", *positions), *pieces]


def part_of(load: Load, part: int, schema: Schema) -> Iterator[RecordBatch]:
    """The rows of a part, of which there must be one."""
    around = load(_POSITION * part, _POSITION * (part + 2))
    start, end = struct.unpack("<QQ", around)
    if start < end:
        yield from _unpacked(load(start, end), schema)


def _packed(batches: Sequence[RecordBatch], schema: Schema) -> bytes:
    if not batches:
        return b""
    # A message without its schema, which is the same for all. The values of a dictionary are messages of their own.
    is_stream = len(batches) > 1 or any(_has_dictionary(field.type) for field in schema)
    if is_stream:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        content = sink.getvalue()
    else:
        content = batches[0].serialize()
    return _HEAD.pack(is_stream, content.size) + pa.compress(content, codec="lz4", asbytes=True)


def _unpacked(piece: bytes, schema: Schema) -> Iterator[RecordBatch]:
    is_stream, size = _HEAD.unpack_from(piece)
    content = pa.decompress(pa.py_buffer(piece).slice(_HEAD.size), decompressed_size=size, codec="lz4")
    if is_stream:
        yield from pa.ipc.open_stream(content)
    else:
        yield pa.ipc.read_record_batch(content, schema)


def _has_dictionary(type: Any) -> bool:
    if pa.types.is_dictionary(type):
        return True
    if isinstance(type, pa.BaseExtensionType):
        return _has_dictionary(type.storage_type)
    return any(_has_dictionary(type.field(number).type) for number in range(type.num_fields))
