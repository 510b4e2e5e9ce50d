"""Enqueue: a conversation of statements that runs on our connection and inside a user's transaction alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from headrace.core.batch import Run, is_plain, runs_of
from headrace.core.errors import DuplicateTask, EnqueueError, GraphError, MovedAway, NotFound, WrongState
from headrace.core.limits import gates_to_json
from headrace.core.states import JOB_TERMINAL, JobState, TaskState
from headrace.core.task import Enqueued, Key, NewTask
from headrace.store.base import Program, Statement
from headrace.store.instants import to_micros
from headrace.store.sqlite.connection import Transaction

type _Place = tuple[str, str]  # scope, key
type _Jobs = Mapping[int, tuple[int, str | None]]  # when each was created, and for whom

_ARGUMENTS = 10  # their place in a row
_RUN = 10  # neighbours that are worth a statement of their own
_PENDING = TaskState.PENDING.value
_BLOCKED = TaskState.BLOCKED.value
APPROVAL = "approval"  # what a blocked task waits for beside its edges
_REPLACEABLE = (TaskState.PENDING, TaskState.PENDING_APPROVAL)


@dataclass(slots=True, kw_only=True)
class _Holder:
    """The task that holds a key: in the ledger, or new in this very call."""

    task: int
    state: str | None  # None: it ended, and only its key is kept
    created_at: int
    job: int | None = None
    order_at: int = 0
    index: int | None = None  # its place among the new rows of this call


@dataclass(slots=True)
class _Plan:
    """What one call comes to, before anything is written."""

    answers: list[Enqueued] = field(default_factory=list[Enqueued])
    rows: list[list[Any]] = field(default_factory=list[list[Any]])
    keys: dict[_Place, list[Any]] = field(default_factory=dict[_Place, list[Any]])
    replacements: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    overtaken: list[str] = field(default_factory=list[str])  # unique keys that change hands while they are held


def seconds_to_micros(seconds: float) -> int:
    return round(seconds * 1_000_000)


def enqueue_program(
    queries: Mapping[str, str],
    tasks: Sequence[NewTask],
    *,
    now: int,
    own: bool,
    first: int | None = None,
    first_of_call: int | None = None,
) -> Program[list[Enqueued]]:
    """`own` says that we hold the transaction: job counters are then raised at once, and edges are the caller's to
    write. `first`: these are a part of the tasks of one call, and their ids have been taken.
    """
    if not tasks:
        return []
    if own and is_plain(tasks):
        return (yield from _enqueue_plain(queries, tasks, now))
    if not own and any(task.after for task in tasks):
        raise EnqueueError(
            "tasks that wait for others cannot be enqueued in a transaction of your own on SQLite: enqueue the graph "
            "outside of it. Nothing was written"
        )
    jobs = yield from _jobs(queries, tasks)
    wanted = sorted({(key.scope, key.key) for task in tasks for key in task.keys})
    additions = 0 if own else len(jobs)
    if first is None:
        answer = yield Statement(queries["take_ids"], (len(tasks) + additions,))
        first = int(answer[0][0]) - len(tasks) - additions
    holders: dict[_Place, _Holder] = {}
    if wanted:
        found = yield Statement(queries["key_holders"], (_json(wanted),))
        for scope, key, task, expires_at, state, created_at, job, order_at in found:
            if expires_at is None and state is None and (yield Statement(queries["moved_to"])):
                raise MovedAway(key, task)  # held while its task lives, and that is not here any more
            if expires_at is None or expires_at > now:
                holders[scope, key] = _Holder(
                    task=task, state=state, created_at=created_at or now, job=job, order_at=order_at or now
                )
    plan = _planned(tasks, first=first, now=now, holders=holders, jobs=jobs, first_of_call=first_of_call or first)
    if plan.rows:
        yield Statement(queries["insert_tasks"], (_json(plan.rows),))
    for replacement in plan.replacements:
        yield Statement(queries["replace_task"], replacement)
    if plan.overtaken:
        yield Statement(queries["keep_overtaken_names"], (_json(plan.overtaken),))
    if plan.keys:
        yield Statement(queries["take_keys"], (_json([plan.keys[place] for place in sorted(plan.keys)]),))
    for place, job in enumerate(sorted(jobs)):
        n = sum(row[8] == job for row in plan.rows)
        if n and own:
            yield Statement(queries["count_added"], (n, job))
        elif n:
            yield Statement(queries["add_later"], (first + len(tasks) + place, job, n))
    return plan.answers


def _enqueue_plain(queries: Mapping[str, str], tasks: Sequence[NewTask], now: int) -> Program[list[Enqueued]]:
    """Tasks without keys and jobs: one statement for consecutive tasks that differ in their arguments only."""
    n = len(tasks)
    answer = yield Statement(queries["take_ids"], (n,))
    first = id = int(answer[0][0]) - n
    for template, arguments in _joined(runs_of(tasks)):
        row = row_of(template.task, id, now, {})
        del row[-1], row[_ARGUMENTS]
        yield Statement(queries["insert_run"], (*row, _json(arguments)))
        id += len(arguments)
    return [Enqueued(id, True) for id in range(first, first + n)]


def _joined(runs: list[Run]) -> list[Run]:
    """Neighbours of one template in one run."""
    if len(runs) == 1:
        return runs
    joined: list[Run] = []
    for template, arguments in runs:
        if joined and joined[-1][0] is template:
            joined[-1][1].extend(arguments)
        else:
            joined.append((template, list(arguments)))
    return joined


def _json(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError) as error:
        raise EnqueueError(f"a task holds text that cannot be stored: {error}; nothing was written") from error


def _jobs(queries: Mapping[str, str], tasks: Sequence[NewTask]) -> Program[_Jobs]:
    """What these tasks take from the jobs that they join."""
    wanted = sorted({task.job for task in tasks if task.job is not None})
    if not wanted:
        return {}
    rows = yield Statement(queries["jobs_to_join"], (_json(wanted),))
    found = {job: (state, created_at, owner) for job, state, created_at, owner in rows}
    for job in wanted:
        if job not in found:
            raise NotFound(f"job {job} does not exist; no task was enqueued")
        if JobState(found[job][0]) in JOB_TERMINAL:
            raise WrongState(f"job {job} is {found[job][0]} and takes no more tasks; nothing was enqueued")
    return {job: (created_at, owner) for job, (_, created_at, owner) in found.items()}


def _planned(
    tasks: Sequence[NewTask],
    *,
    first: int,
    now: int,
    holders: dict[_Place, _Holder],
    jobs: _Jobs,
    first_of_call: int,
) -> _Plan:
    plan = _Plan()
    for offset, task in enumerate(tasks):
        conflict = _conflict(task, holders) if task.keys else None
        if conflict is None:
            if task.keys:
                plan.overtaken.extend(key.key for key in task.keys if key.scope == "unique" and _place(key) in holders)
            _plan_new(plan, task, first + offset, now, holders, jobs)
            continue
        key, holder = conflict
        if key.on_conflict == "replace" and task.after:
            raise GraphError(
                f"task {task.name} waits for others and cannot replace task {holder.task}, which holds its unique key "
                f"{key.key!r}: a task that waits for others cannot replace one. Nothing was written"
            )
        if key.on_conflict == "replace" and holder.index is not None:
            # Twice in one call: the later one counts, under the id of the first.
            plan.rows[holder.index] = row_of(
                replace(task, after=tasks[holder.task - first].after),  # it goes on waiting for what it waits for
                *(holder.task, now, jobs),
                no_later_than=_latest(task, holder),
            )
        elif key.on_conflict == "replace":
            plan.replacements.append(_replacement(task, holder, now))
            _take_keys(plan, task, holder, now, holders)
        elif key.on_conflict == "reject" and holder.task < first_of_call:
            raise DuplicateTask(key.key, holder.task)
        plan.answers.append(Enqueued(holder.task, created=False))
    return plan


def _place(key: Key) -> _Place:
    return key.scope, key.key


def _conflict(task: NewTask, holders: Mapping[_Place, _Holder]) -> tuple[Key, _Holder] | None:
    """The first of its keys whose holder decides; None where the task is a new one."""
    for key in sorted(task.keys, key=_place):
        holder = holders.get(_place(key))
        if holder is None:
            continue
        if key.on_conflict == "replace" and holder.index is None and holder.state not in _REPLACEABLE:
            # Its run has begun or is over, and it may have read the world already: the event must not be lost.
            continue
        return key, holder
    return None


def _plan_new(plan: _Plan, task: NewTask, id: int, now: int, holders: dict[_Place, _Holder], jobs: _Jobs) -> None:
    holder = _Holder(task=id, state=_PENDING, created_at=now, index=len(plan.rows))
    plan.rows.append(row_of(task, id, now, jobs))
    plan.answers.append(Enqueued(id, created=True))
    for key in task.keys:
        holders.pop((key.scope, key.key), None)
    _take_keys(plan, task, holder, now, holders)


def _take_keys(plan: _Plan, task: NewTask, holder: _Holder, now: int, holders: dict[_Place, _Holder]) -> None:
    for key in task.keys:
        place = (key.scope, key.key)
        if place in holders:
            continue
        expires_at = now + seconds_to_micros(key.ttl) if key.scope == "idem" and key.ttl is not None else None
        plan.keys[place] = [key.scope, key.key, holder.task, key.ttl, expires_at]
        holders[place] = holder


def _latest(task: NewTask, holder: _Holder) -> int | None:
    return None if task.max_wait is None else holder.created_at + seconds_to_micros(task.max_wait)


def _eligible_at(task: NewTask, now: int, no_later_than: int | None = None) -> int:
    eligible = to_micros(task.run_at) if task.run_at is not None else now + seconds_to_micros(task.delay)
    if no_later_than is not None:
        eligible = min(eligible, no_later_than)
    return max(eligible, now)


def _replacement(task: NewTask, holder: _Holder, now: int) -> tuple[Any, ...]:
    eligible = _eligible_at(task, now, _latest(task, holder))
    order_at = eligible if holder.job is None else holder.order_at
    ready_at = now if eligible <= now else None
    gates, order_key = _stored_gates(task)
    return (
        *(task.arguments, task.codec, task.version, task.options, task.queue, task.pool, task.priority),
        *(task.max_attempts, gates, order_key, task.max_age, now, _expires_at(task, now)),
        *(eligible, order_at, ready_at, task.dead_letter, task.owner, holder.task),
    )


def _stored_gates(task: NewTask) -> tuple[str | None, str | None]:
    """The gates of a row and, where an index can see it, its order key."""
    if not task.gates:
        return None, None
    return gates_to_json(task.gates), next((gate.key for gate in task.gates if gate.kind == "order"), None)


def _expires_at(task: NewTask, now: int) -> int | None:
    return None if task.max_age is None else now + seconds_to_micros(task.max_age)


def row_of(task: NewTask, id: int, now: int, jobs: _Jobs, *, no_later_than: int | None = None) -> list[Any]:
    """In the order of `insert_tasks`."""
    order_at, owner = (None, None) if task.job is None else jobs[task.job]
    return list(row_of_job(task, id, now, task.job, order_at, owner, no_later_than))


def row_of_job(
    task: NewTask,
    id: int,
    now: int,
    job: int | None,
    order_at: int | None,
    owner: str | None,
    no_later_than: int | None = None,
) -> tuple[Any, ...]:
    """The same, as a task of that job, whatever it says itself, and of that owner unless it says whose it is; written
    for speed, since a job may have very many."""
    if task.run_at is None and not task.delay:
        eligible = now
    else:
        eligible = _eligible_at(task, now, no_later_than)
    gates, order_key = _stored_gates(task) if task.gates else (None, None)
    ready_at = expires_at = waiting_on = None
    if task.after:
        state, waiting_on = _BLOCKED, APPROVAL if task.approval else None
    else:
        state = TaskState.PENDING_APPROVAL.value if task.approval else _PENDING
        ready_at = now if eligible <= now and not task.approval else None
        expires_at = None if task.max_age is None else now + seconds_to_micros(task.max_age)
    return (
        *(id, task.name, task.kind, task.queue, task.pool, task.priority, state, task.max_attempts, job, task.critical),
        *(task.arguments, task.codec, task.version, task.options, gates, order_key, bool(task.keys), task.max_age),
        *(now, now, eligible, eligible if order_at is None else order_at, expires_at, ready_at, task.dead_letter),
        *(owner if task.owner is None else task.owner, waiting_on),
    )


def insert_rows(transaction: Transaction, rows: Sequence[tuple[Any, ...]]) -> None:
    """Rows of `row_of_job` with consecutive ids: neighbours that differ in their arguments only by one statement."""
    single: list[tuple[Any, ...]] = []
    begin = 0
    while begin < len(rows):
        head = rows[begin]
        before, behind = head[1:_ARGUMENTS], head[_ARGUMENTS + 1 :]
        end = begin + 1
        while end < len(rows) and rows[end][_ARGUMENTS + 1 :] == behind and rows[end][1:_ARGUMENTS] == before:
            end += 1
        if end - begin < _RUN or head[-1] is not None:
            single += rows[begin:end]
        else:
            arguments = _json([row[_ARGUMENTS] for row in rows[begin:end]])
            transaction.run("insert_run", (head[0], *before, *behind[:-1], arguments))
        begin = end
    transaction.insert_all("insert_task", single)


def enqueue(
    transaction: Transaction,
    tasks: Sequence[NewTask],
    *,
    first: int | None = None,
    first_of_call: int | None = None,
) -> list[Enqueued]:
    """Drive the program on our own connection, and wake the workers of the queues."""
    program = enqueue_program(
        transaction.queries, tasks, now=transaction.now, own=True, first=first, first_of_call=first_of_call
    )
    rows: list[Any] = []
    try:
        statement = next(program)
        while True:
            rows = transaction.connection.execute(statement.sql, statement.parameters).fetchall()
            statement = program.send(rows)
    except StopIteration as end:
        answers: list[Enqueued] = end.value
    if not is_plain(tasks):
        made = zip(tasks, answers, strict=True)
        transaction.changed_jobs.update(task.job for task, answer in made if task.job is not None and answer.created)
    transaction.wakes |= {template.task.queue for template, _ in runs_of(tasks) if template.task.delay <= 0}
    return answers


def enqueue_anyway(transaction: Transaction, tasks: Sequence[NewTask]) -> list[Enqueued]:
    """What follows from something else, as hooks and subscribers do: there is nobody to be refused, and nobody can ask
    another database from in here. One whose key has moved away may run beside its holder; it must not be lost, and
    neither must what it follows from.
    """
    try:
        return enqueue(transaction, tasks)
    except MovedAway:
        if len(tasks) == 1:
            return enqueue(transaction, [replace(tasks[0], keys=())])
    return [answer for task in tasks for answer in enqueue_anyway(transaction, [task])]
