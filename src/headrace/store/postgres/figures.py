"""Sums and samples of the whole ledger, each by an index that stops."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson

from headrace.core.states import TERMINAL, TaskState
from headrace.store.base import COUNTED_AT_MOST
from headrace.store.figures import DepthsAt, EndedTask, Newest, OutcomeSum, depth_texts
from headrace.store.postgres.connection import Database
from headrace.store.texts import is_storable


def _ended(row: Any) -> EndedTask:
    id, name, queue, state, *instants = row
    return EndedTask(id, name, queue, TaskState(state), *instants)


class Figures:
    def __init__(self, database: Database, queries: Mapping[str, str]) -> None:
        self._database = database
        self._queries = queries

    async def outcome_sums(self, *, since: datetime, until: datetime, bucket: int) -> list[OutcomeSum]:
        return [OutcomeSum(*row) for row in await self._fetch("outcome_sums", since, until, bucket)]

    async def keep_depths(self, depths: Mapping[str, Mapping[str, int]], *, kept: float) -> bool:
        found = depth_texts(depths)
        return bool(await self._fetch("keep_depths", list(found), list(found.values()), kept))

    async def depth_series(self, queue: str, *, since: datetime, bucket: int, buckets: int) -> list[DepthsAt]:
        if not is_storable(queue):
            return []
        rows = await self._fetch("depth_series", queue, since, bucket, buckets)
        return [DepthsAt(at, orjson.loads(text)) for at, text in rows]

    async def sample_ends(
        self, states: Sequence[TaskState], *, since: datetime, bucket: int, buckets: int, each: int
    ) -> list[EndedTask]:
        wanted = [state.value for state in states]
        return [_ended(row) for row in await self._fetch("sample_ends", wanted, since, bucket, buckets, each)]

    async def own_ends(self, owner: str, *, since: datetime, limit: int) -> list[EndedTask]:
        if not is_storable(owner):
            return []
        return [_ended(row) for row in await self._fetch("own_ends", owner, since, limit)]

    async def live_counts(self) -> dict[TaskState, int]:
        return {TaskState(state): n for state, n in await self._fetch("live_counts", COUNTED_AT_MOST)}

    async def newest(self, *, owner: str | None = None) -> Newest:
        if not is_storable(owner):
            return Newest(None, None, None)
        if owner is None:
            rows = await self._fetch("newest", [state.value for state in TERMINAL])
        else:
            rows = await self._fetch("newest_of_owner", owner)
        return Newest(*rows[0])

    async def holding(self, workers: Sequence[str], *, cap: int) -> dict[str, int]:
        wanted = [worker for worker in workers if is_storable(worker)]
        return dict(await self._fetch("holding", wanted, cap))

    async def _fetch(self, query: str, *arguments: Any) -> Sequence[Any]:
        return await self._database.fetch(self._queries[query], *arguments, repeatable=True)
