"""Removal of tasks with everything that is keyed by them."""

from collections.abc import Mapping, Sequence

from headrace.core.states import Reason
from headrace.store.expecting import Expected
from headrace.store.postgres.connection import Connection, Database, column
from headrace.store.postgres.expecting import parameters
from headrace.store.removing import DeleteAnswer, removable


class Removing:
    def __init__(self, database: Database, queries: Mapping[str, str]) -> None:
        self._database = database
        self._queries = queries

    async def purge(self, ids: Sequence[int]) -> list[int]:
        wanted = list(ids)

        async def work(connection: Connection) -> list[int]:
            found = column(await connection.fetch(self._queries["dead_letters"], wanted))
            return column(await connection.fetch(self._queries["remove"], found, False)) if found else []

        return sorted(await self._database.run(work, repeatable=True))

    async def delete(self, ids: Sequence[int], *, expected: Expected | None = None) -> dict[int, DeleteAnswer]:
        wanted = list(dict.fromkeys(ids))

        async def work(connection: Connection) -> dict[int, DeleteAnswer]:
            if expected is None:
                return await remove(connection, wanted)
            chosen: list[int] = []
            for query in ("expected_live", "expected_ended"):
                chosen += column(await connection.fetch(self._queries[query], wanted, *parameters(expected)))
            return {**dict.fromkeys(wanted, DeleteAnswer.CHANGED_MEANWHILE), **await remove(connection, chosen)}

        async def remove(connection: Connection, chosen: Sequence[int]) -> dict[int, DeleteAnswer]:
            answers = dict.fromkeys(chosen, DeleteAnswer.UNKNOWN)
            free: list[int] = []
            over: list[int] = []
            # What somebody runs again between the first two looks is found by the third.
            for query in ("live_to_remove", "done_to_remove", "live_to_remove"):
                missing = [id for id, answer in answers.items() if answer is DeleteAnswer.UNKNOWN]
                for row in await connection.fetch(self._queries[query], missing) if missing else ():
                    answers[row["id"]] = DeleteAnswer.HELD if row["held"] else DeleteAnswer.NEEDED
                    if not row["held"] and not row["open_job"]:
                        (over if query == "done_to_remove" else free).append(row["id"])
            waiting = await connection.fetch(self._queries["live_waiters"], [*free, *over])
            going = removable((*free, *over), [(row["upstream"], row["task"]) for row in waiting])
            if ending := [id for id in free if id in going]:
                # By way of an end like any other, so that whatever it held is free: keys, room behind gates, its place
                # in an order.
                ended = await connection.fetchval(
                    self._queries["end_tasks"], ending, "cancelled", Reason.USER.value, None, None
                )
                await connection.execute(self._queries["ended"], ended)
            if going:
                await connection.fetch(self._queries["remove"], sorted(going), True)
            return {**answers, **dict.fromkeys(going, DeleteAnswer.DELETED)}

        # Not repeated by itself: the second try would not know any more what the first one removed.
        return await self._database.run(work)
