"""Edges of new tasks as parameters: texts of arrays, an entry for each edge."""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from headrace.core.batch import runs_of
from headrace.core.errors import GraphError
from headrace.core.task import EdgeKind, NewTask

KINDS = (EdgeKind.ON_SUCCESS, EdgeKind.ON_DONE, EdgeKind.ON_FAILURE)  # by the number that the column holds
_NUMBER = {kind: number for number, kind in enumerate(KINDS)}


class NewEdge(NamedTuple):
    task: int
    place: int
    upstream: int
    kind: int
    input: int | None


def edges_of(tasks: Sequence[NewTask]) -> dict[str, str]:
    """The edges of one call, for `enqueue_v1`: its tasks by their places from 1 on, below zero as upstreams."""
    found: list[NewEdge] = []
    jobs: list[int | None] = []
    for template, texts in runs_of(tasks):
        task = template.task
        for _ in texts:
            jobs.append(task.job)
            for place, after in enumerate(task.after):
                if task.job is None:
                    raise GraphError(f"task {task.name!r} waits for others and has no job: tasks of a job can do that")
                if after.local:
                    _require_earlier(task, after.task, len(jobs) - 1)
                    if jobs[after.task] != task.job:
                        raise GraphError(f"task {task.name!r} waits for a task of another job")
                upstream = -1 - after.task if after.local else after.task
                found.append(NewEdge(len(jobs), place, upstream, _NUMBER[after.kind], after.input))
    return dict(zip(("tasks", "places", "upstreams", "kinds", "inputs"), edge_columns(found), strict=True))


def job_edges(
    tasks: Sequence[NewTask], begun: int, ids: "array[int]", existing: Mapping[int, int]
) -> Iterator[NewEdge]:
    """The edges of tasks of a new job, of which these are the ones from the place `begun` on."""
    for number, task in enumerate(tasks, begun):
        if number in existing:
            continue  # it was there before, with edges of its own
        for place, after in enumerate(task.after):
            if not after.local:
                raise GraphError(
                    f"task {task.name!r} of a new job waits for task {after.task}, which is not of this job; "
                    "nothing was written"
                )
            _require_earlier(task, after.task, number)
            upstream = existing.get(after.task, ids[after.task])
            # The holder of its key may be an earlier task of this very job.
            if after.task in existing and not _is_earlier(upstream, ids, number):
                raise GraphError(
                    f"task {task.name!r} of a new job waits for a task whose key task {existing[after.task]} holds, "
                    "which is not an earlier one of this job; nothing was written"
                )
            yield NewEdge(ids[number], place, upstream, _NUMBER[after.kind], after.input)


def _is_earlier(task: int, ids: "array[int]", number: int) -> bool:
    place = bisect_left(ids, task, hi=number)  # they are in order
    return place < number and ids[place] == task


def edge_columns(edges: Sequence[NewEdge]) -> list[str]:
    return [
        _numbers([edge.task for edge in edges]),
        _numbers([edge.place for edge in edges]),
        _numbers([edge.upstream for edge in edges]),
        _numbers([edge.kind for edge in edges]),
        _numbers([edge.input for edge in edges]),
    ]


def _numbers(numbers: Sequence[int | None]) -> str:
    return "{" + ",".join(["NULL" if number is None else str(number) for number in numbers]) + "}"


def _require_earlier(task: NewTask, upstream: int, place: int) -> None:
    if not 0 <= upstream < place:
        raise GraphError(
            f"task {task.name!r}, number {place} of its call, waits for number {upstream}: a task can wait for earlier "
            "ones only; nothing was written"
        )
