"""How a column of an Arrow table lies in ClickHouse, and how it comes back as it was.

| Arrow | ClickHouse |
|---|---|
| bool, (u)int8–64, float32/64 | the same |
| float16 | Float32 |
| string, binary (also large and view) | String |
| fixed_size_binary(n) | FixedString(n) |
| date32 | Date32 |
| timestamp | DateTime64 in its zone; without one, or with an offset for a zone, in UTC |
| date64, time32, time64, duration | the number: Int32 or Int64 |
| decimal(p, s), s >= 0 | Decimal(p, s) |
| dictionary | as its values |
| null | Nullable(UInt8), all null |
| list (also large and of a fixed size), struct, map | Array, Tuple, Map |

Refused when a table is made: unions, intervals, run ends, views of lists, extension types, a struct without fields, and
a dictionary or a null type within a list, a struct or a map. None of these three can be null in ClickHouse: beside a
column of them a hidden one says where it is null; one that is null within another value is refused when it is met.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow
import pyarrow.compute

from headrace.core.errors import DataError
from headrace.data.backend import RecordBatch, Schema

pa: Any = cast("Any", pyarrow)
pc: Any = cast("Any", pyarrow.compute)

ROW = "_headrace_row"
VERSION = "_headrace_version"
PART = "_headrace_part"

_LEAVES: dict[str, tuple[str, Any]] = {
    "bool": ("Bool", pa.bool_()),
    "int8": ("Int8", pa.int8()),
    "int16": ("Int16", pa.int16()),
    "int32": ("Int32", pa.int32()),
    "int64": ("Int64", pa.int64()),
    "uint8": ("UInt8", pa.uint8()),
    "uint16": ("UInt16", pa.uint16()),
    "uint32": ("UInt32", pa.uint32()),
    "uint64": ("UInt64", pa.uint64()),
    "halffloat": ("Float32", pa.float32()),
    "float": ("Float32", pa.float32()),
    "double": ("Float64", pa.float64()),
    "string": ("String", pa.string()),
    "large_string": ("String", pa.large_string()),
    "string_view": ("String", pa.large_string()),
    "binary": ("String", pa.binary()),
    "large_binary": ("String", pa.large_binary()),
    "binary_view": ("String", pa.large_binary()),
    "date32[day]": ("Date32", pa.date32()),
    "date64[ms]": ("Int64", pa.int64()),
    "time32[s]": ("Int32", pa.int32()),
    "time32[ms]": ("Int32", pa.int32()),
    "time64[us]": ("Int64", pa.int64()),
    "time64[ns]": ("Int64", pa.int64()),
    "duration[s]": ("Int64", pa.int64()),
    "duration[ms]": ("Int64", pa.int64()),
    "duration[us]": ("Int64", pa.int64()),
    "duration[ns]": ("Int64", pa.int64()),
}
_PRECISION = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_ZONE = re.compile(r"[A-Za-z]+(/[A-Za-z0-9_+-]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """`name` is its name in ClickHouse, `kind` its type there, `storage` the Arrow type that goes there. `mask` is the
    hidden column that says where it is null."""

    field: Any  # pyarrow.Field
    name: str
    kind: str
    storage: Any  # pyarrow.DataType
    mask: str | None

    @property
    def names(self) -> list[str]:
        return [self.name] if self.mask is None else [self.name, self.mask]

    @property
    def definitions(self) -> list[str]:
        found = [f"{quoted(self.name)} {self.kind}"]
        return found if self.mask is None else [*found, f"{quoted(self.mask)} Bool"]


def columns_of(schema: Schema) -> list[Column]:
    """DataError, with the column's name, for what ClickHouse cannot hold."""
    if len(set(schema.names)) < len(schema.names):
        raise DataError("two columns have the same name, and in ClickHouse each has its own; rename one")
    return [_column(position, field) for position, field in enumerate(schema)]


def _column(position: int, field: Any) -> Column:
    nested = pa.types.is_nested(field.type)
    if pa.types.is_null(field.type):
        kind, storage = "Nullable(UInt8)", pa.uint8()
    elif pa.types.is_dictionary(field.type):
        kind, storage = _stored(field.type.value_type, field.name, nullable=field.nullable)
    else:
        kind, storage = _stored(field.type, field.name, nullable=field.nullable)
    mask = f"_headrace_null_{position}" if nested and field.nullable else None
    column = Column(field=field, name=stored_name(field.name), kind=kind, storage=storage, mask=mask)
    try:
        _decoded(_encoded(pa.array([], field.type), column), column, iter([pa.array([], pa.bool_())]))
    except pa.ArrowNotImplementedError:
        # Arrow itself has no way back from what ClickHouse gives, as for some types within others.
        raise DataError(f"column {field.name!r}: ClickHouse cannot hold {field.type}; cast it first") from None
    return column


def _stored(type: Any, where: str, *, nullable: bool) -> tuple[str, Any]:
    if leaf := _leaf(type):
        kind, storage = leaf
        return (f"Nullable({kind})" if nullable else kind), storage
    # Within a list, a struct or a map every value may be null there: what the type says of it is Arrow's affair.
    if _is_list(type):
        kind, storage = _stored(type.value_type, f"{where}[]", nullable=True)
        return f"Array({kind})", (pa.large_list(storage) if pa.types.is_large_list(type) else pa.list_(storage))
    if pa.types.is_struct(type):
        fields = list(type)
        names = [field.name for field in fields]
        if not fields or len(set(names)) < len(names) or any(not name or "." in name for name in names):
            raise DataError(f"column {where!r}: the fields of a struct need names of their own, without a dot")
        stored = [_stored(field.type, f"{where}.{field.name}", nullable=True) for field in fields]
        inner = ", ".join(f"{quoted(name)} {kind}" for name, (kind, _) in zip(names, stored, strict=True))
        return f"Tuple({inner})", pa.struct([(name, storage) for name, (_, storage) in zip(names, stored, strict=True)])
    if pa.types.is_map(type):
        key, key_storage = _stored(type.key_type, f"{where}[key]", nullable=False)
        value, value_storage = _stored(type.item_type, f"{where}[]", nullable=True)
        return f"Map({key}, {value})", pa.map_(key_storage, value_storage)
    raise DataError(f"column {where!r}: ClickHouse cannot hold {type}; cast it to another type first")


