"""The clock of a test, in place of the server's.

Every statement asks the function `clock_timestamp()`, without its schema. The sessions of a store that was given a
clock look for functions in a schema of that clock first, and find another one there: it answers what the session was
told before the statement. Other sessions, and stores without such a clock, never meet it.
"""

from typing import Any

from headrace.core.clock import Clock

# One at a time: CREATE OR REPLACE of the same function by two sessions fails in one of them.
_INSTALL = """
SELECT pg_advisory_xact_lock(hashtext('{schema}'));
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE OR REPLACE FUNCTION {schema}.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(nullif(current_setting('headrace.now', true), '')::timestamptz, pg_catalog.clock_timestamp())
$$;
"""
_SET = "SELECT set_config('headrace.now', $1, false)"


class SessionClock:
    def __init__(self, clock: Clock, name: str) -> None:
        self._clock = clock
        self._schema = f"{name}_clock"

    @property
    def server_settings(self) -> dict[str, str]:
        """pg_catalog would be searched first if it were not named."""
        return {"search_path": f"{self._schema}, pg_catalog"}

    async def install(self, connection: Any) -> None:
        async with connection.transaction():
            await connection.execute(_INSTALL.format(schema=self._schema))

    async def set(self, connection: Any) -> None:
        """What time it is for the statements that follow."""
        await connection.execute(_SET, self._clock.now().isoformat())
