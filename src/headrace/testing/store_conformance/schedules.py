"""Schedules: kept by name, changed without losing a tick, fired once for each tick by one of many."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.core.errors import NotFound, WrongState
from headrace.core.limits import Gate
from headrace.core.schedule import Fire, Fired, Firing, NewSchedule, RunStatus, ScheduleRecord, ScheduleRun
from headrace.core.states import Reason
from headrace.core.task import Key, NewTask
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, completed, failed_for_good, ref, refused, stopped, task

cases = Cases("schedules")

MINUTE = timedelta(minutes=1)


def new(name: str = "nightly", **fields: Any) -> NewSchedule:
    said: dict[str, Any] = {"name": name, "cadence": '{"every":60}', "task": task(), **fields}
    return NewSchedule(**said)


async def put(ledger: Ledger, name: str = "nightly", **fields: Any) -> ScheduleRecord:
    (record,) = await ledger.store.put_schedules([new(name, **fields)])
    return record


async def get(ledger: Ledger, name: str = "nightly") -> ScheduleRecord:
    record = await ledger.store.get_schedule(name)
    assert record is not None, f"schedule {name} is gone"
    return record


def firing(record: ScheduleRecord, *ticks: datetime) -> Firing:
    """What a scheduler decides that finds these ticks due."""
    fires = tuple(Fire(tick=tick) for tick in ticks)
    cursor = ticks[-1] if ticks else record.cursor
    return Firing(
        schedule=record.id,
        revision=record.revision,
        cursor=record.cursor,
        new_cursor=cursor,
        next_at=cursor + MINUTE,
        fires=fires,
    )


async def passed(ledger: Ledger, n: int = 1) -> list[datetime]:
    """Ticks that are due, each after whatever was decided before."""
    await ledger.let_pass(0.001)
    now = await ledger.store.now()
    return [now - place * timedelta(microseconds=1) for place in reversed(range(n))]


async def fire(ledger: Ledger, name: str = "nightly") -> Fired:
    """One more tick."""
    (fired,) = await ledger.store.fire([firing(await get(ledger, name), *await passed(ledger))])
    return fired


async def fired_task(ledger: Ledger, name: str = "nightly") -> int:
    fired = await fire(ledger, name)
    assert fired.task is not None
    return fired.task


async def run_through(ledger: Ledger, task_id: int) -> None:
    """Claim the task and complete it."""
    claim = await ledger.claim_one()
    assert claim.id == task_id
    await ledger.finish("a", completed(claim))


async def statuses(ledger: Ledger, name: str = "nightly") -> list[str]:
    """Oldest first."""
    return [run.status.value for run in reversed(await ledger.store.schedule_runs(name))]


# Kept by name.


@cases.add()
async def a_new_schedule_is_looked_at_at_once(ledger: Ledger) -> None:
    """What is put is due for every scheduler from then on; nothing is restarted."""
    template = NewTask(
        name="mail.send",
        arguments='{"to":"all"}',
        queue="mail",
        delay=3.5,
        gates=(Gate(kind="limit", key="smtp", n=2),),
        keys=(Key(scope="unique", key="mail", on_conflict="reject"),),
    )
    wanted = new(task=template, catch_up="skip", grace=5.0, overlap="queue", jitter=2.5)
    before = await ledger.store.now()
    (record,) = await ledger.store.put_schedules([wanted])
    assert record == await get(ledger) == (await ledger.store.schedules())[0]
    assert (record.name, record.cadence, record.task) == (wanted.name, wanted.cadence, template)
    assert (record.catch_up, record.grace, record.overlap, record.jitter) == ("skip", 5.0, "queue", 2.5)
    assert (record.paused, record.declared_by, record.revision, record.problem) == (False, None, 1, None)
    assert before <= record.cursor == record.next_at == record.created_at == record.changed_at
    assert record.cursor.tzinfo is not None
    due = await ledger.store.due_schedules()
    assert due.due == (record,)
    assert due.now >= record.cursor


@cases.add()
async def to_put_what_is_there_changes_nothing(ledger: Ledger) -> None:
    record = await put(ledger)
    await fire(ledger)
    fired = await get(ledger)
    await ledger.let_pass(0.01)
    assert await put(ledger) == fired
    assert await put(ledger, paused=True) == fired  # that is said when it is made
    assert (fired.revision, fired.id, fired.created_at) == (record.revision, record.id, record.created_at)
    assert fired.cursor > record.cursor


@cases.add()
async def a_change_takes_effect_and_another_cadence_starts_from_now(ledger: Ledger) -> None:
    """The last record is due at once with its new cadence, and what was decided about the older one is void."""
    first = await put(ledger)
    await fire(ledger)
    before = await get(ledger)
    await ledger.let_pass(0.01)
    changed = await put(ledger, overlap="allow", grace=7.0, task=task(arguments='{"n":1}'))
    assert (changed.cursor, changed.next_at, changed.revision) == (before.cursor, before.next_at, first.revision + 1)
    assert (changed.id, changed.overlap, changed.grace, changed.task.arguments) == (first.id, "allow", 7.0, '{"n":1}')
    assert changed.changed_at > first.changed_at
    assert changed.created_at == first.created_at
    again = await put(ledger, cadence='{"every":5}', overlap="allow")
    assert (again.cadence, again.revision) == ('{"every":5}', first.revision + 2)
    assert again.cursor == again.next_at == again.changed_at > before.cursor
    assert (await ledger.store.due_schedules()).due == (again,)
    assert await ledger.store.fire([firing(before, before.cursor + MINUTE)]) == []


@cases.add()
async def several_are_put_in_one_transaction(ledger: Ledger) -> None:
    """Answers in order; of one name the later one counts."""
    records = await ledger.store.put_schedules([new("b"), new("a"), new("b", grace=1.0)])
    assert [record.name for record in records] == ["b", "a", "b"]
    assert [record.grace for record in records] == [1.0, 60.0, 1.0]
    assert len({record.id for record in records}) == 2
    assert [record.name for record in await ledger.store.schedules()] == ["a", "b"]
    assert await ledger.store.put_schedules([]) == []


@cases.add()
async def many_put_the_same_at_once(ledger: Ledger) -> None:
    stores = [ledger.store, await ledger.another_store(), await ledger.another_store()]
    answers = await asyncio.gather(*[store.put_schedules([new("a"), new("b")]) for store in stores * 3])
    assert all(answer == answers[0] for answer in answers)
    assert len(await ledger.store.schedules()) == 2


@cases.add()
async def pause_and_resume(ledger: Ledger) -> None:
    """The ticks of a pause never fire; to pause or to resume twice is to do it once."""
    record = await put(ledger)
    await fire(ledger)
    running = await get(ledger)
    assert await ledger.store.resume_schedule("nightly") == running
    paused = await ledger.store.pause_schedule("nightly")
    assert (paused.paused, paused.revision, paused.cursor) == (True, record.revision + 1, running.cursor)
    assert await ledger.store.pause_schedule("nightly") == paused
    assert (await ledger.store.due_schedules()).next_in is None
    for seen in (running, paused):
        assert await ledger.store.fire([firing(seen, seen.cursor + MINUTE)]) == []
    assert await put(ledger) == paused
    await ledger.let_pass(0.01)
    resumed = await ledger.store.resume_schedule("nightly")
    assert (resumed.paused, resumed.revision) == (False, paused.revision + 1)
    assert resumed.cursor == resumed.next_at == resumed.changed_at > paused.cursor
    assert (await ledger.store.due_schedules()).due == (resumed,)
    made = await put(ledger, "asleep", paused=True)
    assert made.paused
    assert (await ledger.store.due_schedules()).due == (resumed,)


@cases.add()
async def what_does_not_exist(ledger: Ledger) -> None:
    store = ledger.store
    assert await store.get_schedule("ghost") is None
    assert await store.schedules() == []
    assert await store.remove_schedule("ghost") is False
    assert await store.set_schedule_aside(1, 1, "no") is False
    for act in (
        store.pause_schedule("ghost"),
        store.resume_schedule("ghost"),
        store.run_schedule("ghost"),
        store.schedule_runs("ghost"),
    ):
        assert "ghost" in str(await refused(act, NotFound))


@cases.add()
async def to_remove_one_leaves_its_tasks(ledger: Ledger) -> None:
    record = await put(ledger)
    task_id = await fired_task(ledger)
    last = await get(ledger)
    assert await ledger.store.remove_schedule("nightly") is True
    assert await ledger.store.remove_schedule("nightly") is False
    assert await ledger.state(task_id) == "pending"
    assert await ledger.store.fire([firing(last, last.cursor + MINUTE)]) == []
    again = await put(ledger)
    assert again.id != record.id
    assert await ledger.store.schedule_runs("nightly") == []
    assert (await fire(ledger)).verdict == "enqueue"  # what the old one left unfinished is not this one's


# Declared by code.


@cases.add()
async def a_declaration_is_put_once(ledger: Ledger) -> None:
    """What an operator changes stands until the code says something else; then the code's word counts."""
    (record,) = await ledger.store.declare_schedules("shop", [new(overlap="allow")])
    assert (record.declared_by, record.overlap) == ("shop", "allow")
    assert await ledger.store.declare_schedules("shop", [new(overlap="allow")]) == [record]
    changed = await put(ledger, overlap="queue")
    assert (changed.overlap, changed.declared_by) == ("queue", "shop")
    assert await ledger.store.declare_schedules("shop", [new(overlap="allow")]) == [changed]
    await ledger.store.pause_schedule("nightly")
    (code,) = await ledger.store.declare_schedules("shop", [new(overlap="replace")])
    assert (code.overlap, code.paused) == ("replace", True)
    assert await ledger.store.declare_schedules("shop", [new(overlap="replace")]) == [code]
    # Back to what was declared first: that is a change of the code as well.
    (back,) = await ledger.store.declare_schedules("shop", [new(overlap="allow")])
    assert back.overlap == "allow"
    assert back.cursor == record.cursor


