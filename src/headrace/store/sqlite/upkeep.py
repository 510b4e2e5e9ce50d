"""What services do on the side. Every call is bounded; the work of one call may be several short transactions."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from headrace.core.lanes import Lane
from headrace.core.states import JobState, Reason, TaskState
from headrace.store.base import AUDIT_KEPT, COUNTED_AT_MOST, Pruned
from headrace.store.sqlite.admission import ready_next
from headrace.store.sqlite.claiming import promote
from headrace.store.sqlite.connection import Part, Row, Transaction
from headrace.store.sqlite.ending import Ending, LiveRow, ids_json
from headrace.store.sqlite.enqueueing import seconds_to_micros
from headrace.store.sqlite.job_counting import cancel_rest, conclude, end_job, fold_additions
from headrace.store.sqlite.removing import remove

_MINUTE = 60_000_000
# Of what tasks wait for, an approval and events (`event:…`) come before the gates (`limit:…`, `order:…`).
_BEFORE_GATES = "event;"
_GATES_KEPT = 86_400_000_000  # a key that comes back each day does not make its row anew
_DONE = [state for state in TaskState if state.terminal]  # the commonest first
# Rows that one transaction removes: others wait for it.
_AT_ONCE = 250


def promote_due(transaction: Transaction, limit: int) -> float | None:
    if promote(transaction, limit) >= limit:
        return 0.0
    row = transaction.row("next_due")
    return None if row is None or row[0] is None else max(0.0, (row[0] - transaction.now) / 1e6)


def expire(transaction: Transaction, limit: int) -> int:
    rows = transaction.rows("expired_tasks", {"now": transaction.now, "limit": limit})
    endings = [
        Ending(
            row=LiveRow(*row),
            state=TaskState.FAILED,
            reason=Reason.EXPIRED,
            error_class="headrace.Expired",
            error_message="its max age passed before it could start",
        )
        for row in rows
    ]
    conclude(transaction, endings)
    jobs = transaction.rows("jobs_past_deadline", {"now": transaction.now, "limit": limit})
    ended = sum(end_job(transaction, job, JobState.FAILED, Reason.JOB_TIMEOUT, Reason.JOB_TIMEOUT) for (job,) in jobs)
    for job, state in transaction.rows("late_additions", (limit,)):
        # The job was over before the user's transaction committed.
        fold_additions(transaction, job)
        ended += cancel_rest(transaction, job, Reason.JOB_FAILED if state == JobState.FAILED else Reason.JOB_CANCELLED)
    return len(endings) + ended


def unpark(transaction: Transaction, after: str, limit: int) -> tuple[int, str]:
    """How many it readied, and the gate after which the next call goes on."""
    keys = [key for (key,) in transaction.rows("waited_keys", {"after": after, "limit": limit})]
    readied = sum(ready_next(transaction, key) for key in keys)
    return readied, keys[-1] if len(keys) >= limit else _BEFORE_GATES


def _prune_history(transaction: Transaction, until: int, limit: int) -> tuple[int, list[str]]:
    # State by state: the index on the state is the one in the order of their ends. When there are enough, only what is
    # older than the last of them counts.
    oldest: list[Row] = []
    before = until
    for state in _DONE:
        parameters = {"state": state.value, "before": before, "until": until, "limit": limit}
        oldest = sorted([*oldest, *transaction.rows("old_history", parameters)])[:limit]
        if len(oldest) == limit:
            before = oldest[-1][0]
    return len(oldest), remove(transaction, (id for _, id in oldest))


def _prune_results(transaction: Transaction, limit: int) -> tuple[int, list[str]]:
    found = transaction.rows("expired_results", {"now": transaction.now, "limit": limit})
    transaction.run("prune_results", (ids_json(id for id, _ in found),))
    return len(found), [blob for _, blob in found if blob is not None]


def _prune_runs(transaction: Transaction, until: int, limit: int) -> tuple[int, list[str]]:
    return transaction.run("prune_schedule_runs", {"until": until, "limit": limit}), []


def _prune_events(transaction: Transaction, until: int, limit: int) -> tuple[int, list[str]]:
    return transaction.run("prune_events", {"until": until, "limit": limit}), []


def _prune_job_events(transaction: Transaction, until: int, limit: int) -> tuple[int, list[str]]:
    jobs = ids_json(id for (id,) in transaction.rows("old_jobs", {"until": until, "limit": limit}))
    return transaction.run("prune_job_events", {"jobs": jobs, "limit": limit}), []


def _prune_the_rest(transaction: Transaction, until: int, limit: int) -> Pruned:
    jobs = ids_json(id for (id,) in transaction.rows("emptied_jobs", {"until": until, "limit": limit}))
    for query in ("prune_job_counts", "prune_job_lines"):
        transaction.run(query, (jobs,))
    transaction.run("drop_pruned_notes", (jobs,))
    transaction.run("prune_outcomes", (until,))
    transaction.run("prune_gates", {"until": transaction.now - _GATES_KEPT, "limit": limit})
    results, blobs = _prune_results(transaction, limit)
    return Pruned(
        results=results,
        blobs=tuple(blobs),
        keys=transaction.run("prune_keys", {"now": transaction.now, "limit": limit}),
        workers=transaction.run("prune_workers", {"until": until, "limit": limit}),
        jobs=transaction.run("prune_jobs", (jobs,)),
        tokens=transaction.run("prune_tokens", {"until": until, "limit": limit}),
        audit=transaction.run(
            "prune_audit", {"until": transaction.now - seconds_to_micros(AUDIT_KEPT), "limit": limit}
        ),
    )


def lead(transaction: Transaction, role: str, worker: str, lease: float) -> bool:
    expires_at = transaction.now + seconds_to_micros(lease)
    parameters = {"role": role, "worker": worker, "expires_at": expires_at, "now": transaction.now}
    return transaction.run("lead", parameters) == 1


def count_outcomes(transaction: Transaction, counts: Iterable[tuple[str, str, str, str, int]]) -> None:
    minute = transaction.now - transaction.now % _MINUTE
    rows = [
        {"worker": worker, "queue": queue, "name": name, "minute": minute, "outcome": outcome, "n": n}
        for worker, queue, name, outcome, n in counts
    ]
    transaction.run_many("count_outcome", rows)


class Maintaining(Part):
    _unparked = _BEFORE_GATES  # the gate up to which the last look for forgotten waiters came

    async def promote(self, *, limit: int = 500) -> float | None:
        return await self.database.write(lambda transaction: promote_due(transaction, limit))

    async def expire(self, *, limit: int = 500) -> int:
        return await self.database.write(lambda transaction: expire(transaction, limit))

    async def unpark(self, *, limit: int = 500) -> int:
        # From gate to gate: behind `limit` busy ones others wait to be looked at, too.
        after = self._unparked
        readied, self._unparked = await self.database.write(lambda transaction: unpark(transaction, after, limit))
        return readied

    async def prune(self, *, keep: float, limit: int = 5000) -> Pruned:
        until = self.database.now() - seconds_to_micros(keep)
        tasks, blobs = await self._in_batches(limit, lambda transaction, most: _prune_history(transaction, until, most))
        runs, _ = await self._in_batches(limit, lambda transaction, most: _prune_runs(transaction, until, most))
        events, _ = await self._in_batches(limit, lambda transaction, most: _prune_events(transaction, until, most))
        # A job may have had any number of them: they go before it, and it goes when it has none.
        job_events, _ = await self._in_batches(
            limit, lambda transaction, most: _prune_job_events(transaction, until, most)
        )
        rest = await self.database.write(lambda transaction: _prune_the_rest(transaction, until, min(limit, 1000)))
        blobs += rest.blobs
        return replace(rest, tasks=tasks, runs=runs, events=events, job_events=job_events, blobs=tuple(blobs))

    async def _in_batches(
        self, limit: int, prune: Callable[[Transaction, int], tuple[int, list[str]]]
    ) -> tuple[int, list[str]]:
        """How many it removed, in short transactions, and the blobs that are nobody's any more."""
        removed, blobs = 0, list[str]()
        while removed < limit:
            most = min(_AT_ONCE, limit - removed)
            n, more = await self.database.write(lambda transaction, most=most: prune(transaction, most))
            removed += n
            blobs += more
            if n < most:
                break
        return removed, blobs

    async def prunable(self, *, keep: float) -> Pruned:
        def count_all(transaction: Transaction) -> Pruned:
            until = transaction.now - seconds_to_micros(keep)
            audited = transaction.now - seconds_to_micros(AUDIT_KEPT)
            [(tasks, results, workers, keys, jobs, events, tokens, audit)] = transaction.rows(
                "prunable", {"now": transaction.now, "until": until, "audited": audited}
            )
            counts = Pruned(tasks=tasks, results=results, workers=workers, keys=keys, jobs=jobs, events=events)
            return replace(counts, tokens=tokens, audit=audit)

        return await self.database.read(count_all)

    async def retry_depth(self, queue: str, *, cap: int = 5001) -> int:
        rows = await self.database.read(
            lambda transaction: transaction.rows("ready_depth", {"queue": queue, "lane": int(Lane.RETRY), "cap": cap})
        )
        return rows[0][0]

    async def dead_letter_depth(self, *, cap: int = COUNTED_AT_MOST) -> int:
        rows = await self.database.read(lambda transaction: transaction.rows("dead_letter_depth", {"cap": cap}))
        return rows[0][0]

    async def count_outcomes(self, counts: Iterable[tuple[str, str, str, str, int]]) -> None:
        counts = list(counts)
        await self.database.write(lambda transaction: count_outcomes(transaction, counts))

    async def lead(self, role: str, worker: str, *, lease: float) -> bool:
        return await self.database.write(lambda transaction: lead(transaction, role, worker, lease))
