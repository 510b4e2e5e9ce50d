"""The supervisor: starts worker processes, renews their leases, watches their limits, and answers for the dead.

It runs no user code beside the import of the app, so no task can hold back a heartbeat. It is one process; when it dies
its worker processes end with it, and the rescuers of other supervisors take over.
"""

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from headrace.core.clock import SystemClock
from headrace.core.errors import StoreUnavailable
from headrace.core.outcome import Released
from headrace.core.retry import DEFAULT_RETRY
from headrace.core.settlement import Execution, Settlement, settle
from headrace.core.states import TaskState
from headrace.core.task import ClaimedTask, Ref
from headrace.executors.slots import CHILD, GROUP, LEAVING, READY, STARTING, SlotTable
from headrace.runtime.service import Service
from headrace.runtime.signals import stop_signals
from headrace.runtime.supervision import Supervision
from headrace.store.base import Store
from headrace.telemetry import logs
from headrace.telemetry.console import CONSOLE_EVENTS, console
from headrace.telemetry.events import Bus, LeaseWasLost, LoopStalled, TasksFinished, WorkerStopped
from headrace.worker.aftermath import Death, settle_after
from headrace.worker.application import Application, load, tracing_of, warn_of_a_move, warn_of_unserved
from headrace.worker.beside import Beside
from headrace.worker.directories import private_directory
from headrace.worker.execution import Pipeline
from headrace.worker.exposing import Exposure, exposed
from headrace.worker.handover import CAN_BEGIN, LEFT, Handover
from headrace.worker.options import WorkerOptions
from headrace.worker.process import BEGIN, ProcessConfig
from headrace.worker.reaching import reach
from headrace.worker.rescuing import empty_hands
from headrace.worker.scheduling import declare_schedules, scheduler_services, take_over_schedules
from headrace.worker.services.lease import Leases
from headrace.worker.services.memory import MemoryWatch
from headrace.worker.services.rescuer import Rescuer, keep_beats
from headrace.worker.services.watch import Limits, ProcessWatch
from headrace.worker.shepherd import Shepherd, until
from headrace.worker.spawning import Spawned
from headrace.worker.supervised import WorkerProcess, start_process
from headrace.worker.worker import upkeep_services, worker_record

_MOST = 10_000
_KILL_AFTER = 5.0  # beyond the grace, for a process whose loop no longer turns


def run(
    target: str,
    options: WorkerOptions | None = None,
    *,
    spawned: Sequence[Spawned] = (),
    upgrade: bool = False,
    handover: Handover | None = None,
    beside: Beside | None = None,
) -> int:
    """`headrace worker`: blocks until it is told to stop (SIGTERM, SIGINT) or a burst is over; the exit code.

    `spawned` are interpreters of processes that were started beforehand. `upgrade`: make the schema first.
    `handover`: it takes over from another supervisor, and will be followed by one. `beside` runs as long as it does.
    """
    options = options or WorkerOptions()
    logs.configure(options.logs)
    bus = Bus()
    bus.subscribe(console, *CONSOLE_EVENTS)
    supervisor = Supervisor(
        target, options, bus=bus, spawned=spawned, upgrade=upgrade, handover=handover, beside=beside
    )
    return asyncio.run(supervisor.run())


