"""The ledger in an SQLite file: one writer thread, turns between processes, datagrams as wake-ups.

Knows SQL and files; does not know workers' loops or user code.
"""

from headrace.store.sqlite.store import SQLiteStore

__all__ = ["SQLiteStore"]
