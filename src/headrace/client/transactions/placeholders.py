"""From PostgreSQL's own `$1` to the placeholders of a driver."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from headrace.store.base import Statement

_NUMBERED = re.compile(r"\$(\d+)")


def converted(statement: Statement, style: str) -> tuple[str, Sequence[Any] | Mapping[str, Any]]:
    """The statement for a driver whose PEP 249 `paramstyle` is `style`."""
    sql, order = _translated(statement.sql, style)
    match style:
        case "pyformat" | "named":
            return sql, {f"p{number}": value for number, value in enumerate(statement.parameters, 1)}
        case "format" | "qmark":
            return sql, tuple(statement.parameters[number - 1] for number in order)
        case _:  # numeric_dollar: PostgreSQL's own
            return sql, statement.parameters


@lru_cache(maxsize=256)
def _translated(sql: str, style: str) -> tuple[str, tuple[int, ...]]:
    order = tuple(int(number) for number in _NUMBERED.findall(sql))
    match style:
        case "pyformat":
            return _NUMBERED.sub(r"%(p\1)s", sql.replace("%", "%%")), order
        case "format":
            return _NUMBERED.sub("%s", sql.replace("%", "%%")), order
        case "named":
            return _NUMBERED.sub(r":p\1", sql), order
        case "qmark":
            return _NUMBERED.sub("?", sql), order
        case "numeric_dollar":
            return sql, order
        case _:
            raise ValueError(f"unknown paramstyle {style!r}")
