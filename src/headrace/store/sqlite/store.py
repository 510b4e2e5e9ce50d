"""The SQLite store: its parts, put together."""

from headrace.core.clock import Clock
from headrace.store.base import StoreOptions
from headrace.store.sqlite.administration import Administering, check_location, prepare
from headrace.store.sqlite.admission import Admitting
from headrace.store.sqlite.claiming import Claiming
from headrace.store.sqlite.connection import Database
from headrace.store.sqlite.enqueueing import Enqueueing
from headrace.store.sqlite.finishing import Finishing
from headrace.store.sqlite.inspection import Inspecting


class SQLiteStore(Enqueueing, Claiming, Admitting, Finishing, Inspecting, Administering):
    """A ledger in one file, for the processes of one machine; `:memory:` for those of one process: itself."""

    dialect = "sqlite"

    def __init__(self, path: str, options: StoreOptions) -> None:
        self.database = Database(path, options)
        self.url = f"sqlite:///{self.database.path}"
        self.database.prepare = lambda connection: prepare(connection, self.database.path, options)

    @property
    def clock(self) -> Clock:
        """The clock whose instants the ledger holds."""
        return self.database.clock

    async def open(self) -> None:
        check_location(self.database.path)
        await self.database.open()

    async def close(self) -> None:
        await self.database.close()
