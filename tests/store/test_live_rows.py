"""What the database itself refuses of a live row, whoever writes it."""

import itertools
from contextlib import suppress

from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from headrace.core.states import HELD, TaskState
from tests.migrations.shape import engine_for

_INSERT = """
INSERT INTO {table} (id, name, kind, queue, pool, state, worker, ready_at, arguments, codec, options, created_at,
                     enqueued_at, eligible_at, order_at)
VALUES (1, 't', 'function', 'default', 'coroutine', :state, :worker, {ready}, '{{}}', 'json/1', '{{}}', {at}, {at},
        {at}, {at})
"""


def test_a_live_row_has_a_live_state_a_holder_when_it_is_held_and_is_ready_only_while_pending(store_url: str) -> None:
    engine = engine_for(store_url)
    sqlite = engine.dialect.name == "sqlite"
    table, at = ("headrace_tasks", "1") if sqlite else ("headrace.tasks", "now()")
    accepted: set[tuple[str, bool, bool]] = set()
    states = [*(state.value for state in TaskState), "asleep"]
    for state, held, ready in itertools.product(states, (False, True), (False, True)):
        sql = _INSERT.format(table=table, at=at, ready=at if ready else "NULL")
        with engine.connect() as connection:
            with suppress(IntegrityError):
                connection.execute(text(sql), {"state": state, "worker": "w" if held else None})
                accepted.add((state, held, ready))
            connection.rollback()
    engine.dispose()
    live = [state for state in TaskState if not state.terminal]
    expected = {(state.value, state in HELD, False) for state in live} | {("pending", False, True)}
    assert accepted == expected
