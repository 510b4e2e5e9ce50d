"""A job whose one task is in our hands, and says what it is told to: a worker without user code."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from headrace import App
from headrace.core.lanes import Lane
from headrace.core.task import ClaimedTask, NewJob, NewTask, Ref, Want
from headrace.store.base import Store
from headrace.testing.store_conformance.ledger import completed

_WORKER = "writer"


class Writer:
    def __init__(self, store: Store, job: int, claim: ClaimedTask) -> None:
        self._store = store
        self._claim = claim
        self.job = job
        self.task = claim.id
        self.written = 0

    @classmethod
    async def begin(cls, store: Store, *, owner: str | None = None, queue: str = "live") -> "Writer":
        task = NewTask(name="said", queue=queue, owner=owner)
        job, (made,) = await store.create_job(NewJob(name="watched", tasks=(task,), owner=owner))
        claims = await store.claim(_WORKER, [Want(queue=queue, pool="coroutine", lane=Lane.PRIMARY, n=1)])
        assert [claim.id for claim in claims] == [made.id]
        return cls(store, job, claims[0])

    @property
    def ref(self) -> Ref:
        return Ref(self._claim.id, self._claim.claim_no)

    async def say(self, n: int = 1, *, text: str = "line {}", stream: str = "info") -> None:
        """So many lines, numbered from where the last call ended, in one write: `line 0`, `line 1`, …"""
        numbers = range(self.written, self.written + n)
        await self._store.append_logs([(self.ref, number, stream, text.format(number)) for number in numbers])
        self.written += n

    async def say_at(self, rate: float, *, total: int, batch: int = 10) -> float:
        """So many lines a second, in writes of `batch`; how long it took."""
        began = time.monotonic()
        while self.written < total:
            await self.say(min(batch, total - self.written))
            await asyncio.sleep(max(0.0, began + self.written / rate - time.monotonic()))
        return time.monotonic() - began

    async def progress(self, text: str) -> None:
        await self._store.progress(_WORKER, [(self.ref, text)])

    async def finish(self) -> None:
        report = await self._store.finish(_WORKER, [completed(self._claim)])
        assert report.accepted


@asynccontextmanager
async def store_of(app: App) -> AsyncGenerator[Store]:
    """One of its own, as a worker in another process would have."""
    store = app.new_store()
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def until[T](act: Callable[[], Awaitable[T]], wanted: Callable[[T], bool], *, within: float = 30.0) -> T:
    async with asyncio.timeout(within):
        while True:
            if wanted(found := await act()):
                return found
            await asyncio.sleep(0.02)
