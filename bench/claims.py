"""What a claim touches in PostgreSQL: pages, which the noise of a machine does not change and a wrong plan does."""

import asyncio

import psycopg
from psycopg import sql

from headrace.core.lanes import Lane
from headrace.core.task import Want
from headrace.store.connect import connect
from tests.support.postgres import PrivatePostgres

BATCH = 100
_WARM = 8  # the server keeps a generic plan from the sixth execution on
CLAIMS = 20
TASKS = BATCH * (_WARM + CLAIMS)

_TOUCHED = """
SELECT coalesce(sum(shared_blks_hit + shared_blks_read), 0)::float FROM pg_stat_statements
WHERE toplevel AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND query NOT ILIKE '%pg_stat_statements%'
"""


def count_statements(server: PrivatePostgres) -> None:
    """Have the server count what statements touch. Only for this measure: counting has a price of its own."""
    with server.connect() as connection:
        connection.execute("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'")
    server.restart()


def stop_counting(server: PrivatePostgres) -> None:
    with server.connect() as connection:
        connection.execute("ALTER SYSTEM RESET shared_preload_libraries")
    server.restart()


def buffers_per_claim(url: str) -> float:
    """Pages per claim of a hundred tasks, through the store as a worker uses it, whatever its statements are."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        return asyncio.run(_claim(url, connection))


async def _claim(url: str, connection: psycopg.Connection) -> float:
    store = connect(url)
    await store.open()
    try:
        wants = [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=BATCH)]
        for number in range(_WARM + CLAIMS):
            if number == _WARM:
                connection.execute("SELECT pg_stat_statements_reset()")
            claimed = await store.claim("bench", wants)
            if len(claimed) != BATCH:
                raise RuntimeError(f"a claim gave {len(claimed)} tasks of {BATCH}")
        row = connection.execute(_TOUCHED).fetchone()
    finally:
        await store.close()
    assert row is not None
    return row[0] / CLAIMS


def multiply_history(url: str, rows: int) -> None:
    """Copies of what has finished, until there are `rows`: the same but for their ids. Attempts go with their tasks."""
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute("SELECT count(*), max(id) FROM headrace.history").fetchone()
        assert found is not None
        have, highest = found
        times = max(0, -(-(rows - have) // have))
        for table, key in (("history", "id"), ("attempts", "task")):
            names = [
                name
                for (name,) in connection.execute(
                    "SELECT column_name FROM information_schema.columns WHERE table_schema = 'headrace'"
                    " AND table_name = %s ORDER BY ordinal_position",
                    (table,),
                )
            ]
            # Below the ids in use, so that no later task meets one of these.
            values = [
                sql.SQL("h.{} - k * {}").format(sql.Identifier(name), sql.Literal(highest // (times + 1)))
                if name == key
                else sql.SQL("h.{}").format(sql.Identifier(name))
                for name in names
            ]
            connection.execute(
                sql.SQL(
                    "INSERT INTO headrace.{table} ({names}) SELECT {values} FROM headrace.{table} AS h,"
                    " generate_series(1, {times}) AS k"
                ).format(
                    table=sql.Identifier(table),
                    names=sql.SQL(", ").join(map(sql.Identifier, names)),
                    values=sql.SQL(", ").join(values),
                    times=sql.Literal(times),
                )
            )
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")
