"""How deep queues are, noted once a minute while a server runs: what a chart of them begins with."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from secrets import token_hex

from headrace.app import App
from headrace.core.errors import HeadraceError
from headrace.core.task import QueueRecord
from headrace.store.base import Store

ALL = ""  # no queue is called so: the sum of all
KEPT = 8 * 86_400.0  # seconds: the longest range, and a day
_ROLE = "depths"
_MINUTE = 60.0
_FIRST = 5.0  # seconds after the start: what lives for a moment only notes nothing
_LATE = 1.0  # after a minute has begun
_BUSIEST = 100  # queues of which each minute is kept

_logger = logging.getLogger("headrace.server")


@asynccontextmanager
async def keeping(app: App) -> AsyncGenerator[None]:
    """Part of the application's lifespan."""
    task = asyncio.create_task(_keep_on(app), name="headrace-depths")
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _keep_on(app: App) -> None:
    identity = f"server-{token_hex(8)}"
    pause = _FIRST
    while True:
        await asyncio.sleep(pause)
        try:
            pause = await app.engine.run(lambda store: keep(store, identity))
        except HeadraceError as error:
            _logger.debug("depths of this minute are not kept: %s", error)
            pause = _MINUTE


async def keep(store: Store, identity: str) -> float:
    """Note this minute, unless another server does; seconds until the next look."""
    if await store.lead(_ROLE, identity, lease=2 * _MINUTE):
        await store.keep_depths(worth_keeping(await store.queues()), kept=KEPT)
    now = await store.now()
    return _MINUTE - now.timestamp() % _MINUTE + _LATE


def worth_keeping(queues: Sequence[QueueRecord]) -> Mapping[str, Mapping[str, int]]:
    """The sum, and each of the deepest: there may be a queue for each of ten thousand customers."""
    together: Counter[str] = Counter()
    for queue in queues:
        together.update(queue.depths)
    deepest = sorted(queues, key=lambda queue: (-sum(queue.depths.values()), queue.name))[:_BUSIEST]
    return {ALL: together, **{queue.name: queue.depths for queue in deepest}}
