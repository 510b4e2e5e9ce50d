"""Is everything there that tasks need? Each check answers for itself, and none of them raises."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from headrace.client.engine import Engine
from headrace.core.breaker import BreakerStatus
from headrace.core.errors import HeadraceError, NotAllowed
from headrace.core.task import WorkerRecord
from headrace.store.base import Store

_LIVE = ("active", "idle", "stopping")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    healthy: bool
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Healthy only when every check is."""

    checks: Mapping[str, Check]

    @property
    def healthy(self) -> bool:
        return all(check.healthy for check in self.checks.values())


async def check_health(engine: Engine) -> Health:
    try:
        return await engine.run(_check)
    except NotAllowed as error:  # an app over HTTP: the server answers, its token may not look
        hidden = Check(healthy=False, detail=f"not known: {error}")
        return Health(checks=dict.fromkeys(("database", "workers", "stale_tasks", "breakers"), hidden))
    except (HeadraceError, OSError) as error:
        down = Check(healthy=False, detail="not known: the database does not answer")
        database = Check(healthy=False, detail=str(error))
        breakers = Check(healthy=True, detail=down.detail)
        return Health(checks={"database": database, "workers": down, "stale_tasks": down, "breakers": breakers})


async def _check(store: Store) -> Health:
    now = await store.now()
    workers = await store.workers(states=_LIVE)
    fresh = [worker for worker in workers if now - worker.last_heartbeat <= timedelta(seconds=worker.lease)]
    silent = [worker for worker in workers if worker not in fresh]
    active = [worker for worker in fresh if worker.state != "stopping"]
    return Health(
        checks={
            "database": Check(healthy=True, detail=f"{store.dialect} answers"),
            "workers": Check(healthy=bool(active), detail=f"{len(active)} active"),
            "stale_tasks": await _stale_tasks(store, silent),
            "breakers": await _breakers(store),
        }
    )


async def _breakers(store: Store) -> Check:
    """For information: that another service is down is no fault of ours."""
    refusing = [record for record in await store.breakers() if record.status is not BreakerStatus.CLOSED]
    shown = ", ".join(f"{record.service} {record.status}{' by hand' * record.forced}" for record in refusing)
    return Check(healthy=True, detail=shown or "none open")


async def _stale_tasks(store: Store, silent: list[WorkerRecord]) -> Check:
    holders = set(await store.stopped_holders())
    for worker in silent:
        if await store.held(worker.id, limit=1):
            holders.add(worker.id)
    if not holders:
        return Check(healthy=True, detail="none")
    return Check(healthy=False, detail=f"workers that are gone still hold tasks: {', '.join(sorted(holders))}")
