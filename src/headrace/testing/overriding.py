"""An app is pointed to another database for the time of a test."""

import asyncio
import dataclasses
from contextlib import ExitStack
from typing import Any, Self

from headrace.client.bridge import BRIDGE, running_loop
from headrace.core.clock import Clock, SkippingClock
from headrace.store.connect import masked_url
from headrace.testing.application import TestedApp
from headrace.testing.databases import temporary_database
from headrace.testing.errors import NotOverridden


def must_be_overridden(app: TestedApp, what: str) -> None:
    """Raises NotOverridden where `what` would run the tasks that wait in the app's own database."""
    if not app.engine.is_overridden:
        raise NotOverridden(
            f"{what} would run what waits in the app's own database, {masked_url(app.url)}; use override(app) or the "
            "fixture headrace_store (override(app, url=...) names a database that may be used)"
        )


class Override:
    """See `override`; `clock` is the clock of the database."""

    def __init__(
        self,
        app: TestedApp,
        *,
        url: str | None = None,
        name: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.app = app
        self.clock: Clock = SkippingClock() if clock is None else clock
        self.name = name or app.settings.name
        self.url = url or ""  # of a temporary one: known from the beginning of the block on
        self._url = url
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.url = self._url or stack.enter_context(temporary_database(name=self.name)).url
            self._point(stack)
            self._undo = stack.pop_all()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._close()
        nearby = self.app.engine.nearby
        # Lines of a loop that this thread runs can only be closed by that loop: it does when it ends.
        if nearby is not None and running_loop() is None:
            # With a factory it leaves alone which loop this thread has: other plugins of a test run set it.
            with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
                runner.run(nearby.aclose())
        self._undo.__exit__(*exception)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *exception: Any) -> None:
        nearby = self.app.engine.nearby
        if nearby is not None:
            await nearby.aclose()
        self.__exit__(*exception)

    def _point(self, stack: ExitStack) -> None:
        app, url = self.app, self.url
        # Large results and tables go beside the test's own database, never to the place of the real one.
        changes: dict[str, Any] = {"database_url": url, "name": self.name, "results_url": None, "data_url": None}
        if self._url is None:
            changes["synchronous"] = "OFF"  # nobody opens this file after a power cut
        settings = dataclasses.replace(app.settings, **changes)
        kept = {name: getattr(app, name) for name in ("settings", "name", "url", "store_url")}
        bring_back = app.engine.put_aside(url, settings, self.clock)
        data = vars(app).pop("data", None)  # made at its first use, of the settings of then

        def restore() -> None:
            bring_back()
            vars(app).pop("data", None)
            if data is not None:
                vars(app)["data"] = data
            for name, value in kept.items():
                setattr(app, name, value)

        stack.callback(restore)
        app.settings, app.name, app.url, app.store_url = settings, self.name, url, url

    def _close(self) -> None:
        """By the background loop, which turns whatever this thread does."""
        if BRIDGE.running and running_loop() is not BRIDGE.loop:
            BRIDGE.submit(self.app.engine.close_here()).result(timeout=30)


def override(
    app: TestedApp,
    *,
    url: str | None = None,
    name: str | None = None,
    clock: Clock | None = None,
) -> Override:
    """`with override(app):` or `async with override(app):`. Until the end of the block the app and its tasks use
    another database, and afterwards what they used before.

    Without `url` that is a temporary SQLite file. A `url` is used as it is, with the schema `name` (the app's own
    where none is given); on PostgreSQL the schema must be there, see `temporary_database`. `clock` becomes the clock of
    that database; without one it is the host's, from which `drain` can skip waits (`SkippingClock`).

    Blocks may be nested, one app inside the other or the same app twice. It is the app that is changed, for every
    thread of this process, so tests of one app run one after the other in a process; processes do not meet.
    """
    return Override(app, url=url, name=name, clock=clock)
