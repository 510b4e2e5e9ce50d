"""Workers that stand by: an enqueue gives its task to an idle one in its own transaction.

By itself a new task is two transactions away from its first line: the enqueue with its sync, a wake-up, and the claim
with a sync of its own. Handed over it is claimed by the commit that makes it, and the word of that brings the whole
task along: nothing is asked any more. (Pickup on an idle system: about half of what it was.)

A worker stands for one task at a time. It says each second that it still does, so an enqueue does not believe one that
died; what such a one was given in the seconds before waits for its rescue, like anything else that it held. A word that
is lost on the way leaves the task in the worker's hands without its knowledge: it notices that it does not stand any
more, and looks.
"""

from collections.abc import Callable, Mapping, Sequence

import orjson

from headrace.core.lanes import Lane
from headrace.core.task import ClaimedTask, Pool
from headrace.store.instants import from_micros
from headrace.store.postgres.claims import HandedClaims
from headrace.store.postgres.connection import Database
from headrace.store.postgres.wakeups import Listener


class Handing:
    def __init__(self, database: Database, queries: Mapping[str, str], claims: HandedClaims, *, notify: bool) -> None:
        self._database = database
        self._queries = queries
        self._claims = claims
        self._notify = notify
        self._takers: dict[str, Callable[[ClaimedTask], None]] = {}
        self.listener = Listener(database, self._told)

    async def stand_by(
        self, worker: str, queues: Sequence[str], pools: Sequence[Pool], take: Callable[[ClaimedTask], None]
    ) -> bool:
        if not (self._notify and self.listener.hears):
            return False
        self._takers[worker] = take
        return bool(
            await self._database.fetch(
                self._queries["stand_by"], worker, self.listener.channel, list(queues), list(pools), repeatable=True
            )
        )

    async def still_stands(self, worker: str) -> bool:
        if not self.listener.hears:
            return False
        return bool(await self._database.fetch(self._queries["still_stands"], worker, repeatable=True))

    async def stand_down(self, worker: str) -> bool:
        return bool(await self._database.fetch(self._queries["stand_down"], worker))

    def leave(self, worker: str) -> None:
        self._takers.pop(worker, None)

    def _told(self, text: str) -> None:
        worker, *row = orjson.loads(text)
        take = self._takers.get(worker)
        claim = _claimed(*row)
        # What nobody takes belongs to a worker that is leaving, and goes back with all that it holds.
        if take is not None and self._claims.arrived(worker, claim):
            take(claim)


def _claimed(
    id: int, name: str, kind: str, queue: str, pool: str, priority: int, arguments: str, codec: str, version: int,
    options: str, max_attempts: int, order_at: int,
) -> ClaimedTask:  # fmt: skip
    """As `insert_handed` tells it; the rest is the same of every new task."""
    row = (
        id, 1, name, kind, queue, pool, int(Lane.PRIMARY), priority, arguments, codec, version, options, 0, 0,
        max_attempts, 1, None, False, False, "claimed", from_micros(order_at), 0.0,
    )  # fmt: skip
    return ClaimedTask._make(row)
