"""SQLite's errors as ours: what happened, to which file, and whether to try again."""

import errno
import sqlite3

from headrace.core.errors import SchemaError, StoreError, StoreUnavailable

# The low byte is the primary code; extended codes carry more above it.
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}


def translated[E: BaseException](error: E, path: str) -> E | StoreError:
    """The error a caller sees. Errors that are not the database's stay what they are."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _caused(StoreUnavailable(_full(path)), error)
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return _caused(StoreError(f"{path} or its folder cannot be written: {error.strerror}"), error)
    if not isinstance(error, sqlite3.Error):
        return error
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _BUSY:
        text = f"{path} is locked by another connection; nothing was written. Look for a transaction left open on it"
        return _caused(StoreUnavailable(text), error)
    if code == sqlite3.SQLITE_FULL:
        return _caused(StoreUnavailable(_full(path)), error)
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        return _caused(StoreUnavailable(f"{path} cannot be read or written now ({error})"), error)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return _caused(StoreError(f"{path} is read-only ({error}); check the rights of the file and its folder"), error)
    if code in _DAMAGED:
        return _caused(SchemaError(f"{path} is not an SQLite database, or is damaged ({error})"), error)
    if "no such table" in str(error) or "no such column" in str(error):
        return _caused(SchemaError(f"{path} lacks part of the schema ({error}); run: headrace db upgrade"), error)
    return _caused(StoreError(f"{path}: {error}"), error)


def _full(path: str) -> str:
    return f"the disk that holds {path} is full; nothing was written. Free some space and try again"


def _caused(ours: StoreError, cause: BaseException) -> StoreError:
    ours.__cause__ = cause
    return ours
