"""What is always true of a ledger, as pure rules over its rows.

A rule is a generator of violations. Instants are compared only with each other, so rows may hold them in either
database's form.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from headrace.core.limits import gates_from_json
from headrace.core.states import HELD, JOB_TERMINAL, AttemptState, JobState, Reason, TaskState

type Row = Mapping[str, Any]
type Finding = tuple[str, str]  # subject, detail

_HELD = {state.value for state in HELD}
MOVED_TO = "moved_to"  # in `meta`: where `db move` brought the ledger
PRUNED_JOB = "pruned job "  # the note in `meta` that `prune` leaves
_OVER = {state.value for state in JOB_TERMINAL}
_COUNTED = ("total", "completed", "failed", "cancelled")
# What a task may end as without a charged attempt at its last claim.
_WITHOUT_ATTEMPT = {Reason.EXPIRED.value, Reason.UNKNOWN_TASK.value, Reason.BAD_PAYLOAD.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """All rows of a ledger, and the lookups that rules share."""

    tasks: list[Row]
    history: list[Row]
    attempts: list[Row]
    keys: list[Row]
    slots: list[Row]
    jobs: list[Row]
    job_counts: list[Row]
    job_events: list[Row]
    job_additions: list[Row]
    workers: list[Row]
    schedule_runs: list[Row]
    dependencies: list[Row]
    barriers: list[Row]
    releases: list[Row]
    waits: list[Row]
    checkpoints: list[Row]
    users: list[Row]
    tokens: list[Row]
    meta: list[Row]

    def live(self) -> dict[int, Row]:
        return {row["id"]: row for row in self.tasks}

    def everything(self) -> list[Row]:
        return [*self.tasks, *self.history]

    def by_id(self) -> dict[int, Row]:
        return {row["id"]: row for row in self.everything()}

    def attempts_of(self) -> dict[int, list[Row]]:
        """By task, in the order of the claims."""
        found: dict[int, list[Row]] = defaultdict(list)
        for row in sorted(self.attempts, key=lambda row: (row["task"], row["claim_no"])):
            found[row["task"]].append(row)
        return found

    def of_job(self) -> dict[int, list[Row]]:
        found: dict[int, list[Row]] = defaultdict(list)
        for row in self.everything():
            if row["job"] is not None:
                found[row["job"]].append(row)
        return found

    def partly_pruned(self) -> set[int]:
        """Jobs that ended long ago and whose history is being removed, batch by batch."""
        keys = (row["key"] for row in self.meta)
        return {int(key.removeprefix(PRUNED_JOB)) for key in keys if key.startswith(PRUNED_JOB)}


type Rule = Callable[[Rows], Iterator[Finding]]

LEDGER_RULES: dict[str, Rule] = {}


def named(name: str, rules: dict[str, Rule]) -> Callable[[Rule], Rule]:
    """Decorator: adds a rule under its name."""

    def register(check: Rule) -> Rule:
        rules[name] = check
        return check

    return register


def rule(name: str) -> Callable[[Rule], Rule]:
    return named(name, LEDGER_RULES)


def _task(row: Row) -> str:
    return f"task {row['id']}"


# Tasks.


@rule("live-or-done")
def _live_or_done(rows: Rows) -> Iterator[Finding]:
    for task_id in rows.live().keys() & {row["id"] for row in rows.history}:
        yield f"task {task_id}", "is both live and in history"


@rule("holder")
def _holder(rows: Rows) -> Iterator[Finding]:
    for row in rows.tasks:
        held = row["state"] in _HELD
        if held and row["worker"] is None:
            yield _task(row), f"is {row['state']} and nobody holds it"
        if not held and row["worker"] is not None:
            yield _task(row), f"is {row['state']} and {row['worker']} holds it"
        if held and row["claim_no"] < 1:
            yield _task(row), f"is {row['state']} without ever having been claimed"


@rule("ready-is-pending")
def _ready_is_pending(rows: Rows) -> Iterator[Finding]:
    for row in rows.tasks:
        if row["ready_at"] is not None and row["state"] != TaskState.PENDING:
            yield _task(row), f"is {row['state']} and in the ready index"
        if row["waiting_on"] is not None and not _may_wait(row):
            yield _task(row), f"waits for {row['waiting_on']} while it is {row['state']} or ready"


def _may_wait(row: Row) -> bool:
    """A parked task waits for a gate; one that does not wait for others alone says so as well."""
    match row["state"]:
        case TaskState.PENDING:
            return row["ready_at"] is None
        case TaskState.BLOCKED:
            return row["waiting_on"] == "approval" or row["waiting_on"].startswith("event:")
        case TaskState.PENDING_APPROVAL:
            return row["waiting_on"] == "approval"
        case _:
            return False


@rule("budget")
def _budget(rows: Rows) -> Iterator[Finding]:
    for row in rows.everything():
        if row["attempt"] > row["max_attempts"]:
            yield _task(row), f"was charged {row['attempt']} times of {row['max_attempts']}"
    for row in rows.tasks:
        if row["attempt"] >= row["max_attempts"]:
            yield _task(row), f"is {row['state']} with all {row['max_attempts']} attempts used"


@rule("task-instants")
def _task_instants(rows: Rows) -> Iterator[Finding]:
    for row in rows.everything():
        order = ("created_at", "enqueued_at", "claimed_at", "started_at", "finished_at")
        yield from _disorder(_task(row), row, order)


@rule("order-key")
def _order_key(rows: Rows) -> Iterator[Finding]:
    running = Counter(row["order_key"] for row in rows.tasks if row["order_key"] and row["state"] == TaskState.RUNNING)
    for key, n in running.items():
        if n > 1:
            yield f"order key {key}", f"{n} of its tasks run at once"


# Attempts.


@rule("attempt-of-a-task")
def _attempt_of_a_task(rows: Rows) -> Iterator[Finding]:
    tasks = rows.by_id()
    for row in rows.attempts:
        subject = _attempt(row)
        found = tasks.get(row["task"])
        if found is None:
            yield subject, "its task does not exist"
        elif not 1 <= row["claim_no"] <= found["claim_no"]:
            yield subject, f"the task's last claim was {found['claim_no']}"
        elif row["run_no"] > found["run_no"]:
            yield subject, f"is of run {row['run_no']}, the task has had {found['run_no']}"


@rule("charged-attempts")
def _charged_attempts(rows: Rows) -> Iterator[Finding]:
    """What a task was charged is what its attempts say, numbered 1..n in the order of the claims of each run."""
    attempts = rows.attempts_of()
    for row in rows.everything():
        runs: dict[int, list[Row]] = defaultdict(list)
        for attempt in attempts.get(row["id"], ()):
            if attempt["charged"]:
                runs[attempt["run_no"]].append(attempt)
            elif attempt["attempt"] is not None:
                yield _attempt(attempt), f"is number {attempt['attempt']} but was not charged"
        charged = len(runs.get(row["run_no"], ()))
        if charged != row["attempt"]:
            yield _task(row), f"was charged {row['attempt']} times, {charged} attempts of run {row['run_no']} say so"
        for run_no, ones in runs.items():
            numbers = [one["attempt"] for one in ones]
            if numbers != list(range(1, len(ones) + 1)):
                yield _task(row), f"the charged attempts of run {run_no} have the numbers {numbers}"


@rule("one-outcome")
def _one_outcome(rows: Rows) -> Iterator[Finding]:
    """One accepted outcome per run, and it is the one of the last claim."""
    attempts = rows.attempts_of()
    for row in rows.everything():
        mine = attempts.get(row["id"], [])
        successes = Counter(one["run_no"] for one in mine if one["state"] == AttemptState.SUCCEEDED)
        for run_no, n in successes.items():
            if n > 1:
                yield _task(row), f"succeeded {n} times in run {run_no}"
        this_run = [one for one in mine if one["run_no"] == row["run_no"]]
        if row["state"] != TaskState.COMPLETED and successes[row["run_no"]]:
            yield _task(row), f"succeeded in run {row['run_no']} and is {row['state']}"
        if row["state"] == TaskState.COMPLETED:
            final = [one["claim_no"] for one in this_run if one["state"] == AttemptState.SUCCEEDED]
            if final != [row["claim_no"]]:
                yield _task(row), f"completed by claim {row['claim_no']}, its successful attempts are {final}"
        if row["state"] == TaskState.FAILED and row["reason"] not in _WITHOUT_ATTEMPT:
            last = [one for one in this_run if one["claim_no"] == row["claim_no"]]
            if not last or last[0]["state"] in (AttemptState.RUNNING, AttemptState.REFUSED):
                yield _task(row), f"failed by claim {row['claim_no']}, which has no attempt that says how"


@rule("running-attempt")
def _running_attempt(rows: Rows) -> Iterator[Finding]:
    live = rows.live()
    for row in rows.attempts:
        if row["state"] != AttemptState.RUNNING:
            continue
        found = live.get(row["task"])
        if found is None or found["claim_no"] != row["claim_no"] or found["state"] not in _HELD - {"claimed"}:
            yield _attempt(row), "is still running, but its claim does not run"


@rule("attempt-instants")
def _attempt_instants(rows: Rows) -> Iterator[Finding]:
    for row in rows.attempts:
        yield from _disorder(_attempt(row), row, ("claimed_at", "started_at", "finished_at"))


@rule("late-reports")
def _late_reports(rows: Rows) -> Iterator[Finding]:
    """A refused report leaves a note and changes nothing."""
    for row in rows.attempts:
        if (row["late_state"] is None) != (row["late_at"] is None):
            yield _attempt(row), "a late report has both a state and an instant"
        if row["state"] == AttemptState.REFUSED and (row["charged"] or row["late_state"] is None):
            yield _attempt(row), "a refused report was charged, or does not say what it reported"


# Keys and slots.


@rule("keys")
def _keys(rows: Rows) -> Iterator[Finding]:
    live = rows.live()
    known = rows.by_id() if any(row["key"] == MOVED_TO for row in rows.meta) else None
    for row in rows.keys:
        subject = f"key {row['scope']}:{row['key']}"
        if row["expires_at"] is not None:
            continue
        holder = live.get(row["task"])
        if known is not None and row["task"] not in known:
            continue  # its holder has moved to another database, and the key says so to whoever wants it here
        if holder is None:
            yield subject, f"is held for ever by task {row['task']}, which has ended"
        elif not holder["keyed"]:
            yield subject, f"its holder, task {row['task']}, does not know of it and would not free it"


@rule("slots")
def _slots(rows: Rows) -> Iterator[Finding]:
    live = rows.live()
    taken: Counter[str] = Counter()
    allowed: dict[str, int] = {}
    for row in rows.slots:
        subject = f"slot {row['slot']} of {row['key']}"
        owner = live.get(row["task"])
        taken[row["key"]] += 1
        if owner is None or owner["state"] not in _HELD or owner["claim_no"] != row["claim_no"]:
            yield subject, f"belongs to claim {row['claim_no']} of task {row['task']}, which does not hold it"
            continue
        for gate in gates_from_json(owner["gates"]):
            if gate.kind != "rate" and f"{gate.kind}:{gate.key}" == row["key"]:
                allowed[row["key"]] = max(allowed.get(row["key"], 0), gate.n)
    for key, n in taken.items():
        if n > allowed.get(key, n):
            yield f"limit {key}", f"{n} slots are taken of {allowed[key]}"


# Jobs.


@rule("job-of-a-task")
def _job_of_a_task(rows: Rows) -> Iterator[Finding]:
    jobs = {row["id"] for row in rows.jobs}
    for job in rows.of_job().keys() - jobs:
        yield f"job {job}", "has tasks and does not exist"
    for job in jobs - {row["job"] for row in rows.job_counts}:
        yield f"job {job}", "has no counters"


@rule("job-counters")
def _job_counters(rows: Rows) -> Iterator[Finding]:
    of_job = rows.of_job()
    added: Counter[int] = Counter()
    for row in rows.job_additions:
        added[row["job"]] += row["n"]
    pruned = rows.partly_pruned()
    for row in rows.job_counts:
        states = Counter(task["state"] for task in of_job.get(row["job"], ()))
        ended = {state: states[state] for state in ("completed", "failed", "cancelled")}
        ended["cancelled"] += states["rejected"]
        live = sum(states.values()) - sum(ended.values())
        total = row["total"] + added[row["job"]]
        counted = {state: row[state] for state in ended}
        if total - sum(counted.values()) != live:
            yield f"job {row['job']}", f"{live} of its tasks have not ended, its counters say {total} - {counted}"
        for state, n in ended.items():
            if n > counted[state] or (n < counted[state] and row["job"] not in pruned):
                yield f"job {row['job']}", f"{n} of its tasks are {state}, its counters say {counted[state]}"


@rule("job-events")
def _job_events(rows: Rows) -> Iterator[Finding]:
    """Numbers without gaps up to the one that the counters promise next, and the last one is what the job is. A job
    from before there were events has none of its first."""
    states = {row["id"]: row["state"] for row in rows.jobs}
    counts = {row["job"]: row for row in rows.job_counts}
    of_job: dict[int, list[Row]] = defaultdict(list)
    for event in sorted(rows.job_events, key=lambda row: (row["job"], row["seq"])):
        of_job[event["job"]].append(event)
    for job, events in of_job.items():
        subject, last = f"job {job}", events[-1]
        for one, next_one in pairwise(events):
            if next_one["seq"] != one["seq"] + 1:
                yield subject, f"has event {one['seq']}, then {next_one['seq']}"
        if job not in counts or job not in states:
            continue  # the rule `job-of-a-task` says so
        if last["seq"] != counts[job]["seq"] - 1:
            yield subject, f"has events up to {last['seq']}, and its counters go on with {counts[job]['seq']}"
        said = {"state": last["state"]} | {name: last[name] for name in _COUNTED}
        true = {"state": states[job]} | {name: counts[job][name] for name in _COUNTED}
        if said != true:
            yield subject, f"its last event says {said}, and it is {true}"


@rule("job-fate")
def _job_fate(rows: Rows) -> Iterator[Finding]:
    """When it is over. How it ended: the rule `job-verdict`."""
    of_job = rows.of_job()
    for row in rows.jobs:
        subject, over = f"job {row['id']}", row["state"] in _OVER
        tasks = of_job.get(row["id"], [])
        waiting = [t["id"] for t in tasks if t["state"] in ("pending", "blocked", "pending_approval")]
        live = [t["id"] for t in tasks if not TaskState(t["state"]).terminal]
        if over != (row["completed_at"] is not None):
            yield subject, f"is {row['state']}, and completed_at is {row['completed_at']}"
        if over and waiting:
            yield subject, f"is {row['state']}, and tasks {waiting[:5]} still wait to run"
        if row["state"] == JobState.COMPLETED and live:
            yield subject, f"is completed, with unfinished {live[:5]}"
        if not over and tasks and not live:
            yield subject, f"is {row['state']}, and all of its tasks have ended"
        yield from _disorder(subject, row, ("created_at", "started_at", "completed_at"))


@rule("job-hooks")
def _job_hooks(rows: Rows) -> Iterator[Finding]:
    """The hook of a run is enqueued when the run ends, and never again."""
    for row in rows.jobs:
        over = row["state"] in _OVER
        hook = row["on_success"] if row["state"] == JobState.COMPLETED else row["on_failure"]
        if row["hooked_run"] > (row["run_no"] if over else row["run_no"] - 1):
            yield (
                f"job {row['id']}",
                f"is {row['state']} in run {row['run_no']}, hooks were enqueued for {row['hooked_run']}",
            )
        if over and hook is not None and row["hooked_run"] != row["run_no"]:
            yield f"job {row['id']}", f"is {row['state']} in run {row['run_no']}, and its hook was not enqueued"


# Accounts.


@rule("token-user")
def _token_user(rows: Rows) -> Iterator[Finding]:
    """Users are never removed. Of a very large number of them some may come after their tokens while a ledger moves."""
    names = {row["name"] for row in rows.users}
    for row in rows.tokens:
        if row["user"] not in names:
            yield f"token {row['id']}", f"is of user {row['user']!r}, who is not there"


# Schedules.


@rule("run-open")
def _run_open(rows: Rows) -> Iterator[Finding]:
    """A fire looks at open runs alone: one that is closed while its task is unfinished would be overlapped. A task that
    somebody runs again is no longer the fire's.
    """
    live = rows.live()
    for row in rows.schedule_runs:
        task = live.get(row["task"])
        if task is not None and task["run_no"] == 1 and not row["open"]:
            yield f"run {row['schedule']}/{row['tick']}", f"is closed, and its task {task['id']} is {task['state']}"


# Workers.


@rule("rescue-pending")
def _rescue_pending(rows: Rows) -> Iterator[Finding]:
    """A warning: right for a moment after a death, wrong when it stays."""
    states = {row["id"]: row["state"] for row in rows.workers}
    for row in rows.tasks:
        if row["worker"] is not None and states.get(row["worker"], "unknown") in ("stopped", "unknown"):
            yield _task(row), f"is held by {row['worker']}, which is {states.get(row['worker'], 'unknown')}"


def _attempt(row: Row) -> str:
    return f"attempt {row['task']}/{row['claim_no']}"


def _disorder(subject: str, row: Row, order: Iterable[str]) -> Iterator[Finding]:
    known = [(name, row[name]) for name in order if row.get(name) is not None]
    for (earlier, first), (later, second) in pairwise(known):
        if second < first:
            yield subject, f"{later} ({second}) lies before {earlier} ({first})"