@cases.add()
async def what_an_app_no_longer_declares_is_removed(ledger: Ledger) -> None:
    """Only what that app declared: neither another's nor what was made at run time."""
    await put(ledger, "by-hand")
    await ledger.store.declare_schedules("billing", [new("invoices")])
    await ledger.store.declare_schedules("shop", [new("a"), new("b")])
    (kept,) = await ledger.store.declare_schedules("shop", [new("b")])
    assert kept.name == "b"
    assert [record.name for record in await ledger.store.schedules()] == ["b", "by-hand", "invoices"]
    assert await ledger.store.declare_schedules("shop", []) == []
    assert [record.name for record in await ledger.store.schedules()] == ["by-hand", "invoices"]


@cases.add()
async def a_name_has_one_owner(ledger: Ledger) -> None:
    await put(ledger, "by-hand")
    await ledger.store.declare_schedules("billing", [new("invoices")])
    for name, owner in (("by-hand", "run time"), ("invoices", "'billing'")):
        error = await refused(ledger.store.declare_schedules("shop", [new("fine"), new(name)]), WrongState)
        assert name in str(error)
        assert owner in str(error)
    assert await ledger.store.get_schedule("fine") is None


@cases.add()
async def two_processes_declare_at_once(ledger: Ledger) -> None:
    stores = [ledger.store, await ledger.another_store(), await ledger.another_store()]
    wanted = [new("a"), new("b"), new("c")]
    answers = await asyncio.gather(*[store.declare_schedules("shop", wanted) for store in stores * 3])
    assert all(answer == answers[0] for answer in answers)
    assert [record.revision for record in await ledger.store.schedules()] == [1, 1, 1]
    # An older and a newer version start together: whichever came last, the rows are one of the two.
    newer = [new("a", grace=1.0), new("b", grace=1.0)]
    await asyncio.gather(*[
        store.declare_schedules("shop", wanted if n % 2 else newer) for n, store in enumerate(stores * 2)
    ])  # fmt: skip
    found = [(record.name, record.grace) for record in await ledger.store.schedules()]
    assert found in ([("a", 60.0), ("b", 60.0), ("c", 60.0)], [("a", 1.0), ("b", 1.0)])


