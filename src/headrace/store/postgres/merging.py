"""A schedule that comes with a move, where the target has one of the same name.

Mostly that is one schedule: a worker with the new URL was started before the source's row came, and declared it anew.
Then the older row is the one that operators knew, so what it says stands: its pause, its changes, its id and runs. What
the code declared differently in the target is newer than both and stays; only a pause still comes along. A row that is
younger than the target's (a worker was started with the old URL after the move) changes nothing.
"""

from headrace.store.postgres.connection import Connection

_SAID = ("cadence", "task", "catch_up", "grace", "overlap", "jitter", "problem")


async def merge_schedules(connection: Connection, name: str, rows: str) -> None:
    """`rows` are the source's, as JSON. Afterwards those that stand have the source's ids."""
    await connection.execute(f"LOCK TABLE {name}.schedules IN SHARE ROW EXCLUSIVE MODE")
    given = f"json_populate_recordset(NULL::{name}.schedules, $1::text::json) AS given"
    pairs = await connection.fetch(
        f"SELECT mine.id, given.id FROM {given} JOIN {name}.schedules AS mine USING (name)"
        " WHERE mine.id <> given.id AND given.created_at < mine.created_at",
        rows,
    )
    if not pairs:
        return
    same = "(mine.declaration, mine.declared_by) IS NOT DISTINCT FROM (given.declaration, given.declared_by)"
    said = ", ".join(f"{column} = CASE WHEN {same} THEN given.{column} ELSE mine.{column} END" for column in _SAID)
    # No tick that one of them has fired is fired again; the revision ends a fire that read either row before.
    await connection.execute(
        f"UPDATE {name}.schedules AS mine SET id = given.id, {said},"
        f" paused = CASE WHEN {same} THEN given.paused ELSE mine.paused OR given.paused END,"
        " cursor = greatest(mine.cursor, given.cursor), next_at = least(mine.next_at, given.next_at),"
        " revision = greatest(mine.revision, given.revision) + 1, created_at = given.created_at,"
        " changed_at = clock_timestamp()"
        f" FROM {given} WHERE mine.name = given.name AND mine.id = ANY ($2::bigint[])",
        rows,
        [mine for mine, _ in pairs],
    )
    for mine, theirs in pairs:
        await connection.execute(f"UPDATE {name}.schedule_runs SET schedule = $2 WHERE schedule = $1", mine, theirs)
