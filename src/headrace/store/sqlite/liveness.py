"""Workers, their heartbeats, and what they leave behind."""

from collections.abc import Mapping, Sequence

import orjson

from headrace.core.settlement import Settlement
from headrace.core.states import AttemptState, TaskState
from headrace.core.task import ClaimedTask, WorkerRecord
from headrace.store.instants import from_micros
from headrace.store.sqlite.connection import Part, Row, Transaction
from headrace.store.sqlite.ending import LiveRow
from headrace.store.sqlite.finishing import apply
from headrace.store.sqlite.inspection import instant


def heartbeat(transaction: Transaction, workers: Sequence[str], states: Mapping[str, str]) -> set[str]:
    return {
        worker
        for worker in workers
        if transaction.run("heartbeat", {"worker": worker, "now": transaction.now, "state": states.get(worker)})
    }


def deregister(transaction: Transaction, worker: str) -> int:
    """Stop the worker and release what it holds: the same path as a release by the worker itself."""
    transaction.run("stop_worker", {"worker": worker, "now": transaction.now})
    rows = [LiveRow(*row) for row in transaction.rows("rows_of_worker", (worker,))]
    apply(transaction, worker, [(row, _released(row)) for row in rows])
    return len(rows)


def _released(row: LiveRow) -> Settlement:
    return Settlement(
        task=row.id,
        claim_no=row.claim_no,
        state=TaskState.PENDING,
        attempt=AttemptState.RELEASED if row.started_at is not None else None,
    )


def _worker_record(row: Row) -> WorkerRecord:
    id, kind, hostname, pid, state, beat, lease, queues, version, started_at, last_heartbeat, stopped_at, *counts = row
    return WorkerRecord(
        id=id,
        kind=kind,
        hostname=hostname,
        pid=pid,
        state=state,
        beat=beat,
        lease=lease,
        queues=tuple(orjson.loads(queues)),
        version=version,
        started_at=from_micros(started_at),
        last_heartbeat=from_micros(last_heartbeat),
        stopped_at=instant(stopped_at),
        tasks_completed=counts[0],
        tasks_failed=counts[1],
    )


class Living(Part):
    async def register(self, worker: WorkerRecord) -> None:
        parameters = {
            "id": worker.id,
            "kind": worker.kind,
            "hostname": worker.hostname,
            "pid": worker.pid,
            "state": worker.state,
            "beat": worker.beat,
            "lease": worker.lease,
            "queues": orjson.dumps(list(worker.queues)).decode(),
            "version": worker.version,
        }
        await self.database.write(
            lambda transaction: transaction.run("register", {**parameters, "now": transaction.now}), urgent=True
        )

    async def heartbeat(self, workers: Sequence[str], *, states: dict[str, str] | None = None) -> set[str]:
        return await self.database.write(lambda transaction: heartbeat(transaction, workers, states or {}), urgent=True)

    async def deregister(self, worker: str) -> int:
        return await self.database.write(lambda transaction: deregister(transaction, worker))

    async def workers(self, *, states: Sequence[str] = ()) -> list[WorkerRecord]:
        wanted = orjson.dumps(list(states)).decode() if states else None
        rows = await self.database.read(lambda transaction: transaction.rows("workers", {"states": wanted}))
        return [_worker_record(row) for row in rows]

    async def take_over(self, worker: str, *, beat: int) -> bool:
        changed = await self.database.write(
            lambda transaction: transaction.run("take_over", {"worker": worker, "beat": beat, "now": transaction.now}),
            urgent=True,
        )
        return changed == 1

    async def stopped_holders(self, *, limit: int = 100) -> list[str]:
        rows = await self.database.read(lambda transaction: transaction.rows("stopped_holders", (limit,)))
        return [worker for (worker,) in rows]

    async def held(self, worker: str, *, limit: int = 500) -> list[ClaimedTask]:
        def read(transaction: Transaction) -> list[ClaimedTask]:
            parameters = {"worker": worker, "limit": limit, "now": transaction.now}
            return list(map(ClaimedTask._make, transaction.rows("held", parameters)))

        return await self.database.read(read)