@cases.add()
async def a_put_that_expects_a_revision_finds_it_or_changes_nothing(ledger: Ledger) -> None:
    """Of two who make the same schedule at once one does; a change that was made meanwhile is not overwritten."""
    stores = [ledger.store, await ledger.another_store()]
    answers = await asyncio.gather(
        *[store.put_schedules([new(grace=float(n), expected=0)]) for n, store in enumerate(stores * 3)],
        return_exceptions=True,
    )
    made = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert len(made) == 1
    assert all(isinstance(answer, WrongState) for answer in answers if isinstance(answer, BaseException))
    (record,) = made[0]
    assert await get(ledger) == record
    changed = await put(ledger, jitter=5.0, expected=record.revision)
    assert (changed.jitter, changed.revision) == (5.0, record.revision + 1)
    for name, revision in (("nightly", record.revision), ("nightly", 0), ("absent", 1)):
        both = [new("other"), new(name, jitter=9.0, expected=revision)]
        assert name in str(await refused(ledger.store.put_schedules(both), WrongState))
    assert await ledger.store.schedules() == [changed], "all or nothing"


# Due.


@cases.add()
async def the_longest_due_come_first(ledger: Ledger) -> None:
    """And whoever looks learns when to look again."""
    empty = await ledger.store.due_schedules()
    assert (empty.due, empty.next_in) == ((), None)
    records = await ledger.store.put_schedules([new(name) for name in "abcde"])
    now = await ledger.store.now()
    for record, seconds in zip(records, (-30, -50, 3600, -40, 7200), strict=True):
        move = replace(firing(record), next_at=now + timedelta(seconds=seconds))
        assert await ledger.store.fire([move]) == []
    found = await ledger.store.due_schedules()
    assert [record.name for record in found.due] == ["b", "d", "a"]
    assert found.next_in is not None
    assert 3500 < found.next_in <= 3600
    assert abs((found.now - await ledger.store.now()).total_seconds()) < 60
    first = await ledger.store.due_schedules(limit=2)
    assert [record.name for record in first.due] == ["b", "d"]
    assert first.next_in == 0
    exactly = await ledger.store.due_schedules(limit=3)
    assert len(exactly.due) == 3
    assert exactly.next_in is not None
    assert exactly.next_in > 3500
    last = await get(ledger, "a")
    await ledger.store.fire([replace(firing(last), next_at=None)])
    assert "a" not in [record.name for record in (await ledger.store.due_schedules()).due]
    assert (await get(ledger, "a")).next_at is None


