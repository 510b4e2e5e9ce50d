"""From the buffer into the executors and on to the finisher: the worker's hot path."""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

from headrace.core.errors import StoreUnavailable
from headrace.core.outcome import Cancelled, Expired, Outcome, Released
from headrace.core.settlement import Settlement
from headrace.core.states import AttemptState, Reason, TaskState
from headrace.core.task import ClaimedTask, Pool, Ref
from headrace.executors.base import Batching, Executor, Immediate, Launch, Queueing
from headrace.executors.slots import SlotRange
from headrace.store.base import Started, Store
from headrace.telemetry.events import Bus, ReportRefused, TasksClaimed, TasksFinished
from headrace.telemetry.tracing import Tracing
from headrace.worker.attempts import Attempts
from headrace.worker.buffer import Buffer, best_first
from headrace.worker.claiming import Claimer
from headrace.worker.execution import Pipeline
from headrace.worker.finishing import Finisher, Landed
from headrace.worker.holding import Held, Holding, Stage
from headrace.worker.inputs import Inputs
from headrace.worker.keeping import ResultKeeper
from headrace.worker.options import WorkerOptions
from headrace.worker.starting import Starter

# Starting many short tasks in one turn of the loop must not keep it from turning.
_LONGEST_TURN = 0.005
# Nor must retries keep new work waiting: word of it, its claim and the answer are four turns.
_SHORT_TURN = 0.0005
# Nor does any begin while this process writes: the thread that writes would wait for the interpreter after each
# statement, and hold the lock of the file meanwhile. For no longer than a transaction should take: whoever has the lock
# may be another.
_LONGEST_WAIT = 0.02
_SOON = 1.0  # seconds: what is due later is found by whoever looks each second
_UNREADABLE = 5.0  # seconds until a task whose limits nobody could read is tried again

_logger = logging.getLogger("headrace.worker")


class LastWords(Protocol):
    """What an attempt said, as far as its outcome has to do with it."""

    def finished(self, ref: Ref, /) -> bool:
        """The attempt is over: whether it has said anything."""
        ...

    def owes(self, ref: Ref, /) -> bool:
        """Whether something that it said is not in the ledger yet."""
        ...

    async def written(self, ref: Ref, /) -> None:
        """Returns when what it said is in the ledger, or could not be written for now."""
        ...

    def landed(self, refs: Collection[Ref], /) -> None:
        """Their outcomes are in the ledger."""
        ...


