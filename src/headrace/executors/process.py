"""`def` in killable children: at the hard limit a child is killed, recorded, and replaced.

Short tasks are handed out in batches. When a child dies, the one inside user code is charged (the slot says which), and
those after it run elsewhere as if nothing had happened; when one takes long, those behind it are taken back.
"""

import asyncio
import itertools
import logging
import math
import signal
import time
from collections import deque
from typing import Any

from headrace.core.memory import shown_memory
from headrace.core.outcome import Cancelled, Lost, Outcome, Released
from headrace.core.task import ErrorInfo, Ref
from headrace.executors.base import Capabilities, Launch, Ran
from headrace.executors.child import ChildConfig, Order, unpacked
from headrace.executors.invocation import Host, out_of_memory, timed_out
from headrace.executors.nursery import ChildProcess, ChildrenFailed, Item, Nursery
from headrace.executors.slots import VERDICT_CANCELLED, VERDICT_MEMORY, VERDICT_TIMEOUT, Occupied, SlotRange
from headrace.executors.watchdog import condemn

DEEPEST = 32
# A batch is as many tasks as take about this long; what has run longer is no short task.
BATCH_SECONDS = 0.05
_RESTARTS = 3
_LONGEST_PAUSE = 5.0
_CLOSE_SECONDS = 2.0
_TOO_TIGHT = 3

logger = logging.getLogger("headrace.worker")


