"""Where the next claim begins to read: above what is known to be taken.

While some transaction holds an old snapshot, what was claimed since stays in the ready index as dead entries, and a
claim that began at the front would walk over all of them, each time (46k tasks a second fell to 12.5k in 20 s). So each
claimer remembers, per queue, pool, lane and priority, how far it came. This is a hint: what arrives below the mark (a
task that was given back, a transaction that committed late) is found by the next claim from the front, of which there
is one a second, unless they take more than a fiftieth of the time, and in no case less than one in half a minute. The
server never begins later than a second before now, so that the usual disorder of commits is not missed at all. Where
tasks wait for limits and order keys there is no mark: they come back to their old places all the time.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.core.task import ClaimedTask, Want

_EVERY = 1.0
_SHARE = 0.02
_LONGEST = 30.0
_MOST_PRIORITIES = 16
_LOWEST, _HIGHEST = -(2**31), 2**31 - 1

type Place = tuple[str, str, int]  # queue, pool, lane
type Mark = tuple[object, int]  # order_at as the store gave it, id


class Range(NamedTuple):
    """A part of a want's ready tasks, best priority first; with a mark it is one priority, from the mark on."""

    want: int  # counted from 1, as PostgreSQL does
    high: int
    low: int
    mark: Mark | None


class Look(NamedTuple):
    """One claim: what it reads, when it began, and whether from the front."""

    ranges: list[Range]
    begun: float
    front: bool
    lowered: int = 0  # how often marks had been lowered when it began


NOTHING = Look([], 0.0, False)


@dataclass(slots=True)
class _Worker:
    marks: dict[Place, dict[int, Mark]] = field(default_factory=dict[Place, dict[int, Mark]])
    gated: set[Place] = field(default_factory=set[Place])
    hungry: bool = True  # whether the last claim got less than it asked for, wherever it asked
    last_front: float = float("-inf")
    extra: float = 0.0  # how much longer the last claim from the front took than one above the marks
    pause: float = 0.0  # what the budget asks for between two claims from the front
    usual: float = 0.0  # how long a claim above the marks takes


class LowWater:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._workers: defaultdict[str, _Worker] = defaultdict(_Worker)
        self._lowered = 0

    def begin(self, worker: str, wants: Sequence[Want]) -> Look:
        state = self._workers[worker]
        now = self._clock()
        pause = state.pause if state.hungry else max(_EVERY, state.pause)
        front = now - state.last_front >= pause
        if front:
            state.last_front = now
        ranges = [
            part
            for number, want in enumerate(wants, 1)
            for part in _ranges(number, {} if front else state.marks.get((want.queue, want.pool, int(want.lane)), {}))
        ]
        return Look(ranges, now, front, self._lowered)

    def end(self, worker: str, look: Look, wants: Sequence[Want], claimed: Sequence[ClaimedTask]) -> None:
        state = self._workers[worker]
        took = self._clock() - look.begun
        if look.front:
            extra = max(0.0, took - state.usual) if state.usual else 0.0  # nothing to compare the first one with
            # One slow answer may come from an outage or a stopped process; dead entries make the next one slow, too.
            state.pause = min(_LONGEST, min(extra, state.extra) / _SHARE)
            state.extra = extra
        else:
            state.usual = took if not state.usual else 0.8 * state.usual + 0.2 * took
        asked: dict[Place, int] = {}
        for want in wants:
            place = (want.queue, want.pool, int(want.lane))
            asked[place] = asked.get(place, 0) + want.n
        # By slices of the claim (queue, pool, lane, priority), not by name: a thousand come at once.
        counts: Counter[Place] = Counter([task[4:7] for task in claimed])
        # A worker asks for every pool and lane, and most of them are empty.
        state.hungry = not any(counts[place] >= n for place, n in asked.items())
        for place in {task[4:7] for task in claimed if task.gated}:
            state.gated.add(place)
            state.marks.pop(place, None)
        if look.lowered != self._lowered:
            return  # something was put back meanwhile, perhaps below what this claim came to
        found: dict[Place, dict[int, Mark]] = {}
        # In order, within a place: the last one of a priority is its highest.
        for task in {task[4:8]: task for task in claimed}.values():
            found.setdefault(task[4:7], {})[task.priority] = (task.order_at, task.id)
        for place, marks in found.items():
            if place in state.gated:
                continue
            known = state.marks.setdefault(place, {})
            worst = min(marks) if counts[place] >= asked.get(place, 0) else None
            for priority, mark in marks.items():
                # Where the claim was full there may be more behind its last task, also below an older mark.
                if priority == worst or priority not in known or known[priority] < mark:  # pyright: ignore[reportOperatorIssue]
                    known[priority] = mark
            if len(known) > _MOST_PRIORITIES:
                state.marks[place] = {}

    def lower(self) -> None:
        """Something was put back to where it had been, by whomever: a rescuer writes in the name of the dead."""
        self._lowered += 1
        for state in self._workers.values():
            state.marks.clear()

    def forget(self, worker: str) -> None:
        self._workers.pop(worker, None)


def _ranges(want: int, marks: dict[int, Mark]) -> Iterator[Range]:
    """The whole of a want in the order of a claim: each marked priority from its mark on, and whatever lies between."""
    high = _HIGHEST
    for priority in sorted(marks, reverse=True):
        if priority < high:
            yield Range(want, high, priority + 1, None)
        yield Range(want, priority, priority, marks[priority])
        high = priority - 1
    if high >= _LOWEST:
        yield Range(want, high, _LOWEST, None)
