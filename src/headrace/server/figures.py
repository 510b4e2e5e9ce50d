"""What only the ledger knows, for a page of metrics and for the list of queues."""

import time

from headrace.core.lanes import retry_ratio
from headrace.settings import Settings
from headrace.store.base import Store
from headrace.telemetry.figures import Figures

_LIVE = ("active", "idle", "stopping")


def ratio_of(settings: Settings, depth: int) -> float:
    """Share of the starts that retries get while both lanes wait."""
    warning, critical = settings.retry_queue_warning, settings.retry_queue_critical
    return retry_ratio(depth, default=settings.retry_ratio, warning=warning, critical=critical)


async def look(store: Store, settings: Settings) -> Figures:
    """One look; each figure is counted up to a cap."""
    began = time.monotonic()
    queues = {queue.name: dict(queue.depths) for queue in await store.queues()}
    workers = await store.workers(states=_LIVE)
    now = await store.now()
    ages = {worker.id: max(0.0, (now - worker.last_heartbeat).total_seconds()) for worker in workers}
    return Figures(
        depths=queues,
        retry_ratios={name: ratio_of(settings, depths.get("retry", 0)) for name, depths in queues.items()},
        dead_letters=await store.dead_letter_depth(),
        workers=sum(worker.state != "stopping" and ages[worker.id] <= worker.lease for worker in workers),
        heartbeat_ages=ages,
        seen=began,
    )
