"""What rows and Python agree on, apart from the tables, so that a process need not import SQLAlchemy (0.3 s) for it."""

from datetime import UTC, datetime, timedelta

ID_BLOCK = 100  # ids that one value of PostgreSQL's sequence stands for
# Where PostgreSQL's ids begin: far above whatever an SQLite ledger counts to, so that one can move there with its ids.
FIRST_POSTGRES_ID = 2**48

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_micros(instant: datetime) -> int:
    """An aware instant as SQLite keeps it."""
    return (instant - _EPOCH) // timedelta(microseconds=1)


def from_micros(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)
