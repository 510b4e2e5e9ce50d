"""The way of one attempt through user code: its inputs, its start in the ledger, its run, its result kept."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol

from headrace.core.outcome import Outcome, Released
from headrace.core.task import ClaimedTask, Pool
from headrace.executors.base import Executor, Launch, Ran
from headrace.store.base import Started
from headrace.telemetry.events import Bus, TasksStarted
from headrace.telemetry.tracing import OPTION, Tracing
from headrace.worker.execution import Pipeline, fault, unknown
from headrace.worker.holding import Held, Holding, Stage
from headrace.worker.inputs import OPTION as INPUTS
from headrace.worker.inputs import Inputs
from headrace.worker.keeping import ResultKeeper
from headrace.worker.options import WorkerOptions
from headrace.worker.starting import Starter

type Begin = Callable[[Launch], Ran | Coroutine[Any, Any, Ran]]


class Settle(Protocol):
    """Takes the outcome of an attempt, once."""

    def __call__(
        self,
        held: Held,
        outcome: Outcome,
        launch: Launch | None = None,
        ran_for: float | None = None,
        executor: str | None = None,
        /,
    ) -> None: ...


class Attempts:
    def __init__(
        self,
        *,
        pools: Iterable[Pool],
        pipeline: Pipeline,
        options: WorkerOptions,
        holding: Holding,
        starter: Starter,
        settle: Settle,
        start_answered: Callable[[Held, Started], None],
        ended: Callable[[Held], None],
        bus: Bus,
        tracing: Tracing | None = None,
        inputs: Inputs | None = None,
        keeper: ResultKeeper | None = None,
    ) -> None:
        self._pipeline = pipeline
        self._options = options
        self._holding = holding
        self._starter = starter
        self._settle = settle
        self._start_answered = start_answered
        self._after = ended
        self._bus = bus
        self._tracing = tracing
        self._inputs = inputs
        self._keeper = keeper
        self._started: list[tuple[ClaimedTask, float]] = []
        self.running: dict[Pool, int] = dict.fromkeys(pools, 0)  # without those that end on the spot

    # --- begin ------------------------------------------------------------------------------------------------------

    def launch_here(self, held: Held, executor: Executor, begin: Begin, now: float) -> bool:
        """Without an asyncio task of our own around it, which would cost a fifth of a short task's whole way.

        Whether it is over: it needs its place no more.
        """
        held.stage = Stage.RUNNING
        try:
            launch = self._pipeline.prepare(held.claim)
            if not isinstance(launch, Launch):
                self._settle(held, launch)
                return True
            if INPUTS in launch.options:
                self._in_background(held, self._fill_and_run(held, executor, launch))
                return False
            if self._bus.hears(TasksStarted):
                self._announce(held, now)
            if held.trace is not None:
                launch = self._traced(held, executor, launch)
            held.entered = now
            ran = begin(launch)
            if isinstance(ran, Ran):
                if self._keeper is not None and self._keeper.wants(ran):
                    self._in_background(held, self._keep(held, executor, launch, ran, self._keeper))
                    return False
                self._ran(held, executor, launch, ran)
                return True
            self._in_background(held, self._await_rest(held, executor, launch, ran))
            return False
        except Exception as error:
            self._settle(held, fault(error))
            return True

    def launch(self, held: Held, executor: Executor) -> None:
        self._in_background(held, self._attempt(held, executor))

    def _in_background(self, held: Held, attempt: Coroutine[Any, Any, None]) -> None:
        held.stage = Stage.RUNNING
        self.running[held.pool] += 1
        held.task = asyncio.Task(attempt, loop=asyncio.get_running_loop(), eager_start=True, name="headrace.attempt")

    def _ended(self, held: Held) -> None:
        self.running[held.pool] -= 1
        self._after(held)

    # --- run --------------------------------------------------------------------------------------------------------

    async def _await_rest(self, held: Held, executor: Executor, launch: Launch, rest: Coroutine[Any, Any, Ran]) -> None:
        try:
            await self._done(held, executor, launch, await rest)
        except Exception as error:
            self._settle(held, fault(error))
        finally:
            self._ended(held)

    async def _keep(self, held: Held, executor: Executor, launch: Launch, ran: Ran, keeper: ResultKeeper) -> None:
        try:
            self._ran(held, executor, launch, await keeper.kept(held.ref, ran))
        except Exception as error:
            self._settle(held, fault(error))
        finally:
            self._ended(held)

    async def _fill_and_run(self, held: Held, executor: Executor, launch: Launch) -> None:
        try:
            await self._run(held, executor, launch)
        except Exception as error:
            self._settle(held, fault(error))
        finally:
            self._ended(held)

    async def _attempt(self, held: Held, executor: Executor) -> None:
        try:
            prepared = self._pipeline.prepare(held.claim)
            if not isinstance(prepared, Launch):
                self._settle(held, prepared)
            elif held.suspect:
                await self._run_alone(held, executor, prepared)
            else:
                await self._run(held, executor, prepared)
        except Exception as error:
            # Nothing of the task's own comes this way. Whatever it is, the claim must not stay with a worker that has
            # forgotten it.
            self._settle(held, fault(error))
        finally:
            self._ended(held)

    async def _run_alone(self, held: Held, executor: Executor, launch: Launch) -> None:
        """A process runs one suspect at a time. One whose turn does not come soon goes back: another worker may be
        free, and here it would keep a place from tasks that need not wait.
        """
        patience, starter = self._options.unstarted_after, self._starter
        try:
            async with asyncio.timeout(0 if starter.suspect_for > patience else patience):
                await starter.suspect_lock.acquire()
        except TimeoutError:
            self._settle(held, Released(delay=2 * patience))
            return
        try:
            starter.suspect_since = time.monotonic()
            held.landed = asyncio.Event()
            if _is_ours(held):
                await self._run(held, executor, launch)
                # The next suspect may take everything down: this one's outcome must be in the ledger by then, or it
                # would be found started and be charged for it.
                if held.stage is Stage.SETTLING and held.ref in self._holding:
                    await held.landed.wait()
        finally:
            starter.suspect_lock.release()

    async def _run(self, held: Held, executor: Executor, launch: Launch) -> None:
        if INPUTS in launch.options and self._inputs is not None:
            filled = await self._inputs.filled(launch)
            if not isinstance(filled, Launch):
                self._settle(held, filled)
            if not isinstance(filled, Launch) or not _is_ours(held):
                return
            launch = filled
        if self._starter.needed_before(held, time.monotonic()):
            answer = await self._starter.before(held)
            if answer is not Started.STARTED:
                self._start_answered(held, answer)
                return
            if not _is_ours(held):
                return
        if self._bus.hears(TasksStarted):
            self._announce(held, time.monotonic())
        if held.trace is not None:
            launch = self._traced(held, executor, launch)
        await self._done(held, executor, launch, await self._pipeline.run(executor, launch, held))

    # --- tell -------------------------------------------------------------------------------------------------------

    def _announce(self, held: Held, now: float) -> None:
        """Together with whatever else starts in this turn of the loop."""
        if not self._started:
            asyncio.get_running_loop().call_soon(self._tell_started)
        self._started.append((held.claim, held.claim.waited + now - held.since))

    def _tell_started(self) -> None:
        started, self._started = self._started, []
        self._bus.emit(TasksStarted(started=started))

    def _traced(self, held: Held, executor: Executor, launch: Launch) -> Launch:
        """What it runs continues the trace of its claim."""
        assert self._tracing is not None
        options = {**launch.options, OPTION: self._tracing.submitted(held, executor.name)}
        return launch._replace(options=options)

    async def _done(self, held: Held, executor: Executor, launch: Launch, ran: Ran) -> None:
        if self._keeper is not None and self._keeper.wants(ran):
            ran = await self._keeper.kept(held.ref, ran)
        self._ran(held, executor, launch, ran)

    def _ran(self, held: Held, executor: Executor, launch: Launch, ran: Ran) -> None:
        # A child may not know a name that its parent knows: that, too, is not the task's fault.
        outcome = unknown(held.claim) if ran.unknown else ran.outcome
        self._settle(held, outcome, launch, ran.ran_for, executor.name)


def _is_ours(held: Held) -> bool:
    """Whether it may still enter user code: while it waited it may have been given back, cancelled or lost."""
    return held.stage is Stage.RUNNING and not held.abandoned