@cases.add()
async def one_that_nobody_can_read_is_set_aside(ledger: Ledger) -> None:
    """It neither fires nor stands in the way of others, until it is written anew, in whatever words."""
    record = await put(ledger)
    assert await ledger.store.set_schedule_aside(record.id, record.revision + 1, "other") is False
    assert await ledger.store.set_schedule_aside(record.id, record.revision, "no zone Mars/Olympus") is True
    aside = await get(ledger)
    assert (aside.problem, aside.revision) == ("no zone Mars/Olympus", record.revision)
    found = await ledger.store.due_schedules()
    assert (found.due, found.next_in) == ((), None)
    assert await ledger.store.fire([firing(aside, aside.cursor + MINUTE)]) == []
    assert (await ledger.store.run_schedule("nightly")).task is not None  # by hand it runs all the same
    await ledger.let_pass(0.01)
    again = await put(ledger)
    assert (again.problem, again.cursor, again.revision) == (None, record.cursor, record.revision + 1)
    assert (await ledger.store.due_schedules()).due == (again,)
    assert await ledger.store.set_schedule_aside(record.id, record.revision, "late") is False
    # A declaration that says the same is written anew as well, when its process starts again.
    (declared,) = await ledger.store.declare_schedules("shop", [new("code")])
    await ledger.store.set_schedule_aside(declared.id, declared.revision, "no zone")
    (taken_up,) = await ledger.store.declare_schedules("shop", [new("code")])
    assert taken_up.problem is None
    assert taken_up.cursor == declared.cursor


# Fires.


@cases.add()
async def a_fire_moves_the_cursor_and_enqueues(ledger: Ledger) -> None:
    record = await put(
        ledger, task=task("report.make", arguments='{"n":1}', queue="reports", priority=3, max_attempts=9)
    )
    (tick,) = await passed(ledger)
    (fired,) = await ledger.store.fire([firing(record, tick)])
    assert (fired.schedule, fired.tick, fired.verdict) == (record.id, tick, "enqueue")
    after = await get(ledger)
    assert (after.cursor, after.next_at, after.revision) == (tick, tick + MINUTE, record.revision)
    assert after.changed_at == record.changed_at
    assert fired.task is not None
    made = await ledger.get(fired.task)
    assert (made.name, made.arguments, made.queue, made.priority) == ("report.make", '{"n":1}', "reports", 3)
    assert (made.max_attempts, made.state, made.job) == (9, "pending", None)
    assert [claim.id for claim in await ledger.claim(queue="reports")] == [fired.task]


@cases.add("R106")
async def of_many_schedulers_one_fires_a_tick(ledger: Ledger) -> None:
    """R106: nine decisions about each of eight ticks, over three connections at once: one answer, one run, one
    task for each tick."""
    stores = [ledger.store, await ledger.another_store(), await ledger.another_store()]
    await put(ledger, overlap="allow")
    ticks: list[datetime] = []
    for _ in range(8):
        record = await get(ledger)
        ticks += await passed(ledger)
        answers = await asyncio.gather(*[store.fire([firing(record, ticks[-1])]) for store in stores * 3])
        assert len([fired for answer in answers for fired in answer]) == 1
    runs = await ledger.store.schedule_runs("nightly")
    assert [run.tick for run in runs] == ticks[::-1]
    assert sorted(claim.id for claim in await ledger.claim()) == sorted(run.task or 0 for run in runs)


@cases.add()
async def a_tick_that_comes_back_does_not_fire_again(ledger: Ledger) -> None:
    """The cursor stands before a tick that has a run (as after a restored backup): no second one."""
    record = await put(ledger, overlap="allow")
    first, second = await passed(ledger, 2)
    assert len(await ledger.store.fire([firing(record, first)])) == 1
    moved = await get(ledger)
    back = replace(firing(moved), new_cursor=record.cursor, next_at=record.cursor)
    assert await ledger.store.fire([back]) == []
    again = await get(ledger)
    assert again.cursor == record.cursor
    (fired,) = await ledger.store.fire([firing(again, first, second)])
    assert fired.tick == second
    assert [run.tick for run in await ledger.store.schedule_runs("nightly")] == [second, first]
    assert len(await ledger.claim()) == 2


