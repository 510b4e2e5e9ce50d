"""Workers and their leases. Death is judged by the rescuer; the store only counts beats."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from headrace.core.settlement import Settlement
from headrace.core.states import AttemptState, TaskState
from headrace.core.task import ClaimedTask, WorkerRecord
from headrace.store.postgres.claiming import claimed_tasks
from headrace.store.postgres.claims import HandedClaims
from headrace.store.postgres.connection import Database, column
from headrace.store.postgres.finishing import Finishing
from headrace.store.postgres.low_water import LowWater

_RELEASE_LIMIT = 500


class Liveness:
    def __init__(
        self,
        database: Database,
        queries: Mapping[str, str],
        finishing: Finishing,
        claims: HandedClaims,
        low_water: LowWater,
    ) -> None:
        self._database = database
        self._queries = queries
        self._finishing = finishing
        self._claims = claims
        self._low_water = low_water

    async def register(self, worker: WorkerRecord) -> None:
        await self._database.fetch(
            self._queries["register"],
            worker.id,
            worker.kind,
            worker.hostname,
            worker.pid,
            worker.state,
            worker.beat,
            worker.lease,
            orjson.dumps(worker.queues).decode(),
            worker.version,
            repeatable=True,
        )

    async def heartbeat(self, workers: Sequence[str], *, states: dict[str, str] | None = None) -> set[str]:
        # Sorted, so that two heartbeats for overlapping workers lock them in one order.
        ids = sorted(set(workers))
        given = states or {}
        rows = await self._database.fetch(
            self._queries["heartbeat"], ids, [given.get(worker) for worker in ids], repeatable=True
        )
        return set(column(rows))

    async def deregister(self, worker: str) -> int:
        """Stopped first: should this be interrupted, `stopped_holders` names the worker to whoever goes on."""
        await self._database.fetch(self._queries["stop_worker"], worker, repeatable=True)
        returned = 0
        while claims := await self.held(worker, limit=_RELEASE_LIMIT):
            report = await self._finishing.finish(worker, [_released(claim) for claim in claims])
            returned += len(report.accepted)
            if not report.accepted:
                break
        self._claims.end(worker)
        self._low_water.forget(worker)
        return returned

    async def workers(self, *, states: Sequence[str] = ()) -> list[WorkerRecord]:
        rows = await self._database.fetch(self._queries["workers"], list(states), repeatable=True)
        return [_record(row) for row in rows]

    async def take_over(self, worker: str, *, beat: int) -> bool:
        return bool(await self._database.fetch(self._queries["take_over"], worker, beat))

    async def stopped_holders(self, *, limit: int = 100) -> list[str]:
        return column(await self._database.fetch(self._queries["stopped_holders"], limit, repeatable=True))

    async def held(self, worker: str, *, limit: int = 500) -> list[ClaimedTask]:
        claims = claimed_tasks(await self._database.fetch(self._queries["held"], worker, limit, repeatable=True))
        self._claims.show(worker, claims)
        return claims


def _released(claim: ClaimedTask) -> Settlement:
    started = claim.state in (TaskState.RUNNING, TaskState.PAUSED)
    return Settlement(
        task=claim.id,
        claim_no=claim.claim_no,
        state=TaskState.PENDING,
        attempt=AttemptState.RELEASED if started else None,
    )


def _record(row: Mapping[str, Any]) -> WorkerRecord:
    fields: dict[str, Any] = {**row, "queues": tuple(orjson.loads(row["queues"]))}
    return WorkerRecord(**fields)
