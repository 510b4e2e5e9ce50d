"""Where hints come from that something has grown. They only save time: whoever watches also looks by itself."""

from collections.abc import Callable

from headrace.client.engine import Engine
from headrace.store.base import Store

EVERYTHING = "*"  # hints may have been lost

type Heard = Callable[[str], None]


async def listen_to_store(engine: Engine, heard: Heard) -> None:
    """Call `heard` with each hint, on the loop where the store lives, until it is cancelled or the store fails."""

    async def listen(store: Store) -> None:
        async with store.watch() as hints:
            heard(EVERYTHING)  # what grew before this moment
            async for hint in hints:
                heard(hint)

    await engine.run(listen)
