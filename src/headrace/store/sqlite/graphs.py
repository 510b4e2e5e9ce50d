"""Tasks that wait for others: how they are written, and what is read of their edges."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import batched
from typing import overload

import orjson

from headrace.core.batch import Batch, is_plain
from headrace.core.errors import EnqueueError, GraphError, NotFound, WrongState
from headrace.core.states import Reason, TaskState
from headrace.core.task import Edge, EdgeKind, Enqueued, Input, NewTask, TaskRecord
from headrace.store.base import Program
from headrace.store.instants import from_micros
from headrace.store.sqlite.advancing import free_lowered
from headrace.store.sqlite.connection import Part, Transaction
from headrace.store.sqlite.ending import Ending, ids_json, rows_by_id
from headrace.store.sqlite.enqueueing import enqueue, enqueue_program, insert_rows, row_of_job
from headrace.store.sqlite.inspection import get
from headrace.store.sqlite.job_counting import KINDS, conclude
from headrace.store.sqlite.retrying import clear

_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}
_READ_AT_ONCE = 1000
_LISTED = 1000  # answers that are given as a list


class Answers(Sequence[Enqueued]):
    """What became of the tasks of a job, most of which are new and have consecutive ids."""

    __slots__ = ("_first", "_found", "_n")

    def __init__(self, first: int, n: int, found: dict[int, int]) -> None:
        self._first = first
        self._n = n
        self._found = found  # by place: who held the key of a task that was therefore not made

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: int) -> Enqueued: ...
    @overload
    def __getitem__(self, index: slice) -> list[Enqueued]: ...
    def __getitem__(self, index: int | slice) -> Enqueued | list[Enqueued]:
        if isinstance(index, slice):
            return [self._answer(place) for place in range(self._n)[index]]
        return self._answer(range(self._n)[index])

    def __iter__(self) -> Iterator[Enqueued]:
        return map(self._answer, range(self._n))

    def _answer(self, place: int) -> Enqueued:
        return Enqueued(self._found.get(place, self._first + place), place not in self._found)


def write_tasks(
    transaction: Transaction, job: int, tasks: Collection[NewTask], *, first: int, owner: str | None
) -> Sequence[Enqueued]:
    """The tasks of a new job, whose ids have been taken; read in batches: they may be more than memory holds."""
    n, found = len(tasks), dict[int, int]()
    answers = Answers(first, n, found)
    now, place, written = transaction.now, 0, 0
    for batch in batched(tasks, _READ_AT_ONCE):
        if place + len(batch) > n:
            break
        if any(task.keys for task in batch):
            here = [replace(task, job=job) for task in batch]
            part = enqueue(transaction, here, first=first + place, first_of_call=first)
            found.update({place + offset: answer.id for offset, answer in enumerate(part) if not answer.created})
        else:
            rows = [row_of_job(task, id, now, job, now, owner) for id, task in enumerate(batch, first + place)]
            insert_rows(transaction, rows)
            written += len(rows)
            transaction.wakes.update({task.queue for task in batch if not task.after and task.delay <= 0})
        _link(transaction, batch, first, found, base=place, job=job)
        place += len(batch)
    if place != n:
        raise EnqueueError(f"the tasks of job {job} are said to be {n} and are not; nothing was written")
    if written:
        transaction.run("count_added", (written, job))
    return list(answers) if n <= _LISTED else answers


def add(transaction: Transaction, tasks: Sequence[NewTask]) -> list[Enqueued]:
    """Enqueue tasks with their edges."""
    answers = enqueue(transaction, tasks)
    if not is_plain(tasks) and any(task.after for task in tasks):
        _check_jobs(transaction, tasks)
        first = next((answer.id - place for place, answer in enumerate(answers) if answer.created), 0)
        _link(transaction, tasks, first, {place: id for place, (id, created) in enumerate(answers) if not created})
    return answers


def _check_jobs(transaction: Transaction, tasks: Sequence[NewTask]) -> None:
    """Edges stay within a job: its end asks for all of them."""
    foreign: dict[int, int | None] = {}
    for task in tasks:
        for edge in task.after:
            if task.job is None:
                raise GraphError(f"task {task.name} waits for others and belongs to no job; nothing was written")
            if not edge.local:
                foreign[edge.task] = task.job
            elif 0 <= edge.task < len(tasks) and tasks[edge.task].job != task.job:
                raise GraphError(f"task {task.name} waits for a task of another job; nothing was written")
    if foreign:
        found = dict(transaction.rows("jobs_of_tasks", {"ids": ids_json(foreign)}))
        for id, job in foreign.items():
            if found.get(id, 0) != job:
                what = "belongs to another job" if id in found else "does not exist"
                raise GraphError(f"task {id}, which a new task of job {job} waits for, {what}; nothing was written")


def _link(
    transaction: Transaction,
    tasks: Sequence[NewTask],
    first: int,
    found: Mapping[int, int],
    *,
    base: int = 0,
    job: int | None = None,
) -> None:
    """Write the edges of new tasks: `first` is the id of the first task of the call, others follow but for those that
    were `found`. These begin with the place `base`. `job`: it is new, too, and has no other tasks.
    """
    edges: list[tuple[int, int, int, int, int | None]] = []
    barriers: list[tuple[int, int]] = []
    counted: list[int] = []  # who waits for tasks that were there before
    led_to: dict[int, NewTask] = {}  # who held the key of one that somebody waits for
    for place, task in enumerate(tasks, base):
        # Whoever holds the key of one that was not made waits for what it waited for.
        if not task.after or place in found:
            continue
        own, is_counted = first + place, False
        for number, edge in enumerate(task.after):
            upstream = edge.task
            if not edge.local:
                if job is not None:
                    raise GraphError(
                        f"task {task.name} of a new job waits for task {upstream}, which is not of that job; nothing "
                        "was written"
                    )
                is_counted = True
            elif not 0 <= upstream < place:
                raise GraphError(
                    f"task {task.name}, number {place} of its call, waits for number {upstream}: a task waits for "
                    "those before it. Nothing was written"
                )
            elif upstream in found:
                upstream, is_counted = found[upstream], True
                led_to[upstream] = task
            else:
                upstream += first
            edges.append((own, number, upstream, _NUMBERS[edge.kind], edge.input))
        if is_counted:
            counted.append(own)
        else:
            barriers.append((own, len(task.after)))
    if led_to:
        _check_holders(transaction, led_to, job)
    transaction.insert_all("insert_edge", edges)
    transaction.insert_all("insert_barrier", barriers)
    if counted:
        _settle_new(transaction, counted)


def _check_holders(transaction: Transaction, led_to: Mapping[int, NewTask], job: int | None) -> None:
    """The holder of a unique key may be anybody's; an edge that leads to it stays within the job like any other."""
    found = dict(transaction.rows("jobs_of_tasks", {"ids": ids_json(led_to)}))
    for id, task in led_to.items():
        if found.get(id, 0) != (task.job if job is None else job):
            raise GraphError(
                f"task {task.name} waits for one whose unique key task {id} holds, which is not of the same job; "
                "nothing was written"
            )