@cases.add()
async def void_decisions_leave_no_trace(ledger: Ledger) -> None:
    """One that was made about another revision or cursor, or about nothing; those beside it are carried out."""
    stale, fresh = await ledger.store.put_schedules([new("stale"), new("fresh")])
    void = [
        replace(firing(stale, stale.cursor + MINUTE), revision=stale.revision + 1),
        replace(firing(stale, stale.cursor + MINUTE), cursor=stale.cursor - MINUTE),
        replace(firing(stale, stale.cursor + MINUTE), schedule=stale.id + 1_000_000),
    ]
    fired = await ledger.store.fire([*void[:2], firing(fresh, fresh.cursor + MINUTE), void[2]])
    assert [one.schedule for one in fired] == [fresh.id]
    assert await get(ledger, "stale") == stale
    assert await ledger.store.schedule_runs("stale") == []
    assert await ledger.store.fire([]) == []


@cases.add()
async def several_ticks_of_one_decision(ledger: Ledger) -> None:
    """With `allow` each is a task of its own."""
    record = await put(ledger, overlap="allow", catch_up="all")
    ticks = await passed(ledger, 40)
    fired = await ledger.store.fire([firing(record, *ticks)])
    assert [one.tick for one in fired] == ticks
    assert len({one.task for one in fired}) == 40
    assert (await get(ledger)).cursor == ticks[-1]
    assert [claim.id for claim in await ledger.claim()] == [one.task for one in fired]


@cases.add()
async def the_delay_counts_from_the_tick(ledger: Ledger) -> None:
    """That of the template and the fire's own; of a tick that is noticed late it has passed."""
    record = await put(ledger, overlap="allow", task=task(delay=100.0))
    now = await ledger.store.now()
    late, fresh = now - timedelta(hours=1), now + timedelta(seconds=5)
    decided = Firing(
        schedule=record.id,
        revision=record.revision,
        cursor=record.cursor,
        new_cursor=fresh,
        next_at=None,
        fires=(Fire(tick=late, delay=20.0), Fire(tick=fresh, delay=20.0)),
    )
    first, second = await ledger.store.fire([decided])
    assert first.task is not None
    assert second.task is not None
    made = await ledger.get(second.task)
    assert made.eligible_at == fresh + timedelta(seconds=120)
    assert [claim.id for claim in await ledger.claim()] == [first.task]


@cases.add()
async def the_tasks_keys_and_gates_hold(ledger: Ledger) -> None:
    """A key of the task's own that is held leaves the fire out, whatever was to be said to a caller; one that is to be
    replaced takes the fire's arguments."""
    for on_conflict in ("reject", "return"):
        key = Key(scope="unique", key=f"one-{on_conflict}", on_conflict=on_conflict)
        name, queue = f"keyed-{on_conflict}", f"queue-{on_conflict}"
        await put(ledger, name, overlap="allow", task=task(queue=queue, keys=(key,)))
        holder = await ledger.enqueue_one(queue=queue, keys=(key,))
        fired = await fire(ledger, name)
        assert (fired.verdict, fired.task) == ("skip", None)
        (claim,) = await ledger.claim(queue=queue)
        assert claim.id == holder
        assert await statuses(ledger, name) == ["skipped"]
        assert (await get(ledger, name)).problem is None
        await ledger.finish("a", completed(claim))
        assert (await fire(ledger, name)).verdict == "enqueue"
        assert await statuses(ledger, name) == ["skipped", "pending"]
    replaced = Key(scope="unique", key="latest", on_conflict="replace")
    await put(ledger, "debounced", overlap="allow", task=task(queue="d", arguments='{"n":2}', keys=(replaced,)))
    holder = await ledger.enqueue_one(queue="d", arguments='{"n":1}', keys=(replaced,))
    assert await fired_task(ledger, "debounced") == holder
    assert (await ledger.get(holder)).arguments == '{"n":2}'
    gate = Gate(kind="limit", key="room")
    await put(ledger, "gated", overlap="allow", task=task(queue="g", gates=(gate,)))
    await fire(ledger, "gated")
    (claim,) = await ledger.claim(queue="g")
    assert claim.gated
    admission = await ledger.store.admit("a", [claim])
    assert admission.admitted == {ref(claim)}


# Overlap.


