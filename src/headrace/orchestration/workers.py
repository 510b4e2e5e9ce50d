"""Workers that are not headrace's own: they register, and send heartbeats."""

from collections.abc import Sequence
from datetime import UTC
from typing import Any

from headrace._version import __version__
from headrace.core.errors import NotFound
from headrace.core.task import WorkerRecord
from headrace.orchestration.context import current_app


async def register_worker(hostname: str, pid: int, *, queues: Sequence[str] = ("default",)) -> WorkerRecord:
    """Make a worker known: `hostname:pid:timestamp` is its id. It must send heartbeats within its lease."""
    app = current_app()

    async def register(store: Any) -> WorkerRecord:
        now = await store.now()
        worker = WorkerRecord(
            id=f"{hostname}:{pid}:{int(now.timestamp() * 1_000_000)}",
            kind="worker",
            hostname=hostname,
            pid=pid,
            state="active",
            beat=0,
            lease=app.settings.lease,
            queues=tuple(queues),
            version=__version__,
            started_at=now.astimezone(UTC),
            last_heartbeat=now.astimezone(UTC),
            stopped_at=None,
            tasks_completed=0,
            tasks_failed=0,
        )
        await store.register(worker)
        return worker

    return await app.engine.run(register)


async def worker_heartbeat(worker_id: str) -> None:
    """Renew the lease. NotFound when nobody knows the worker, or it was stopped: register again."""
    alive = await current_app().engine.run(lambda store: store.heartbeat([worker_id]))
    if worker_id not in alive:
        raise NotFound(
            f"worker {worker_id!r} is unknown or was stopped, and its tasks may run elsewhere: "
            "stop what it does and register again"
        )


async def deregister_worker(worker_id: str) -> int:
    """Mark it stopped; what it still held goes back. The row stays. How many tasks it gave back."""
    app = current_app()
    await app.workers.aget(worker_id)
    return await app.engine.run(lambda store: store.deregister(worker_id))


async def list_workers(status: str | None = None) -> list[WorkerRecord]:
    return list(await current_app().workers.alist(states=() if status is None else (status,)))
