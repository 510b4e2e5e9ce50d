"""What tasks wait for: their edges, what those pass on, and decisions of people."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from headrace.core.errors import NotFound, WrongState
from headrace.core.states import Reason, TaskState
from headrace.core.task import Edge, Input, TaskRecord
from headrace.store.postgres.connection import Connection, Database, Rows
from headrace.store.postgres.edges import KINDS
from headrace.store.postgres.inspection import Inspection
from headrace.store.postgres.job_ends import JobEnds


class Graphs:
    def __init__(self, database: Database, queries: Mapping[str, str], inspection: Inspection) -> None:
        self._database = database
        self._queries = queries
        self._inspection = inspection
        self._job_ends = JobEnds(database, queries)

    async def edges(self, tasks: Sequence[int]) -> list[Edge]:
        rows = await self._database.fetch(self._queries["edges"], list(tasks), repeatable=True)
        return [
            Edge(task=task, upstream=upstream, kind=KINDS[int(kind)], input=input, place=place)
            for task, upstream, kind, input, place in rows
        ]

    async def inputs(self, task: int) -> list[Input]:
        rows = await self._database.fetch(self._queries["inputs"], task, repeatable=True)
        return [
            Input(
                input=input,
                place=place,
                task=upstream,
                name=name,
                state=TaskState(state),
                codec=codec,
                result=result,
                result_ref=reference,
            )
            for input, place, upstream, name, state, codec, result, reference in rows
        ]

    async def decide(self, task: int, *, approved: bool, by: str, note: str | None = None) -> TaskRecord:
        async def write(connection: Connection) -> Rows | None:
            # Of two at once the second finds another state.
            if not await connection.fetch(self._queries["undecided"], task):
                return None
            if approved:
                await self._approve(connection, task, by, note)
                return []
            message = f"rejected by {by}" + (f": {note}" if note else "")
            ended: list[int] = await connection.fetchval(
                self._queries["end_tasks"], [task], "rejected", Reason.USER.value, "headrace.Rejected", message
            )
            await connection.execute(self._queries["ended"], ended)
            return await self._job_ends.of_tasks(connection, ended)

        ends = await self._database.run(write)
        record = (await self._inspection.get([task])).get(task)
        if record is None:
            raise NotFound(f"no task {task}; nothing was decided")
        if ends is None:
            raise WrongState(f"task {task} is {record.state}: it does not wait for anybody's approval")
        self._job_ends.tell(ends)
        return record

    async def _approve(self, connection: Connection, task: int, by: str, note: str | None) -> None:
        [row] = await connection.fetch(self._queries["approve"], task)
        says: dict[str, Any] = {"at": row["at"].isoformat(), "by": by, "note": note}
        await connection.execute(
            self._queries["keep_approval"],
            task,
            orjson.dumps(says, option=orjson.OPT_SORT_KEYS).decode(),
            row["claim_no"],
            row["attempt"] + 1,
            row["at"],
        )
        await connection.execute(self._queries["notify"], [row["queue"]])