@cases.add()
async def with_skip_a_fire_is_left_out_while_one_is_unfinished(ledger: Ledger) -> None:
    """By default, while the earlier one waits, is claimed or runs; not once it has ended, in whatever way."""
    assert NewSchedule(name="n", cadence="c", task=task()).overlap == "skip"
    await put(ledger)
    first = await fired_task(ledger)
    assert (await fire(ledger)).verdict == "skip"
    claim = await ledger.claim_one()
    assert (await fire(ledger)).verdict == "skip"
    await ledger.store.start("a", [ref(claim)])
    skipped = await fire(ledger)
    assert (skipped.verdict, skipped.task) == ("skip", None)
    assert await statuses(ledger) == ["running", "skipped", "skipped", "skipped"]
    await ledger.finish("a", completed(claim))
    second = await fired_task(ledger)
    assert second != first
    await ledger.finish("a", failed_for_good(await ledger.claim_one()))
    third = await fired_task(ledger)
    await ledger.store.cancel([third])
    assert (await fire(ledger)).verdict == "enqueue"
    expected = ["completed", "skipped", "skipped", "skipped", "failed", "cancelled", "pending"]
    assert await statuses(ledger) == expected


@cases.add()
async def with_queue_one_waits_for_the_one_that_runs(ledger: Ledger) -> None:
    """One at most; a third is left out until the second has been taken."""
    await put(ledger, overlap="queue")
    await fire(ledger)
    assert (await fire(ledger)).verdict == "skip"  # the first one waits itself
    first = await ledger.claim_one()
    assert (await fire(ledger)).verdict == "enqueue"
    assert (await fire(ledger)).verdict == "skip"
    await ledger.finish("a", completed(first))
    assert (await fire(ledger)).verdict == "skip"
    await ledger.claim_one()
    assert (await fire(ledger)).verdict == "enqueue"


@cases.add()
async def with_replace_the_earlier_ones_are_cancelled(ledger: Ledger) -> None:
    """One that nobody holds at once, one that runs by a word to its worker; the new one is there either way."""
    await put(ledger, overlap="replace")
    waiting = await fired_task(ledger)
    fired = await fire(ledger)
    assert fired.verdict == "replace"
    gone = await ledger.get(waiting)
    assert (gone.state, gone.reason) == ("cancelled", Reason.REPLACED)
    claim = await ledger.claim_one()
    assert claim.id == fired.task
    await ledger.store.start("a", [ref(claim)])
    third = await fire(ledger)
    assert third.verdict == "replace"
    assert await ledger.state(claim.id) == "cancelling"
    assert await ledger.store.cancelling("a") == [ref(claim)]
    assert await statuses(ledger) == ["cancelled", "running", "pending"]
    await ledger.finish("a", stopped(claim, Reason.REPLACED))
    assert (await ledger.claim_one()).id == third.task
    assert (await ledger.get(claim.id)).reason == Reason.REPLACED


@cases.add()
async def with_replace_a_key_that_cannot_be_had_leaves_all_as_it_is(ledger: Ledger) -> None:
    """The one that runs holds the key until it has stopped: it is not cancelled for a fire that cannot be."""
    key = Key(scope="unique", key="only", on_conflict="reject")
    await put(ledger, overlap="replace", task=task(keys=(key,)))
    waiting = await fired_task(ledger)
    taken = await fire(ledger)
    assert taken.verdict == "replace"  # nobody held the first one: its key is free with it
    assert await ledger.state(waiting) == "cancelled"
    claim = await ledger.claim_one()
    await ledger.store.start("a", [ref(claim)])
    left_out = await fire(ledger)
    assert (left_out.verdict, left_out.task) == ("skip", None)
    assert await ledger.state(claim.id) == "running"


@cases.add()
async def with_allow_they_run_beside_each_other(ledger: Ledger) -> None:
    """None is left out. And what they left unfinished counts when the policy becomes another."""
    await put(ledger, overlap="allow")
    ids = [await fired_task(ledger) for _ in range(3)]
    assert [claim.id for claim in await ledger.claim()] == ids
    await put(ledger, overlap="skip")
    assert (await fire(ledger)).verdict == "skip"


# Manual runs.


@cases.add()
async def a_manual_run(ledger: Ledger) -> None:
    """A task at once, whatever the policy, paused or not; the ticks are not touched by it."""
    await put(ledger)
    await fire(ledger)
    before = await get(ledger)
    run = await ledger.store.run_schedule("nightly")
    assert (run.schedule, run.manual, run.status) == (before.id, True, RunStatus.PENDING)
    assert run.task is not None
    assert run.fired_at <= await ledger.store.now()
    assert await get(ledger) == before
    again = await ledger.store.run_schedule("nightly")
    assert again.tick > run.tick
    assert again.task != run.task
    await ledger.store.pause_schedule("nightly")
    await ledger.store.run_schedule("nightly")
    assert len(await ledger.claim()) == 4
    assert [one.manual for one in await ledger.store.schedule_runs("nightly")].count(True) == 3
    await ledger.store.resume_schedule("nightly")
    assert (await fire(ledger)).verdict == "skip"  # a manual run is a run: it is unfinished


