"""Sums and samples of the whole ledger, each by an index that stops."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import orjson

from headrace.core.states import TERMINAL, TaskState
from headrace.store.figures import DepthsAt, EndedTask, Newest, OutcomeSum, depth_texts
from headrace.store.instants import from_micros, to_micros
from headrace.store.sqlite.connection import Part, Row, Transaction
from headrace.store.sqlite.counting import live_counts
from headrace.store.sqlite.enqueueing import seconds_to_micros
from headrace.store.texts import is_storable

_SECOND = 1_000_000
_MINUTE = 60 * _SECOND


def _ended(row: Row) -> EndedTask:
    id, name, queue, state, eligible_at, started_at, finished_at = row
    return EndedTask(
        id,
        name,
        queue,
        TaskState(state),
        from_micros(eligible_at),
        None if started_at is None else from_micros(started_at),
        from_micros(finished_at),
    )


class Figuring(Part):
    async def outcome_sums(self, *, since: datetime, until: datetime, bucket: int) -> list[OutcomeSum]:
        parameters = {"since": to_micros(since), "until": to_micros(until), "bucket": bucket * _SECOND}
        rows = await self.database.read(lambda transaction: transaction.rows("outcome_sums", parameters))
        return [OutcomeSum(from_micros(at), *rest) for at, *rest in rows]

    async def keep_depths(self, depths: Mapping[str, Mapping[str, int]], *, kept: float) -> bool:
        found = depth_texts(depths)

        def keep(transaction: Transaction) -> bool:
            minute = transaction.now - transaction.now % _MINUTE
            transaction.run("drop_depths", {"until": minute - seconds_to_micros(kept)})
            if transaction.rows("depths_are_kept", {"minute": minute}):
                return False
            transaction.run_many("keep_depths", [(queue, minute, text) for queue, text in found.items()])
            return True

        return await self.database.write(keep)

    async def depth_series(self, queue: str, *, since: datetime, bucket: int, buckets: int) -> list[DepthsAt]:
        if not is_storable(queue):
            return []
        first, width = to_micros(since), bucket * _SECOND

        def look(transaction: Transaction) -> list[DepthsAt]:
            found: list[DepthsAt] = []
            for begin in range(first, first + buckets * width, width):
                parameters = {"queue": queue, "since": begin, "until": begin + width}
                found += [
                    DepthsAt(from_micros(begin), orjson.loads(t)) for (t,) in transaction.rows("depths_in", parameters)
                ]
            return found

        return await self.database.read(look)

    async def sample_ends(
        self, states: Sequence[TaskState], *, since: datetime, bucket: int, buckets: int, each: int
    ) -> list[EndedTask]:
        first, width = to_micros(since), bucket * _SECOND

        def sample(transaction: Transaction) -> list[Row]:
            found: list[Row] = []
            for place in range(buckets):
                begin = first + place * width
                for state in states:
                    parameters = {"state": state.value, "since": begin, "until": begin + width, "each": each}
                    found += transaction.rows("sample_ends", parameters)
            return found

        return [_ended(row) for row in await self.database.read(sample)]

    async def own_ends(self, owner: str, *, since: datetime, limit: int) -> list[EndedTask]:
        if not is_storable(owner):
            return []
        parameters = {"owner": owner, "since": to_micros(since), "limit": limit}
        rows = await self.database.read(lambda transaction: transaction.rows("own_ends", parameters))
        return [_ended(row) for row in rows]

    async def live_counts(self) -> dict[TaskState, int]:
        return {TaskState(state): n for state, n in (await self.database.read(live_counts)).items()}

    async def newest(self, *, owner: str | None = None) -> Newest:
        if not is_storable(owner):
            return Newest(None, None, None)

        def look(transaction: Transaction) -> Newest:
            whose = {"owner": owner}
            if owner is None:
                [(live,)] = transaction.rows("newest_live")
                states = [{"state": state.value} for state in TERMINAL]
                ended = [row for each in states for row in transaction.rows("last_ended", each)]
            else:
                [(live,)] = transaction.rows("newest_live_of_owner", whose)
                ended = transaction.rows("last_ended_of_owner", whose)
            id, at = max(ended, key=lambda row: (row[1], row[0]), default=(None, None))
            return Newest(live, id, None if at is None else from_micros(at))

        return await self.database.read(look)

    async def holding(self, workers: Sequence[str], *, cap: int) -> dict[str, int]:
        def count(transaction: Transaction) -> dict[str, int]:
            asked = [(worker, {"worker": worker, "cap": cap}) for worker in workers if is_storable(worker)]
            counted = [(worker, transaction.rows("holding", parameters)) for worker, parameters in asked]
            return {worker: n for worker, ((n,),) in counted if n}

        return await self.database.read(count)
