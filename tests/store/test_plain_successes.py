"""A plain success is one row, and its end waits for nobody who leaves a note on its claim."""

import asyncio
from typing import Any

import asyncpg
from sqlalchemy import text

from headrace.core.lanes import Lane
from headrace.core.outcome import Completed
from headrace.core.settlement import Execution
from headrace.core.states import AttemptState
from headrace.core.task import Want
from headrace.store import migrations
from headrace.store.connect import connect
from headrace.testing.store_conformance.ledger import Ledger, completed, settled, task
from tests.migrations.shape import engine_for
from tests.store.test_postgres_connection import opened

_asyncpg: Any = asyncpg
_NOTE = (
    "INSERT INTO headrace.attempts (task, claim_no, state, worker, late_state, late_at)"
    " VALUES ($1, $2, 'refused', 'b', 'failed', clock_timestamp())"
)


def test_it_writes_no_attempt(store_url: str) -> None:
    """What saves an insert for nearly every task; what a rescuer recorded still has its row."""
    migrations.upgrade(store_url, name="headrace")

    async def run() -> int:
        ledger = Ledger(lambda: connect(store_url), None)
        await ledger.open()
        try:
            await ledger.enqueue(*[task() for _ in range(5)])
            *plain, rescued = await ledger.claim()
            by_rescuer = settled(rescued, Completed(), execution=Execution(ran_for=0.0, recorded_by="rescuer"))
            await ledger.finish("a", *map(completed, plain), by_rescuer)
            return rescued.id
        finally:
            await ledger.close()

    rescued = asyncio.run(run())
    engine = engine_for(store_url)
    table = "headrace_attempts" if engine.dialect.name == "sqlite" else "headrace.attempts"
    with engine.connect() as connection:
        assert connection.execute(text(f"SELECT task, state FROM {table}")).all() == [(rescued, "succeeded")]
    engine.dispose()


async def test_a_note_that_is_being_written_neither_stops_nor_hides_it(postgres_url: str) -> None:
    """Its transaction is open while the success is written, and commits after it."""
    async with opened(postgres_url) as store:
        await store.enqueue([task()])
        (claim,) = await store.claim("a", [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=1)])
        stranger = await _asyncpg.connect(postgres_url)
        try:
            await stranger.execute("BEGIN")
            await stranger.execute(_NOTE, claim.id, claim.claim_no)
            report = await asyncio.wait_for(store.finish("a", [completed(claim)]), 20)
            assert report.accepted == {(claim.id, claim.claim_no)}
            await stranger.execute("COMMIT")
        finally:
            await stranger.close()
        (attempt,) = await store.attempts(claim.id)
        assert (attempt.state, attempt.worker, attempt.late_state) == (AttemptState.SUCCEEDED, "a", "failed")
        assert (await store.finish("a", [completed(claim)])).repeated == {(claim.id, claim.claim_no)}
        assert await store.check() == []
