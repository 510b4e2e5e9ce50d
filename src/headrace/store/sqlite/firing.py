"""The fire of a schedule: the cursor moves, tasks are enqueued and runs are written, all or nothing."""

import sqlite3
from collections.abc import Sequence

from headrace.core.errors import DuplicateTask, HeadraceError, StoreError
from headrace.core.schedule import Fire, Fired, Firing, Overlap, RunStatus, ScheduleRecord, ScheduleRun, overlap
from headrace.core.states import Reason
from headrace.core.task import NewTask
from headrace.store import schedules as rules
from headrace.store.instants import from_micros, to_micros
from headrace.store.sqlite.cancelling import cancel
from headrace.store.sqlite.connection import Transaction
from headrace.store.sqlite.ending import ids_json
from headrace.store.sqlite.enqueueing import enqueue

# What only another template mends: its data are refused, or cannot be read. The rest is the database's own trouble.
_REFUSED = (HeadraceError, sqlite3.IntegrityError, sqlite3.DataError, ValueError, TypeError, KeyError, OverflowError)


def fire(transaction: Transaction, firings: Sequence[Firing]) -> list[Fired]:
    """Each in a savepoint of its own."""
    fired: list[Fired] = []
    for firing in firings:
        transaction.connection.execute("SAVEPOINT firing")
        try:
            found = _fire_one(transaction, firing)
        except StoreError:
            raise
        except rules.Unreadable:
            transaction.connection.execute("ROLLBACK TO firing")  # it stays due, for whoever can read it
        except _REFUSED as error:
            transaction.connection.execute("ROLLBACK TO firing")
            set_aside(transaction, firing.schedule, firing.revision, rules.refused(error))
        else:
            fired += found
        transaction.connection.execute("RELEASE firing")
    return fired


def _fire_one(transaction: Transaction, firing: Firing) -> list[Fired]:
    moved = transaction.row(
        "move_cursor",
        {
            "id": firing.schedule,
            "revision": firing.revision,
            "cursor": to_micros(firing.cursor),
            "new_cursor": to_micros(firing.new_cursor),
            "next_at": None if firing.next_at is None else to_micros(firing.next_at),
        },
    )
    if moved is None or not firing.fires:
        return []
    template, policy = rules.template(moved[0]), moved[1]
    new = [fire for fire in firing.fires if not transaction.rows("has_run", (firing.schedule, to_micros(fire.tick)))]
    if policy == "allow" and not template.keys:
        answers = enqueue(transaction, list(rules.fired_tasks(template, new, from_micros(transaction.now))))
        fired = [
            Fired(schedule=firing.schedule, tick=fire.tick, verdict="enqueue", task=answer.id)
            for fire, answer in zip(new, answers, strict=True)
        ]
        for one in fired:
            _write_run(transaction, one)
        return fired
    return [_fire_by_policy(transaction, firing.schedule, template, policy, fire) for fire in new]


def _fire_by_policy(transaction: Transaction, schedule: int, template: NewTask, policy: Overlap, fire: Fire) -> Fired:
    live = {} if policy == "allow" else _unfinished(transaction, schedule)
    waiting, running = rules.unfinished(list(live.values()))
    verdict = overlap(policy, waiting=waiting, running=running)
    id = None
    if verdict != "skip":
        new = rules.fired_task(template, fire.tick, from_micros(transaction.now), fire.delay)
        id = _enqueue_unless_held(transaction, new, replaced=list(live) if verdict == "replace" else ())
    fired = Fired(schedule=schedule, tick=fire.tick, verdict="skip" if id is None else verdict, task=id)
    _write_run(transaction, fired)
    return fired


def _unfinished(transaction: Transaction, schedule: int) -> dict[int, str]:
    """The tasks of its runs that are not over, with their states; the others are not looked at again."""
    rows = transaction.rows("open_runs", (schedule,))
    if over := [task for task, state in rows if state is None]:
        transaction.run("close_runs", {"schedule": schedule, "tasks": ids_json(over)})
    return {task: state for task, state in rows if state is not None}


def _enqueue_unless_held(transaction: Transaction, task: NewTask, *, replaced: Sequence[int] = ()) -> int | None:
    """None where a key of the task's own is held; what it was to replace then goes on as well."""
    transaction.connection.execute("SAVEPOINT one_fire")
    if replaced:
        cancel(transaction, replaced, Reason.REPLACED)
    try:
        (answer,) = enqueue(transaction, [task])
        id = None if rules.was_held(task, answer) else answer.id
    except DuplicateTask:
        id = None
    if id is None:
        transaction.connection.execute("ROLLBACK TO one_fire")
    transaction.connection.execute("RELEASE one_fire")
    return id


def _write_run(transaction: Transaction, fired: Fired, *, manual: bool = False) -> None:
    tick, is_open = to_micros(fired.tick), fired.task is not None
    transaction.run("insert_run_of_schedule", (fired.schedule, tick, manual, fired.task, transaction.now, is_open))


def set_aside(transaction: Transaction, schedule: int, revision: int, problem: str) -> bool:
    parameters = {"id": schedule, "revision": revision, "problem": problem}
    return transaction.run("set_schedule_aside", parameters) == 1


def run_now(transaction: Transaction, record: ScheduleRecord) -> ScheduleRun:
    rules.check_runnable(record)
    row = transaction.row("manual_tick", {"schedule": record.id, "now": transaction.now})
    assert row is not None
    tick = from_micros(row[0])
    task = _enqueue_unless_held(transaction, rules.fired_task(record.task, tick, tick))
    if task is None:
        raise rules.not_run(record)
    _write_run(transaction, Fired(schedule=record.id, tick=tick, verdict="enqueue", task=task), manual=True)
    return ScheduleRun(
        schedule=record.id,
        tick=tick,
        manual=True,
        task=task,
        status=RunStatus.PENDING,
        fired_at=from_micros(transaction.now),
    )
