"""What is always true of tasks that wait for others, or for events. Rules like those of `store.invariants`."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from headrace.core.advance import FAILURES, Verdict, is_handled, reason_for, verdict
from headrace.core.states import HELD, AttemptState, JobState, Reason, TaskState
from headrace.core.task import EdgeKind
from headrace.store.invariants import Finding, Row, Rows, Rule, named

GRAPH_RULES: dict[str, Rule] = {}
KINDS = (EdgeKind.ON_SUCCESS, EdgeKind.ON_DONE, EdgeKind.ON_FAILURE)  # by the number that a row has
EVENT = "event:"  # how `waiting_on` begins of a task that waits for one
_CLOSED = {Reason.UPSTREAM_FAILED.value, Reason.SKIPPED.value}
# Whoever is in one of these has had all that its edges asked for.
_FREED = {state.value for state in HELD} | {"pending", "pending_approval", "completed", "failed", "rejected"}


def rule(name: str) -> Callable[[Rule], Rule]:
    return named(name, GRAPH_RULES)


@dataclass(frozen=True, slots=True)
class _Edges:
    """The edges of a ledger with what has become of their ends."""

    tasks: Mapping[int, Row]
    of_task: Mapping[int, list[Row]]
    of_upstream: Mapping[int, list[Row]]
    releases: Mapping[int, Row]

    def kind(self, edge: Row) -> EdgeKind:
        return KINDS[int(edge["kind"])]

    def outcome(self, edge: Row) -> TaskState | None:
        """In what state its upstream has ended; None while it has not, or when it is gone."""
        upstream = self.tasks.get(edge["upstream"])
        state = None if upstream is None else TaskState(upstream["state"])
        return state if state is not None and state.terminal else None

    def is_open(self, edge: Row) -> bool:
        """Whether it counts in its task's barrier: its upstream has not ended, or `release` comes to it."""
        upstream = self.tasks.get(edge["upstream"])
        if upstream is not None and not TaskState(upstream["state"]).terminal:
            return True
        release = self.releases.get(edge["upstream"])
        return release is not None and edge["task"] > release["after"]

    def is_impossible(self, edge: Row) -> bool:
        state = self.outcome(edge)
        return state is not None and verdict(self.kind(edge), state) is Verdict.IMPOSSIBLE

    def explains(self, edge: Row, reason: str) -> bool:
        upstream = self.tasks.get(edge["upstream"])
        ran_again = upstream is None or upstream["run_no"] > 1
        return reason_for(self.kind(edge)) == reason and (ran_again or self.is_impossible(edge))

    def is_handled(self, task: int) -> bool:
        return is_handled(
            (self.kind(edge), TaskState(self.tasks[edge["task"]]["state"]))
            for edge in self.of_upstream.get(task, ())
            if edge["task"] in self.tasks
        )


def _edges(rows: Rows) -> _Edges:
    of_task: dict[int, list[Row]] = defaultdict(list)
    of_upstream: dict[int, list[Row]] = defaultdict(list)
    for edge in rows.dependencies:
        of_task[edge["task"]].append(edge)
        of_upstream[edge["upstream"]].append(edge)
    return _Edges(rows.by_id(), of_task, of_upstream, {row["upstream"]: row for row in rows.releases})


@rule("edge-of-a-task")
def _edge_of_a_task(rows: Rows) -> Iterator[Finding]:
    """An edge, a barrier and a release belong to tasks; what an edge leads to may have been pruned."""
    edges = _edges(rows)
    for task in edges.of_task.keys() - edges.tasks.keys():
        yield f"task {task}", "has edges and does not exist"
    for edge in rows.dependencies:
        if edge["task"] == edge["upstream"]:
            yield f"task {edge['task']}", "waits for itself"
    for row in rows.barriers:
        if row["task"] not in edges.tasks:
            yield f"task {row['task']}", "has a barrier and does not exist"
    for row in rows.releases:
        upstream = edges.tasks.get(row["upstream"])
        if upstream is None or upstream["state"] != row["state"]:
            found = "gone" if upstream is None else upstream["state"]
            yield f"task {row['upstream']}", f"releases its dependents as {row['state']}, and is {found}"


@rule("barrier")
def _barrier(rows: Rows) -> Iterator[Finding]:
    """What a blocked task still waits for is counted exactly: too many, and it waits for ever; too few, and it runs
    before its inputs are there."""
    edges, barriers = _edges(rows), {row["task"]: row["remaining"] for row in rows.barriers}
    for row in rows.tasks:
        if row["state"] != TaskState.BLOCKED:
            continue
        mine = edges.of_task.get(row["id"], [])
        open_edges = sum(edges.is_open(edge) for edge in mine)
        waits_for_event = (row["waiting_on"] or "").startswith(EVENT)
        if open_edges != barriers.get(row["id"], 0) and not (waits_for_event and not open_edges):
            yield f"task {row['id']}", f"waits for {open_edges} tasks, its barrier says {barriers.get(row['id'])}"


