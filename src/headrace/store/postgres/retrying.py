"""Manual retry: a new run of what ended."""

from collections.abc import Mapping, Sequence

import asyncpg

from headrace.core.errors import NotFound, WrongState
from headrace.store.expecting import Expected
from headrace.store.postgres.connection import Connection, Database, column
from headrace.store.postgres.expecting import parameters


class Retrying:
    def __init__(self, database: Database, queries: Mapping[str, str]) -> None:
        self._database = database
        self._queries = queries

    async def retry(self, ids: Sequence[int], *, expected: Expected | None = None) -> list[int]:
        wanted = list(set(ids))
        if expected is None:
            [row] = await self._database.fetch(self._queries["reopen"], wanted)
            return row[0]

        async def write(connection: Connection) -> list[int]:
            found = await connection.fetch(self._queries["expected_ended"], wanted, *parameters(expected))
            return await connection.fetchval(self._queries["reopen"], column(found)) if found else []

        return await self._database.run(write)

    async def retry_failed(self, job: int) -> list[int]:
        async def write(connection: Connection) -> list[int]:
            state = await connection.fetchval(self._queries["lock_job"], job)
            if state is None:
                raise NotFound(f"no job {job}; nothing was retried")
            if state not in ("failed", "cancelled"):
                raise WrongState(f"job {job} is {state}: only a failed or cancelled job has failed tasks to retry")
            if stopping := await connection.fetchval(self._queries["stopping_of_job"], job):
                # It belongs to the run that is over, and its end would be taken for one of the new run.
                raise WrongState(f"job {job} is {state} and still stopping: task {stopping} has not ended; try again")
            ids = column(await connection.fetch(self._queries["failed_of_job"], job, state == "cancelled"))
            return await connection.fetchval(self._queries["reopen"], ids)

        return await self._database.run(write)

    async def clear(self, task: int) -> list[int]:
        try:
            [row] = await self._database.fetch(self._queries["clear"], task)
        except asyncpg.PostgresError as error:
            match getattr(error, "sqlstate", None):
                case "HR002":
                    raise NotFound(f"no task {task}; nothing was cleared") from error
                case "HR006":
                    state = getattr(error, "hint", None)
                    found = f"task {getattr(error, 'detail', task)} is {state}" if state else str(error)
                    raise WrongState(
                        f"{found}: a task is cleared once it has ended, and nothing below it is in a worker's hands; "
                        "nothing was cleared"
                    ) from error
                case _:
                    raise
        return row[0]
