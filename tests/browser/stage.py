"""Where a page is tried: a ledger, a server and a worker, in one folder."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from headrace import App
from headrace.store.sqlite.locking import Turns
from tests.browser import shop
from tests.browser.people import Sessions, let_in
from tests.browser.processes import Command, Server


class Stage:
    """`async with Stage(folder, url) as stage`. `app` looks at the ledger from outside of the server."""

    def __init__(self, folder: Path, url: str, *, auth: bool = True) -> None:
        self.folder = folder
        self.url = url
        self.gates = folder / "gates"
        self.gates.mkdir()
        shutil.copy(shop.__file__, folder / "shop.py")
        self.variables = {
            "HEADRACE_DATABASE_URL": url,
            "HEADRACE_RATE_LIMIT": "0",  # one address for every person and every test
            "SHOP_GATES": str(self.gates),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.app: App = shop.make_app(url)
        self.server = Server(folder, auth=auth, **self.variables)
        self.worker = Command(folder, "worker", "shop:app", "--children", "1", "--grace", "1", **self.variables)
        self.sessions = Sessions(self.server.address)

    @property
    def address(self) -> str:
        return self.server.address

    def open_gate(self, name: str, word: str = "") -> None:
        """Whoever waits before it goes on; `word` is what they read there."""
        beside = self.gates / f".{name}"
        beside.write_text(word)
        os.replace(beside, self.gates / name)

    @contextmanager
    def frozen_worker(self) -> Iterator[None]:
        """The worker stands still for a moment (on SQLite). One that is stopped while it writes would keep everybody
        else from writing: it is stopped in a turn of ours."""
        path = os.path.realpath(self.url.removeprefix("sqlite:///"))
        with closing(Turns(path)) as turns, turns.taken():
            self.worker.freeze()
        try:
            yield
        finally:
            self.worker.thaw()

    async def __aenter__(self) -> Self:
        try:
            await let_in(self.app)
            self.server.start()
            self.worker.start()
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def _end(self) -> None:
        self.worker.stop()
        self.server.stop()
        await self.app.aclose()
