"""The ledger on PostgreSQL (>= 14), by asyncpg. Its clock is the only clock, its functions the hot path."""

from headrace.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
