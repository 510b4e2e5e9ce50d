"""What this process has been handed, so that claims whose answer was lost on the way do not stay held for ever.

A claim that committed while its connection broke belongs to a worker that never heard of it: the lease goes on, and the
task waits until that worker ends. So after such a doubt, what the worker holds unstarted and was never handed is given
back before the next claim.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager

from headrace.core.task import ClaimedTask, Ref
from headrace.store.postgres.connection import Database

type Release = Callable[[str, Collection[Ref]], Awaitable[None]]


class HandedClaims:
    def __init__(self, database: Database, queries: Mapping[str, str]) -> None:
        self._database = database
        self._queries = queries
        self._handed: defaultdict[str, set[tuple[int, int]]] = defaultdict(set)
        self._asking: defaultdict[str, int] = defaultdict(int)
        self._doubted: set[str] = set()
        self._given_back: defaultdict[str, set[tuple[int, int]]] = defaultdict(set)
        self._recovery = asyncio.Lock()
        self.release: Release | None = None

    @asynccontextmanager
    async def asking(self, worker: str) -> AsyncGenerator[None]:
        """Around a statement that claims: when it ends without an answer, nobody knows what was claimed."""
        if worker in self._doubted:
            async with self._recovery:
                await self._recover(worker)
        self._asking[worker] += 1
        try:
            yield
        except BaseException:
            self.doubt(worker)
            raise
        finally:
            self._asking[worker] -= 1

    def doubt(self, worker: str) -> None:
        self._doubted.add(worker)

    def show(self, worker: str, claims: Iterable[ClaimedTask]) -> None:
        """Its own worker asked what it holds: from now on it knows, and none of that is stranded."""
        if worker in self._asking:
            self.hand(worker, claims)

    def end(self, worker: str) -> None:
        """Nothing more comes from this worker."""
        self._handed.pop(worker, None)
        self._asking.pop(worker, None)
        self._given_back.pop(worker, None)
        self._doubted.discard(worker)

    def hand(self, worker: str, claims: Iterable[ClaimedTask]) -> None:
        # As plain pairs: they equal their Refs, and a thousand of them are made at once.
        self._handed[worker].update([claim[:2] for claim in claims])

    def arrived(self, worker: str, claim: ClaimedTask) -> bool:
        """Take in what an enqueue handed over; False when it was taken for stranded before word of it came."""
        if claim[:2] in self._given_back[worker]:
            return False
        self.hand(worker, [claim])
        return True

    def forget(self, worker: str, refs: Iterable[Ref]) -> None:
        if handed := self._handed.get(worker):
            handed.difference_update(refs)

    async def _recover(self, worker: str) -> None:
        # While another claim of this worker is under way its tasks cannot be told from stranded ones: next time.
        if worker not in self._doubted or self._asking[worker] or self.release is None:
            return
        rows = await self._database.fetch(self._queries["stranded"], worker, repeatable=True)
        held = {Ref(row["id"], row["claim_no"]) for row in rows}
        if stranded := held - self._handed[worker]:
            self._given_back[worker] |= stranded
            await self.release(worker, stranded)
        self._doubted.discard(worker)
