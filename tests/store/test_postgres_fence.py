"""A report that begins while its claim holds, and comes to the row when it no longer does."""

import asyncio

import psycopg
import pytest

from headrace.core.lanes import Lane
from headrace.core.task import NewTask, Want
from headrace.store.base import StoreOptions
from headrace.store.connect import connect
from headrace.testing.store_conformance.ledger import completed, ref
from tests.client.draining import registered
from tests.support.waiting import eventually

_WAITING = """
SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


@pytest.mark.requirement("R113", "A69")
async def test_a_report_that_waited_for_the_row_judges_what_it_finds_then(postgres_url: str) -> None:
    """R113: the fence is part of the statement that changes the row. The report begins while its claim holds, waits
    for a row that another is taking over, and is refused. A69: the second claim stands."""
    store = connect(postgres_url, StoreOptions())
    await store.open()
    first_worker, second_worker = await registered(store), await registered(store)
    await store.enqueue([NewTask(name="t")])
    [first] = await store.claim(first_worker, [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=1)])
    async with (
        await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as looking,
        await psycopg.AsyncConnection.connect(postgres_url) as other,
    ):

        async def waits() -> bool:
            return (await (await looking.execute(_WAITING)).fetchone() or (False,))[0]

        await other.execute(
            "UPDATE headrace.tasks SET worker = %s, claim_no = claim_no + 1 WHERE id = %s", (second_worker, first.id)
        )
        late = asyncio.create_task(store.finish(first_worker, [completed(first, '"first"')]))
        await eventually(waits)
        await other.commit()
        assert (await late).refused == {ref(first)}
    record = (await store.get([first.id]))[first.id]
    assert (record.state, record.worker, record.result) == ("claimed", second_worker, None)
    await store.close()
