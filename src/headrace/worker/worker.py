"""One worker: an incarnation of one process that claims, runs and finishes, with the services it needs.

Under a supervisor (see `worker.supervisor`) the lease, the rescue of others and the watch over limits live in another
process. `await Worker(app).run()` alone does all of that itself, which is fine for tests and notebooks and weaker: user
code that holds the GIL holds back the heartbeat, and a loop that is blocked for good is not killed.
"""

import asyncio
import contextlib
import logging
import os
import random
import socket
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from headrace._version import __version__
from headrace.core.clock import Clock, SystemClock
from headrace.core.errors import LeaseLost, StoreUnavailable
from headrace.core.task import Pool, Ref, WorkerRecord
from headrace.executors.base import Executor
from headrace.executors.capture import captured_logging, level_of
from headrace.executors.nursery import ChildrenFailed
from headrace.executors.process import ProcessExecutor
from headrace.executors.slots import LEAVING, READY, SlotRange, SlotTable
from headrace.executors.watchdog import WatchdogThread
from headrace.runtime.memory import resident
from headrace.runtime.service import Service
from headrace.runtime.supervision import Supervision
from headrace.store.base import Store, Warming
from headrace.telemetry.events import Bus, JobEnded, LeaseWasLost, WorkerStarted, WorkerStopped
from headrace.telemetry.logs import use_redaction
from headrace.worker.application import (
    Application,
    Unstartable,
    blobs_of,
    codecs_of,
    has_child_tasks,
    sharing_of,
    tracing_of,
    warn_of_a_move,
)
from headrace.worker.directories import private_directory
from headrace.worker.dispatch import Dispatcher
from headrace.worker.execution import Pipeline
from headrace.worker.exposing import tell_of_job_ends
from headrace.worker.identity import new_worker_id
from headrace.worker.inputs import Inputs
from headrace.worker.keeping import result_keeper
from headrace.worker.options import WorkerOptions
from headrace.worker.pools import build_executors
from headrace.worker.reaching import reach
from headrace.worker.scheduling import declare_schedules, scheduler_services
from headrace.worker.services.breakers import BreakerWatch
from headrace.worker.services.buffer_keeper import BufferKeeper, Pulse
from headrace.worker.services.canceller import Canceller
from headrace.worker.services.depth import QueueFinder, RetryDepth
from headrace.worker.services.heartbeat import Heartbeat
from headrace.worker.services.listener import Listener
from headrace.worker.services.outcomes import Outcomes
from headrace.worker.services.rescuer import Rescuer, keep_beats
from headrace.worker.services.sweeping import DataSweeper
from headrace.worker.services.upkeep import (
    CancellingSweeper,
    Deliverer,
    Expirer,
    Promoter,
    Pruner,
    Releaser,
    Retention,
    Unparker,
)
from headrace.worker.services.words import Words

_BURST_PATIENCE = 1.5
_SHORTEST_BACKOFF, _LONGEST_BACKOFF = 0.5, 30.0

logger = logging.getLogger("headrace.worker")


def upkeep_services(app: Application, store: Store, options: WorkerOptions) -> list[Service]:
    """The chores that one process per host should do: the supervisor, or a worker that has none."""
    second = min(1.0, options.lease / 3)
    return [
        Releaser(store=store, interval=second),
        Deliverer(store=store, interval=second),
        Expirer(store=store, interval=min(5.0, options.lease / 3)),
        Unparker(store=store, interval=second),
        CancellingSweeper(store=store, grace=options.cancel_grace * 1.5, interval=min(2.0, options.lease / 3)),
        Pruner(store=store, retention=Retention(keep=options.keep), blobs=blobs_of(app)),
        DataSweeper(app=app, store=store, identity=new_worker_id()),
    ]


