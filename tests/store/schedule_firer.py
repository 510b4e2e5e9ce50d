"""A scheduler in a process of its own, which a test kills: fires the one schedule `s` and says what came of it."""

import asyncio
import sys
from datetime import timedelta

from headrace.core.schedule import Fire, Firing
from headrace.store.connect import connect


async def main(url: str) -> None:
    store = connect(url)
    await store.open()
    found = await store.due_schedules()
    (record,) = found.due
    fires = tuple(Fire(tick=found.now - n * timedelta(microseconds=1)) for n in (2, 1, 0))
    firing = Firing(
        schedule=record.id,
        revision=record.revision,
        cursor=record.cursor,
        new_cursor=found.now,
        next_at=found.now + timedelta(hours=1),
        fires=fires,
    )
    print(len(await store.fire([firing])))
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
