"""Tables of every kind of column, by name, each with rows, nulls and the odd values of its kind."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, cast

import pyarrow

pa: Any = cast("Any", pyarrow)


def _column(values: list[Any], kind: Any) -> Callable[[], Any]:
    return lambda: pa.table({"row": pa.array(range(len(values)), pa.int32()), "value": pa.array(values, kind)})


_INSTANT = datetime(2031, 3, 30, 1, 59, 59, 999_999, tzinfo=UTC)
_POINT = pa.struct([("x", pa.int32()), ("label", pa.string())])

SHAPES: Mapping[str, Callable[[], Any]] = {
    "int8": _column([1, None, -128, 127], pa.int8()),
    "int64": _column([0, None, -(2**63), 2**63 - 1], pa.int64()),
    "uint64": _column([0, None, 2**64 - 1], pa.uint64()),
    "float32": _column([0.5, None, -0.0], pa.float32()),
    "float64": _column([0.1, None, float("inf"), float("-inf"), float("nan"), 5e-324], pa.float64()),
    "bool": _column([True, None, False], pa.bool_()),
    "string": _column(["", None, "a", "naïve ☃ 🦆", "tab\t'quote' \"double\" \\ \n", "x" * 5000], pa.string()),
    "large_string": _column(["", None, "a"], pa.large_string()),
    "binary": _column([b"", None, b"\x00\xff\n"], pa.binary()),
    "date": _column([date(1970, 1, 1), None, date(2038, 1, 19)], pa.date32()),
    "time": _column([time(0), None, time(23, 59, 59, 999_999)], pa.time64("us")),
    "duration": _column([timedelta(0), None, timedelta(days=-1, microseconds=1)], pa.duration("us")),
    "timestamp": _column([946_684_799_000_001, None], pa.timestamp("us")),
    "timestamp_utc": _column([_INSTANT, None], pa.timestamp("us", "UTC")),
    "timestamp_zone": _column([_INSTANT, None], pa.timestamp("us", "Europe/Berlin")),
    "timestamp_ms": _column([datetime(2001, 1, 1, 0, 0, 0, 5000, tzinfo=UTC), None], pa.timestamp("ms", "UTC")),
    "timestamp_ns": _column([1_900_000_000_123_456_789, None], pa.timestamp("ns", "UTC")),
    "decimal": _column([Decimal("0.10"), None, Decimal("-99999999.99")], pa.decimal128(10, 2)),
    "decimal_wide": _column([Decimal("12345678901234567890.123456789"), None], pa.decimal128(38, 9)),
    "list": _column([[1, 2], None, [], [None, 3]], pa.list_(pa.int64())),
    "list_of_lists": _column([[["a"], []], None, [None, ["b", None]]], pa.list_(pa.list_(pa.string()))),
    "struct": _column([{"x": 1, "label": "a"}, None, {"x": None, "label": ""}], _POINT),
    "list_of_structs": _column([[{"x": 1, "label": "a"}], None, []], pa.list_(_POINT)),
    "map": _column([[("a", 1)], None, [("b", None), ("c", 3)]], pa.map_(pa.string(), pa.int64())),
    "dictionary": _column(["a", None, "b", "a"], pa.dictionary(pa.int32(), pa.string())),
    "null": _column([None, None], pa.null()),
}