class Worker:
    """`run` returns after a graceful stop; it raises when a service died."""

    def __init__(
        self,
        app: Application,
        *,
        options: WorkerOptions | None = None,
        store: Store | None = None,
        bus: Bus | None = None,
        slots: SlotRange | None = None,
        identity: str | None = None,
        target: str | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        begin: asyncio.Event | None = None,
        executors: Callable[["Worker", Mapping[str, Any]], Mapping[Pool, Executor]] | None = None,
    ) -> None:
        self.app = app
        self.options = options or WorkerOptions()
        self.bus = bus or Bus()
        self.target = target
        self.supervised = identity is not None
        self.slots = slots
        self.id = identity or new_worker_id()
        self.dispatcher: Dispatcher | None = None
        self.words: Words | None = None
        self.outcomes: Outcomes | None = None
        self._store = store
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()
        self._begin = begin  # it stands by, with all that it needs, until this is set
        self._executors = executors or build_executors
        self._stop = asyncio.Event()
        self._stop_now = asyncio.Event()
        self._retire = asyncio.Event()
        self._running = asyncio.Event()

    def stop(self) -> None:
        """Drain: claim no more, give back the buffer, let running tasks end within the grace. Idempotent."""
        self._stop.set()

    def retire(self) -> None:
        """Claim no more, give back the buffer, and end when the last task has ended, however long that takes."""
        self._retire.set()

    def stop_now(self) -> None:
        """Give back what runs, too."""
        self._stop.set()
        self._stop_now.set()

    async def started(self) -> None:
        """Returns when it claims."""
        await self._running.wait()

    async def run(self) -> None:
        use_redaction(self.app)
        if (tracing := tracing_of(self.app)) is not None:
            tracing.preload()
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(captured_logging(level_of(self.app)))
            store = await stack.enter_async_context(self._opened_store())
            if store is None:
                return
            if self.bus.hears(JobEnded):
                tell_of_job_ends(store, self.bus)
            if self.slots is None:
                self.slots = stack.enter_context(_private_slots(self.options))
            if not self.supervised:
                await warn_of_a_move(store)
            if not self.supervised and self.target is not None and not self.options.burst:
                await declare_schedules(self.app, store, self.target, stopping=self._stop)
            resources = await stack.enter_async_context(self._lifespan())
            while True:
                try:
                    await self._incarnation(store, resources or {})
                except LeaseLost:
                    self.bus.emit(LeaseWasLost(worker=self.id))
                    if self.supervised or self._stop.is_set():
                        raise
                    self.id = new_worker_id()
                    continue
                return

    @contextlib.asynccontextmanager
    async def _lifespan(self) -> AsyncGenerator[Mapping[str, Any]]:
        lifespan = self.app.lifespan_context()
        try:
            resources = await lifespan.__aenter__()
        except BaseException as error:
            if not self.supervised or isinstance(error, asyncio.CancelledError):
                raise
            raise Unstartable("the lifespan of the app raised before any task could run") from error
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_exit(lifespan)
            yield resources

    def _holds(self, ref: Ref) -> bool:
        return self.dispatcher is not None and ref in self.dispatcher.holding

    @contextlib.asynccontextmanager
    async def _opened_store(self) -> AsyncGenerator[Store | None]:
        """The store it was given stays open; one it made is closed. None when a stop was asked for before."""
        if self._store is not None:
            yield self._store
            return
        store = await self._open_store()
        try:
            yield store
        finally:
            if store is not None:
                await store.close()

    async def _open_store(self) -> Store | None:
        """Below a supervisor an outage is waited out: a new process would only meet it again."""
        if not self.supervised:
            store = self.app.new_store()
            await store.open()
            return store
        return await reach(self.app.new_store, who=f"worker {self.id}", bus=self.bus, stopping=self._stop)

    async def _incarnation(self, store: Store, resources: Mapping[str, Any]) -> None:
        self.words = words = Words(store=store, worker=lambda: self.id, holds=self._holds)
        executors = self._executors(self, resources)
        pipeline = Pipeline(self.app, rng=self._rng, slots=self.slots)
        self.dispatcher = dispatcher = Dispatcher(
            store=store,
            worker=lambda: self.id,
            pipeline=pipeline,
            executors=executors,
            options=self.options,
            bus=self.bus,
            rng=self._rng,
            words=words,
            slots=self.slots if self.supervised else None,
            tracing=tracing_of(self.app),
            inputs=Inputs(read=store.inputs, codecs=codecs_of(self.app), blobs=lambda: blobs_of(self.app)),
            keeper=result_keeper(self.app),
        )
        async with contextlib.AsyncExitStack() as stack:
            for executor in executors.values():
                stack.push_async_callback(executor.close)
            for pool, executor in executors.items():
                if pool != "child":
                    await executor.open()
            opening = asyncio.create_task(self._open_children(executors, dispatcher), name="headrace.children")
            stack.push_async_callback(_abandon, opening)
            assert self.slots is not None
            if not self.supervised:
                await store.register(worker_record(self.id, self.options))
                watchdog = WatchdogThread(self.slots.table, kill_memory=self.options.kill_memory)
                watchdog.start()
                stack.callback(watchdog.stop)
            if isinstance(store, Warming):
                with contextlib.suppress(StoreUnavailable):
                    await store.warm(self.id)
            supervision = Supervision(self._services(store, dispatcher, pipeline, words))
            stack.push_async_callback(supervision.stop)
            await supervision.start()
            await self._work(store, dispatcher, supervision, opening)

    async def _open_children(self, executors: Mapping[Pool, Executor], dispatcher: Dispatcher) -> None:
        """Children import the app anew, which takes long: what runs elsewhere does not wait for them. An app that has
        nothing for them pays for none until something arrives all the same (a path, another app's task).
        """
        children, pause = executors.get("child"), _SHORTEST_BACKOFF
        if isinstance(children, ProcessExecutor) and not has_child_tasks(self.app):
            await children.wanted.wait()
        while children is not None:
            try:
                await children.open()
                break
            except (ChildrenFailed, OSError) as error:
                if self.options.burst or not self._has_begun:
                    raise Unstartable("the children that run `def` tasks do not start") from error
                logger.error("%s\nno `def` task runs until this is mended; trying again in %g s", error, pause)
                await asyncio.sleep(pause)
                pause = min(_LONGEST_BACKOFF, pause * 2)
        dispatcher.claimer.poke(None)

    def _services(self, store: Store, dispatcher: Dispatcher, pipeline: Pipeline, words: Words) -> list[Service]:
        options, claimer = self.options, dispatcher.claimer
        assert self.slots is not None
        one_writer = store.dialect == "sqlite"  # elsewhere a look costs nobody else anything
        promoter = Promoter(
            store=store,
            poke=claimer.poke,
            claims=lambda: one_writer and (claimer.under_way or dispatcher.finisher.busy),
        )
        dispatcher.on_delay = promoter.wake
        # Its own finishes say when there is something to go on with; what others left is found by those of the upkeep.
        releaser = Releaser(store=store, interval=60.0)
        dispatcher.on_releasing = releaser.wake
        self.outcomes = outcomes = Outcomes(store=store, worker=lambda: self.id)
        dispatcher.on_finished = outcomes.note
        services: list[Service] = [
            words,
            outcomes,
            dispatcher.starter,
            Pulse(slots=self.slots, turned=claimer.turned),
            BufferKeeper(dispatcher=dispatcher, store=store, worker=lambda: self.id),
            promoter,
            releaser,
            RetryDepth(store=store, buffer=dispatcher.buffer, queues=lambda: claimer.queues, options=options),
        ]
        canceller = Canceller(store=store, worker=lambda: self.id, holding=dispatcher.holding, cancel=dispatcher.cancel)
        listener = Listener(store=store, worker=lambda: self.id, poke=claimer.poke, cancel=canceller.wake)
        services += [canceller, listener]
        if (sharing := sharing_of(self.app)) is not None:
            services.append(BreakerWatch(sharing))
        if options.queues is None:

            def found(queues: Sequence[str]) -> None:
                claimer.set_queues(queues)
                listener.set_queues(queues)

            services.append(QueueFinder(store=store, declared=self.app.queue_names(), found=found))
        else:
            claimer.set_queues(options.queues)
            listener.set_queues(options.queues)
        if not self.supervised:
            beats = keep_beats()
            services += [
                Heartbeat(store=store, interval=options.heartbeat_interval, states=self._states, beats=beats),
                Rescuer(
                    store=store,
                    by=lambda: self.id,
                    lease=options.lease,
                    heartbeat=options.heartbeat_interval,
                    own_beats=beats,
                    pipeline=pipeline,
                    bus=self.bus,
                    clock=self._clock,
                    rng=self._rng,
                ),
                *scheduler_services(store, options, self.bus),
                *upkeep_services(self.app, store, options),
            ]
        return services

    def _states(self) -> dict[str, str]:
        holds = self.dispatcher is not None and len(self.dispatcher.holding) > 0
        return {self.id: "active" if holds else "idle"}

    async def _work(
        self, store: Store, dispatcher: Dispatcher, supervision: Supervision, opening: asyncio.Task[None]
    ) -> None:
        """Until a stop is asked for, a burst is over, or a part died."""
        claiming = asyncio.create_task(self._claim(dispatcher, opening), name="headrace.claimer")
        parts = {
            claiming,
            asyncio.create_task(dispatcher.finisher.run(), name="headrace.finisher"),
            asyncio.create_task(supervision.watch(), name="headrace.supervision"),
            asyncio.create_task(_unless_it_fails(opening), name="headrace.children.watch"),
        }
        ends: set[asyncio.Task[Any]] = {
            asyncio.create_task(self._stop.wait(), name="headrace.stop"),
            asyncio.create_task(self._retire.wait(), name="headrace.retire"),
        }
        if self.options.burst:
            ends.add(asyncio.create_task(self._burst_over(store, dispatcher, opening), name="headrace.burst"))
        self.bus.emit(
            WorkerStarted(
                worker=self.id,
                queues=self.options.queues or (),
                concurrency=self.options.concurrency,
                children=self.options.children,
            )
        )
        self._running.set()
        try:
            done, _ = await asyncio.wait(parts | ends, return_when=asyncio.FIRST_COMPLETED)
            try:
                for task in done & parts:
                    task.result()
            except Unstartable:
                # Not the fault of what ran meanwhile: it is drained as ever, or it would run again.
                await self._drain(store, dispatcher, claiming, parts - {claiming} - done)
                raise
            if self._retire.is_set():
                await self._let_end(dispatcher, parts - {claiming})
            await self._drain(store, dispatcher, claiming, parts - {claiming})
        except LeaseLost:
            await dispatcher.abandon()
            raise
        finally:
            for task in parts | ends:
                task.cancel()
            await asyncio.gather(*parts, *ends, return_exceptions=True)
            await dispatcher.close()

    @property
    def _has_begun(self) -> bool:
        return self._begin is None or self._begin.is_set()

    async def _claim(self, dispatcher: Dispatcher, opening: asyncio.Task[None]) -> None:
        if not self._has_begun and has_child_tasks(self.app):
            await asyncio.wait({opening})
        assert self.slots is not None
        self.slots.table.note_need(self.slots.worker, resident() or 0)
        self._say(READY)
        if self._begin is not None:
            await _either(self._begin, self._stop)
        if not self._stop.is_set():
            await dispatcher.claimer.run()

    def _say(self, stage: int) -> None:
        assert self.slots is not None
        self.slots.table.enter_stage(self.slots.worker, stage)

    async def _burst_over(self, store: Store, dispatcher: Dispatcher, opening: asyncio.Task[None]) -> None:
        """Nothing is held, a claim that asked for everything found nothing, and nothing is due or ready.

        What is ready and stays so for a while is not for this worker: another pool's, or behind a limit.
        """
        since: float | None = None
        if has_child_tasks(self.app):
            await asyncio.wait({opening})
        while True:
            await asyncio.sleep(0.02)
            if not dispatcher.exhausted:
                _ask_if_idle(dispatcher)
                continue
            with contextlib.suppress(StoreUnavailable):
                due = await store.promote() == 0
                ready = await _ready(store, dispatcher.claimer.queues)
                # What a claim took whose answer was lost is nobody's until the keeper of the buffer finds it.
                stranded = bool(await store.held(self.id, limit=1))
                if not due and not stranded and dispatcher.exhausted:
                    since = since or time.monotonic()
                    if not ready or time.monotonic() - since > _BURST_PATIENCE:
                        return
                else:
                    since = None
            _ask_if_idle(dispatcher)

    async def _let_end(self, dispatcher: Dispatcher, parts: set[asyncio.Task[None]]) -> None:
        """Until nothing runs, or a stop is asked for: then what runs has the grace."""
        self._start_no_more(dispatcher)
        waits = {asyncio.create_task(dispatcher.wait_for_running(None)), asyncio.create_task(self._stop.wait())}
        try:
            await _until(waits, set(parts))
        finally:
            for wait in waits:
                wait.cancel()

    def _start_no_more(self, dispatcher: Dispatcher) -> None:
        dispatcher.claimer.close()
        dispatcher.release_buffer()
        self._say(LEAVING)

    async def _drain(
        self, store: Store, dispatcher: Dispatcher, claiming: asyncio.Task[None], parts: set[asyncio.Task[None]]
    ) -> None:
        deadline = time.monotonic() + self.options.grace
        self._start_no_more(dispatcher)
        waiting = asyncio.create_task(dispatcher.wait_for_running(self.options.grace))
        insisting = asyncio.create_task(self._stop_now.wait())
        living = set(parts)
        try:
            unstartable = await _until({waiting, insisting}, living)
        finally:
            waiting.cancel()
            insisting.cancel()
        await dispatcher.release_running()
        # A claim that is under way would otherwise be committed for a worker that is gone.
        await asyncio.wait({claiming}, timeout=5.0)
        # Results that cannot be written now are worth the rest of the grace, and no more.
        flushing = asyncio.create_task(dispatcher.finisher.flushed())
        try:
            late = await _until({flushing}, living, timeout=max(5.0, deadline - time.monotonic()))
        finally:
            flushing.cancel()
        for said in (self.words, self.outcomes):
            if said is not None:
                with contextlib.suppress(StoreUnavailable):
                    await said.flush()
        released = dispatcher.given_back
        if not self.supervised:
            with contextlib.suppress(StoreUnavailable):
                released += await store.deregister(self.id)
        self.bus.emit(WorkerStopped(worker=self.id, released=released, reason="asked to"))
        if (error := unstartable or late) is not None:
            raise error


