"""The SQLite store: its parts, put together."""

import sqlite3

from headrace.core.clock import Clock
from headrace.store.base import StoreOptions
from headrace.store.sqlite.accounts import Accounting
from headrace.store.sqlite.administration import Administering, check_location, is_made, prepare
from headrace.store.sqlite.admission import Admitting
from headrace.store.sqlite.advancing import Advancing, prepare_advancing
from headrace.store.sqlite.cancelling import Cancelling
from headrace.store.sqlite.checkpoints import Checkpointing
from headrace.store.sqlite.circuits import Breaking
from headrace.store.sqlite.claiming import Claiming
from headrace.store.sqlite.completing import prepare_completing
from headrace.store.sqlite.connection import Database
from headrace.store.sqlite.events import Happening
from headrace.store.sqlite.figures import Figuring
from headrace.store.sqlite.finishing import Finishing
from headrace.store.sqlite.graphs import Enqueueing, Graphing
from headrace.store.sqlite.inspection import Inspecting
from headrace.store.sqlite.jobs import JobKeeping
from headrace.store.sqlite.live import Watching
from headrace.store.sqlite.liveness import Living
from headrace.store.sqlite.moving import Tracing
from headrace.store.sqlite.outlining import Outlining
from headrace.store.sqlite.queues import QueueSetting
from headrace.store.sqlite.relations import Relating
from headrace.store.sqlite.removing import Removing
from headrace.store.sqlite.retrying import Retrying, prepare_retrying
from headrace.store.sqlite.riding import rider
from headrace.store.sqlite.schedules import Scheduling
from headrace.store.sqlite.skimming import Skimming
from headrace.store.sqlite.subscriptions import Subscribing
from headrace.store.sqlite.upkeep import Maintaining
from headrace.store.sqlite.wakeups import Waking


class SQLiteStore(
    Enqueueing,
    Claiming,
    Admitting,
    Finishing,
    Cancelling,
    Retrying,
    Maintaining,
    Removing,
    Living,
    JobKeeping,
    Outlining,
    Graphing,
    Advancing,
    Scheduling,
    Inspecting,
    Skimming,
    Relating,
    Figuring,
    Checkpointing,
    Happening,
    Subscribing,
    Accounting,
    Breaking,
    QueueSetting,
    Administering,
    Tracing,
    Waking,
    Watching,
):
    """A ledger in one file, for the processes of one machine; `:memory:` serves one process."""

    dialect = "sqlite"

    def __init__(self, path: str, options: StoreOptions) -> None:
        self.database = Database(path, options)
        self.url = f"sqlite:///{self.database.path}"
        self.database.is_made = lambda: is_made(self.database.path, options.name)
        self.database.prepare = self._prepare
        self.database.rider = rider(self.database)
        self.prepare_wakeups()
        self.prepare_watching()

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """What a new writing connection needs."""
        prepare(connection, self.database.path, self.database.options)
        prepare_completing(connection, self.database.queries)
        prepare_advancing(connection, self.database.queries)
        prepare_retrying(connection, self.database.queries)

    @property
    def clock(self) -> Clock:
        """The clock whose instants the ledger holds."""
        return self.database.clock

    async def open(self) -> None:
        check_location(self.database.path)
        await self.database.open()

    async def close(self) -> None:
        await self.database.close()
