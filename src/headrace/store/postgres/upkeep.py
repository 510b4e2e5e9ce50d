"""What services do on the side: bounded, and safe in many processes at once."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from headrace.core.states import TERMINAL, Reason
from headrace.store.base import AUDIT_KEPT, COUNTED_AT_MOST, Pruned
from headrace.store.postgres.connection import Connection, Database, Rows, column
from headrace.store.postgres.job_ends import JobEnds

_EXPIRED = "its max age passed before it could start"


class Upkeep:
    def __init__(self, database: Database, queries: Mapping[str, str]) -> None:
        self._database = database
        self._queries = queries
        self._job_ends = JobEnds(database, queries)
        self._unparked = ""  # the gate up to which the last look for forgotten waiters came

    async def expire(self, *, limit: int = 500) -> int:
        async def fail_tasks(connection: Connection) -> tuple[int, Rows]:
            ids = column(await connection.fetch(self._queries["overdue_tasks"], limit))
            return await self._end(connection, ids, "failed", Reason.EXPIRED, "headrace.Expired", _EXPIRED)

        ended, ends = await self._database.run(fail_tasks)
        self._job_ends.tell(ends)
        # Each job in a transaction of its own: its tasks may be many.
        for job in column(await self._database.fetch(self._queries["overdue_jobs"], limit, repeatable=True)):
            [row] = await self._database.fetch(self._queries["close_job"], job, "failed", Reason.JOB_TIMEOUT.value)
            if row[0]:
                ended += 1
                await self._job_ends.tell_of(job)
        for job in column(await self._database.fetch(self._queries["late_additions"], limit, repeatable=True)):
            [row] = await self._database.fetch(self._queries["drop_late_additions"], job)
            ended += row[0]
        return ended

    async def end_cancelling(self, *, grace: float, limit: int = 500) -> int:
        async def end(connection: Connection) -> tuple[int, Rows]:
            ids = column(await connection.fetch(self._queries["unanswered"], grace, limit))
            return await self._end(connection, ids, "cancelled", Reason.USER)

        ended, ends = await self._database.run(end)
        self._job_ends.tell(ends)
        return ended

    async def _end(
        self,
        connection: Connection,
        ids: list[int],
        state: str,
        reason: str,
        error_class: str | None = None,
        error_message: str | None = None,
    ) -> tuple[int, Rows]:
        """How many ended, and the jobs that ended with them."""
        if not ids:
            return 0, []
        ended: list[int] = await connection.fetchval(
            self._queries["end_tasks"], ids, state, reason, error_class, error_message
        )
        await connection.execute(self._queries["ended"], ended)
        if state == "failed":
            await connection.execute(self._queries["publish_failures"], ended)
        return len(ended), await self._job_ends.of_tasks(connection, ended)

    async def release(self, *, limit: int = 1000) -> int:
        [row] = await self._database.fetch(self._queries["release"], limit, repeatable=True)
        return row[0]

    async def unpark(self, *, limit: int = 500) -> int:
        async def wake(connection: Connection) -> int:
            rows = await connection.fetch(self._queries["waited_for"], limit, self._unparked)
            keys = [row["key"] for row in rows]
            # The next call goes on where this one stops: behind `limit` busy gates others wait to be looked at, too.
            self._unparked = keys[-1] if len(keys) >= limit else ""
            if not rows:
                return 0
            await connection.execute(self._queries["lock_gates"], keys)
            await connection.execute(self._queries["drop_stale_slots"], keys)
            texts = [row["gates"] for row in rows if row["gates"] is not None]
            return await connection.fetchval(self._queries["wake_gates"], texts)

        return await self._database.run(wake)

    async def prune(self, *, keep: float, limit: int = 5000) -> Pruned:
        """Kind by kind, each in a transaction of its own."""

        async def prune_gates(connection: Connection) -> None:
            # Two statements: what the second one sees is not older than the locks of the first.
            unused = column(await connection.fetch(self._queries["unused_gates"], limit))
            if unused:
                await connection.execute(self._queries["prune_gates"], unused)

        states = [state.value for state in TERMINAL]
        tasks = await self._database.fetch(self._queries["prune_tasks"], keep, limit, states, repeatable=True)
        results = await self._database.fetch(self._queries["prune_results"], limit, repeatable=True)
        keys = await self._database.fetch(self._queries["prune_keys"], limit, repeatable=True)
        workers = await self._database.fetch(self._queries["prune_workers"], keep, limit, repeatable=True)
        job_events = await self._database.fetch(self._queries["prune_job_events"], keep, limit, repeatable=True)
        jobs = await self._database.fetch(self._queries["prune_jobs"], keep, limit, repeatable=True)
        await self._database.fetch(self._queries["prune_outcomes"], keep, repeatable=True)
        runs = await self._database.fetch(self._queries["prune_schedule_runs"], keep, limit, repeatable=True)
        events = await self._database.fetch(self._queries["prune_events"], keep, limit, repeatable=True)
        tokens = await self._database.fetch(self._queries["prune_tokens"], keep, limit, repeatable=True)
        audit = await self._database.fetch(self._queries["prune_audit"], AUDIT_KEPT, limit, repeatable=True)
        await self._database.run(prune_gates, repeatable=True)
        return Pruned(
            tasks=len(tasks),
            results=len(results),
            workers=len(workers),
            keys=len(keys),
            jobs=len(jobs),
            runs=runs[0][0],
            events=len(events),
            tokens=len(tokens),
            audit=len(audit),
            job_events=len(job_events),
            blobs=tuple(row["result_ref"] for row in (*tasks, *results) if row["result_ref"] is not None),
        )

    async def prunable(self, *, keep: float) -> Pruned:
        [(tasks, results, workers, keys, jobs, events, tokens, audit)] = await self._database.fetch(
            self._queries["prunable"], keep, AUDIT_KEPT, repeatable=True
        )
        counts = Pruned(tasks=tasks, results=results, workers=workers, keys=keys, jobs=jobs, events=events)
        return replace(counts, tokens=tokens, audit=audit)

    async def retry_depth(self, queue: str, *, cap: int = 5001) -> int:
        [row] = await self._database.fetch(self._queries["retry_depth"], queue, cap, repeatable=True)
        return min(cap, row[0])

    async def dead_letter_depth(self, *, cap: int = COUNTED_AT_MOST) -> int:
        [row] = await self._database.fetch(self._queries["dead_letter_depth"], cap, repeatable=True)
        return row[0]

    async def count_outcomes(self, counts: Iterable[tuple[str, str, str, str, int]]) -> None:
        sums: Counter[tuple[str, str, str, str]] = Counter()
        for worker, queue, name, outcome, n in counts:
            sums[worker, queue, name, outcome] += n
        if not sums:
            return
        workers, queues, names, outcomes = zip(*sorted(sums), strict=True)
        await self._database.fetch(
            self._queries["count_outcomes"], workers, queues, names, outcomes, [sums[place] for place in sorted(sums)]
        )

    async def lead(self, role: str, worker: str, *, lease: float) -> bool:
        return bool(await self._database.fetch(self._queries["lead"], role, worker, lease, repeatable=True))
