"""Finish: a batch of settlements in one transaction, each fenced by its claim."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from headrace.core.settlement import Settlement
from headrace.core.states import AttemptState, Reason, TaskState
from headrace.core.task import ErrorInfo, Ref, Want
from headrace.store.base import FinishReport
from headrace.store.sqlite.admission import release_gates
from headrace.store.sqlite.attempts import Attempt, close_attempts, ends_at
from headrace.store.sqlite.claiming import claim, give_back, refs_json
from headrace.store.sqlite.completing import complete, is_plain, succeeded
from headrace.store.sqlite.connection import Part, Row, Transaction
from headrace.store.sqlite.ending import Ending, LiveRow
from headrace.store.sqlite.enqueueing import seconds_to_micros
from headrace.store.sqlite.events import suspended
from headrace.store.sqlite.job_counting import conclude
from headrace.store.texts import is_storable, mended


def finish(
    transaction: Transaction, worker: str, settlements: Sequence[Settlement], wants: Sequence[Want] = ()
) -> FinishReport:
    accepted: dict[Ref, Settlement] = {}
    rest = _complete(transaction, worker, settlements, accepted)
    others: list[Settlement] = []
    if rest:
        rows = _held_rows(transaction, worker, rest)
        pairs: list[tuple[LiveRow, Settlement]] = []
        for settlement in map(storable, rest):
            ref = Ref(settlement.task, settlement.claim_no)
            if ref in rows and ref not in accepted:
                accepted[ref] = settlement
                pairs.append((rows[ref], settlement))
            else:
                others.append(settlement)
        apply(transaction, worker, pairs)
    repeated, refused = _judge(transaction, worker, others)
    claimed = tuple(claim(transaction, worker, wants)) if wants else ()
    return FinishReport(
        accepted=frozenset(accepted),
        repeated=frozenset(repeated),
        refused=frozenset(refused - accepted.keys()),
        releasing=transaction.releasing,
        claimed=claimed,
    )


def _complete(
    transaction: Transaction, worker: str, settlements: Sequence[Settlement], accepted: dict[Ref, Settlement]
) -> list[Settlement]:
    """Write the successes at once; what is left for the way of all outcomes."""
    successes: dict[int, Settlement] = {}
    rest: list[Settlement] = []
    for settlement in settlements:
        if settlement.task not in successes and succeeded(settlement):
            successes[settlement.task] = settlement
        else:
            rest.append(settlement)
    if successes:
        unfenced = complete(transaction, worker, list(successes.values()))
        rest.extend(successes.pop(task) for task in unfenced)
        for task, settlement in successes.items():
            accepted[Ref(task, settlement.claim_no)] = settlement
    return rest


def _held_rows(transaction: Transaction, worker: str, settlements: Sequence[Settlement]) -> dict[Ref, LiveRow]:
    refs = refs_json(Ref(settlement.task, settlement.claim_no) for settlement in settlements)
    [(text,)] = transaction.rows("held_rows", {"refs": refs, "worker": worker})
    rows = map(LiveRow._make, orjson.loads(text))
    return {Ref(row.id, row.claim_no): row for row in rows}


def apply(transaction: Transaction, worker: str, pairs: Sequence[tuple[LiveRow, Settlement]]) -> None:
    """Write settlements whose fence holds: attempts, rows, and everything that hangs on them."""
    attempts: list[Attempt] = []
    endings: list[Ending] = []
    requeues: list[tuple[LiveRow, _Requeue]] = []
    for row, settlement in pairs:
        started_at = _started_at(row, settlement, transaction.now)
        # A started one may be cancelling by now, and has a row already.
        if row.started_at is not None or (settlement.attempt is not None and not is_plain(settlement)):
            attempts.append(_attempt(row, settlement, worker, started_at, transaction.now))
        ending = _ending(row, settlement, started_at, transaction.now)
        if ending is None:
            requeues.append((row, _requeue(transaction, row, settlement)))
        else:
            endings.append(ending)
    close_attempts(transaction, attempts)
    if requeues:
        transaction.run("requeue", (orjson.dumps([tuple(requeue) for _, requeue in requeues]).decode(),))
        transaction.wakes.update(row.queue for row, requeue in requeues if requeue.ready_at is not None)
    if gated := [(row.id, row.gates) for row, _ in requeues if row.gates is not None]:
        release_gates(transaction, gated)
    awaited = {settlement.awaits for _, settlement in pairs if settlement.awaits is not None}
    conclude(transaction, _awaited(endings, awaited) if awaited else endings)
    completed = sum(ending.state == TaskState.COMPLETED for ending in endings)
    failed = sum(ending.state == TaskState.FAILED for ending in endings)
    if completed or failed:
        transaction.run("count_worker", {"worker": worker, "completed": completed, "failed": failed})


def _awaited(endings: Sequence[Ending], awaited: Collection[str | int]) -> list[Ending]:
    """Somebody of this very batch waits for some of them, and their rows were read before that was written."""
    return [
        replace(ending, row=ending.row._replace(keyed=1)) if ending.row.id in awaited else ending for ending in endings
    ]


def _started_at(row: LiveRow, settlement: Settlement, now: int) -> int | None:
    if row.started_at is not None or settlement.ran_for is None:
        return row.started_at
    # The worker's stopwatch and the store's clock differ a little; it did not start before it was claimed.
    return max(now - seconds_to_micros(settlement.ran_for), row.claimed_at or 0)


def _ending(row: LiveRow, settlement: Settlement, started_at: int | None, now: int) -> Ending | None:
    """How the row ends; None when it is to be tried again."""
    if not settlement.terminal and row.state != TaskState.CANCELLING and not _grows_too_old(row, settlement, now):
        return None
    error = settlement.error
    common: dict[str, Any] = {
        "row": row,
        "attempt": row.attempt + settlement.charged,
        "losses": row.losses + settlement.suspect,
        "started_at": started_at,
        "error_class": error.error_class if error else None,
        "error_message": error.message if error else None,
        "executor": settlement.executor,
    }
    if settlement.terminal:
        reason = settlement.reason
        if settlement.state == TaskState.CANCELLED and row.state == TaskState.CANCELLING:
            # Whoever asked knows why; the worker only knows that it was told.
            reason = row.reason or reason
        expires = settlement.result_ttl is not None and (settlement.result or settlement.result_ref)
        return Ending(
            **common,
            state=settlement.state,
            reason=reason,
            dead_letter=settlement.dead_letter,
            result=settlement.result,
            result_ref=settlement.result_ref,
            result_expires_at=now + seconds_to_micros(settlement.result_ttl or 0.0) if expires else None,
        )
    if row.state == TaskState.CANCELLING:
        return Ending(**common, state=TaskState.CANCELLED, reason=row.reason or Reason.USER)
    common["error_class"] = common["error_class"] or "headrace.Expired"
    common["error_message"] = common["error_message"] or "its max age passes before it could run again"
    return Ending(**common, state=TaskState.FAILED, reason=Reason.EXPIRED)


def _grows_too_old(row: LiveRow, settlement: Settlement, now: int) -> bool:
    """Before it could run again. Who waits, for others or for a time, does not grow old: the age counts from where it
    goes on.
    """
    if row.expires_at is None or settlement.attempt is AttemptState.SUSPENDED:
        return False
    return now + seconds_to_micros(settlement.delay) > row.expires_at


class _Requeue(NamedTuple):
    """In the order of `requeue`."""

    task: int
    state: str
    attempt: int
    losses: int
    lane: int
    eligible_at: int
    order_at: int
    ready_at: int | None
    waiting_on: str | None
    aged_from: int | None


def _requeue(transaction: Transaction, row: LiveRow, settlement: Settlement) -> _Requeue:
    now, eligible_at, order_at = transaction.now, row.eligible_at, row.order_at
    state, delay, waiting_on = settlement.state, settlement.delay, None
    if settlement.awaits is not None:
        # Its delay is how long it is ready to wait, which is the wait's to know.
        delay = 0.0
        state, waiting_on = suspended(transaction, row.id, settlement.awaits)
    if settlement.charged or delay > 0:
        eligible_at = now + seconds_to_micros(delay)
        # A job's tasks keep the job's place; one that is merely given back keeps its own, and so does a suspended one.
        if row.job is None and settlement.attempt is not AttemptState.SUSPENDED:
            order_at = eligible_at
    # Not by the clock: it may have been set back since the task became due and was claimed.
    ready = state == TaskState.PENDING and delay <= 0
    return _Requeue(
        task=row.id,
        state=state.value,
        attempt=row.attempt + settlement.charged,
        losses=row.losses + settlement.suspect,
        lane=row.lane if settlement.lane is None else int(settlement.lane),
        eligible_at=eligible_at,
        order_at=order_at,
        ready_at=now if ready else None,
        waiting_on=waiting_on,
        aged_from=now + seconds_to_micros(delay) if settlement.attempt is AttemptState.SUSPENDED else None,
    )


def _attempt(row: LiveRow, settlement: Settlement, worker: str, started_at: int | None, now: int) -> Attempt:
    error = settlement.error
    return Attempt(
        task=row.id,
        claim_no=row.claim_no,
        run_no=row.run_no,
        number=row.attempt + 1 if settlement.charged else None,
        # An attempt that was opened is closed, also where the worker says nothing of it.
        state="released" if settlement.attempt is None else settlement.attempt.value,
        charged=settlement.charged,
        worker=worker,
        executor=settlement.executor,
        claimed_at=row.claimed_at,
        started_at=started_at,
        finished_at=ends_at(now, row.claimed_at, started_at),
        error_class=error.error_class if error else None,
        error_message=error.message if error else None,
        traceback=error.traceback if error else None,
        exit_code=error.exit_code if error else None,
        recorded_by=settlement.recorded_by,
    )


def storable(settlement: Settlement) -> Settlement:
    """The settlement with text that both databases take; a result that cannot be stored is a failure of its task."""
    error = settlement.error
    if error is not None:
        texts = (error.error_class, error.message, error.traceback)
        if not all(map(is_storable, texts)):
            error = replace(
                error,
                error_class=mended(error.error_class),
                message=mended(error.message),
                traceback=mended(error.traceback) if error.traceback else None,
            )
            settlement = settlement._replace(error=error)
    if is_storable(settlement.result) and is_storable(settlement.result_ref):
        return settlement
    return settlement._replace(
        state=TaskState.FAILED,
        reason=Reason.BAD_PAYLOAD,
        attempt=AttemptState.FAILED,
        result=None,
        result_ref=None,
        error=ErrorInfo(
            error_class="headrace.PayloadError",
            message="the result holds text that no database stores: a NUL character or half of a surrogate pair",
        ),
    )


def _judge(transaction: Transaction, worker: str, others: Sequence[Settlement]) -> tuple[set[Ref], set[Ref]]:
    """Reports without a fence: already written (a repeat after a lost answer), or late. Late ones are recorded."""
    repeated: set[Ref] = set()
    refused: set[Ref] = set()
    if not others:
        return repeated, refused
    refs = [Ref(settlement.task, settlement.claim_no) for settlement in others]
    late: list[Mapping[str, Any]] = []
    for row in transaction.rows("outcomes_of_claims", {"refs": refs_json(refs)}):
        place, standing = int(row[0]), row[1:]
        settlement, ref = others[place], refs[place]
        if _already_written(settlement, worker, standing):
            repeated.add(ref)
            continue
        refused.add(ref)
        run_no, last_claim = standing[7], standing[3] if standing[3] is not None else standing[5]
        # A claim that never was has no attempt to record it on.
        if last_claim is not None and ref.claim_no <= last_claim:
            state = settlement.attempt or settlement.state
            late.append(
                {
                    "task": ref.id,
                    "claim_no": ref.claim_no,
                    "run_no": run_no,
                    "worker": worker,
                    "recorded_by": settlement.recorded_by,
                    "late_state": state.value,
                    "now": transaction.now,
                }
            )
    transaction.run_many("record_late", late)
    return repeated, refused


def _already_written(settlement: Settlement, worker: str, standing: Row) -> bool:
    attempt_state, recorded_by, attempt_worker, live_claim, live_state, done_claim, done_state, _, done_worker = (
        standing
    )
    if settlement.attempt is not None:
        return (attempt_state, recorded_by, attempt_worker) == (
            *(settlement.attempt.value, settlement.recorded_by),
            worker,
        )
    if done_claim == settlement.claim_no:
        return done_worker == worker and (not settlement.terminal or done_state == settlement.state)
    # It was given back and nobody has claimed it since.
    return live_claim == settlement.claim_no and not settlement.terminal and not TaskState(live_state).held


class Finishing(Part):
    async def finish(
        self, worker: str, settlements: Sequence[Settlement], *, wants: Sequence[Want] = ()
    ) -> FinishReport:
        return await self.database.write(
            lambda transaction: finish(transaction, worker, settlements, wants),
            verb="finish",
            unheard=lambda report: lambda transaction: give_back(transaction, worker, report.claimed),
        )
