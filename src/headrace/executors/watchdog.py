"""Keeps the limits of time and memory of what is inside user code, from outside: by the slot table alone.

Run by the supervisor process, which no user code can block; or by a thread where there is no supervisor (that one waits
while a C call holds the GIL of its own process, and cannot outlive a kill of it).
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from headrace.core.task import Ref
from headrace.executors.interruption import SOFT_SIGNAL
from headrace.executors.slots import CHILD, GROUP, LOOP, THREAD, VERDICT_MEMORY, VERDICT_TIMEOUT, Occupied, SlotTable
from headrace.runtime.memory import resident

# A loop that still turns ends its own coroutines; only one that is blocked is killed, a moment later.
LOOP_GRACE = 1.0
_FREEZE_CEILING = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What the watchdog did: `interrupt` asked for SoftTimeLimitExceeded, `kill` ended the process or group."""

    what: Literal["interrupt", "kill"]
    slot: Occupied

    @property
    def ref(self) -> Ref:
        return self.slot.ref


class Watchdog:
    """`run_once` as often as limits should be precise; the supervisor does it each 50 to 100 ms.

    The soft signal is repeated until the attempt has been interrupted: one that arrives while a neighbour on the same
    loop runs does nothing. `worker_kills` False leaves alone what only the death of a worker process could end. A child
    that has more than `kill_memory` bytes in use is killed; only a child, because it runs one attempt at a time, so
    that the guilty one is known.
    """

    def __init__(
        self,
        table: SlotTable,
        *,
        worker_kills: bool = True,
        loop_grace: float = LOOP_GRACE,
        kill_memory: int | None = None,
    ) -> None:
        self._table = table
        self._worker_kills = worker_kills
        self._loop_grace = loop_grace
        self._kill_memory = kill_memory

    def run_once(self, now: float | None = None) -> list[Act]:
        now = time.monotonic() if now is None else now
        acts: list[Act] = []
        for slot in self._table.occupied():
            act = self._look_at(slot, now)
            if act is not None:
                acts.append(act)
        return acts

    def _look_at(self, slot: Occupied, now: float) -> Act | None:
        grace = self._loop_grace if slot.kind in (LOOP, GROUP) else 0.0
        if now >= slot.hard + grace and (self._worker_kills or slot.kind in (CHILD, GROUP)):
            return Act(what="kill", slot=slot) if condemn(self._table, slot, VERDICT_TIMEOUT) else None
        if (
            self._kill_memory is not None
            and slot.kind == CHILD
            and (used := resident(slot.pid) or 0) > self._kill_memory
        ):
            evidence = used, self._kill_memory
            return Act(what="kill", slot=slot) if condemn(self._table, slot, VERDICT_MEMORY, memory=evidence) else None
        # Threads and commands are not interrupted by a signal to the process.
        if now >= slot.soft and not slot.interrupted and slot.kind in (LOOP, CHILD):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(slot.pid, SOFT_SIGNAL)
                return Act(what="interrupt", slot=slot)
        return None


def condemn(table: SlotTable, slot: Occupied, verdict: int, *, memory: tuple[int, int] = (0, 0)) -> bool:
    """Write the verdict and kill. False when the attempt had left by itself.

    The process is frozen first, because between the look and the kill it could end this attempt and enter the next,
    which would then die for it. That the slot is still its own also guards against a pid that was given anew.
    """
    # A child leads a group too: what its task started ends with it.
    send: Callable[[int, int], None] = os.killpg if slot.kind in (GROUP, CHILD) else os.kill
    try:
        if slot.pid != os.getpid():
            send(slot.pid, signal.SIGSTOP)
            _wait_until_frozen(slot.pid)
        again = table.read(slot.index)
        if again is None or again.ref != slot.ref or again.pid != slot.pid:
            send(slot.pid, signal.SIGCONT)
            return False
        table.judge(slot.index, verdict, memory=memory)
        send(slot.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # gone, or a pid that is someone else's by now
        return False
    return True


def _wait_until_frozen(pid: int) -> None:
    """A stop takes effect when the process next enters the kernel; one in an uninterruptible wait runs no code."""
    deadline = time.monotonic() + _FREEZE_CEILING
    stat = Path(f"/proc/{pid}/stat")
    while time.monotonic() < deadline:
        try:
            state = stat.read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state in "TtDZX":
            return


def end_groups(table: SlotTable, *, worker: int) -> list[Ref]:
    """Kill the process groups that a dead worker process left: its commands. Gives whose they were."""
    ended: list[Ref] = []
    for slot in table.occupied(worker=worker):
        if slot.kind == GROUP:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(slot.pid, signal.SIGKILL)
            ended.append(slot.ref)
    return ended


class WatchdogThread:
    """A watchdog inside the worker process, where there is no supervisor."""

    def __init__(self, table: SlotTable, *, interval: float = 0.05, kill_memory: int | None = None) -> None:
        self._watchdog = Watchdog(table, worker_kills=False, kill_memory=kill_memory)
        self._interval = interval
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="headrace-watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval):
            self._watchdog.run_once()


__all__ = ["LOOP_GRACE", "THREAD", "Act", "Watchdog", "WatchdogThread", "condemn", "end_groups"]