def _ask_if_idle(dispatcher: Dispatcher) -> None:
    """Not while something is here: asking everywhere forgets which lanes have more, and one would start out of turn."""
    if not dispatcher.holding and not dispatcher.claimer.under_way:
        dispatcher.claimer.ask_everywhere()


async def _until(
    awaited: set[asyncio.Task[Any]], living: set[asyncio.Task[None]], *, timeout: float | None = None
) -> Unstartable | None:
    """Returns when one of `awaited` is done, or after `timeout` seconds. Raises what ends a part of the worker
    meanwhile, except that children do not start: what runs beside them goes on, and the caller is told.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    unstartable: Unstartable | None = None
    while True:
        rest = None if deadline is None else max(0.0, deadline - time.monotonic())
        done, _ = await asyncio.wait(awaited | living, timeout=rest, return_when=asyncio.FIRST_COMPLETED)
        for part in done & living:
            living.discard(part)
            try:
                part.result()
            except Unstartable as error:
                unstartable = error
        if not done or done & awaited:
            return unstartable


async def _unless_it_fails(task: asyncio.Task[None]) -> None:
    """Raises what it raises, and otherwise never ends."""
    await asyncio.shield(task)
    await asyncio.Event().wait()


async def _either(one: asyncio.Event, other: asyncio.Event) -> None:
    waits = {asyncio.create_task(event.wait()) for event in (one, other)}
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def _abandon(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _ready(store: Store, queues: Sequence[str]) -> bool:
    return any(
        queue.depths.get("primary") or queue.depths.get("retry")
        for queue in await store.queues()
        if queue.name in queues and not queue.paused
    )


def worker_record(worker: str, options: WorkerOptions, *, pid: int | None = None) -> WorkerRecord:
    now = datetime.now(UTC)  # the store writes its own clock's instants
    return WorkerRecord(
        id=worker,
        kind="pool",
        hostname=socket.gethostname(),
        pid=pid or os.getpid(),
        state="idle",
        beat=0,
        lease=options.lease,
        queues=options.queues or (),
        version=__version__,
        started_at=now,
        last_heartbeat=now,
        stopped_at=None,
        tasks_completed=0,
        tasks_failed=0,
    )


@contextlib.contextmanager
def _private_slots(options: WorkerOptions) -> Generator[SlotRange]:
    with private_directory() as directory:
        table = SlotTable.create(directory / "slots", options.slots)
        try:
            yield SlotRange(table)
        finally:
            table.close()
