"""Starts that are written beforehand: together, for those that are asked for together."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from headrace.core.errors import StoreUnavailable
from headrace.core.lanes import Lane
from headrace.core.task import Ref, Want
from headrace.store.base import Started
from headrace.worker.holding import Held, Holding
from headrace.worker.starting import Starter
from tests.worker.bench import Bench, opened


class Counting:
    """The store, with a note of what is started in one statement; it is away for the first of them."""

    def __init__(self, store: Any, outages: int = 0) -> None:
        self._store = store
        self._outages = outages
        self.written: list[list[int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def start(self, worker: str, refs: Sequence[Ref], *, executor: str | None = None) -> dict[Ref, Started]:
        if self._outages:
            self._outages -= 1
            raise StoreUnavailable("away")
        self.written.append([ref.id for ref in refs])
        return await self._store.start(worker, refs, executor=executor)


def starter_of(store: Any) -> Starter:
    return Starter(
        store=store, worker=lambda: "w", holding=Holding(), late=0.2, verify_after=0.5,
        answered=lambda held, started: None, executor_of=lambda held: "coroutine", inside=lambda held: True,
    )  # fmt: skip


async def held_tasks(bench: Bench, n: int) -> list[Held]:
    async def noop() -> None: ...

    bench.app.add(noop)
    await bench.store.enqueue([bench.app.task("noop")] * n)
    claims = await bench.store.claim("w", [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=n)])
    return [Held(claim, time.monotonic()) for claim in claims]


async def test_starts_that_are_asked_for_together_are_written_together(bench: Bench) -> None:
    """A hundred that grew old in the buffer are one or two commits, not a hundred; each has its own answer."""
    async with opened(bench):
        held = await held_tasks(bench, 20)
        await bench.store.deregister("w")  # gives back what nobody has started
        mine = await held_tasks(bench, 20)
        store = Counting(bench.store, outages=1)
        starter = starter_of(store)
        answers = await asyncio.gather(*(starter.before(each) for each in [*mine, *held]))
        assert answers[:20] == [Started.STARTED] * 20
        assert answers[20:] == [Started.REFUSED] * 20
        assert len(store.written) == 1
        assert await starter.before(mine[0]) is Started.STARTED, "a repeat changes nothing"
        assert all(each.start_written for each in mine)


async def test_a_start_that_nobody_waits_for_any_more_holds_up_no_other(bench: Bench) -> None:
    async with opened(bench):
        first, second = await held_tasks(bench, 2)
        store = Counting(bench.store, outages=10**9)
        starter = starter_of(store)
        waiting = asyncio.create_task(starter.before(first))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        store._outages = 0
        assert await asyncio.wait_for(starter.before(second), 20) is Started.STARTED
        assert store.written == [[second.ref.id]]
