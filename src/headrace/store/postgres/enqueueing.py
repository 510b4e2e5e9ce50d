"""Enqueue: from NewTasks to the one JSON text that `enqueue_v1` takes, here or in a transaction of the user's."""

from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import asyncpg
import orjson

from headrace.core.batch import Template, is_plain, runs_of
from headrace.core.errors import DuplicateTask, EnqueueError, GraphError, NotFound, PayloadError, UniqueBusy, WrongState
from headrace.core.limits import gates_to_json
from headrace.core.task import Enqueued, NewTask
from headrace.store.base import Program, Statement
from headrace.store.instants import ID_BLOCK
from headrace.store.postgres.connection import Connection, Database
from headrace.store.postgres.edges import edges_of
from headrace.store.postgres.live import Announcer
from headrace.store.postgres.wakeups import Waker

_MOST_BLOCKS = 32
# Characters of a task that is handed over: it travels in a notification, which takes 8,000 bytes, and a character may
# need four of them.
_LONGEST_WORD = 1800
_HANDED_POOLS = ("coroutine", "thread")  # the others begin with a process, beside which a claim is nothing


class Enqueueing:
    def __init__(
        self, database: Database, queries: Mapping[str, str], waker: Waker, announcer: Announcer, *, notify: bool
    ) -> None:
        self._database = database
        self._queries = queries
        self._waker = waker
        self._announcer = announcer
        self._notify = notify
        self._ids: deque[int] = deque()
        self.repeats: int | None = None  # of any enqueue, by anybody, when the last of these ids were taken
        self._next_blocks = 1

    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Enqueued]:
        if not tasks:
            return []
        ids = await self.take_ids(len(tasks))
        repeats, plain = self.repeats, is_plain(tasks)
        alone = self._alone(tasks) if plain and len(ids) == 1 else None
        queues = self._waker.due(ready_queues(tasks)) if self._notify else []
        tries = 0

        async def write(connection: Connection) -> list[Enqueued]:
            nonlocal tries
            tries += 1
            # The ids were new on the first try; on a later one an earlier COMMIT may have succeeded unheard.
            if tries > 1 or not plain:
                text = document(tasks, ids=ids, repeats=repeats, own=True, repeated=tries > 1, notify=queues)
                return await self.write(connection, text)
            with _refusals(tasks):
                if alone is not None:
                    [answer] = await connection.fetch(
                        self._queries[alone.statement], ids[0], alone.arguments, repeats, queues, *alone.row
                    )
                    if alone.handable and answer[0]:
                        self._waker.spared(alone.queue)
                else:
                    parameters = columns(tasks)
                    await connection.fetch(self._queries["insert_plain"], _numbers(ids), *parameters, queues, repeats)
            return [Enqueued(id, True) for id in ids]

        answers = await self._database.run(write, repeatable=True, transaction=False, verb="enqueue")
        if not plain:
            self.announce(tasks)
        return answers

    def _alone(self, tasks: Sequence[NewTask]) -> "_Alone":
        [(template, [arguments])] = runs_of(tasks)
        stored, queue = _stored(template), template.task.queue
        fits = stored.handable and len(arguments) + stored.length <= _LONGEST_WORD
        return _Alone(stored, arguments, queue, handable=fits and self._notify and self._waker.is_settled(queue))

    def announce(self, tasks: Sequence[NewTask]) -> None:
        """To be called after a commit."""
        self._announcer.note_jobs({template.task.job for template, _ in runs_of(tasks)})

    async def write(self, connection: Connection, text: str) -> list[Enqueued]:
        """Run the server's function on this connection and translate what it refuses."""
        with _refusals():
            return answers(await connection.fetch(self._queries["enqueue"], text))

    def enqueue_program(self, tasks: Sequence[NewTask]) -> Program[list[Enqueued]]:
        if not tasks:
            return []
        if any(template.task.after for template, _ in runs_of(tasks)):
            raise EnqueueError(
                "tasks that wait for others cannot be enqueued in a transaction of your own yet; nothing was written. "
                "Enqueue them after it, or leave `after` out"
            )
        queues = ready_queues(tasks) if self._notify else []
        rows = yield Statement(self._queries["enqueue"], (document(tasks, own=False, notify=queues),))
        return answers(rows)

    async def take_ids(self, n: int) -> list[int]:
        """Ids that nobody else has. What is left of a block is kept for the next call of this process."""
        # Others may take from the same list while this one waits for its block.
        while n > len(self._ids):
            missing = n - len(self._ids)
            blocks = max(-(-missing // ID_BLOCK), self._next_blocks)
            # Each trip syncs the server's log: a process that needs ids again and again takes more of them.
            self._next_blocks = min(2 * self._next_blocks, _MOST_BLOCKS)
            rows = await self._database.fetch(self._queries["take_id_blocks"], blocks, repeatable=True)
            self._ids.extend(first + i for first, _ in rows for i in range(ID_BLOCK))
            self.repeats = rows[-1][1]
        take = self._ids.popleft
        ids = [take() for _ in range(n)]
        ids.sort()  # blocks may arrive in another order than they were made, and within a transaction ids are the order
        return ids


@contextmanager
def _refusals(tasks: Sequence[NewTask] = ()) -> Generator[None]:
    """What the server does not take, as one of our errors."""
    try:
        yield
    except asyncpg.PostgresError as error:
        refused = refusal(error)
        if refused is error:
            raise
        _refuse_nul(tasks)
        raise refused from error


def _numbers(numbers: Iterable[int]) -> str:
    """As one text: the driver asks of every element of an array whether it is an array itself."""
    return ",".join(map(str, numbers))


def columns(tasks: Sequence[NewTask]) -> tuple[list[str], str, str]:
    """What `insert_plain` takes: each task's arguments, the place of what it shares with others, and those."""
    arguments: list[str] = []
    places: list[int] = []
    shared: dict[int, str] = {}  # by the identity of the template, which lives as long as the tasks
    place_of: dict[int, int] = {}
    runs = runs_of(tasks)
    for template, texts in runs:
        place = place_of.get(id(template))
        if place is None:
            place = place_of[id(template)] = len(place_of)
            shared[place] = f'{{"place":{place},{_stored(template).text}'
        arguments += texts
        places += [place] * len(texts) if len(texts) > 1 else (place,)
    return arguments, _numbers(places) if len(shared) > 1 else "", f"[{','.join(shared.values())}]"


class _Stored:
    """What the tasks of a template have in common, as the statements take it; each form is made once."""

    def __init__(self, task: NewTask) -> None:
        self._entry = _entry(task)

    @cached_property
    def text(self) -> str:
        """For `insert_plain`: an object of JSON without the brace that opens it."""
        kept = {part: value for part, value in self._entry.items() if part not in _NOT_SHARED}
        return _encoded(kept)[1:]

    @cached_property
    def handable(self) -> bool:
        entry = self._entry
        return (
            entry["pool"] in _HANDED_POOLS
            and entry["delay"] <= 0
            and entry["run_at"] is None
            and entry["gates"] is None
            and not entry["approval"]
            and (entry["max_age"] is None or entry["max_age"] > 0)
        )

    @cached_property
    def length(self) -> int:
        """Characters of what it is told of, but for its arguments."""
        return sum(len(self._entry[part]) for part in ("name", "queue", "codec", "options"))

    @cached_property
    def handed_row(self) -> tuple[Any, ...]:
        """For `insert_handed`, from its fifth parameter on."""
        return tuple(self._entry[part] for part in _HANDED_ROW)

    @cached_property
    def row(self) -> tuple[Any, ...]:
        """For `insert_one`, from its fifth parameter on."""
        return tuple(self._entry[part] for part in _ROW)


class _Alone:
    """One plain task on its way."""

    __slots__ = ("arguments", "handable", "queue", "row", "statement")

    def __init__(self, stored: _Stored, arguments: str, queue: str, *, handable: bool) -> None:
        self.arguments = arguments
        self.queue = queue
        # To a worker that stands by, if there is one: it could start at once, goes past nobody of its priority of whom
        # others may not have heard yet, and fits in a word.
        self.handable = handable
        self.statement, self.row = ("insert_handed", stored.handed_row) if handable else ("insert_one", stored.row)


_NOT_SHARED = frozenset({"arguments", "keyed", "keys", "job", "max_wait", "blocked"})
_ROW = (
    "name", "kind", "queue", "pool", "priority", "approval", "max_attempts", "critical", "dead_letter", "codec",
    "version", "options", "gates", "order_key", "max_age", "run_at", "delay", "owner",
)  # fmt: skip
_HANDED_ROW = tuple(part for part in _ROW if part not in ("approval", "gates", "order_key", "run_at", "delay"))


def _stored(template: Template) -> _Stored:
    if template.stored is None:
        template.stored = _Stored(template.task)
    return template.stored


def _encoded(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError) as error:
        raise PayloadError(f"a task cannot be stored: {error}") from error


def document(
    tasks: Sequence[NewTask],
    *,
    own: bool,
    ids: Sequence[int] | None = None,
    repeats: int | None = None,
    repeated: bool = False,
    notify: Sequence[str] = (),
    linked: bool = True,
    created: bool = False,
) -> str:
    """The parameter of `enqueue_v1`. Without `linked` somebody else writes the edges, and of a job that is `created`
    its first event, in the same transaction."""
    kinds = [template.task for template, _ in runs_of(tasks)]
    envelope: dict[str, Any] = {
        "tasks": [entry for template, texts in runs_of(tasks) for entry in _entries(template.task, texts)],
        "own": own,
        "repeated": repeated,
        "keyed": any(task.keys for task in kinds),
        "jobs": sorted({task.job for task in kinds if task.job is not None}),
        "notify": notify,
    }
    if ids is not None:
        envelope |= {"ids": ids, "repeats": repeats}
    if created:
        envelope["created"] = True
    if linked and any(task.after for task in kinds):
        envelope["edges"] = edges_of(tasks)
    text = _encoded(envelope)
    if "\\u0000" in text:
        _refuse_nul(tasks)
    return text


def _entries(task: NewTask, arguments: Sequence[str]) -> list[dict[str, Any]]:
    entry = _entry(task)
    return [{**entry, "arguments": text} for text in arguments]


def _entry(task: NewTask) -> dict[str, Any]:
    return {
        "name": task.name,
        "kind": task.kind,
        "queue": task.queue,
        "pool": task.pool,
        "priority": task.priority,
        "delay": task.delay,
        "run_at": task.run_at,
        "max_attempts": task.max_attempts,
        "max_age": task.max_age,
        "codec": task.codec,
        "version": task.version,
        "arguments": task.arguments,
        "options": task.options,
        "gates": gates_to_json(task.gates),
        "order_key": next((gate.key for gate in task.gates if gate.kind == "order"), None),
        # An idem key with a time to live is not the task's to free.
        "keyed": any(key.scope == "unique" or key.ttl is None for key in task.keys),
        "keys": [
            {"scope": key.scope, "key": key.key, "ttl": key.ttl, "on_conflict": key.on_conflict} for key in task.keys
        ],
        "job": task.job,
        "critical": task.critical,
        "dead_letter": task.dead_letter,
        "approval": task.approval,
        "owner": task.owner,
        "max_wait": task.max_wait,
        "blocked": bool(task.after),
    }


def _refuse_nul(tasks: Sequence[NewTask]) -> None:
    # An escape inside the arguments' own JSON is two levels deep and harmless; a bare NUL is not.
    for task in tasks:
        texts = (task.name, task.queue, task.arguments, task.options, *(key.key for key in task.keys))
        if any("\0" in text for text in texts):
            raise PayloadError(f"task {task.name!r}: text with a NUL character cannot be stored in PostgreSQL")


def ready_queues(tasks: Sequence[NewTask]) -> list[str]:
    """Queues that may have work at once."""
    kinds = (template.task for template, _ in runs_of(tasks))
    return sorted({task.queue for task in kinds if task.delay <= 0 and not task.approval and not task.after})


def answers(rows: Sequence[Sequence[Any]]) -> list[Enqueued]:
    return [Enqueued(id=row[1], created=row[2]) for row in sorted(rows, key=lambda row: row[0])]


def refusal(error: asyncpg.PostgresError) -> Exception:
    """What the function refused, as one of our errors; anything else as it is."""
    detail, hint = str(getattr(error, "detail", "")), str(getattr(error, "hint", ""))
    match getattr(error, "sqlstate", None):
        case "HR001":
            return DuplicateTask(detail, int(hint))
        case "HR002":
            return NotFound(f"no job {detail}; nothing was enqueued")
        case "HR003":
            return WrongState(f"job {detail} is already {hint} and takes no more tasks; nothing was enqueued")
        case "HR005":
            return GraphError(f"task {detail} is not of the same job; nothing was enqueued")
        case "HR007":
            return GraphError(
                f"task {detail!r} waits for others and cannot replace task {hint}, which holds its unique key: a task "
                "that waits for others cannot replace one; nothing was enqueued"
            )
        case "55P03":
            return UniqueBusy("a transaction that is still open holds the key; nothing was enqueued, try again")
        case "22P05" | "22021" | "22000":  # the last is the driver's own, for what it cannot encode
            return PayloadError(f"a task cannot be stored: {error}")
        case _:
            return error