def _settle_new(transaction: Transaction, ids: Sequence[int]) -> None:
    """Of what they wait for some may have ended: they are free, or never will be."""
    note_counted(transaction, ids)
    transaction.run("count_barriers")
    lost = dict(transaction.rows("impossible_tasks", (ids_json(ids),)))
    conclude(
        transaction,
        [
            Ending(row=row, state=TaskState.CANCELLED, reason=reason_of(lost[row.id]))
            for row in rows_by_id(transaction, list(lost))
        ],
    )
    note_counted(transaction, (id for id in ids if id not in lost))
    free_lowered(transaction)


def reason_of(kind: int) -> str:
    return Reason.SKIPPED if KINDS[kind] is EdgeKind.ON_FAILURE else Reason.UPSTREAM_FAILED


def note_counted(transaction: Transaction, ids: Iterable[int]) -> None:
    """Whose barriers are to be counted anew."""
    transaction.run("clear_lowered")
    transaction.run("note_counted", (ids_json(ids),))


def edges(transaction: Transaction, tasks: Sequence[int]) -> list[Edge]:
    rows: list[tuple[int, int, int, int | None, int]] = transaction.rows("edges", (ids_json(tasks),))
    return [
        Edge(task=task, upstream=upstream, kind=KINDS[kind], input=input, place=place)
        for task, upstream, kind, input, place in rows
    ]


def inputs(transaction: Transaction, task: int) -> list[Input]:
    return [
        Input(
            input=input,
            place=place,
            task=upstream,
            name=name,
            state=TaskState(state),
            codec=codec,
            result=result,
            result_ref=ref,
        )
        for input, place, upstream, name, state, codec, result, ref in transaction.rows("inputs", (task,))
    ]


def decide(transaction: Transaction, task: int, *, approved: bool, by: str, note: str | None) -> TaskRecord:
    """The write lock makes two at once one decision."""
    rows = rows_by_id(transaction, [task])
    if not rows or rows[0].state != TaskState.PENDING_APPROVAL:
        found = get(transaction, [task])
        if task not in found:
            raise NotFound(f"task {task} does not exist")
        raise WrongState(f"task {task} is {found[task].state}: it does not wait for anybody's approval")
    if approved:
        at = from_micros(transaction.now).isoformat()
        value = orjson.dumps({"at": at, "by": by, "note": note}, option=orjson.OPT_SORT_KEYS).decode()
        for queue, claim_no, attempt in transaction.rows("approve", {"task": task, "now": transaction.now}):
            parameters = {"task": task, "value": value, "claim_no": claim_no, "attempt": attempt + 1}
            transaction.run("keep_approval", {**parameters, "now": transaction.now})
            transaction.wakes.add(queue)
    else:
        message = f"rejected by {by}" + (f": {note}" if note else "")
        rejection = Ending(
            row=rows[0],
            state=TaskState.REJECTED,
            reason=Reason.USER,
            error_class="headrace.Rejected",
            error_message=message,
        )
        conclude(transaction, [rejection])
    return get(transaction, [task])[task]


class Enqueueing(Part):
    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Enqueued]:
        tasks = tasks if isinstance(tasks, Batch) else tuple(tasks)
        return await self.database.write(lambda transaction: add(transaction, tasks), verb="enqueue")

    def enqueue_program(self, tasks: Sequence[NewTask]) -> Program[list[Enqueued]]:
        return enqueue_program(self.database.queries, tuple(tasks), now=self.database.now(), own=False)


class Graphing(Part):
    async def edges(self, tasks: Sequence[int]) -> list[Edge]:
        return await self.database.read(lambda transaction: edges(transaction, tasks))

    async def inputs(self, task: int) -> list[Input]:
        return await self.database.read(lambda transaction: inputs(transaction, task))

    async def clear(self, task: int) -> list[int]:
        return await self.database.write(lambda transaction: clear(transaction, task))

    async def decide(self, task: int, *, approved: bool, by: str, note: str | None = None) -> TaskRecord:
        return await self.database.write(
            lambda transaction: decide(transaction, task, approved=approved, by=by, note=note)
        )
