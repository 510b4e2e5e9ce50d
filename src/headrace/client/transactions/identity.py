"""Is the user's connection to the app's own database? Asked before anything is written, once per connection."""

import contextlib
import os
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

from headrace.client.transactions.base import Adapter
from headrace.core.errors import ForeignConnection
from headrace.store.base import Statement, Store

# A server that was started at that microsecond, and a database on it: true through proxies and under any host name.
_IDENTITY = "SELECT current_database()::text, extract(epoch FROM pg_postmaster_start_time())::text"


type Identity = Callable[[], Awaitable[tuple[str, ...]]]
"""What a store on a server says of itself, asked while it is open."""


# From a connection (or SQLAlchemy engine) to the URL of the store it was found to share a database with.
_known: "weakref.WeakKeyDictionary[Any, str]" = weakref.WeakKeyDictionary()


async def check_same_database(adapter: Adapter, store: Store, asking: Identity) -> None:
    """ForeignConnection when a write through `adapter` would land in another database than the store's."""
    if _remembered(adapter, store):
        return
    if adapter.dialect != store.dialect:
        raise ForeignConnection(
            f"the connection is to {adapter.dialect} and the app's store is {store.dialect}; nothing was written"
        )
    if adapter.dialect == "sqlite":
        await _check_sqlite(adapter, store)
    else:
        await _check_postgres(adapter, asking)
    with contextlib.suppress(TypeError):  # an object without weak references is asked each time
        _known[adapter.database] = store.url


def _remembered(adapter: Adapter, store: Store) -> bool:
    try:
        return _known.get(adapter.database) == store.url
    except TypeError:
        return False


async def _check_sqlite(adapter: Adapter, store: Store) -> None:
    rows = await adapter.execute(Statement("PRAGMA database_list"))
    theirs = next((str(row[2]) for row in rows if row[1] == "main"), "")
    ours = store.url.partition(":///")[2]
    if not theirs or not ours or not _same_file(theirs, ours):
        raise ForeignConnection(
            f"the connection is to {theirs or 'a database in memory'!r} and the app's store is {ours!r}; "
            "nothing was written"
        )


def _same_file(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


async def _check_postgres(adapter: Adapter, asking: Identity) -> None:
    ours = await asking()
    rows = await adapter.execute(Statement(_IDENTITY))
    theirs = tuple(str(value) for value in rows[0])
    if theirs != ours:
        raise ForeignConnection(
            f"the connection is to the database {theirs[0]!r}, which is not the app's store ({ours[0]!r}) or is on "
            "another server; nothing was written"
        )
