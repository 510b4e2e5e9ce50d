"""What the end of a task means for those that wait for it, as pure decisions.

Stores do the same in SQL for whole batches; the tests hold them to what stands here.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from headrace.core.states import Reason, TaskState
from headrace.core.task import EdgeKind


class Verdict(StrEnum):
    SATISFIED = "satisfied"  # one thing less to wait for
    IMPOSSIBLE = "impossible"  # it can never run: it is cancelled


FAILURES = frozenset({TaskState.FAILED, TaskState.REJECTED})


def verdict(kind: EdgeKind, upstream: TaskState) -> Verdict:
    """What one edge says once its upstream has ended."""
    match kind:
        case EdgeKind.ON_DONE:
            holds = True
        case EdgeKind.ON_SUCCESS:
            holds = upstream is TaskState.COMPLETED
        case EdgeKind.ON_FAILURE:
            holds = upstream in FAILURES
    return Verdict.SATISFIED if holds else Verdict.IMPOSSIBLE


def reason_for(kind: EdgeKind) -> Reason:
    """Why a task is cancelled whose edge has become impossible. A handler of a failure that did not come is skipped."""
    return Reason.SKIPPED if kind is EdgeKind.ON_FAILURE else Reason.UPSTREAM_FAILED


def advance(
    edges: Iterable[tuple[int, int, EdgeKind]], ended: Mapping[int, TaskState]
) -> tuple[set[int], dict[int, Reason]]:
    """Of a graph of (task, upstream, kind) and what has ended in it: the other tasks that are free to run, and those
    that can never run, with the reason. Those count as cancelled for whoever waits for them.
    """
    waiting: dict[int, list[tuple[int, EdgeKind]]] = {}
    for task, upstream, kind in edges:
        if task not in ended:
            waiting.setdefault(task, []).append((upstream, kind))
    states, cancelled = dict(ended), dict[int, Reason]()
    found = True
    while found:
        found = False
        for task, needs in waiting.items():
            lost = [kind for up, kind in needs if up in states and verdict(kind, states[up]) is Verdict.IMPOSSIBLE]
            if task in states or not lost:
                continue
            # What failed says more than a handler that nobody needs.
            cancelled[task] = min((reason_for(kind) for kind in lost), key=lambda reason: reason is Reason.SKIPPED)
            states[task] = TaskState.CANCELLED
            found = True
    free = {task for task, needs in waiting.items() if task not in states and all(up in states for up, _ in needs)}
    return free, cancelled


def breaks_job(state: TaskState, *, critical: bool, kinds: Iterable[EdgeKind]) -> bool:
    """Whether the end of a task fails its job at once. Not where a task waits for just this failure, or for the end
    whatever it is: that one runs first. When all has ended, the job has failed unless the failure `is_handled`.
    """
    return state in FAILURES and critical and not any(kind is not EdgeKind.ON_SUCCESS for kind in kinds)


def is_handled(handlers: Iterable[tuple[EdgeKind, TaskState]]) -> bool:
    """Whether a failure counts no more against its job: a task that waits `on_failure` for it has completed."""
    return any(kind is EdgeKind.ON_FAILURE and state is TaskState.COMPLETED for kind, state in handlers)