@cases.add()
async def what_was_read_is_what_is_run_and_resumed(ledger: Ledger) -> None:
    """By its name another may be found since: changed, paused, or made anew with the same revision."""
    await put(ledger)
    read = await get(ledger)
    known = (read.id, read.revision)
    assert (await ledger.store.run_schedule("nightly", expected=known)).task is not None
    await fire(ledger)  # a fire is no change
    assert (await ledger.store.run_schedule("nightly", expected=known)).task is not None
    before = len(await ledger.store.schedule_runs("nightly"))
    await ledger.store.pause_schedule("nightly")
    paused = await get(ledger)
    for act in (ledger.store.run_schedule, ledger.store.resume_schedule):
        error = await refused(act("nightly", expected=known), WrongState)
        assert "changed by somebody else" in str(error)
        await refused(act("ghost", expected=known), NotFound)
    assert await get(ledger) == paused
    resumed = await ledger.store.resume_schedule("nightly", expected=(paused.id, paused.revision))
    assert not resumed.paused
    assert len(await ledger.store.schedule_runs("nightly")) == before
    await ledger.store.remove_schedule("nightly")
    await put(ledger)
    assert (await get(ledger)).revision == read.revision
    for act in (ledger.store.run_schedule, ledger.store.resume_schedule):
        await refused(act("nightly", expected=known), WrongState)


@cases.add()
async def a_manual_run_whose_key_is_held(ledger: Ledger) -> None:
    for on_conflict in ("reject", "return"):
        key = Key(scope="unique", key=on_conflict, on_conflict=on_conflict)
        await put(ledger, on_conflict, task=task(keys=(key,)))
        await ledger.store.run_schedule(on_conflict)
        error = await refused(ledger.store.run_schedule(on_conflict), WrongState)
        assert on_conflict in str(error)
        assert len(await ledger.store.schedule_runs(on_conflict)) == 1


@cases.add()
async def manual_runs_at_once_are_each_a_run(ledger: Ledger) -> None:
    stores = [ledger.store, await ledger.another_store()]
    await put(ledger)
    runs = await asyncio.gather(*[store.run_schedule("nightly") for store in stores * 4])
    assert len({run.tick for run in runs}) == len({run.task for run in runs}) == 8
    assert len(await ledger.claim()) == 8


# Runs.


@cases.add()
async def a_run_says_what_became_of_its_task(ledger: Ledger) -> None:
    """One set of words, derived from the state of the task, so that the two cannot differ."""
    await put(ledger)
    task_id = await fired_task(ledger)
    seen = [await statuses(ledger)]
    claim = await ledger.claim_one()
    seen.append(await statuses(ledger))
    await ledger.store.start("a", [ref(claim)])
    seen.append(await statuses(ledger))
    await ledger.store.cancel([task_id])
    seen.append(await statuses(ledger))
    await ledger.finish("a", stopped(claim))
    seen.append(await statuses(ledger))
    assert await ledger.store.retry([task_id]) == [task_id]
    seen.append(await statuses(ledger))
    await ledger.finish("a", completed(await ledger.claim_one()))
    seen.append(await statuses(ledger))
    words = ["pending", "running", "running", "running", "cancelled", "pending", "completed"]
    assert seen == [[word] for word in words]


@cases.add()
async def runs_come_page_by_page(ledger: Ledger) -> None:
    record = await put(ledger, overlap="allow")
    ticks = await passed(ledger, 7)
    await ledger.store.fire([firing(record, *ticks)])
    pages: list[Sequence[ScheduleRun]] = []
    before: datetime | None = None
    while page := await ledger.store.schedule_runs("nightly", limit=3, before=before):
        pages.append(page)
        before = page[-1].tick
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [run.tick for page in pages for run in page] == ticks[::-1]
    assert all(run.schedule == record.id and not run.manual for page in pages for run in page)


