"""A scheduler on a clock that the test moves, until it is killed: `python -m tests.guarantees.schedulers URL CLOCK`."""

import asyncio
import sys

from headrace.scheduling.enqueuer import ScheduleEnqueuer
from headrace.store.base import StoreOptions
from headrace.store.connect import connect
from headrace.testing.clock import SharedClock


async def main(url: str, clock: str) -> None:
    store = connect(url, StoreOptions(extra={"clock": SharedClock(clock)}))
    await store.open()
    scheduler = ScheduleEnqueuer(store=store)
    print("looks", flush=True)
    while True:
        # Its pauses are for a clock that moves by itself.
        pause = await scheduler.run_once()
        await asyncio.sleep(0.002 if pause else 0)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
