"""A scripted executor for tests of what stands above executors: no processes, no clocks, no user code."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from headrace.core.outcome import Cancelled, Completed, Outcome
from headrace.core.task import Ref
from headrace.executors.base import Capabilities, Launch, Ran

type Scripted = Outcome | Ran | Callable[[Launch], Outcome | Ran | Awaitable[Outcome | Ran]]


class MockExecutor:
    """Answers each launch by the script of its task's name: an outcome, or a function of the launch.

    A name that is not scripted completes with null. A function may be a coroutine function: the launch then runs until
    it returns, or until `stop`.
    """

    name = "mock"

    def __init__(
        self,
        script: Mapping[str, Scripted] | None = None,
        *,
        concurrency: int = 100,
        capabilities: Capabilities | None = None,
    ) -> None:
        self.script: dict[str, Scripted] = dict(script or {})
        self.capabilities = capabilities or Capabilities(kill=True)
        self.launches: list[Launch] = []
        self.stops: list[tuple[Ref, str]] = []
        self.opened = self.closed = False
        self._concurrency = concurrency
        self._running: dict[Ref, asyncio.Future[Ran]] = {}

    async def open(self) -> None:
        self.opened = True

    async def close(self) -> None:
        self.closed = True
        for ref in list(self._running):
            await self.stop(ref, grace=0.0, reason="stopped")

    def free(self) -> int:
        return self._concurrency - len(self._running)

    async def run(self, launch: Launch) -> Ran:
        self.launches.append(launch)
        answer = asyncio.ensure_future(self._answer(launch))
        self._running[launch.ref] = answer
        try:
            return await answer
        except asyncio.CancelledError:
            reason = next((why for ref, why in reversed(self.stops) if ref == launch.ref), None)
            if reason is None:
                answer.cancel()
                raise
            return Ran(outcome=Cancelled(reason=reason), ran_for=0.0)
        finally:
            del self._running[launch.ref]

    async def _answer(self, launch: Launch) -> Ran:
        scripted = self.script.get(launch.claim.name, Completed(result="null"))
        found = scripted(launch) if callable(scripted) else scripted
        if isinstance(found, Awaitable):
            found = await found
        return found if isinstance(found, Ran) else Ran(outcome=found, ran_for=0.0)

    async def stop(self, ref: Ref, *, grace: float, reason: str = "user") -> None:
        answer = self._running.get(ref)
        if answer is not None:
            self.stops.append((ref, reason))
            answer.cancel()
