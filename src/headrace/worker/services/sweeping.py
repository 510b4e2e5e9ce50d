"""Tables of an app (`headrace.data`) whose time is over, or whose job failed, are dropped; by one process of all."""

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headrace.core.errors import HeadraceError, StoreUnavailable
from headrace.runtime.service import Pace, Service
from headrace.store.base import Store
from headrace.worker.application import Application

if TYPE_CHECKING:
    from headrace.data.catalog import Data

_ROLE = "data"

logger = logging.getLogger("headrace.worker")


class DataSweeper(Service):
    name = "data sweeper"

    # A round looks at every table: in a bucket that is a request for each.
    def __init__(self, *, app: Application, store: Store, identity: str, interval: float = 600.0) -> None:
        super().__init__(Pace(interval=interval, jitter=0.2))
        self._app = app
        self._store = store
        self._identity = identity

    async def run_once(self) -> float | None:
        data = data_in_use(self._app)
        if data is None or not await self._store.lead(_ROLE, self._identity, lease=3 * self.pace.interval):
            return None
        from headrace.data.sweeping import failed_jobs_of, sweep

        now = datetime.now(UTC)
        try:
            await sweep(data, failed_jobs_of(self._store, now=now), now=now)
        except StoreUnavailable:
            raise
        except Exception:
            # Tables are no part of the ledger: while their place cannot be reached, tasks go on.
            logger.exception("the tables in %s could not be swept", data.url)
        return None


def data_in_use(app: Application) -> "Data | None":
    """The place of an app's tables, where something can be in it: nothing is made or imported for one without any."""
    try:
        data: Data | None = getattr(app, "data", None)
    except HeadraceError:  # it has no place for tables
        return None
    if data is None or data.url.startswith("chdb:"):  # that lets in one process: the worker that uses it
        return None
    if "://" in data.url and not data.url.startswith("file:"):
        return data
    from headrace.data.places import local_path

    return data if local_path(data.url).exists() else None