@cases.add()
async def old_runs_are_pruned_with_the_history_of_their_tasks(ledger: Ledger) -> None:
    """Those whose task is unfinished stay, and so do those that are younger."""
    await put(ledger, overlap="allow")
    done, open_one = await fired_task(ledger), await fired_task(ledger)
    await run_through(ledger, done)
    key = Key(scope="unique", key="held", on_conflict="return")
    await ledger.enqueue_one(queue="other", keys=(key,))
    await put(ledger, "skipping", task=task(keys=(key,)))
    await fire(ledger, "skipping")
    await ledger.let_pass(0.3)
    young = await fired_task(ledger)
    pruned = await ledger.store.prune(keep=0.2)
    assert (pruned.tasks, pruned.runs) == (1, 2)
    assert [run.task for run in await ledger.store.schedule_runs("nightly")] == [young, open_one]
    assert await ledger.store.schedule_runs("skipping") == []
    assert await statuses(ledger) == ["pending", "pending"]


@cases.add()
async def a_run_outlives_the_history_of_its_task(ledger: Ledger) -> None:
    """The task was removed and the run is left (runs are removed in a step of their own): it has expired."""
    await put(ledger, overlap="allow")
    ids = [await fired_task(ledger) for _ in range(3)]
    for task_id in ids:
        await run_through(ledger, task_id)
    await ledger.let_pass(0.05)
    assert (await ledger.store.prune(keep=0.0, limit=1)).tasks == 1
    found = await statuses(ledger)
    assert found.count("expired") <= 1
    assert set(found) <= {"expired", "completed"}


# Trouble.


@cases.add()
async def a_task_that_is_refused_sets_its_schedule_aside(ledger: Ledger) -> None:
    """Its data are not what a database takes: others fire all the same, and it says why it does not."""
    bad, good = await ledger.store.put_schedules([new("bad", task=task(max_age=1e300)), new("good")])
    fired = await ledger.store.fire([firing(bad, bad.cursor + MINUTE), firing(good, good.cursor + MINUTE)])
    assert [one.schedule for one in fired] == [good.id]
    aside = await get(ledger, "bad")
    assert aside.problem is not None
    assert (aside.cursor, aside.revision) == (bad.cursor, bad.revision)
    assert await ledger.store.schedule_runs("bad") == []
    assert bad.id not in [record.id for record in (await ledger.store.due_schedules()).due]
    assert (await put(ledger, "bad")).problem is None
    assert (await fire(ledger, "bad")).verdict == "enqueue"


@cases.add()
async def instants_keep_their_microseconds(ledger: Ledger) -> None:
    """A cursor is compared to the letter: what is read must be what was written."""
    record = await put(ledger, overlap="allow")
    tick = datetime(2031, 2, 3, 4, 5, 6, 789_123, tzinfo=UTC)
    await ledger.store.fire([firing(record, tick)])
    after = await get(ledger)
    assert after.cursor == tick
    (fired,) = await ledger.store.fire([firing(after, tick + timedelta(microseconds=1))])
    assert fired.tick == (await ledger.store.schedule_runs("nightly"))[0].tick == tick + timedelta(microseconds=1)


@cases.add("R106")
async def many_schedules_are_fired_by_many_at_once(ledger: Ledger) -> None:
    """R106: three schedulers carry the same decisions about eighty schedules out, each in an order of its own: every
    schedule fires once, and none waits for another in a circle."""
    stores = [ledger.store, await ledger.another_store(), await ledger.another_store()]
    records = await ledger.store.put_schedules([new(f"s{n:02}") for n in range(80)])
    (tick,) = await passed(ledger)
    # Every fourth has no tick yet: its cursor only moves on.
    firings = [firing(record, tick) if n % 4 else firing(record) for n, record in enumerate(records)]
    orders = [firings, firings[::-1], firings[40:] + firings[:40]]
    answers = await asyncio.gather(*[store.fire(order) for store, order in zip(stores, orders, strict=True)])
    fired = [one for answer in answers for one in answer]
    assert sorted(one.schedule for one in fired) == sorted(one.schedule for one in firings if one.fires)
    assert sorted(claim.id for claim in await ledger.claim()) == sorted(one.task or 0 for one in fired)
    after = await ledger.store.schedules()
    assert [record.cursor for record in after] == [one.new_cursor for one in firings]
    assert [record.next_at for record in after] == [one.next_at for one in firings]


@cases.add()
async def the_last_runs_of_many(ledger: Ledger) -> None:
    first, second, third = [await put(ledger, name) for name in ("a", "b", "c")]
    runs = [await ledger.store.run_schedule("a") for _ in range(3)]
    alone = await ledger.store.run_schedule("b")
    found = await ledger.store.last_runs([first.id, second.id, third.id], each=2)
    assert [run.task for run in found[first.id]] == [runs[2].task, runs[1].task]
    assert [run.task for run in found[second.id]] == [alone.task]
    assert third.id not in found
    assert {run.status for run in found[first.id]} == {RunStatus.PENDING}
    assert await ledger.store.last_runs([], each=2) == {}
