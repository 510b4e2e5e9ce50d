"""Large jobs as pictures: their groups, which are worked out once, and what became of their tasks, which is read again.

How a job is put together changes only when tasks are added. It is kept for the jobs that somebody looks at; what became
of the tasks is kept for as long as reading it would else take more than a tenth of the time.
"""

import asyncio
import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from headrace.app import App
from headrace.core.grouping import Bone, Joint, Structure, Tally, grouped, tallied
from headrace.core.task import JobRecord
from headrace.store.base import Store

MOST_TASKS = 250_000  # of a job that are looked at
MOST_EDGES = 1_000_000
MOST_GROUPS = 2_000
_TASKS_KEPT = 1_000_000  # of all jobs together
_STRUCTURE_KEPT = 60.0  # seconds: a task that calls another adds an edge
_BUDGET = 0.1
_LEAST = 0.5  # seconds

type _Read = tuple[datetime, list[Bone], list[Joint] | None]


class Picture(NamedTuple):
    structure: Structure
    tallies: list[Tally]
    states: dict[int, str]  # of each task
    at: datetime
    complete: bool

    def members(self, place: int, *, after: int = 0) -> list[int]:
        members = self.structure.groups[place].members
        return members[bisect_right(members, after) :]


class _Kept:
    __slots__ = ("built", "picture", "total", "until")

    def __init__(self, picture: Picture, total: tuple[int, int], built: float, until: float) -> None:
        self.picture = picture
        self.total = total
        self.built = built
        self.until = until


class Pictures:
    """One for each server."""

    def __init__(self, app: App, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._clock = clock
        self._kept: OrderedDict[int, _Kept] = OrderedDict()
        self._looking: dict[int, asyncio.Task[Picture]] = {}

    async def of(self, job: JobRecord) -> Picture:
        kept = self._kept.get(job.id)
        if kept is not None and kept.until > self._clock() and kept.total == _total(job):
            return kept.picture
        looking = self._looking.get(job.id)
        if looking is None:
            looking = self._looking[job.id] = asyncio.create_task(self._look(job, kept))
        # Whoever asked first may go: the others still wait for this.
        return await asyncio.shield(looking)

    async def _look(self, job: JobRecord, kept: _Kept | None) -> Picture:
        began = self._clock()
        try:
            fresh = kept is not None and kept.total == _total(job) and began - kept.built < _STRUCTURE_KEPT
            structure = kept.picture.structure if kept is not None and fresh else None
            at, bones, joints = await self._app.engine.run(lambda store: _read(store, job.id, structure is None))
            # On another thread: neither requests nor the database wait while a hundred thousand are counted.
            picture = await asyncio.to_thread(_drawn, structure, at, bones, joints)
        finally:
            del self._looking[job.id]
        now = self._clock()
        built = kept.built if kept is not None and structure is not None else began
        self._keep(job, _Kept(picture, _total(job), built, now + max(_LEAST, (now - began) / _BUDGET)))
        return picture

    def _keep(self, job: JobRecord, kept: _Kept) -> None:
        self._kept[job.id] = kept
        self._kept.move_to_end(job.id)
        while len(self._kept) > 1 and sum(len(each.picture.states) for each in self._kept.values()) > _TASKS_KEPT:
            self._kept.popitem(last=False)


def _total(job: JobRecord) -> tuple[int, int]:
    return job.total, job.run_no


async def _read(store: Store, job: int, whole: bool) -> _Read:
    at = await store.now()
    bones = list(await store.bones(job, limit=MOST_TASKS + 1))
    joints = list(await store.joints(job, limit=MOST_EDGES + 1)) if whole else None
    return at, bones, joints


def _drawn(structure: Structure | None, at: datetime, bones: list[Bone], joints: list[Joint] | None) -> Picture:
    complete = len(bones) <= MOST_TASKS and (joints is None or len(joints) <= MOST_EDGES)
    if structure is None:
        bones = bones[:MOST_TASKS]
        structure = grouped(bones, (joints or [])[:MOST_EDGES], most=MOST_GROUPS)
    return Picture(
        structure=structure,
        tallies=tallied(structure, bones),
        states={bone[0]: bone[2] for bone in bones if bone[0] in structure.place_of},
        at=at,
        complete=complete,
    )