def _leaf(type: Any) -> tuple[str, Any] | None:
    if leaf := _LEAVES.get(str(type)):
        return leaf
    if pa.types.is_timestamp(type):
        zone = _zone(type.tz)
        return f"DateTime64({_PRECISION[type.unit]}, '{zone}')", pa.timestamp(type.unit, zone)
    if pa.types.is_decimal(type) and type.scale >= 0:
        wide = type.precision > 38
        storage = (pa.decimal256 if wide else pa.decimal128)(type.precision, type.scale)
        return f"Decimal({type.precision}, {type.scale})", storage
    if pa.types.is_fixed_size_binary(type) and type.byte_width > 0:
        return f"FixedString({type.byte_width})", type
    return None


def _is_list(type: Any) -> bool:
    return pa.types.is_list(type) or pa.types.is_large_list(type) or pa.types.is_fixed_size_list(type)


def _zone(name: str | None) -> str:
    """The instants are the same in any zone; this one is for people who look with SQL."""
    if name and _ZONE.fullmatch(name):
        try:
            return ZoneInfo(name).key
        except (ZoneInfoNotFoundError, ValueError):
            pass
    return "UTC"


def in_one_line(schema: Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


# --- names ------------------------------------------------------------------------------------------------------------


def stored_name(name: str) -> str:
    """Percent-encoded where ClickHouse would take it for something else: `_` in front is for its columns and ours, a
    dot makes a nested one, and it must not be empty."""
    if not name:
        return "%"
    escaped = name.replace("%", "%25").replace(".", "%2E")
    return f"%5F{escaped[1:]}" if escaped.startswith("_") else escaped


def shown_name(name: str) -> str:
    """The column that a name in ClickHouse stands for."""
    if name == "%":
        return ""
    original = name.replace("%5F", "_", 1) if name.startswith("%5F") else name
    original = original.replace("%2E", ".").replace("%25", "%")
    return original if stored_name(original) == name else name


def quoted(name: str) -> str:
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


# --- values -----------------------------------------------------------------------------------------------------------


def encode(batch: RecordBatch, columns: Sequence[Column], first_row: int) -> RecordBatch:
    """What is inserted: numbered rows, in the types of ClickHouse. DataError for a null that it cannot hold."""
    arrays, names = [_numbers(first_row, batch.num_rows)], [ROW]
    for column, array in zip(columns, batch.columns, strict=True):
        if array.null_count and not column.field.nullable:
            raise DataError(f"column {column.field.name!r} says that it has no nulls, and has {array.null_count}")
        arrays.append(_encoded(array, column))
        names.append(column.name)
        if column.mask is not None:
            arrays.append(array.is_null())
            names.append(column.mask)
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _numbers(first: int, count: int) -> Any:
    one = pa.scalar(1, pa.uint64())
    return pc.subtract(pc.cumulative_sum(pa.repeat(one, count), first), one)


def _encoded(array: Any, column: Column) -> Any:
    type = column.field.type
    if pa.types.is_null(type):
        return pa.nulls(len(array), column.storage)
    if pa.types.is_dictionary(type):
        array = array.dictionary_decode()
    elif pa.types.is_nested(type):
        _refuse_inner_nulls(array, column.field.name)
    return array if array.type == column.storage else array.cast(column.storage)


def _refuse_inner_nulls(array: Any, where: str) -> None:
    """A null list, struct or map within another one would come back empty."""
    if not pa.types.is_nested(array.type):
        return
    valid = array.drop_null() if array.null_count else array
    if pa.types.is_struct(array.type):
        inner = [(field.name, valid.field(index)) for index, field in enumerate(array.type)]
    elif pa.types.is_map(array.type):
        first, end = valid.offsets[0].as_py(), valid.offsets[-1].as_py()
        inner = [("[]", valid.items.slice(first, end - first))]
    else:
        inner = [("[]", valid.flatten())]
    for name, values in inner:
        path = f"{where}{name}" if name == "[]" else f"{where}.{name}"
        if pa.types.is_nested(values.type) and values.null_count:
            raise DataError(f"column {path!r}: ClickHouse cannot hold a null {values.type} within another value")
        _refuse_inner_nulls(values, path)


def decode(batch: RecordBatch, columns: Sequence[Column]) -> RecordBatch:
    """The batch that was encoded, of these columns; their values come first, then their masks where they have one."""
    if not columns:
        return batch.select([])
    found = iter(batch.columns)
    arrays = [_decoded(next(found), column, found) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([column.field for column in columns]))


def _decoded(array: Any, column: Column, rest: Any) -> Any:
    type = column.field.type
    if column.mask is not None:
        mask = next(rest)
        if pc.any(mask).as_py():
            array = pc.if_else(mask, pa.scalar(None, array.type), array)
    if pa.types.is_null(type):
        return pa.nulls(len(array))
    return array if array.type == type else array.cast(type)
