"""The supervisor's page of metrics: what all its processes counted, and what the ledger says."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

from headrace.client.counting import job_ended
from headrace.core.errors import StoreUnavailable
from headrace.core.lanes import retry_ratio
from headrace.store.base import JobEnd, Store
from headrace.telemetry.events import Bus
from headrace.telemetry.prometheus import load_collector
from headrace.telemetry.relay import Meeting
from headrace.telemetry.serving import serve
from headrace.telemetry.tally import Tally
from headrace.worker.identity import new_worker_id
from headrace.worker.options import WorkerOptions
from headrace.worker.services.figures import FigureKeeper

logger = logging.getLogger("headrace.worker")


class Exposure:
    """What the supervisor needs of its page: where processes send to, and the service that asks the ledger."""

    def __init__(self, *, address: str, keeper: FigureKeeper) -> None:
        self.address = address
        self.keeper = keeper


@contextlib.asynccontextmanager
async def exposed(
    *, store: Store, bus: Bus, directory: Path, options: WorkerOptions, share: bool = False
) -> AsyncGenerator[Exposure]:
    """Serve until the block ends. `share` the port with a supervisor that takes over from this one, or this from it."""
    collector = load_collector()
    loop, tally = asyncio.get_running_loop(), Tally()
    bus.subscribe(tally.observe, *tally.handlers)
    tell_of_job_ends(store, bus)
    ratio = partial(
        retry_ratio, default=options.retry_ratio, warning=options.retry_warning, critical=options.retry_critical
    )
    keeper = FigureKeeper(store=store, identity=f"metrics {new_worker_id()}", ratio=ratio)
    page = collector(lambda: tally, lambda: keeper.figures)
    meeting = Meeting(directory / "metrics", tally)
    close = meeting.open(loop)
    try:
        host, port = options.metrics_host, options.metrics_port or 0
        async with serve(
            page.render, content_type=collector.content_type, host=host, port=port, share=share
        ) as address:
            logger.info("metrics are at %s", address)
            yield Exposure(address=meeting.address, keeper=keeper)
    finally:
        close()
        with contextlib.suppress(StoreUnavailable):
            await keeper.resign()


def tell_of_job_ends(store: Store, bus: Bus) -> None:
    """The store tells on a thread of its own."""
    loop = asyncio.get_running_loop()

    def ended(end: JobEnd) -> None:
        loop.call_soon_threadsafe(emit, end)

    def emit(end: JobEnd) -> None:
        for event in job_ended(end):
            bus.emit(event)

    store.watch_job_ends(ended)
