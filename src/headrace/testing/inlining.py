"""`inline`: an enqueue runs its task at once, in this process, through everything that a worker would do with it."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from typing import Any, Self

from headrace.client.bridge import BRIDGE, must_block, run_blocking, running_loop
from headrace.client.handles import Handle
from headrace.core.clock import Clock
from headrace.core.states import TaskState
from headrace.testing.application import TestedApp
from headrace.testing.draining import LIMIT
from headrace.testing.overriding import override
from headrace.testing.running import Runner
from headrace.testing.tally import Tally, around
from headrace.testing.waiting import WhileWaiting

# Each task that is enqueued inside another takes some thirty frames of the stack. Deeper ones are run by those outside.
DEEPEST = 12


class InlineMode(WhileWaiting):
    """See `inline`. `clock` is the clock of the app's database."""

    def __init__(
        self,
        app: TestedApp,
        *,
        url: str | None = None,
        clock: Clock | None = None,
        with_retries: bool = True,
        raise_on_failure: bool = False,
        limit: int = LIMIT,
    ) -> None:
        self.app = app
        self._with_retries = with_retries
        self._raise = raise_on_failure
        self._url = url
        self._clock = clock
        super().__init__(Runner(app), limit=limit)
        self._undo = ExitStack()

    @property
    def clock(self) -> Clock | None:
        return self.app.engine.clock

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            # An app that a test has pointed elsewhere already stays there. Asked here: an override that was there when
            # this was made may have ended since.
            if self._url is not None or self._clock is not None or not self.app.engine.is_overridden:
                stack.enter_context(override(self.app, url=self._url, clock=self._clock))
            self._begin(stack)
            self._undo = stack.pop_all()
        return self

    def __exit__(self, *exception: Any) -> None:
        with self._undo:
            try:
                self.runner.rooms.close()
            finally:
                self._goodbye()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *exception: Any) -> None:
        async with AsyncExitStack() as stack:
            stack.callback(self.__exit__)
            await self.runner.rooms.aclose()

    def _begin(self, stack: ExitStack) -> None:
        engine = self.app.engine
        before, engine.inline = engine.inline, self

        def restore() -> None:
            engine.inline = before

        stack.callback(restore)

    def _goodbye(self) -> None:
        """From a thread that may run a loop: the background answers all the same."""
        if BRIDGE.running and running_loop() is not BRIDGE.loop:
            work = self.runner.deregister()
            if running_loop() is None:
                run_blocking("ainline", work)
            else:
                asyncio.run_coroutine_threadsafe(work, BRIDGE.loop).result(timeout=30)

    # What the engine asks (client.engine.Inline).

    async def readied(self, ids: Sequence[int]) -> None:
        outside = around.get()
        if outside is None or outside.level < DEEPEST:
            await self.run_ready()
        for id in ids:
            await self._wait_for_others(id)
        if self._raise:
            for record in await self.runner.records(ids):
                if record.state is TaskState.FAILED:
                    await Handle[Any](self.app.engine, record.id).aresult()

    async def run_ready(self) -> None:
        outside = around.get()
        tally = Tally() if outside is None else outside.tally
        await self.runner.run_ready(tally, limit=self.limit)
        while self._with_retries and await self.runner.skip_wait(tally, retries=True, scheduled=False):
            await self.runner.run_ready(tally, limit=self.limit)

    async def _wait_for_others(self, task: int) -> None:
        """Whoever claims first runs it: perhaps another thread, or another coroutine of this loop."""
        while (done := self.runner.in_hand.get(task)) is not None:
            if must_block():
                done.result()
            else:
                await asyncio.shield(asyncio.wrap_future(done))


def inline(
    app: TestedApp,
    *,
    url: str | None = None,
    clock: Clock | None = None,
    with_retries: bool = True,
    raise_on_failure: bool = False,
    limit: int = LIMIT,
) -> InlineMode:
    """`with inline(app):` or `async with inline(app):`. Until the end of the block whatever is enqueued has run when
    the enqueue returns, in this process.

    The task goes the real way: it is written to a ledger (a temporary one, unless the app was pointed elsewhere before,
    or `url` is given), claimed, its arguments loaded from the stored text, its result stored, its failure settled by
    its policy. What is not due stays: move the clock and `drain`. Waits between attempts are skipped by moving the
    clock, unless `with_retries` is False. A task that fails fails on its own, as in production; with `raise_on_failure`
    the enqueue raises TaskFailed, too. More than `limit` runs for one enqueue raise TooManyRuns.
    """
    return InlineMode(
        app, url=url, clock=clock, with_retries=with_retries, raise_on_failure=raise_on_failure, limit=limit
    )
