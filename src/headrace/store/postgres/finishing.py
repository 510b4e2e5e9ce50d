"""Finish: settlements to one call of the server's function, and an exact account of what became of each."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from itertools import takewhile
from typing import Any

import asyncpg

from headrace.core.settlement import Settlement
from headrace.core.states import AttemptState, Reason, TaskState
from headrace.core.task import ErrorInfo, Ref, Want
from headrace.store.base import FinishReport
from headrace.store.postgres.claiming import claimed_tasks, want_columns
from headrace.store.postgres.claims import HandedClaims
from headrace.store.postgres.connection import Connection, Database, Rows
from headrace.store.postgres.job_ends import JobEnds
from headrace.store.postgres.live import Announcer
from headrace.store.postgres.low_water import NOTHING, LowWater
from headrace.store.postgres.reports import report_columns, visible

_AT_ONCE = 2
_OF_JOBS = ("job ended", "job counted")  # rows of `finish_v1` that tell of the jobs of its tasks


class Finishing:
    def __init__(
        self,
        database: Database,
        queries: Mapping[str, str],
        claims: HandedClaims,
        low_water: LowWater,
        announcer: Announcer,
    ) -> None:
        self._database = database
        self._queries = queries
        self._claims = claims
        self._low_water = low_water
        self._announcer = announcer
        self._job_ends = JobEnds(database, queries)
        claims.release = self._release_stranded

    async def finish(
        self, worker: str, settlements: Sequence[Settlement], *, wants: Sequence[Want] = ()
    ) -> FinishReport:
        first, again = _without_repetitions(settlements)
        if any(s.awaits is not None for s in first):
            return await self._finish_suspended(worker, first, again, wants)
        # The last write claims: a failure after it would lose what was claimed.
        asked = () if again else wants
        try:
            report = await self._finish(worker, first, asked)
        except (asyncpg.DataError, asyncpg.ProgramLimitExceededError) as error:
            report = await self._bisect(worker, first, asked, error)
        if again:
            report = _joined(report, await self.finish(worker, again, wants=wants))
        return report

    async def warm(self, worker: str) -> None:
        """A new connection has no plans: without them its first outcomes take 20 ms longer. As many at once as a worker
        writes at once, so that each of them is on a line of its own."""
        nothing = (*report_columns(()), *want_columns((), NOTHING))
        look = self._database.fetch
        await asyncio.gather(*(look(self._queries["finish_and_claim"], worker, *nothing) for _ in range(_AT_ONCE)))

    async def _finish(self, worker: str, settlements: Sequence[Settlement], wants: Sequence[Want]) -> FinishReport:
        columns = report_columns(settlements)
        asked = [want for want in wants if want.n > 0]
        look = NOTHING
        tries: list[Connection] = []

        async def write(connection: Connection) -> Rows:
            tries.append(connection)
            if len(tries) > 1 and asked:
                self._claims.doubt(worker)
            if asked and len(tries) == 1:
                claim = want_columns(asked, look)
                return await connection.fetch(self._queries["finish_and_claim"], worker, *columns, *claim)
            return await connection.fetch(self._queries["finish"], worker, *columns)

        # Replayed when the connection was lost: what an earlier try wrote is then found as `repeated`. The claim is
        # not: what the first try may have claimed is given back before the next one.
        if any(s.state is TaskState.PENDING and not s.charged for s in settlements):
            self._low_water.lower()
        async with self._claims.asking(worker) if asked else nullcontext():
            if asked:
                look = self._low_water.begin(worker, asked)
            rows = await self._database.run(write, repeatable=True, transaction=False, verb="finish")
            refused = frozenset(Ref(row[0], row[1]) for row in takewhile(lambda row: row["state"] == "refused", rows))
            # Inside: should this fail, nobody hears of the claims either.
            late = [s for s in settlements if (s.task, s.claim_no) in refused] if refused else []
            repeated = await self._record_late(worker, late) if late else frozenset[Ref]()
        counted = list(takewhile(lambda row: row["state"] in _OF_JOBS, rows[len(refused) :]))
        told = len(refused) + len(counted)
        releasing = len(rows) > told and rows[told]["state"] == "releasing"
        claimed = tuple(claimed_tasks(rows[told + releasing :]))
        refs = frozenset([Ref._make(s[:2]) for s in settlements])
        if asked and len(tries) == 1:
            self._low_water.end(worker, look, asked, claimed)
        self._claims.hand(worker, claimed)
        self._claims.forget(worker, refs)
        self._tell_of_jobs(counted)
        self._announcer.note_jobs({task.job for task in claimed})
        return FinishReport(
            accepted=refs - refused,
            repeated=repeated,
            refused=refused - repeated,
            releasing=releasing,
            claimed=claimed,
        )

    async def _finish_suspended(
        self, worker: str, first: Sequence[Settlement], again: Sequence[Settlement], wants: Sequence[Want]
    ) -> FinishReport:
        """Those that wait for something by themselves: they lock it, which the others need not wait for. First, because
        what they wait for may be among the others."""
        waiting = [s for s in first if s.awaits is not None]
        rest = [s for s in first if s.awaits is None] + [*again]
        report = await self._suspend(worker, waiting)
        return _joined(report, await self.finish(worker, rest, wants=wants)) if rest or wants else report

    async def _suspend(self, worker: str, settlements: Sequence[Settlement]) -> FinishReport:
        columns = report_columns(settlements)
        awaited = (
            [s.task for s in settlements],
            [s.awaits if isinstance(s.awaits, int) else None for s in settlements],
            [s.awaits if isinstance(s.awaits, str) else None for s in settlements],
        )

        async def write(connection: Connection) -> Rows:
            await connection.execute(self._queries["suspending"], *awaited)
            rows = await connection.fetch(self._queries["finish"], worker, *columns)
            gone = {row[0] for row in takewhile(lambda row: row["state"] == "refused", rows)}
            kept = [entry for entry in zip(*awaited, strict=True) if entry[0] not in gone]
            if kept:
                await connection.execute(self._queries["suspended"], *map(list, zip(*kept, strict=True)))
            return rows

        return await self._account(worker, settlements, await self._database.run(write, repeatable=True, verb="finish"))

    async def _account(self, worker: str, settlements: Sequence[Settlement], rows: Rows) -> FinishReport:
        """What became of settlements that went without a claim."""
        refused = frozenset(Ref(row[0], row[1]) for row in takewhile(lambda row: row["state"] == "refused", rows))
        late = [s for s in settlements if (s.task, s.claim_no) in refused]
        repeated = await self._record_late(worker, late) if late else frozenset[Ref]()
        refs = frozenset([Ref(s.task, s.claim_no) for s in settlements])
        self._claims.forget(worker, refs)
        self._tell_of_jobs([row for row in rows if row["state"] in _OF_JOBS])
        return FinishReport(
            accepted=refs - refused,
            repeated=repeated,
            refused=refused - repeated,
            releasing=any(row["state"] == "releasing" for row in rows),
        )

    def _tell_of_jobs(self, rows: Rows) -> None:
        if rows:
            self._announcer.note_jobs(row["id"] for row in rows)
            ended = (row for row in rows if row["state"] == "job ended")
            self._job_ends.tell_all((row["id"], row["name"], row["waited"], row["arguments"]) for row in ended)

    async def _release_stranded(self, worker: str, refs: Collection[Ref]) -> None:
        await self.finish(
            worker, [Settlement(task=ref.id, claim_no=ref.claim_no, state=TaskState.PENDING) for ref in refs]
        )

    async def _record_late(self, worker: str, late: Sequence[Settlement]) -> frozenset[Ref]:
        """Tell reports that were written before from late ones, and record the late ones."""

        async def write(connection: Connection) -> frozenset[Ref]:
            rows = await connection.fetch(self._queries["standing"], [s.task for s in late], [s.claim_no for s in late])
            standing = {Ref(row["task"], row["claim_no"]): row for row in rows}
            repeated = {
                ref for s in late if (ref := Ref(s.task, s.claim_no)) in standing and _same(s, worker, standing[ref])
            }
            strangers = [s for s in late if Ref(s.task, s.claim_no) not in repeated]
            if strangers:
                await connection.execute(
                    self._queries["record_refused"],
                    worker,
                    [s.task for s in strangers],
                    [s.claim_no for s in strangers],
                    [str(s.attempt or s.state) for s in strangers],
                    [s.recorded_by for s in strangers],
                )
            return frozenset(repeated)

        return await self._database.run(write, repeatable=True)

    async def _bisect(
        self, worker: str, settlements: Sequence[Settlement], wants: Sequence[Want], error: Exception
    ) -> FinishReport:
        """The database refuses some text in here: find it, so that the others are not taken down with it."""
        if len(settlements) <= 1:
            refused = [unreadable(settlement, error) for settlement in settlements]
            return await self._finish(worker, refused, wants)
        middle = len(settlements) // 2
        report = FinishReport(accepted=frozenset())
        for half, claims in ((settlements[:middle], ()), (settlements[middle:], wants)):
            try:
                part = await self._finish(worker, half, claims)
            except (asyncpg.DataError, asyncpg.ProgramLimitExceededError) as cause:
                part = await self._bisect(worker, half, claims, cause)
            report = _joined(report, part)
        return report


def unreadable(settlement: Settlement, error: Exception) -> Settlement:
    """The settlement of an outcome that the database cannot store."""
    info = ErrorInfo(
        error_class="headrace.PayloadError",
        message=visible(f"the outcome could not be stored: {type(error).__name__}: {error}") or "",
    )
    return settlement._replace(
        state=TaskState.FAILED,
        reason=Reason.BAD_PAYLOAD,
        attempt=AttemptState.FAILED,
        result=None,
        result_ref=None,
        error=info,
        delay=0.0,
        executor=None,
    )


def _same(settlement: Settlement, worker: str, row: Mapping[str, Any]) -> bool:
    """Whether the ledger already says what this report says: an earlier try of it was committed."""
    if settlement.attempt is not None:
        # The attempt is the witness, also after a manual retry: by then the history row is gone.
        told = (row["attempt"], row["tried_by"], row["recorded_by"])
        return told == (settlement.attempt, worker, settlement.recorded_by) and (
            not settlement.terminal or row["done"] in (None, settlement.state)
        )
    if row["done"] is not None:
        # A requeue may have become cancelled or expired.
        return row["done_by"] == worker and (not settlement.terminal or row["done"] == settlement.state)
    # Given back without a trace, it is still unclaimed.
    return not settlement.terminal and row["returned"]


def _without_repetitions(settlements: Sequence[Settlement]) -> tuple[list[Settlement], list[Settlement]]:
    """A statement may touch a row once: the second report of one task goes into the next call."""
    if len({s.task for s in settlements}) == len(settlements):
        return list(settlements), []
    first: dict[int, Settlement] = {}
    again = [s for s in settlements if first.setdefault(s.task, s) is not s]
    return list(first.values()), again


def _joined(one: FinishReport, two: FinishReport) -> FinishReport:
    accepted = one.accepted | two.accepted
    return FinishReport(
        accepted=accepted,
        repeated=(one.repeated | two.repeated) - accepted,
        refused=(one.refused | two.refused) - accepted,
        releasing=one.releasing or two.releasing,
        claimed=one.claimed + two.claimed,
    )
