"""Cancel: at once where nobody holds the task, by asking its worker where somebody does."""

from collections.abc import Mapping, Sequence

from headrace.core.task import Ref
from headrace.store.base import CancelAnswer
from headrace.store.expecting import Expected
from headrace.store.postgres.connection import Connection, Database, Rows, column
from headrace.store.postgres.expecting import parameters
from headrace.store.postgres.job_ends import JobEnds
from headrace.store.postgres.live import Announcer
from headrace.store.watching import task_topic


class Cancelling:
    def __init__(self, database: Database, queries: Mapping[str, str], announcer: Announcer) -> None:
        self._database = database
        self._queries = queries
        self._announcer = announcer
        self._job_ends = JobEnds(database, queries)

    async def cancel(
        self, ids: Sequence[int], *, reason: str = "user", expected: Expected | None = None
    ) -> dict[int, CancelAnswer]:
        wanted = list(dict.fromkeys(ids))

        async def work(connection: Connection) -> tuple[Rows, Rows]:
            chosen = wanted
            if expected is not None:
                chosen = column(await connection.fetch(self._queries["expected_live"], wanted, *parameters(expected)))
            rows = await connection.fetch(self._queries["cancel"], chosen, reason)
            ended = [row["id"] for row in rows if row["answer"] == CancelAnswer.CANCELLED]
            return rows, await self._job_ends.of_tasks(connection, ended)

        # Not repeated by itself: the second try would call what the first one ended too late.
        rows, ends = await self._database.run(work, transaction=self._job_ends.wanted or expected is not None)
        self._job_ends.tell(ends)
        self._announcer.note({task_topic(id) for id in wanted})
        self._announcer.note_jobs(row["job"] for row in rows)
        answers = {row["id"]: CancelAnswer(row["answer"]) for row in rows}
        return {id: answers.get(id, CancelAnswer.CHANGED_MEANWHILE) for id in wanted}

    async def cancelling(self, worker: str) -> list[Ref]:
        rows = await self._database.fetch(self._queries["cancelling"], worker, repeatable=True)
        return [Ref(row["id"], row["claim_no"]) for row in rows]
