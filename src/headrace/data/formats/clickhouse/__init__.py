"""Tables in ClickHouse: a server, or chDB, which is ClickHouse inside this process.

Both are spoken to through `clickhouse_connect`, so there is one code path, and only `connection` knows the difference.
An object is one MergeTree table of its id. A hidden column numbers its rows and is the sorting key, so that a slice is
a range of the key. What is known of it (`record`) is the comment of the table: a table gets its name when it is
complete, and that one act, atomic in ClickHouse, shows rows, schema and count together. There is no catalog that could
disagree.
"""

from headrace.data.formats.clickhouse.backend import ClickHouseBackend

__all__ = ["ClickHouseBackend"]
