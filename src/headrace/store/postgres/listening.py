"""LISTEN on a connection of its own that comes back by itself after an outage."""

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Any

import asyncpg

from headrace.store.postgres.connection import Database

_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_CHECK = 15.0

_asyncpg: Any = asyncpg  # it ships no types


async def listen_for_ever(
    database: Database,
    channels: Mapping[str, Callable[[str], None]],
    connected: Callable[[], None],
    cut: Callable[[], None] = lambda: None,
) -> None:
    """Give every payload to the function of its channel. `connected`: whatever was notified before is lost; `cut`: and
    so is what comes from now on."""
    failures = 0
    while True:
        try:
            connection = await _asyncpg.connect(database.dsn, **database.connect_arguments())
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):
            await asyncio.sleep(_PAUSES[min(failures, len(_PAUSES) - 1)] * random.uniform(0.8, 1.2))
            failures += 1
            continue
        try:
            lost = asyncio.Event()

            def on_end(_: Any, lost: asyncio.Event = lost) -> None:
                lost.set()

            def on_notify(_connection: Any, _pid: int, channel: str, payload: object) -> None:
                channels[channel](str(payload))

            connection.add_termination_listener(on_end)
            for channel in channels:
                await connection.add_listener(channel, on_notify)
            failures = 0
            connected()
            while not lost.is_set():
                # A line that is dead without a word is found by asking.
                try:
                    await asyncio.wait_for(lost.wait(), _CHECK)
                except TimeoutError:
                    await connection.execute("SELECT 1", timeout=_CHECK)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):
            pass
        finally:
            cut()
            connection.terminate()
        await asyncio.sleep(_PAUSES[0])
