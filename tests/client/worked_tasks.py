"""An app for a real worker; the test gives its database by the environment."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace import App, Context, Middleware, Permanent, Resource, Retry, current, injected
from headrace.orchestration import add_task_to_current_job, configure, get_current_job_id

app = App()
configure(app)


class Pool:
    size = 3


@app.lifespan
async def lifespan() -> AsyncIterator[dict[str, object]]:
    yield {"pool": Pool()}


class Marks(Middleware):
    @contextmanager
    def attempt(self, context: Context) -> Iterator[None]:
        context.log("around")
        yield


app.add_middleware(Marks())


@dataclass
class Trip:
    start: datetime
    takes: timedelta


@app.task
async def arrive(trip: Trip, pool: Resource[Pool] = injected, context: Context = injected) -> datetime:
    assert (pool.size, context.attempt, current.name) == (3, 1, "tests.client.worked_tasks.arrive")
    return trip.start + trip.takes


@app.task
def double(number: int, pool: Resource[Pool] = injected) -> int:
    return number * 2 * (pool.size - 2)


@app.task(executor="child")
async def double_in_a_child(number: int) -> int:
    await asyncio.sleep(0)
    return number * 2


@app.task(retry=Retry(max_attempts=3, backoff="fixed", base=0, jitter=0))
def third_time() -> int:
    if current.attempt < 3:
        raise ConnectionError("not yet")
    return current.attempt


@app.task
async def never() -> None:
    raise Permanent("no use")


@app.task
def unstorable() -> object:
    return object()


@app.task
async def enqueues(number: int) -> int:
    """A task that enqueues another, in both ways."""
    handle = await double.aenqueue(number)
    return handle.id


async def grow(count: int) -> int:
    for number in range(count):
        await add_task_to_current_job("tests.client.worked_tasks.leaf", {"number": number})
    return get_current_job_id()


def leaf(number: int) -> int:
    return get_current_job_id()
