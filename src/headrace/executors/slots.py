"""The slot table: which attempt is inside user code, in which process, until when.

One mmap file, made by the supervisor, mapped by its worker processes and their children. Each slot has one writer at a
time (the process that runs the attempt), so there is no lock: the writer fills the fields and sets `used` last.
When a process dies, what its slots say decides who is charged; when a limit passes, whom to interrupt or kill.

Times are CLOCK_MONOTONIC seconds, which all processes of one host share.
"""

import mmap
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from headrace.core.task import Ref

# used, verdict, kind, interrupted, pid, worker index, task, claim_no, entered, soft deadline, hard deadline
# (the first of the four bytes before the task says `inside`: see SlotTable.mark; the last sixteen hold the evidence of
# a verdict: see SlotTable.judge)
_SLOT = struct.Struct("<BBBBii4xqqddd16x")
_SLOT_SIZE = _SLOT.size
_VERDICT, _INTERRUPTED, _INSIDE = 1, 3, 12
_EVIDENCE = struct.Struct("<qq")
_EVIDENCE_AT = _SLOT_SIZE - _EVIDENCE.size
_HEADER = struct.Struct("<II")
_TICK = struct.Struct("<d")
_NEED = struct.Struct("<q")
_MAX_WORKERS = 128  # twice as many as a supervisor has at once: one that ends beside the one that takes its place
_WAITING = struct.Struct("<qq")  # task (0: nothing waits at this place), claim_no
_WAITING_SIZE = _WAITING.size
PLACES = 16384  # what the buffers of all pools can hold; the file is sparse

_FIRST_STAGE = _HEADER.size + _MAX_WORKERS * _TICK.size
_FIRST_NEED = _FIRST_STAGE + _MAX_WORKERS
_FIRST_PLACE = _FIRST_NEED + _MAX_WORKERS * _NEED.size
_FIRST_SLOT = _FIRST_PLACE + _MAX_WORKERS * PLACES * _WAITING_SIZE

FREE, USED = 0, 1
VERDICT_NONE, VERDICT_TIMEOUT, VERDICT_CANCELLED, VERDICT_MEMORY = 0, 1, 2, 3
# Who has to die for the attempt to end: the worker process (its loop, one of its threads), a child, a process group.
LOOP, THREAD, CHILD, GROUP = 0, 1, 2, 3
NEVER = float("inf")
# What a worker process says of itself: it has not come so far, it takes tasks (or would, if told to), it starts nothing
# any more.
STARTING, READY, LEAVING = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupied:
    """A slot as a watcher reads it."""

    index: int
    pid: int
    worker: int  # index of the worker process below its supervisor
    ref: Ref
    entered: float
    soft: float
    hard: float
    interrupted: bool  # SoftTimeLimitExceeded has been raised; nothing is left to signal
    verdict: int
    kind: int = LOOP
    inside: bool = False  # its code is what the event loop executes at this moment
    memory: tuple[int, int] = (0, 0)  # when it was judged for its memory: bytes in use, and the limit