class Dispatcher:
    """Holds every claim of one incarnation from its arrival until its outcome has landed."""

    def __init__(
        self,
        *,
        store: Store,
        worker: Callable[[], str],
        pipeline: Pipeline,
        executors: Mapping[Pool, Executor],
        options: WorkerOptions,
        bus: Bus,
        rng: random.Random,
        words: LastWords,
        slots: SlotRange | None = None,
        tracing: Tracing | None = None,
        inputs: Inputs | None = None,
        keeper: ResultKeeper | None = None,
    ) -> None:
        self._tracing = tracing
        self._store = store
        self._worker = worker
        self._pipeline = pipeline
        self._executors = executors
        self._options = options
        self._bus = bus
        self._words = words
        self._spoken: set[Ref] = set()  # who follows their words is told when their outcome has landed
        self._begin = {pool: executor.begin for pool, executor in executors.items() if isinstance(executor, Immediate)}
        # Those that run code on the spot come last: a backlog of short coroutines fills every turn, and nothing else
        # would ever start.
        self._order = sorted(executors, key=lambda pool: pool in self._begin)
        self._capacity: dict[Pool, int] = {
            "coroutine": options.concurrency,
            "child": options.children * 64,  # a child takes short tasks in batches; its executor says how many
            "thread": options.threads,
            "command": options.commands,
        }
        self._admissions: set[asyncio.Task[None]] = set()
        self._turn_pending = False
        self._writes_here = store.dialect == "sqlite"  # on a thread of this process
        self._later: asyncio.TimerHandle | None = None
        self._accepting = True
        self.given_back = 0  # since it accepts nothing more
        self.holding = Holding()
        self.buffer = Buffer(retry_ratio=options.retry_ratio, slots=slots)
        self.counts = {"completed": 0, "failed": 0, "refused": 0}
        self.on_delay: Callable[[], None] | None = None  # something was given back that is due soon
        self.on_releasing: Callable[[], None] | None = None  # more was freed than one transaction takes
        self.on_finished: Callable[[Sequence[tuple[ClaimedTask, Settlement]]], None] | None = None
        self.claimer = Claimer(
            store=store,
            worker=worker,
            buffer=self.buffer,
            free={pool: partial(self._room, pool) for pool in executors},
            received=self.receive,
            poll=options.poll,
            busy=lambda: self.finisher.busy,
            rng=rng,
            idle=None if options.burst else self._is_idle,  # a burst ends when it has nothing to do
        )
        self.finisher = Finisher(
            store=store,
            worker=worker,
            claimer=lambda: self.claimer,
            landed=self._landed,
            expecting=lambda: any(self.attempts.running.values()) or len(self.buffer) > 0,
            gather=options.gather,
            bus=bus,
            rng=rng,
        )
        self.starter = Starter(
            store=store,
            worker=worker,
            holding=self.holding,
            late=options.late_start,
            verify_after=options.verify_after,
            answered=self._start_answered,
            executor_of=lambda held: self._executors[held.pool].name,
            inside=self._inside,
        )
        self.attempts = Attempts(
            pools=executors,
            pipeline=pipeline,
            options=options,
            holding=self.holding,
            starter=self.starter,
            settle=self._settle,
            start_answered=self._start_answered,
            ended=self._ended,
            bus=bus,
            tracing=tracing,
            inputs=inputs,
            keeper=keeper,
        )

    # --- in ---------------------------------------------------------------------------------------------------------

    def receive(self, claims: Sequence[ClaimedTask], asked_at: float) -> None:
        """Take in what a claim brought."""
        if claims and self._bus.hears(TasksClaimed):
            self._bus.emit(TasksClaimed(claims=claims))
        gated: list[Held] = []
        waiting: list[Held] = []
        arrived = [Held(claim, asked_at) for claim in claims]
        if arrived and self._tracing is not None:
            self._tracing.claimed(arrived, seconds=time.monotonic() - asked_at)
        for held in arrived:
            claim = held.claim
            self.holding.add(held)
            if not self._accepting:
                self._settle(held, Released())
            elif claim.expired:
                self._settle(held, self._when_expired(claim))
            elif claim.gated:
                gated.append(held)
            else:
                waiting.append(held)
        self.buffer.add(waiting)
        if gated:
            gated.sort(key=lambda held: best_first(held.claim))  # a limit may be shared by queues
            task = asyncio.create_task(self._admit(gated), name="headrace.admission")
            self._admissions.add(task)
            task.add_done_callback(self._admissions.discard)
        self.dispatch()

    def _when_expired(self, claim: ClaimedTask) -> Outcome:
        prepared = self._pipeline.prepare(claim)
        return Expired() if isinstance(prepared, Launch) else prepared

    async def _admit(self, gated: Sequence[Held]) -> None:
        """Limits, rates and order keys: what finds no room left the ready index and is no longer ours."""
        try:
            admission = await self._store.admit(self._worker(), [held.claim for held in gated])
        except StoreUnavailable:
            # It may or may not have happened; a release undoes both.
            for held in gated:
                self._settle(held, Released())
            return
        except Exception:
            # One that cannot be read takes no other with it.
            if len(gated) > 1:
                middle = len(gated) // 2
                await self._admit(gated[:middle])
                await self._admit(gated[middle:])
                return
            [held] = gated
            _logger.exception("task %s cannot be admitted to its limits; it is given back for now", held.ref.id)
            self._settle(held, Released(delay=_UNREADABLE))
            return
        for held in gated:
            if held.ref not in admission.admitted:
                self.holding.drop(held.ref)
            elif held.stage is Stage.BUFFERED and not held.cancelling and self._accepting:
                held.since = time.monotonic()
                self.buffer.add([held])
            elif held.stage is Stage.BUFFERED:
                self._settle(held, Released())
        self.dispatch()
        self.claimer.hungry()

    # --- through ----------------------------------------------------------------------------------------------------

    def _room(self, pool: Pool) -> int:
        return min(self._executors[pool].free(), self._capacity[pool] - self.attempts.running[pool])

    def _is_idle(self) -> bool:
        """Nothing runs in this process itself, or is about to."""
        return not (self.attempts.running.get("coroutine") or self.attempts.running.get("thread") or len(self.buffer))

    def _inside(self, held: Held) -> bool:
        """What waits for a child has not started: were it written so, it would be charged if everything died now."""
        executor = self._executors[held.pool]
        return not isinstance(executor, Queueing) or executor.inside(held.ref)

    def dispatch(self) -> None:
        """Start what can start. Yields to the loop after a while, and goes on in its next turn."""
        now, storm = time.monotonic(), self.buffer.storms
        if storm and self._gives_way(now):
            return
        until = now + (_SHORT_TURN if storm else _LONGEST_TURN)
        for pool in self._order:
            if not self.buffer.count(pool):
                continue
            started, now = self._start_some(pool, now, until)
            if started:
                self.claimer.throughput[pool].count(started, now)
            if started or self._room(pool) > 0:
                self.claimer.hungry()
        if now >= until:
            self._next_turn()
        elif self._is_idle():
            self.finisher.ran_dry()

    def _gives_way(self, now: float) -> bool:
        """Whether retries wait until something is written; then there is another turn, and after a while anyway."""
        if not self._writes_here or not self.buffer.nothing_new:
            return False
        writes_for = self.claimer.overtakes_for(now)
        if writes_for is None:
            writes_for = self.finisher.writes_for(now)
        if writes_for is None or writes_for >= _LONGEST_WAIT:
            return False
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(_LONGEST_WAIT - writes_for, self._go_on)
        return True

    def _go_on(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
            self._turn()

    def _start_some(self, pool: Pool, now: float, until: float) -> tuple[int, float]:
        """As many as have room, until the turn is over: how many, and the instant after the last."""
        executor, begin, started = self._executors[pool], self._begin.get(pool), 0
        room = self._room(pool)
        while room > 0 and now < until:
            held = self.buffer.take(pool)
            if held is None:
                break
            started += 1
            if begin is None or self.starter.needed_before(held, now):
                self.attempts.launch(held, executor)
                room = self._room(pool)
            elif not self.attempts.launch_here(held, executor, begin, now):
                room -= 1
            now = time.monotonic()
        return started, now

    def _next_turn(self) -> None:
        if not self._turn_pending:
            self._turn_pending = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._turn_pending = False
        self.dispatch()
        self.claimer.hungry()

    def _ended(self, held: Held) -> None:
        if self.buffer.count(held.pool):
            self._next_turn()
        else:
            self.claimer.hungry()
            if self._is_idle():
                self.finisher.ran_dry()

    # --- out --------------------------------------------------------------------------------------------------------

    def _settle(
        self,
        held: Held,
        outcome: Outcome,
        launch: Launch | None = None,
        ran_for: float | None = None,
        executor: str | None = None,
    ) -> None:
        """Hand the outcome to the finisher, once."""
        if held.abandoned or held.stage is Stage.SETTLING:
            return
        held.stage = Stage.SETTLING
        if not self._accepting and isinstance(outcome, Released):
            self.given_back += 1
        if held.trace is not None:
            held.trace.settled = time.time_ns()
        settlement = self._pipeline.settle(held, outcome, launch, ran_for, executor)
        if not self._words.finished(held.ref):
            self.finisher.add(settlement)
            return
        self._spoken.add(held.ref)
        if self._words.owes(held.ref):
            self.finisher.add_after(settlement, partial(self._words.written, held.ref))
        else:
            self.finisher.add(settlement)

    def _landed(self, landed: Landed) -> None:
        refused, drop, tracing = landed.report.refused, self.holding.drop, self._tracing
        finished: list[tuple[ClaimedTask, Settlement]] = []
        traced: list[tuple[Held, Settlement, bool]] = []
        completed, soon = 0, False
        for settlement in landed.settlements:
            ref = (settlement.task, settlement.claim_no)
            held = drop(ref)
            if held is not None and held.landed is not None:
                held.landed.set()
            if tracing is not None and held is not None:
                traced.append((held, settlement, ref not in refused))
            if refused and ref in refused:
                self._count_refused(ref, act="finish")
                continue
            if settlement.state is TaskState.COMPLETED:
                completed += 1
            elif settlement.state.terminal:
                self.counts["failed"] += 1
            elif 0 < settlement.delay < _SOON:
                soon = True
            if held is not None:
                finished.append((held.claim, settlement))
        self.counts["completed"] += completed
        if self._spoken:
            self._tell_spoken(landed.settlements)
        if landed.report.releasing and self.on_releasing is not None:
            self.on_releasing()
        if soon and self.on_delay is not None:
            self.on_delay()
        self._go_on()
        if finished and self.on_finished is not None:
            self.on_finished(finished)
        if traced and tracing is not None:
            tracing.finalized(traced, worker=self._worker())
        if finished and self._bus.hears(TasksFinished):
            self._bus.emit(TasksFinished(finished=finished, worker=self._worker()))

    def _tell_spoken(self, settlements: Sequence[Settlement]) -> None:
        ended = {Ref(settlement.task, settlement.claim_no) for settlement in settlements} & self._spoken
        self._spoken -= ended
        self._words.landed(ended)

    def _count_refused(self, ref: tuple[int, int], *, act: str) -> None:
        self.counts["refused"] += 1
        self._bus.emit(ReportRefused(task=ref[0], claim_no=ref[1], worker=self._worker(), act=act))

    def _start_answered(self, held: Held, answer: Started) -> None:
        if answer is Started.CANCELLING:
            self.cancel([held.ref])
        elif answer is Started.REFUSED and held.stage is Stage.RUNNING:
            # Someone else has it: end it here, and report nothing.
            held.abandoned = True
            self.holding.drop(held.ref)
            self._count_refused(held.ref, act="start")
            if held.entered is not None:
                self._stop_soon(held, grace=self._options.cancel_grace, reason=Reason.LOST)

    # --- ending early -----------------------------------------------------------------------------------------------

    def cancel(self, refs: Iterable[Ref]) -> None:
        """Someone asked to cancel these: drop what has not started, interrupt what has."""
        for ref in refs:
            held = self.holding.get(ref)
            if held is None or held.cancelling:
                continue
            held.cancelling = True
            if held.stage is Stage.BUFFERED:
                self.buffer.remove(held)
                self._settle(held, Cancelled(reason=Reason.USER))
            elif held.stage is Stage.RUNNING and held.entered is None:
                self._settle(held, Cancelled(reason=Reason.USER))
            elif held.stage is Stage.RUNNING:
                self._stop_soon(held, grace=self._options.cancel_grace, reason=Reason.USER)

    def _stop_soon(self, held: Held, *, grace: float, reason: str) -> None:
        executor = self._executors[held.pool]
        task = asyncio.create_task(executor.stop(held.ref, grace=grace, reason=reason), name="headrace.stop")
        self._admissions.add(task)
        task.add_done_callback(self._admissions.discard)

    def release_stale(self) -> None:
        """Give back what has waited too long to start: another worker may be free."""
        for held in self.buffer.take_older(time.monotonic() - self._options.unstarted_after):
            self._settle(held, Released())

    def release_buffer(self) -> None:
        """Accept nothing more, and give back everything that has not started."""
        self._accepting = False
        for held in self.buffer.take_older(float("inf")):
            self._settle(held, Released())
        for held in self.holding.at(Stage.RUNNING):
            if held.entered is None:  # it waits for its start to be written
                self._settle(held, Released())
        for executor in self._executors.values():
            if isinstance(executor, Batching):
                executor.release_unstarted()

    async def wait_for_running(self, grace: float | None) -> None:
        """Returns when nothing runs, or after `grace` seconds."""
        tasks = [held.task for held in self.holding.at(Stage.RUNNING) if held.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=None if grace is None else max(0.0, grace))

    async def release_running(self) -> None:
        """Interrupt what still runs and give it back uncharged."""
        for held in self.holding.at(Stage.RUNNING):
            entered = held.entered
            ran_for = None if entered is None else time.monotonic() - entered
            self._settle(
                held, Released(attempt=AttemptState.RELEASED if entered is not None else None), ran_for=ran_for
            )
            if entered is not None:
                self._stop_soon(held, grace=0.0, reason=Reason.STOPPED)

    async def abandon(self) -> None:
        """The lease is gone: stop every attempt and report nothing."""
        self._accepting = False
        self.claimer.close()
        self.buffer.take_older(float("inf"))
        self.finisher.forget()
        self._spoken.clear()
        for held in self.holding.all():
            held.abandoned = True
            if held.landed is not None:
                held.landed.set()
            if held.stage is Stage.RUNNING and held.entered is not None:
                self._stop_soon(held, grace=0.0, reason=Reason.LOST)
        tasks = [held.task for held in self.holding.all() if held.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=5.0)

    async def close(self) -> None:
        """Nobody reports any more: what is buffered must not start when something that runs is ended."""
        self._accepting = False
        self.buffer.take_older(float("inf"))
        for task in list(self._admissions):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task

    @property
    def exhausted(self) -> bool:
        """Nothing is held, nothing is on its way here, and the last claim found nothing."""
        return not self.holding and not self.claimer.under_way and self.claimer.found_nothing
