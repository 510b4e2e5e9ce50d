"""`drain`: run what waits in the ledger, in this process, until nothing is ready."""

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.client.bridge import run_blocking
from headrace.core.states import AttemptState, TaskState
from headrace.core.task import AttemptRecord, TaskRecord
from headrace.testing.application import TestedApp
from headrace.testing.errors import TasksFailed
from headrace.testing.overriding import must_be_overridden
from headrace.testing.running import Runner
from headrace.testing.tally import Tally
from headrace.testing.waiting import WhileWaiting

LIMIT = 1000
_FAILED = (AttemptState.FAILED, AttemptState.TIMED_OUT, AttemptState.LOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """What a drain came to. Tasks are counted once, by the state in which it left them; `runs` counts attempts."""

    runs: int  # attempts that entered user code
    completed: int
    failed: int
    cancelled: int
    retrying: int  # failed once more, and wait for the next attempt
    waiting: int  # were taken and wait again: they snoozed, or a limit or a rate has no room for them
    unknown: tuple[str, ...]  # names of tasks that the app does not define
    records: tuple[TaskRecord, ...]  # of every task that was taken, in that order
    failures: tuple[TaskRecord, ...]  # those of them that failed, or wait for another attempt after a failed one


def drain(
    app: TestedApp,
    *,
    queue: str | Sequence[str] | None = None,
    with_scheduled: bool = False,
    with_retries: bool = False,
    raise_on_failure: bool = True,
    limit: int = LIMIT,
) -> Drained:
    """Run what is ready, and what that makes ready, one task after the other, until nothing is.

    `queue` names the queues, by default all. What is not due yet stays, unless `with_scheduled` (tasks that were given
    a later time) or `with_retries` (those that wait after an attempt: retries, snoozes, rates) say to move the clock
    to each next one. One that waits for an event goes on when that is sent, or when the clock was moved past the end of
    its wait. A task that fails, or is left waiting for another attempt, raises TasksFailed once everything has
    run, or is only counted where `raise_on_failure` is False. More than `limit` runs raise TooManyRuns.

    The app must have been pointed to a database of the test, else NotOverridden: see `override`.

    A `def` runs on this very thread, an `async def` on the loop of another one. Where a loop runs, use `adrain`.
    """
    return run_blocking(
        "adrain",
        _drain(
            app,
            queue,
            with_scheduled=with_scheduled,
            with_retries=with_retries,
            raise_on_failure=raise_on_failure,
            limit=limit,
            blocking=True,
        ),
    )


async def adrain(
    app: TestedApp,
    *,
    queue: str | Sequence[str] | None = None,
    with_scheduled: bool = False,
    with_retries: bool = False,
    raise_on_failure: bool = True,
    limit: int = LIMIT,
) -> Drained:
    """As `drain`, from async code: an `async def` runs on this very loop, a `def` on a thread."""
    return await _drain(
        app,
        queue,
        with_scheduled=with_scheduled,
        with_retries=with_retries,
        raise_on_failure=raise_on_failure,
        limit=limit,
        blocking=False,
    )


async def _drain(
    app: TestedApp,
    queue: str | Sequence[str] | None,
    *,
    with_scheduled: bool,
    with_retries: bool,
    raise_on_failure: bool,
    limit: int,
    blocking: bool,
) -> Drained:
    must_be_overridden(app, "drain")
    runner = Runner(app, queues=(queue,) if isinstance(queue, str) else queue)
    tally = Tally()
    before, app.engine.inline = app.engine.inline, app.engine.inline or WhileWaiting(runner, limit=limit)
    try:
        await runner.deliver()
        await runner.run_ready(tally, limit=limit)
        while (with_scheduled or with_retries) and await runner.skip_wait(
            tally, retries=with_retries, scheduled=with_scheduled
        ):
            await runner.run_ready(tally, limit=limit)
    finally:
        app.engine.inline = before
        try:
            if blocking:
                runner.rooms.close()
            else:
                await runner.rooms.aclose()
        finally:
            await runner.deregister()
    records = await runner.records(list(tally.tasks))
    retrying = [record for record in records if await _retrying(app, record)]
    drained = _drained(tally, records, retrying)
    if raise_on_failure and (drained.failures or drained.unknown):
        raise TasksFailed(await _explained(app, drained), drained.failures)
    return drained


def _drained(tally: Tally, records: Sequence[TaskRecord], retrying: Sequence[TaskRecord]) -> Drained:
    def count(state: TaskState) -> int:
        return sum(record.state is state for record in records)

    return Drained(
        runs=tally.runs,
        completed=count(TaskState.COMPLETED),
        failed=count(TaskState.FAILED),
        cancelled=count(TaskState.CANCELLED),
        retrying=len(retrying),
        waiting=count(TaskState.PENDING) - len(retrying) - len(tally.unknown),
        unknown=tuple(dict.fromkeys(tally.unknown.values())),
        records=tuple(records),
        failures=tuple(record for record in records if record.state is TaskState.FAILED or record in retrying),
    )


async def _retrying(app: TestedApp, record: TaskRecord) -> bool:
    """Whether the attempt after which it waits failed; it may also have snoozed."""
    if record.state is not TaskState.PENDING or not record.attempt:
        return False
    attempts = await _attempts(app, record.id)
    return bool(attempts) and attempts[-1].state in _FAILED


async def _attempts(app: TestedApp, task: int) -> list[AttemptRecord]:
    attempts = await app.engine.run(lambda store: store.attempts(task))
    return sorted(attempts, key=lambda attempt: attempt.claim_no)


async def _explained(app: TestedApp, drained: Drained) -> str:
    parts: list[str] = []
    for record in drained.failures:
        last = next((one for one in reversed(await _attempts(app, record.id)) if one.state in _FAILED), None)
        what = "failed" if record.state is TaskState.FAILED else "failed and waits for its next attempt"
        reason = f" ({record.reason})" if record.reason else ""
        shown = (last and (last.traceback or last.error_message)) or record.error_message or "no message"
        parts.append(
            f"task {record.id} ({record.name}) {what}{reason} after {record.attempt} of {record.max_attempts} attempts"
            f"\n{shown.rstrip()}"
        )
    parts += [f"task {name!r} is not defined on this app" for name in drained.unknown]
    summary = f"{len(drained.failures) + len(drained.unknown)} of {len(drained.records)} tasks did not succeed"
    hint = "(with_retries=True runs the later attempts, raise_on_failure=False only counts)"
    return f"{summary} {hint}\n\n" + "\n\n".join(parts)
