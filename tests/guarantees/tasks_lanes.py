"""Tasks that say when they ran, for the suites about order, fairness and limits."""

import asyncio
import time

from headrace import Limit, Rate, Retry
from tests.guarantees.declared import Declared, note

declared = Declared()
task = declared.task

SOON = Retry(max_attempts=5, backoff="fixed", base=0.05, jitter=0.0)


@task(retry=SOON)
async def tell(n: int) -> None:
    """At once."""
    note("start", n)


@task(retry=SOON)
async def tell_slowly(n: int) -> None:
    """Slowly enough that the buffer stays shallow."""
    note("start", n)
    await asyncio.sleep(0.005)


@task(retry=Retry(max_attempts=1000, backoff="fixed", base=0, jitter=0.0))
async def fail_again(n: int) -> None:
    """Always, and is due again at once."""
    note("start", n)
    await asyncio.sleep(0.002)
    raise ConnectionError("still down")


@task(retry=SOON, order_key="{key}")
async def in_order(key: str, n: int, fails: int) -> None:
    """Fails `fails` times before it succeeds; its followers wait for it."""
    from headrace import current

    note("begin", key, n)
    await asyncio.sleep(0.01)
    note("end", key, n)
    if current.attempt <= fails:
        raise ConnectionError("again")


@task(retry=SOON, limit=Limit(2, key="{key}"))
async def limited(key: str) -> None:
    note("begin", key)
    await asyncio.sleep(0.2)  # long enough for a second one to begin, also on a busy machine
    note("end", key)


@task(retry=SOON, limit=Limit(2, key="child-{key}"))
def limited_child(key: str) -> None:
    note("begin", f"child-{key}")
    time.sleep(0.2)
    note("end", f"child-{key}")


@task(retry=SOON, rate=Rate(10, per=1.0, key="door", burst=2))
async def rated(n: int) -> None:
    note("start", n)


app = declared.on().app
