"""Why a task is where it is: a pure decision over what the ledger says, and the few looks that it needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from headrace.core.breaker import BreakerStatus
from headrace.core.lanes import Lane
from headrace.core.states import AttemptState, Reason, TaskState
from headrace.core.task import AttemptRecord, QueueRecord, TaskRecord, WorkerRecord
from headrace.store.base import COUNTED_AT_MOST, Store
from headrace.store.relations import Relative

type ActKind = Literal["resume_queue", "retry_task", "approve_task", "look_at_task", "reset_breaker"]

LIVE = ("active", "idle", "stopping")
# What a worker must have been given room for before it takes such a task.
_ROOM = {"child": "--children", "thread": "--threads", "command": "--commands", "coroutine": "--concurrency"}


_PARENTS = 100  # of a blocked task that are looked at
_LONGEST_ERROR = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What a button can do about it: the kind of act, and the queue, task or service that it is about."""

    kind: ActKind
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    what: str
    mend: str | None = None
    act: Act | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    id: int
    name: str
    state: str
    reasons: tuple[Why, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the ledger says around a task."""

    now: datetime
    queue: QueueRecord | None
    workers: Sequence[WorkerRecord]
    last: AttemptRecord | None
    holders: Sequence[int] = ()  # of what it waits for, those that may be named
    is_held: bool = False
    known: frozenset[str] | None = None  # names of tasks, where an App was given
    parents: Sequence[Relative] = ()  # of a blocked one
    open_breakers: Sequence[str] = ()  # services
    shown: Callable[[str], str] = field(default=str)  # takes secrets out of a text


async def explained_by(
    store: Store,
    record: TaskRecord,
    *,
    known: frozenset[str] | None = None,
    shown: Callable[[str], str] = str,
    may_see: Callable[[str | None], bool] = lambda _: True,
) -> Explanation:
    """`may_see` says of an owner whether their tasks are named to whoever asks."""
    attempts = await store.attempts(record.id, limit=1)
    holders = await store.gate_holders(record.waiting_on) if record.waiting_on else []
    held_by = await store.get(holders) if holders else {}
    breakers = await store.breakers() if record.state is TaskState.PENDING else ()
    around = Surroundings(
        now=await store.now(),
        queue=next((queue for queue in await store.queues() if queue.name == record.queue), None),
        workers=await store.workers(states=LIVE),
        last=attempts[-1] if attempts else None,
        holders=[id for id in holders if id in held_by and may_see(held_by[id].owner)],
        is_held=bool(holders),
        known=known,
        parents=await store.parents(record.id, limit=_PARENTS) if record.state is TaskState.BLOCKED else (),
        open_breakers=[breaker.service for breaker in breakers if breaker.status is not BreakerStatus.CLOSED],
        shown=shown,
    )
    return Explanation(id=record.id, name=record.name, state=_state_of(record), reasons=tuple(reasons(record, around)))


def serves(worker: WorkerRecord, queue: str) -> bool:
    return not worker.queues or queue in worker.queues


def silent(worker: WorkerRecord, now: datetime) -> bool:
    return now - worker.last_heartbeat > timedelta(seconds=worker.lease)


def reasons(record: TaskRecord, around: Surroundings) -> list[Why]:
    if record.state.terminal:
        return [_ended(record, around)]
    if record.state.held:
        return [_held(record, around)]
    match record.state:
        case TaskState.PENDING_APPROVAL:
            return [
                Why(what="it waits for somebody to approve it", act=Act(kind="approve_task", subject=str(record.id)))
            ]
        case TaskState.BLOCKED:
            return [_blocked(record, around)]
        case TaskState.LOST:
            return [Why(what="its worker is gone; what it left behind is being looked for")]
        case _:
            return list(_pending(record, around))


def _blocked(record: TaskRecord, around: Surroundings) -> Why:
    waits = record.waiting_on or ""
    if waits.startswith("event:"):
        return Why(
            what=f"it waits for an event: {waits.removeprefix('event:')}", mend="headrace send EVENT KEY PAYLOAD"
        )
    left = [parent for parent in around.parents if not parent.state.terminal]
    if not left:
        return Why(what="it waits for other tasks to end first")
    first = left[0]
    called = around.shown(first.label) if first.label else first.name
    many = f"{len(left)} or more" if len(around.parents) >= _PARENTS else str(len(left))
    others = "" if len(left) == 1 else f"; it waits for {many} like that"
    return Why(
        what=f"it waits for other tasks to end first: task {first.id} ({called}) is {first.state}{others}",
        act=Act(kind="look_at_task", subject=str(first.id)),
    )


def _ended(record: TaskRecord, around: Surroundings) -> Why:
    when, times = _ago(record.finished_at, around.now), _times(record.attempt, "attempt")
    what = f"it has ended: {_state_of(record)}, {when}, after {times}"
    if record.state is TaskState.COMPLETED:
        return Why(what=what)
    error = f": {record.error_class}: {_short(record.error_message, around)}" if record.error_class else ""
    again = f"headrace tasks retry {record.id}"
    if record.reason == Reason.UNKNOWN_TASK:
        again = f"start a worker whose App has a task {record.name!r} (or that alias), then {again}"
    return Why(what=what + error, mend=again, act=Act(kind="retry_task", subject=str(record.id)))


def _held(record: TaskRecord, around: Surroundings) -> Why:
    worker = next((worker for worker in around.workers if worker.id == record.worker), None)
    if worker is None or silent(worker, around.now):
        since = f"has been silent for {_span(around.now - worker.last_heartbeat)}" if worker else "has stopped"
        rescuers = [each for each in around.workers if not silent(each, around.now)]
        return Why(
            what=f"worker {record.worker} holds it and {since}; another worker takes it over when the lease is over",
            mend=None if rescuers else "start a worker: headrace worker MODULE:APP",
        )
    match record.state:
        case TaskState.RUNNING:
            since = _ago(record.started_at, around.now)
            return Why(what=f"it runs on {record.worker}: attempt {record.attempt + 1}, begun {since}")
        case TaskState.CANCELLING:
            return Why(what=f"{record.worker} was told to stop it {_ago(record.cancelling_at, around.now)}")
        case TaskState.PAUSED:
            return Why(what=f"it is paused on {record.worker}")
        case _:
            return Why(
                what=f"worker {record.worker} took it {_ago(record.claimed_at, around.now)} and has not entered its "
                "code yet: it waits for room there, or has only just begun"
            )


def _pending(record: TaskRecord, around: Surroundings) -> list[Why]:
    found: list[Why] = []
    if around.queue is not None and around.queue.paused:
        found.append(
            Why(
                what=f"its queue {record.queue} is paused",
                mend=f"headrace queues resume {record.queue}",
                act=Act(kind="resume_queue", subject=record.queue),
            )
        )
    if record.waiting_on:
        found.append(_gate(record.waiting_on, around))
    elif record.eligible_at > around.now:
        found.append(_not_due(record, around))
    if around.known is not None and record.kind == "function" and record.name not in around.known:
        found.append(
            Why(
                what=f"the App has no task {record.name!r}",
                mend="define it, or give the task that replaced it this name as an alias: @app.task(aliases=[…])",
            )
        )
    if missing := _no_worker(record.queue, around):
        found.append(missing)
    if record.expires_at is not None:
        found.append(Why(what=f"it fails as expired when it has not started {_ago(record.expires_at, around.now)}"))
    if found and not (len(found) == 1 and record.expires_at is not None):
        return found
    return [*found, _next_in_line(record, around)]


def _gate(key: str, around: Surroundings) -> Why:
    kind, _, name = key.partition(":")
    holders = around.holders
    if holders:
        who = f"held by task {', '.join(map(str, holders))}"
    else:
        who = "held by another's task" if around.is_held else "which is free by now: it is woken in a moment"
    if kind == "order":
        what = f"tasks with the order key {name!r} run one after the other, and it is not its turn; {who}"
    else:
        what = f"it waits for room at the limit {name!r}, {who}"
    return Why(what=what, act=Act(kind="look_at_task", subject=str(holders[0])) if holders else None)


def _not_due(record: TaskRecord, around: Surroundings) -> Why:
    when = f"{_ago(record.eligible_at, around.now)}, at {record.eligible_at:%Y-%m-%d %H:%M:%S} UTC"
    last = around.last
    if record.claim_no > (last.claim_no if last else 0):
        why = "a rate, an open breaker, an unknown name, or its worker stopped"
        open_ = around.open_breakers
        said = f"; open breakers: {', '.join(open_)}" if open_ else ""
        return Why(
            what=f"claim {record.claim_no} went back uncharged ({why}); again {when}{said}",
            act=Act(kind="reset_breaker", subject=open_[0]) if open_ else None,
        )
    if last is None:
        return Why(what=f"it is not due before {when}")
    why = f" ({last.error_class}: {_short(last.error_message, around)})" if last.error_class else ""
    match last.state:
        case AttemptState.FAILED | AttemptState.TIMED_OUT | AttemptState.LOST:
            left = f"attempt {record.attempt + 1} of {record.max_attempts}"
            return Why(what=f"claim {last.claim_no} {last.state}{why}; {left} comes {when}")
        case AttemptState.SNOOZED:
            return Why(what=f"it asked to run again {when}")
        case AttemptState.SUSPENDED:
            return Why(what=f"it sleeps; it goes on {when}")
        case _:
            return Why(what=f"claim {last.claim_no} {last.state}{why}, uncharged; again {when}")


def _no_worker(queue: str, around: Surroundings) -> Why | None:
    alive = [worker for worker in around.workers if not silent(worker, around.now) and worker.state != "stopping"]
    if any(serves(worker, queue) for worker in alive):
        return None
    if alive:
        return Why(
            what=f"no active worker takes the queue {queue}; the {len(alive)} there are take others",
            mend=f"headrace worker MODULE:APP --queues {queue}",
        )
    return Why(what="no worker is active", mend="headrace worker MODULE:APP")


def _next_in_line(record: TaskRecord, around: Surroundings) -> Why:
    lane = "retry" if record.lane is Lane.RETRY else "primary"
    n = around.queue.depths.get(lane, 0) if around.queue else 0
    many = f"more than {COUNTED_AT_MOST - 1:,}" if n >= COUNTED_AT_MOST else f"{n}"
    return Why(
        what=f"it is ready, one of {many} in the {lane} lane of {record.queue}; a worker takes it when its turn comes",
        mend=f"if it stays, see that a worker has room for {record.pool} tasks ({_ROOM[record.pool]})"
        if record.pool in _ROOM
        else None,
    )


def _times(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _state_of(record: TaskRecord) -> str:
    return f"{record.state}/{record.reason}" if record.reason else record.state


def _short(text: str | None, around: Surroundings) -> str:
    line = " ".join(around.shown(text or "").splitlines())  # before it is cut: half a JSON text is harder to read
    return line if len(line) <= _LONGEST_ERROR else line[: _LONGEST_ERROR - 1] + "…"


def _ago(instant: datetime | None, now: datetime) -> str:
    """How long ago, or in which time, in the largest unit that fits."""
    if instant is None:
        return ""
    seconds = (now - instant).total_seconds()
    sign, seconds = ("in ", -seconds) if seconds < -0.5 else ("", max(seconds, 0.0))
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{sign}{seconds / size:.0f}{unit}{'' if sign else ' ago'}"
    return f"{sign}{seconds:.0f}s{'' if sign else ' ago'}"


def _span(span: timedelta) -> str:
    return f"{span.total_seconds():.0f} s"