class SlotTable:
    """`create` in the supervisor, `attach` elsewhere."""

    def __init__(self, path: Path, memory: mmap.mmap, capacity: int) -> None:
        self.path = path
        self.capacity = capacity
        self._memory = memory
        self._views: list[memoryview] = []

    @classmethod
    def create(cls, path: Path, capacity: int) -> "SlotTable":
        size = _FIRST_SLOT + capacity * _SLOT.size
        with open(path, "wb") as file:
            file.truncate(size)
        table = cls.attach(path, capacity=capacity)
        _HEADER.pack_into(table._memory, 0, capacity, 0)
        return table

    @classmethod
    def attach(cls, path: Path, *, capacity: int | None = None) -> "SlotTable":
        descriptor = os.open(path, os.O_RDWR)
        try:
            memory = mmap.mmap(descriptor, 0)
        finally:
            os.close(descriptor)
        size: int = _HEADER.unpack_from(memory, 0)[0] if capacity is None else capacity
        return cls(path, memory, size)

    def close(self) -> None:
        for view in self._views:
            view.release()
        self._memory.close()

    def _offset(self, index: int) -> int:
        return _FIRST_SLOT + index * _SLOT_SIZE

    def enter(
        self,
        index: int,
        worker: int,
        ref: tuple[int, int],
        soft: float | None,
        hard: float | None,
        pid: int | None = None,
        kind: int = LOOP,
    ) -> float:
        """Say that user code of `ref` is about to be entered in this process. Returns the instant of entry."""
        now = time.monotonic()
        offset = _FIRST_SLOT + index * _SLOT_SIZE
        _SLOT.pack_into(
            self._memory,
            offset,
            FREE,
            VERDICT_NONE,
            kind,
            0,
            pid or os.getpid(),
            worker,
            ref[0],
            ref[1],
            now,
            NEVER if soft is None else now + soft,
            NEVER if hard is None else now + hard,
        )
        self._memory[offset] = USED
        return now

    def leave(self, index: int) -> None:
        self._memory[_FIRST_SLOT + index * _SLOT_SIZE] = FREE

    def judge(self, index: int, verdict: int, *, memory: tuple[int, int] = (0, 0)) -> None:
        """Written by the one who kills, before the kill, so that whoever sees the death knows why."""
        _EVIDENCE.pack_into(self._memory, self._offset(index) + _EVIDENCE_AT, *memory)
        self._memory[self._offset(index) + _VERDICT] = verdict

    def mark_interrupted(self, index: int) -> None:
        """Written by the attempt's own process once SoftTimeLimitExceeded is raised: watchers stop signalling."""
        self._memory[self._offset(index) + _INTERRUPTED] = 1

    def mark(self, index: int) -> tuple[mmap.mmap, int]:
        """Where to write 1 while the loop executes this attempt's code and 0 when it goes on to another: when the
        process dies, the one inside did it and those that waited did not. A byte, because it is written at each step.
        """
        return self._memory, _FIRST_SLOT + index * _SLOT_SIZE + _INSIDE

    def read(self, index: int) -> Occupied | None:
        """What the slot says, or None when it is free or being written at this moment."""
        offset = self._offset(index)
        fields = _SLOT.unpack_from(self._memory, offset)
        # Another process writes while this one reads: only what is read twice alike was whole.
        if fields[0] != USED or _SLOT.unpack_from(self._memory, offset) != fields:
            return None
        _, verdict, kind, interrupted, pid, worker, task, claim_no, entered, soft, hard = fields
        return Occupied(
            index=index,
            pid=pid,
            worker=worker,
            ref=Ref(task, claim_no),
            entered=entered,
            soft=soft,
            hard=hard,
            interrupted=bool(interrupted),
            verdict=verdict,
            kind=kind,
            inside=bool(self._memory[offset + _INSIDE]),
            memory=_EVIDENCE.unpack_from(self._memory, offset + _EVIDENCE_AT),
        )

    def occupied(self, *, worker: int | None = None) -> list[Occupied]:
        found: list[Occupied] = []
        for index in range(self.capacity):
            if self._memory[self._offset(index)] == USED:
                slot = self.read(index)
                if slot is not None and (worker is None or slot.worker == worker):
                    found.append(slot)
        return found

    def waiting_places(self, worker: int) -> memoryview:
        """Where a worker process notes what it has claimed and not started, so that its supervisor can give it away
        when the process no longer turns: what is not there has been started, and may have an outcome already.

        Pairs of numbers, task and claim; the task is 0 where nothing waits. (A number is written for a third of what
        packing both costs.)
        """
        first = _FIRST_PLACE + worker * PLACES * _WAITING_SIZE
        view = memoryview(self._memory)[first : first + PLACES * _WAITING_SIZE].cast("q")
        self._views.append(view)
        return view

    def waiting(self, worker: int) -> set[Ref]:
        first = _FIRST_PLACE + worker * PLACES * _WAITING_SIZE
        found = _WAITING.iter_unpack(self._memory[first : first + PLACES * _WAITING_SIZE])
        return {Ref(task, claim_no) for task, claim_no in found if task}

    def enter_stage(self, worker: int, stage: int) -> None:
        """A worker process says how far it is; its supervisor writes STARTING before it starts one."""
        self._memory[_FIRST_STAGE + worker] = stage

    def stage(self, worker: int) -> int:
        return self._memory[_FIRST_STAGE + worker]

    def note_need(self, worker: int, memory: int) -> None:
        """A worker process says how many bytes it has in use before its first task."""
        _NEED.pack_into(self._memory, _FIRST_NEED + worker * _NEED.size, memory)

    def need(self, worker: int) -> int:
        return _NEED.unpack_from(self._memory, _FIRST_NEED + worker * _NEED.size)[0]

    def tick(self, worker: int) -> None:
        """The event loop of a worker process says that it turns."""
        _TICK.pack_into(self._memory, _HEADER.size + worker * _TICK.size, time.monotonic())

    def last_tick(self, worker: int) -> float:
        return _TICK.unpack_from(self._memory, _HEADER.size + worker * _TICK.size)[0]


class SlotRange:
    """The slots [first, first + count) of one worker process, which it shares out among its executors."""

    def __init__(self, table: SlotTable, *, worker: int = 0, first: int = 0, count: int | None = None) -> None:
        self.table = table
        self.worker = worker
        last = table.capacity if count is None else first + count
        if not 0 <= first <= last <= table.capacity:
            raise ValueError(f"slots {first} to {last} do not lie in a table of {table.capacity}")
        self._free = list(range(last - 1, first - 1, -1))
        self._places = list(range(2 * PLACES - 2, -1, -2))
        self._waiting = table.waiting_places(worker)

    def free(self) -> int:
        return len(self._free)

    def take(self) -> int | None:
        """The index of a slot that nobody uses, to be given back; None when all are taken."""
        return self._free.pop() if self._free else None

    def give(self, index: int) -> None:
        self._free.append(index)

    def wait(self, ref: Ref) -> int | None:
        """Note that `ref` waits to be started; the place is to be given back. None when too many wait already."""
        if not self._places:
            return None
        place = self._places.pop()
        waiting = self._waiting
        waiting[place + 1] = ref[1]
        waiting[place] = ref[0]  # last: from here on somebody may read it
        return place

    def no_longer_waits(self, place: int) -> None:
        self._waiting[place] = 0
        self._places.append(place)

    def forget_waiting(self) -> None:
        """A new process: what the one before it noted is nobody's any more."""
        self._waiting[:] = memoryview(bytes(PLACES * _WAITING_SIZE)).cast("q")