@rule("blocked-for-ever")
def _blocked_for_ever(rows: Rows) -> Iterator[Finding]:
    edges, waits = _edges(rows), defaultdict[int, set[str]](set)
    # Whoever gave its slot back had what it needed, whatever became of that when somebody ran it again.
    begun = {(row["task"], row["run_no"]) for row in rows.attempts if row["state"] == AttemptState.SUSPENDED}
    for wait in rows.waits:
        if not wait["over"]:
            waits[wait["task"]].add(f"{EVENT}{wait['event']}/{wait['key']}")
    for row in rows.tasks:
        if row["state"] != TaskState.BLOCKED:
            continue
        mine, on = edges.of_task.get(row["id"], []), row["waiting_on"]
        if (on or "").startswith(EVENT):
            if on not in waits[row["id"]]:
                yield f"task {row['id']}", f"waits for {on}, and no wait of it does"
        elif not any(edges.is_open(edge) for edge in mine):
            yield f"task {row['id']}", "is blocked, and all that it waited for has ended"
        lost = [edge["upstream"] for edge in mine if edges.is_impossible(edge)]
        if lost and (row["id"], row["run_no"]) not in begun:
            yield f"task {row['id']}", f"is blocked, and can never run: tasks {lost[:5]} ended the other way"


@rule("freed")
def _freed(rows: Rows) -> Iterator[Finding]:
    """Nobody runs before what it waits for. An upstream that somebody ran again afterwards says nothing about it."""
    edges = _edges(rows)
    for task, mine in edges.of_task.items():
        row = edges.tasks.get(task)
        if row is None or row["state"] not in _FREED:
            continue
        for edge in mine:
            upstream = edges.tasks.get(edge["upstream"])
            if upstream is None or upstream["run_no"] > 1:
                continue
            if edges.outcome(edge) is None or edges.is_impossible(edge):
                subject = f"task {task}"
                yield subject, f"is {row['state']}, and task {edge['upstream']} ({upstream['state']}) does not allow it"


@rule("closed-by-an-edge")
def _closed_by_an_edge(rows: Rows) -> Iterator[Finding]:
    """What was cancelled for the sake of an edge has one that says so, or that said so before its upstream ran again:
    a task whose key another has taken meanwhile does not come back with it."""
    edges, pruned = _edges(rows), rows.partly_pruned()
    for row in rows.history:
        if row["state"] != TaskState.CANCELLED or row["reason"] not in _CLOSED or row["job"] in pruned:
            continue
        mine = edges.of_task.get(row["id"], [])
        if not any(edges.explains(edge, row["reason"]) for edge in mine):
            ends = {edge["upstream"]: edges.outcome(edge) for edge in mine}
            yield (
                f"task {row['id']}",
                f"was cancelled as {row['reason']}, and what it waited for says no such thing: {ends}",
            )


@rule("job-verdict")
def _job_verdict(rows: Rows) -> Iterator[Finding]:
    """How a job ended is explained by how its tasks did. One that is open has no failure that breaks it: of its present
    run, that is, as far as instants tell."""
    edges, of_job, pruned = _edges(rows), rows.of_job(), rows.partly_pruned()
    for row in rows.jobs:
        if row["id"] in pruned:
            continue
        subject, tasks = f"job {row['id']}", of_job.get(row["id"], [])
        broken = [t for t in tasks if t["critical"] and t["state"] in FAILURES]
        unhandled = [t["id"] for t in broken if not edges.is_handled(t["id"])]
        match JobState(row["state"]):
            case JobState.COMPLETED:
                if unhandled:
                    yield subject, f"is completed, and its critical tasks {unhandled[:5]} failed"
                if tasks and all(t["state"] == TaskState.CANCELLED for t in tasks):
                    yield subject, "is completed, and all of its tasks were cancelled"
            case JobState.FAILED:
                if not unhandled and row["reason"] is None:
                    yield subject, "failed, and neither a critical task nor a reason says why"
            case JobState.CANCELLED:
                pass
            case _:
                again = max((t["enqueued_at"] for t in tasks if t["run_no"] > 1), default=None)
                breaking = [
                    t["id"]
                    for t in broken
                    if (again is None or t["finished_at"] > again)
                    and all(edges.kind(edge) is EdgeKind.ON_SUCCESS for edge in edges.of_upstream.get(t["id"], ()))
                ]
                if breaking:
                    yield subject, f"is {row['state']}, and its critical tasks {breaking[:5]} failed"


@rule("waits")
def _waits(rows: Rows) -> Iterator[Finding]:
    """A wait belongs to a task; what it took is stored as its step, and no other wait of the task took the same."""
    tasks, steps = rows.by_id(), {(row["task"], row["name"]) for row in rows.checkpoints}
    taken: Counter[tuple[int, int]] = Counter()
    for row in rows.waits:
        subject = f"wait {row['step']!r} of task {row['task']}"
        if row["task"] not in tasks:
            yield subject, "its task does not exist"
        if row["taken"] is not None:
            taken[row["task"], row["taken"]] += 1
            if not row["over"]:
                yield subject, f"took event {row['taken']} and still waits"
        if row["over"] and (row["task"], row["step"]) not in steps:
            yield subject, "is over, and what came of it is not stored"
    for (task, event), n in taken.items():
        if n > 1:
            yield f"task {task}", f"{n} of its waits took event {event}"


@rule("checkpoint-of-a-task")
def _checkpoint_of_a_task(rows: Rows) -> Iterator[Finding]:
    for task in {row["task"] for row in rows.checkpoints} - rows.by_id().keys():
        yield f"task {task}", "has checkpoints and does not exist"
