"""Named queries from .sql files, so that hot SQL is read and reviewed as SQL.

A file holds several queries, each headed by `-- name: claim` and a comment that says what it does. The schema
(PostgreSQL, `headrace.tasks`) or the table prefix (SQLite, `headrace_tasks`) is replaced once, when the files are read.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

_HEADING = re.compile(r"^-- name: *([a-z][a-z0-9_]*) *$", re.MULTILINE)
_TOKEN = re.compile(r"\bheadrace(?=[._'\"])")


@cache
def load_queries(package: str, name: str = "headrace") -> Mapping[str, str]:
    """Every query of the .sql files in `package` (a dotted name), by its own name, for the app called `name`."""
    queries: dict[str, str] = {}
    for file in sorted(files(package).iterdir(), key=lambda entry: entry.name):
        if not file.name.endswith(".sql"):
            continue
        _, *parts = _HEADING.split(file.read_text(encoding="utf-8"))
        for query, body in zip(parts[::2], parts[1::2], strict=True):
            if query in queries:
                raise ValueError(f"{package}/{file.name}: the query {query!r} is defined twice")
            queries[query] = for_app(body.strip().removesuffix(";"), name)
    return MappingProxyType(queries)


def for_app(sql: str, name: str) -> str:
    """The statement for another app: its schema or prefix instead of `headrace`."""
    # The name is an identifier that `store.connect` checked; it can break out of nothing.
    return _TOKEN.sub(name, sql)
