"""Finish: settlements to one call of the server's function, and an exact account of what became of each."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
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


class Finishing:
    def __init__(self, database: Database, queries: Mapping[str, str], claims: HandedClaims) -> None:
        self._database = database
        self._queries = queries
        self._claims = claims
        self._job_ends = JobEnds(database, queries)
        claims.release = self._release_stranded

    async def finish(
        self, worker: str, settlements: Sequence[Settlement], *, wants: Sequence[Want] = ()
    ) -> FinishReport:
        first, again = _without_repetitions(settlements)
        # The last write claims: a failure after it would lose what was claimed.
        asked = () if again else wants
        try:
            report = await self._finish(worker, first, asked)
        except (asyncpg.DataError, asyncpg.ProgramLimitExceededError) as error:
            report = await self._bisect(worker, first, asked, error)
        if again:
            report = _joined(report, await self.finish(worker, again, wants=wants))
        return report

    async def _finish(self, worker: str, settlements: Sequence[Settlement], wants: Sequence[Want]) -> FinishReport:
        columns = _columns(settlements)
        tries = 0

        async def write(connection: Connection) -> Rows:
            nonlocal tries
            tries += 1
            if tries > 1 and wants:
                self._claims.doubt(worker)
            asked = want_columns(wants if tries == 1 else ())
            return await connection.fetch(self._queries["finish"], worker, *columns, *asked)

        # Replayed when the connection was lost: what an earlier try wrote is then found as `repeated`. The claim is
        # not: what the first try may have claimed is given back before the next one.
        asks = any(want.n > 0 for want in wants)
        async with self._claims.asking(worker) if asks else nullcontext():
            rows = await self._database.run(write, repeatable=True, transaction=False, verb="finish")
            refused = frozenset(Ref(row[0], row[1]) for row in rows if row["state"] == "refused")
            # Inside: should this fail, nobody hears of the claims either.
            late = [s for s in settlements if Ref(s.task, s.claim_no) in refused]
            repeated = await self._record_late(worker, late) if late else frozenset[Ref]()
        ended = list(takewhile(lambda row: row["state"] == "job ended", rows[len(refused) :]))
        claimed = tuple(claimed_tasks(rows[len(refused) + len(ended) :]))
        self._job_ends.tell_all((row["id"], row["name"], row["waited"], row["arguments"]) for row in ended)
        refs = frozenset(Ref(s.task, s.claim_no) for s in settlements)
        self._claims.hand(worker, claimed)
        self._claims.forget(worker, refs)
        return FinishReport(accepted=refs - refused, repeated=repeated, refused=refused - repeated, claimed=claimed)

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
    return replace(
        settlement,
        state=TaskState.FAILED,
        reason=Reason.BAD_PAYLOAD,
        attempt=AttemptState.FAILED,
        result=None,
        result_ref=None,
        error=info,
        delay=0.0,
        executor=None,
    )


def visible(text: str | None) -> str | None:
    """Text that PostgreSQL stores: a NUL is shown as its symbol, a lone surrogate as its escape."""
    if text is None:
        return None
    if "\0" in text:
        text = text.replace("\0", "\N{SYMBOL FOR NULL}")
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


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


def _columns(settlements: Sequence[Settlement]) -> tuple[list[Any], ...]:
    errors = [s.error for s in settlements]
    return (
        [s.task for s in settlements],
        [s.claim_no for s in settlements],
        [s.state.value for s in settlements],
        [s.reason for s in settlements],
        [s.charged for s in settlements],
        [s.suspect for s in settlements],
        [s.delay for s in settlements],
        [s.lane for s in settlements],
        [s.attempt for s in settlements],
        [s.result for s in settlements],
        [s.result_ref for s in settlements],
        [s.result_ttl for s in settlements],
        [visible(e.error_class) if e else None for e in errors],
        [visible(e.message) if e else None for e in errors],
        [visible(e.traceback) if e else None for e in errors],
        [e.exit_code if e else None for e in errors],
        [s.dead_letter for s in settlements],
        [s.ran_for for s in settlements],
        [s.recorded_by for s in settlements],
        [s.executor for s in settlements],
    )


def _without_repetitions(settlements: Sequence[Settlement]) -> tuple[list[Settlement], list[Settlement]]:
    """A statement may touch a row once: the second report of one task goes into the next call."""
    first: dict[int, Settlement] = {}
    again = [s for s in settlements if first.setdefault(s.task, s) is not s]
    return list(first.values()), again


def _joined(one: FinishReport, two: FinishReport) -> FinishReport:
    accepted = one.accepted | two.accepted
    return FinishReport(
        accepted=accepted,
        repeated=(one.repeated | two.repeated) - accepted,
        refused=(one.refused | two.refused) - accepted,
        claimed=one.claimed + two.claimed,
    )
