"""Telling who counts of the jobs that ended."""

import logging
from collections.abc import Iterable, Mapping, Sequence

from headrace.core.errors import StoreUnavailable
from headrace.core.states import JobState
from headrace.store.base import JobEnd
from headrace.store.hooks import hook_task
from headrace.store.postgres.connection import Connection, Database, Rows

_logger = logging.getLogger("headrace.store")


class JobEnds:
    """Every question here is asked only while somebody listens. What is told has been committed, so that a listener
    which fails, or an answer that does not come, must not look like a failure of the verb.
    """

    def __init__(self, database: Database, queries: Mapping[str, str]) -> None:
        self._database = database
        self._queries = queries

    @property
    def wanted(self) -> bool:
        return self._database.job_ended is not None

    async def of_tasks(self, connection: Connection, ended: Sequence[int]) -> Rows:
        """The jobs that ended with these tasks, in the transaction that ended them."""
        return await connection.fetch(self._queries["job_ends"], ended) if self.wanted and ended else []

    async def tell_of(self, job: int) -> None:
        """Of one that was closed."""
        if self.wanted:
            try:
                rows = await self._database.fetch(self._queries["job_end"], job, repeatable=True)
            except StoreUnavailable as error:
                _logger.warning("job %s was closed, and nobody could be told: %s", job, error)
            else:
                self.tell(rows)

    def tell(self, rows: Rows) -> None:
        self.tell_all((row["id"], row["state"], row["took"], row["hook"]) for row in rows)

    def tell_all(self, ends: Iterable[tuple[int, str, float | None, str | None]]) -> None:
        listener = self._database.job_ended
        if listener is not None:
            for job, state, took, hook in ends:
                try:
                    task = None if hook is None else hook_task(hook)
                    listener(JobEnd(job=job, state=JobState(state), took=took, hook=task))
                except Exception:
                    _logger.exception("job %s ended, and who counts could not be told", job)