class Supervisor:
    def __init__(
        self,
        target: str,
        options: WorkerOptions,
        *,
        bus: Bus | None = None,
        spawned: Sequence[Spawned] = (),
        upgrade: bool = False,
        handover: Handover | None = None,
        beside: Beside | None = None,
    ) -> None:
        self.target = target
        self.options = options
        self.bus = bus or Bus()
        self.processes: dict[int, WorkerProcess] = {}
        self._spawned = list(spawned)
        self._upgrade = upgrade
        self._rng = random.Random()
        self._stopping = asyncio.Event()
        self._insisted = asyncio.Event()
        self._exposure: Exposure | None = None
        self._handover = handover
        self._beside = beside
        # Indexes at which a process may take the place of one that still ends.
        replaces = options.max_memory is not None and not options.burst
        self._spare = list(range(options.processes, 2 * options.processes)) if replaces else []

    def stop(self) -> None:
        """Drain every process; they end by themselves, at the latest when the grace is over."""
        self._stopping.set()
        if self._beside is not None:
            self._beside.stop()
        for process in self.processes.values():
            process.signal(signal.SIGTERM)

    def stop_now(self) -> None:
        """Give back what runs. Another signal than the first, because the kernel folds equal ones that are pending."""
        self._stopping.set()
        self._insisted.set()
        if self._beside is not None:
            self._beside.stop_now()
        for process in self.processes.values():
            process.signal(signal.SIGINT)

    async def run(self) -> int:
        code = await self._supervise()
        return 1 if self._beside is not None and self._beside.failed else code

    async def _supervise(self) -> int:
        app = load(self.target)
        logs.use_redaction(app)
        if (tracing := tracing_of(app)) is not None:
            self.bus.subscribe(tracing.buried, TasksFinished)
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(stop_signals(self.stop, self.stop_now))
            if self._handover is not None:
                self._handover.open(gone=self.stop_now)
                stack.callback(self._handover.close)
            if self._beside is not None:
                await stack.enter_async_context(self._beside.running(self.stop))
            store = await self._reach(app)
            if store is None:
                return 0
            stack.push_async_callback(store.close)
            await warn_of_a_move(store)
            if not self.options.burst and not self._takes_over:
                await declare_schedules(app, store, self.target, stopping=self._stopping)
            directory = stack.enter_context(private_directory())
            await self._expose(stack, store, directory)
            capacity = self.options.slots * (self.options.processes + len(self._spare))
            table = SlotTable.create(directory / "slots", capacity)
            return await self._run(app, store, table)

    async def _reach(self, app: Application) -> Store | None:
        """None when it was told to stop while the store could not be reached."""
        if not self.options.burst:
            return await reach(
                app.new_store, who="the supervisor", bus=self.bus, stopping=self._stopping, upgrade=self._upgrade
            )
        # Whoever runs a burst waits for its end, and learns at once that there will be none now.
        store = app.new_store()
        await store.open()
        return store

    async def _expose(self, stack: contextlib.AsyncExitStack, store: Store, directory: Path) -> None:
        if self.options.metrics_port is not None:
            share = self._handover is not None
            page = exposed(store=store, bus=self.bus, directory=directory, options=self.options, share=share)
            self._exposure = await stack.enter_async_context(page)

    async def _run(self, app: Application, store: Store, table: SlotTable) -> int:
        warn_of_unserved(app, self.options)
        pipeline = Pipeline(app, rng=self._rng)
        supervision = Supervision(self._services(app, store, table, pipeline))
        await supervision.start()
        watching = asyncio.create_task(supervision.watch(), name="headrace.supervision")
        shepherds = [
            asyncio.create_task(self._shepherd(store, table, pipeline).run(index), name=f"headrace.process.{index}")
            for index in range(self.options.processes)
        ]
        ending = asyncio.create_task(self._end_late(), name="headrace.end")
        handing = asyncio.create_task(self._hand_over(table), name="headrace.handover")
        scheduling = asyncio.create_task(self._schedule(app, store), name="headrace.scheduling")
        everyone = asyncio.gather(*shepherds)
        try:
            await asyncio.wait({everyone, watching, scheduling, ending}, return_when=asyncio.FIRST_COMPLETED)
            for part in (watching, scheduling):
                if part.done():
                    part.result()
            # Without a store nothing can be given back: then the lease runs out and others rescue.
            return max(everyone.result(), default=0) if everyone.done() else 1
        finally:
            for task in (ending, handing, scheduling, watching, everyone):
                task.cancel()
            await asyncio.gather(ending, handing, scheduling, watching, *shepherds, return_exceptions=True)
            for process in self.processes.values():
                process.kill(spared=True)
                process.process.close()
            await supervision.stop()

    def _services(self, app: Application, store: Store, table: SlotTable, pipeline: Pipeline) -> list[Service]:
        options, beats = self.options, keep_beats()
        return [
            Leases(
                store=store,
                interval=options.heartbeat_interval,
                processes=lambda: list(self.processes.values()),
                beats=beats,
                lost=self._lease_lost,
            ),
            Limits(table=table, kill_memory=options.kill_memory),
            ProcessWatch(
                processes=lambda: list(self.processes.values()),
                table=table,
                lease=options.lease,
                stalled=lambda process, seconds: self._release_unstarted(store, table, process, seconds),
            ),
            Rescuer(
                store=store,
                by=lambda: f"supervisor {os.getpid()}",
                lease=options.lease,
                heartbeat=options.heartbeat_interval,
                own_beats=beats,
                pipeline=pipeline,
                bus=self.bus,
                clock=SystemClock(),
                rng=self._rng,
            ),
            *([] if self._takes_over else scheduler_services(store, options, self.bus)),
            *upkeep_services(app, store, options),
            *self._memory_watch(table),
            *([] if self._exposure is None else [self._exposure.keeper]),
        ]

    def _memory_watch(self, table: SlotTable) -> list[Service]:
        if self.options.max_memory is None or not self._spare:
            return []
        return [
            MemoryWatch(
                limit=self.options.max_memory,
                table=table,
                processes=lambda: list(self.processes.values()),
                may=lambda: bool(self._spare) and not self._stands_by and not self._stopping.is_set(),
            )
        ]

    # --- one process after the other --------------------------------------------------------------------------------

    def _shepherd(self, store: Store, table: SlotTable, pipeline: Pipeline) -> Shepherd:
        return Shepherd(
            start=lambda index: self._start(index, store, table),
            bury=lambda process: self._bury(process, store, table, pipeline),
            spare=self._spare,
            table=table,
            burst=self.options.burst,
            stopping=self._stopping,
            stands_by=lambda: self._stands_by,
            give_up=self.stop,
            bus=self.bus,
        )

    async def _start(self, index: int, store: Store, table: SlotTable) -> WorkerProcess:
        process = start_process(
            ProcessConfig(
                target=self.target,
                options=self.options.to_json(),
                slots=str(table.path),
                index=index,
                first_slot=index * self.options.slots,
                metrics=None if self._exposure is None else self._exposure.address,
                standby=self._stands_by,
            ),
            self._spawned.pop(0) if self._spawned else None,
        )
        table.enter_stage(index, STARTING)
        self.processes[index] = process
        table.tick(index)
        await _insist(lambda: store.register(worker_record(process.id, self.options, pid=process.pid)))
        process.leased = True
        with contextlib.suppress(OSError):  # it died before it could be told; its end is seen by whoever waits for it
            process.go()
        if self._stopping.is_set():
            process.signal(signal.SIGTERM)
        return process

    @property
    def _stands_by(self) -> bool:
        """Another supervisor works until this one is told to begin."""
        return self._handover is not None and not self._handover.begun.is_set()

    @property
    def _takes_over(self) -> bool:
        """Another supervisor may be at work already, and goes on with its schedules should this one not begin."""
        return self._handover is not None and self._handover.number > 1

    async def _schedule(self, app: Application, store: Store) -> None:
        """Returns never."""
        if self._handover is not None and self._takes_over:
            services = scheduler_services(store, self.options, self.bus)
            begun, stopping = self._handover.begun, self._stopping
            await take_over_schedules(app, store, self.target, services, begun=begun, stopping=stopping)
        await asyncio.Event().wait()

    async def _hand_over(self, table: SlotTable) -> None:
        """Say when it could begin, begin when told to, and say when it has stopped beginning anything."""
        if self._handover is None:
            return
        await until(lambda: all(table.stage(index) >= READY for index in range(self.options.processes)))
        self._handover.say(CAN_BEGIN)
        await self._handover.begun.wait()
        for process in self.processes.values():
            process.order(BEGIN)
        await self._stopping.wait()
        await until(
            lambda: all(not each.alive or table.stage(each.index) >= LEAVING for each in self.processes.values())
        )
        self._handover.say(LEFT)

    async def _bury(self, process: WorkerProcess, store: Store, table: SlotTable, pipeline: Pipeline) -> None:
        """Settle what a dead process held: its slots say what it was inside of, the ledger what else it had."""
        process.leased = False
        slots = table.occupied(worker=process.index)
        for slot in slots:
            if slot.kind in (CHILD, GROUP) and slot.pid != process.pid:
                _kill(slot.pid, group=True)  # a child leads a group, too: of what its tasks had started
        # At once, and all of them: while the ledger cannot be written the numbers of dead processes may be given anew,
        # and nobody must be signalled or killed by what stands here.
        for index in range(process.index * self.options.slots, (process.index + 1) * self.options.slots):
            table.leave(index)
        # Read before the children were killed: one that left its slot since has no worker to report to either.
        death = Death(
            worker=process.id,
            exit_code=process.process.returncode,
            at=time.monotonic(),
            occupied={slot.ref: slot for slot in slots},
            spared=process.spared,
        )

        def decide(claim: ClaimedTask) -> Settlement:
            return settle_after(death, claim, pipeline=pipeline, rng=self._rng)

        released = (await _insist(lambda: empty_hands(store, process.id, decide, bus=self.bus))).released
        released += await _insist(lambda: store.deregister(process.id))
        self.bus.emit(WorkerStopped(worker=process.id, released=released, reason=f"exit {death.exit_code}"))

    def _lease_lost(self, process: WorkerProcess) -> None:
        """Others may run its tasks already: end its attempts with it, and start anew as another incarnation."""
        self.bus.emit(LeaseWasLost(worker=process.id))
        process.leased = False
        process.kill(spared=True)

    async def _release_unstarted(self, store: Store, table: SlotTable, process: WorkerProcess, seconds: float) -> None:
        """The loop of a process is stuck: give back what waits behind the task that blocks it.

        Not what has run already: its outcome is in there and will be reported. What is entered between the two reads is
        written by nobody twice: the fence refuses its report.
        """
        held = await store.held(process.id, limit=_MOST)
        waiting = table.waiting(process.index)
        settlements = [
            settle(claim, Released(), DEFAULT_RETRY, rng=self._rng, execution=Execution(recorded_by="supervisor"))
            for claim in held
            if claim.state == TaskState.CLAIMED and Ref(claim.id, claim.claim_no) in waiting
        ]
        if settlements:
            report = await store.finish(process.id, settlements)
            self.bus.emit(LoopStalled(worker=process.id, seconds=seconds, released=len(report.accepted)))

    async def _end_late(self) -> None:
        """After the grace, or when told twice, processes that have not ended are killed; what they ran goes back."""
        await self._stopping.wait()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._insisted.wait(), self.options.grace + _KILL_AFTER)
        if self._insisted.is_set():
            await asyncio.sleep(_KILL_AFTER / 2)
        for process in self.processes.values():
            process.kill(spared=True)
        await asyncio.sleep(_KILL_AFTER)


def _kill(pid: int, *, group: bool) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        (os.killpg if group else os.kill)(pid, signal.SIGKILL)


async def _insist[T](act: Callable[[], Awaitable[T]]) -> T:
    """Until the store answers: an outage must not change what is written, only when."""
    pause = 0.05
    while True:
        try:
            return await act()
        except StoreUnavailable:
            await asyncio.sleep(pause)
            pause = min(5.0, pause * 2)