class ProcessExecutor:
    """`children` killable processes that import `target` ("module:attribute") and run one attempt at a time each.

    A child is replaced after `max_tasks` tasks, or once its memory has passed `memory_limit` bytes. One that needs more
    than `kill_memory`, at which a watchdog would kill it, before its first task does not start. What finds no child
    within `unstarted_after` seconds is given back: another worker may have one.
    """

    name = "process"
    capabilities = Capabilities(kill=True)

    def __init__(
        self,
        *,
        target: str,
        children: int,
        slots: SlotRange,
        host: Host,
        max_tasks: int | None = None,
        memory_limit: int | None = None,
        kill_memory: int | None = None,
        unstarted_after: float = 1.0,
    ) -> None:
        self._target = target
        self._size = children
        self._slots = slots
        self._host = host
        self._max_tasks = max_tasks
        self._memory_limit = memory_limit
        self._kill_memory = kill_memory
        self._unstarted_after = unstarted_after
        self._nursery: Nursery | None = None
        self._cold = True  # never opened
        self.wanted = asyncio.Event()  # something waits for a child
        self._children: list[ChildProcess] = []
        self._queue: deque[Item] = deque()
        self._items: dict[Ref, Item] = {}
        self._numbers = itertools.count(1)
        self._means: dict[str, float] = {}  # seconds in user code by task name, lately
        self._mean_of_all = BATCH_SECONDS
        self._feeding = False
        self._checking: asyncio.TimerHandle | None = None
        self._closing = False
        self._failures = 0  # children in a row that ended before they were ready
        self._last_failure = "it said nothing"
        self._changed = asyncio.Event()
        self._restarting: asyncio.Task[None] | None = None
        self._fat_at_once = 0  # children in a row that were over their limit after one task

    # --- lifetime -----------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        self._cold = False
        try:
            await self._open_nursery()
        except (ChildrenFailed, OSError):
            self._release_queue()
            raise
        while sum(child.ready for child in self._children) < self._size:
            if self._failures:
                await self._give_up()
                raise ChildrenFailed(f"a child of {self._target!r} ended before it was ready:\n{self._last_failure}")
            await self._wait_for_change()

    async def _give_up(self) -> None:
        """As if it had never been opened: it may be opened again. What waits goes back, another worker may run it."""
        self._failures = 0
        nursery, self._nursery = self._nursery, None
        # Before the wait: nothing may be given to a child that is being ended, nor taken from it.
        children, self._children = self._children, []
        if nursery is not None:
            await nursery.close()
        for child in children:
            for item in list(child.given.values()):
                item.settle(Ran(outcome=Released()))
            child.given.clear()
            self._slots.table.leave(child.slot)
            self._slots.give(child.slot)
        self._release_queue()

    async def _open_nursery(self) -> None:
        self._nursery = Nursery(
            self._target, on_message=self._hear, on_exit=self._child_ended, on_end=self._nursery_ended
        )
        try:
            await self._nursery.open()
        except (ChildrenFailed, OSError):
            await self._nursery.close()
            raise
        for _ in range(self._size - len(self._children)):
            self._start_child()

    def _nursery_ended(self) -> None:
        if not self._closing:
            self._restarting = asyncio.get_running_loop().create_task(self._reopen(), name="headrace-forkserver")

    async def _reopen(self) -> None:
        if self._nursery is not None:
            await self._nursery.close()  # it has ended; this takes its exit status, or it would stay a zombie
        pause = 0.1
        while not self._closing:
            try:
                await self._open_nursery()
            except (ChildrenFailed, OSError):  # it does not import now, or the machine is out of processes
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                return

    async def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        self._release_queue()
        for child in self._children:
            for item in child.take_back():
                item.settle(Ran(outcome=Released()))
            for item in child.given.values():
                item.stop_reason = item.stop_reason or "stopped"
                self._kill_for(item)
            child.retire()
        deadline = time.monotonic() + _CLOSE_SECONDS
        while self._children and time.monotonic() < deadline:
            await self._wait_for_change(deadline - time.monotonic())
        if self._restarting is not None:
            self._restarting.cancel()
        if self._checking is not None:
            self._checking.cancel()
        if self._nursery is not None:
            await self._nursery.close()
        for child in self._children:
            self._slots.give(child.slot)
        self._children.clear()
        for item in list(self._items.values()):
            item.settle(Ran(outcome=Released()))

    def release_unstarted(self) -> None:
        self._release_queue()
        for child in self._children:
            for item in child.take_back():
                item.settle(Ran(outcome=Released()))

    def _release_queue(self) -> None:
        while self._queue:
            self._queue.popleft().settle(Ran(outcome=Released()))

    async def _wait_for_change(self, timeout: float | None = None) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            pass

    def _start_child(self) -> None:
        slot = self._slots.take()
        if slot is None or self._nursery is None:
            raise RuntimeError("the slot table is too small: every child needs a slot of its own")
        config = ChildConfig(
            target=self._target,
            table=str(self._slots.table.path),
            slot=slot,
            worker_index=self._slots.worker,
            worker=self._host.worker,
            result_limit=self._host.result_limit,
            memory_limit=self._memory_limit,
            kill_memory=self._kill_memory,
        )
        self._children.append(self._nursery.start_child(config))

    # --- the contract -------------------------------------------------------------------------------------------------

    def free(self) -> int:
        """Before it is opened it has room for one, whose arrival says that children are needed here."""
        if self._cold:
            return max(0, 1 - len(self._queue))
        deep = max(1, min(DEEPEST, int(BATCH_SECONDS / max(self._mean_of_all, 1e-6))))
        now = time.monotonic()
        room = sum(max(0, deep - len(child.given)) for child in self._children if _listens(child, now))
        return max(0, room - len(self._queue))

    def inside(self, ref: Ref) -> bool:
        slots = (self._slots.table.read(child.slot) for child in self._children)
        return any(slot is not None and slot.ref == ref for slot in slots)

    async def run(self, launch: Launch) -> Ran:
        if self._closing:
            return Ran(outcome=Released())
        item = Item(launch, asyncio.get_running_loop().create_future())
        self._items[item.ref] = item
        self._queue.append(item)
        self.wanted.set()
        self._feed_soon()
        try:
            return await item.answer
        except asyncio.CancelledError:
            await self.stop(item.ref, grace=0.0, reason="stopped")
            raise
        finally:
            del self._items[item.ref]

    async def stop(self, ref: Ref, *, grace: float, reason: str = "user") -> None:
        item = self._items.get(ref)
        if item is None or item.stop_reason is not None:
            return
        item.stop_reason = reason
        if item in self._queue:
            self._queue.remove(item)
            item.settle(Ran(outcome=Cancelled(reason=reason)))
            return
        child = self._child_of(item)
        if child is None or child.wire is None:
            return
        self._take_back(child)
        if item in self._queue:
            self._queue.remove(item)
            item.settle(Ran(outcome=Cancelled(reason=reason)))
            return
        child.wire.send(("stop", ref, reason, grace))
        item.kill_timer = asyncio.get_running_loop().call_later(grace, self._kill_for, item)

    def _kill_for(self, item: Item) -> None:
        child = self._child_of(item)
        slot = None if child is None else self._slots.table.read(child.slot)
        if slot is not None and slot.ref == item.ref:
            condemn(self._slots.table, slot, VERDICT_CANCELLED)
        elif child is not None:
            # Between the token and user code, or between user code and the report: look again.
            item.kill_timer = asyncio.get_running_loop().call_later(0.05, self._kill_for, item)

    def _child_of(self, item: Item) -> ChildProcess | None:
        return next((child for child in self._children if item in child.given.values()), None)

    # --- handing out --------------------------------------------------------------------------------------------------

    def _feed_soon(self) -> None:
        if not self._feeding:
            self._feeding = True
            asyncio.get_running_loop().call_soon(self._feed)

    def _feed(self) -> None:
        self._feeding = False
        now = time.monotonic()
        open_children = [child for child in self._children if _listens(child, now) and len(child.given) <= DEEPEST // 2]
        open_children.sort(key=lambda child: len(child.given))
        for position, child in enumerate(open_children):
            if not self._queue:
                break
            share = math.ceil(len(self._queue) / (len(open_children) - position))
            self._fill(child, share)
        if self._checking is None and (self._queue or any(len(child.given) > 1 for child in self._children)):
            self._checking = asyncio.get_running_loop().call_later(BATCH_SECONDS, self._check)

    def _fill(self, child: ChildProcess, share: int) -> None:
        room = DEEPEST - len(child.given)
        if self._max_tasks is not None:
            room = min(room, self._max_tasks - child.reported - len(child.given))
        expected = sum(self._mean(item) for item in child.given.values())
        batch: list[tuple[Order, Item]] = []
        while self._queue and len(batch) < min(room, share) and (expected < BATCH_SECONDS):
            item = self._queue.popleft()
            expected += self._mean(item)
            batch.append((self._order(item), item))
        if batch:
            child.give(batch)

    def _mean(self, item: Item) -> float:
        return self._means.get(item.launch.claim.name, BATCH_SECONDS)

    def _order(self, item: Item) -> Order:
        launch = item.launch
        return Order(
            next(self._numbers),
            tuple(launch.claim),
            dict(launch.options),
            launch.limits.soft,
            launch.limits.hard,
            launch.policy if launch.policy.storable else None,
        )

    def _check(self) -> None:
        """Take back what waits behind a task that turned out to be long, and give back what has waited too long."""
        self._checking = None
        now = time.monotonic()
        while self._queue and now - self._queue[0].since > self._unstarted_after:
            self._queue.popleft().settle(Ran(outcome=Released()))
        for child in self._children:
            if len(child.given) > 1 and now - child.last_report > BATCH_SECONDS:
                self._take_back(child)
        self._feed_soon()

    def _take_back(self, child: ChildProcess) -> None:
        self._queue.extendleft(reversed(child.take_back()))
        self._feed_soon()

    # --- hearing ------------------------------------------------------------------------------------------------------

    def _hear(self, child: ChildProcess, message: Any) -> None:
        match message:
            case ("ran", number, report):
                self._reported(child, number, unpacked(report))
            case ("log", ref, line):
                self._host.channel.log(ref, line)
            case ("progress", ref, progress):
                self._host.channel.progress(ref, progress)
            case ("value", ref, value):
                self._host.channel.stream(ref, value)
            case ("heartbeat", ref):
                self._host.channel.heartbeat(ref)
            case ("ready", _):
                child.ready = True
                self._failures = 0
                self._changed.set()
                self._feed_soon()
            case ("retire", int(used)):
                self._retire_fat(child, used)
            case ("failed", text):
                self._last_failure = text
            case _:
                pass

    def _reported(self, child: ChildProcess, number: int, ran: Ran) -> None:
        item = child.given.pop(number, None)
        if item is None:
            return
        child.reported += 1
        child.last_report = time.monotonic()
        name, took = item.launch.claim.name, ran.ran_for or 0.0
        self._means[name] = 0.8 * self._means.get(name, took) + 0.2 * took
        self._mean_of_all = 0.9 * self._mean_of_all + 0.1 * took
        item.settle(ran)
        if self._max_tasks is not None and child.reported >= self._max_tasks and not child.retiring:
            self._retire(child)
        if self._queue:
            self._feed_soon()

    def _retire(self, child: ChildProcess) -> None:
        self._take_back(child)
        child.retire()

    def _retire_fat(self, child: ChildProcess, used: int) -> None:
        if not child.retiring:
            self._retire(child)
        if child.wire is not None:
            child.wire.send(("retired",))
        limit = shown_memory(self._memory_limit or 0)
        logger.info("child %s has %s in use, over %s: another takes its place", child.pid, shown_memory(used), limit)
        self._fat_at_once = self._fat_at_once + 1 if child.reported <= 1 else 0
        if self._fat_at_once == _TOO_TIGHT:
            logger.warning("max_memory %s is less than children need for a single task: each runs only one", limit)

    # --- death --------------------------------------------------------------------------------------------------------

    def _child_ended(self, child: ChildProcess, status: int | None) -> None:
        unstarted = child.take_back()
        slot = self._slots.table.read(child.slot)
        for item in child.given.values():
            # At most one is left here: it had its token.
            if slot is not None and slot.ref == item.ref:
                item.settle(Ran(outcome=self._verdict(item, slot, status), ran_for=time.monotonic() - slot.entered))
            elif item.stop_reason is not None:
                item.settle(Ran(outcome=Cancelled(reason=item.stop_reason)))
            elif item.restarts >= _RESTARTS:
                item.settle(Ran(outcome=Lost(error=_death(status, "before it entered the task's code"))))
            else:
                item.restarts += 1
                unstarted.insert(0, item)
        child.given.clear()
        self._queue.extendleft(reversed(unstarted))
        self._slots.table.leave(child.slot)
        self._slots.give(child.slot)
        self._children.remove(child)
        self._changed.set()
        # No status: the forkserver is gone and starts anew with all its children.
        if self._closing or self._nursery is None or status is None:
            return
        if child.ready:
            self._start_child()
        else:
            self._failures += 1
            pause = min(0.1 * 2 ** min(self._failures, 10), _LONGEST_PAUSE)
            asyncio.get_running_loop().call_later(pause, self._replace)
        self._feed_soon()

    def _replace(self) -> None:
        if not self._closing and self._nursery is not None and len(self._children) < self._size:
            self._start_child()

    def _verdict(self, item: Item, slot: Occupied, status: int | None) -> Outcome:
        match slot.verdict:
            case v if v == VERDICT_TIMEOUT:
                return timed_out(item.launch.limits.hard)
            case v if v == VERDICT_MEMORY:
                return out_of_memory(*slot.memory)
            case v if v == VERDICT_CANCELLED:
                return Cancelled(
                    reason=item.stop_reason or "stopped", message="it did not stop when told to and was killed"
                )
            case _:
                return Lost(error=_death(status, "while it ran the task's code"))


def _listens(child: ChildProcess, now: float) -> bool:
    """Ready for more, and not in the middle of something long."""
    return child.ready and not child.retiring and (not child.given or now - child.last_report <= BATCH_SECONDS)


def _death(status: int | None, when: str) -> ErrorInfo:
    if status is None:
        how = "vanished"
    elif status >= 0:
        how = f"exited with code {status}"
    else:
        name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
        hint = " (the kernel's out-of-memory killer, or someone's kill -9)" if -status == signal.SIGKILL else ""
        how = f"was ended by {name}{hint}"
    return ErrorInfo(
        error_class="headrace.ProcessDied",
        message=f"the child process {how} {when}; another child took its place",
        exit_code=status,
    )
