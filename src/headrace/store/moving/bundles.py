"""What can only go together: live tasks of which one waits for the end of another, across jobs or without one.

The tasks of a job wait for each other and go with it. A task that has called another (`current.call`) waits for one
that may be of no job, or of another: if one of the two were elsewhere, nobody would tell the other of its end.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

type Rows = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]

_OTHER_ENDS = """
SELECT other.id, here.id FROM {tasks} AS mine
JOIN {dependencies} AS d ON d.task = mine.id JOIN {tasks} AS other ON other.id = d.upstream
LEFT JOIN {jobs} AS here ON here.id = other.job WHERE WHICH
UNION
SELECT other.id, here.id FROM {tasks} AS mine
JOIN {dependencies} AS d ON d.upstream = mine.id JOIN {tasks} AS other ON other.id = d.task
LEFT JOIN {jobs} AS here ON here.id = other.job WHERE WHICH
"""
_OF_TASKS = _OTHER_ENDS.replace("WHICH", "mine.id IN (SELECT value FROM json_each(?1))")
_OF_JOB = _OTHER_ENDS.replace("WHICH", "mine.job = ?1 AND other.job IS NOT mine.job")
_LINKED = """
SELECT value FROM json_each(?1) WHERE EXISTS (SELECT 1 FROM {dependencies} AS d JOIN {tasks} AS t ON t.id = d.upstream
    WHERE d.task = value)
OR EXISTS (SELECT 1 FROM {dependencies} AS d JOIN {tasks} AS t ON t.id = d.task WHERE d.upstream = value)
"""
_HELD = """
SELECT 1 FROM {tasks} WHERE worker IS NOT NULL
AND (id IN (SELECT value FROM json_each(?1)) OR job IN (SELECT value FROM json_each(?2))) LIMIT 1
"""


@dataclass(slots=True)
class Bundle:
    jobs: set[int] = field(default_factory=set[int])
    tasks: set[int] = field(default_factory=set[int])  # of no job that is here


def linked_tasks(rows: Rows, ids: Iterable[int]) -> set[int]:
    """Of these, the ones that wait for a live task, or for which one waits. Mostly none."""
    return {id for (id,) in rows(_LINKED, (_json(ids),))}


def bundle(rows: Rows, *, task: int | None = None, job: int | None = None) -> Bundle:
    """All that goes with this task of no job, or with this job."""
    found = Bundle()
    tasks: set[int] = set() if task is None else {task}
    jobs: set[int] = set() if job is None else {job}
    while tasks or jobs:
        found.tasks |= tasks
        found.jobs |= jobs
        ends = rows(_OF_TASKS, (_json(tasks),)) if tasks else []
        for each in jobs:
            ends += rows(_OF_JOB, (each,))
        tasks = {id for id, of_job in ends if of_job is None} - found.tasks
        jobs = {of_job for _, of_job in ends if of_job is not None} - found.jobs
    return found


def is_held(rows: Rows, found: Bundle) -> bool:
    """Whether somebody works on one of them: then all stay."""
    return bool(rows(_HELD, (_json(found.tasks), _json(found.jobs))))


def _json(values: Iterable[Any]) -> str:
    return orjson.dumps(list(values)).decode()
