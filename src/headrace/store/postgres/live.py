"""What grows while somebody watches: numbered events and lines of jobs, and hints by LISTEN/NOTIFY."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import Context
from typing import Any

import asyncpg

from headrace.core.errors import HeadraceError
from headrace.core.live import JobEvent, JobHead, JobLine, TaskHead
from headrace.core.states import JobState, TaskState
from headrace.store.postgres.connection import Database
from headrace.store.postgres.listening import listen_for_ever
from headrace.store.watching import EVERYTHING, Hints, job_topic, packed, unpacked

# NOTIFY takes a lock that serialises commits: a process sends all its hints at most so often.
_QUIET = 0.050
_LONGEST = 7900  # bytes; PostgreSQL refuses 8000
_AT_MOST = 5_000  # topics that are named; more of them are everything


class Announcer:
    """Sends hints after the commits that they are about: at the first sign, then at most once in a quiet time."""

    def __init__(self, database: Database, queries: Mapping[str, str], *, notify: bool) -> None:
        self._database = database
        self._queries = queries
        self._notify = notify  # False: whoever watches polls
        self._pending: set[str] = set()
        self._last = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None

    def note_jobs(self, jobs: Iterable[int | None]) -> None:
        if named := [job_topic(job) for job in jobs if job is not None]:
            self.note(named)

    def note(self, topics: Iterable[str]) -> None:
        self._pending.update(topics)
        if len(self._pending) > _AT_MOST:
            self._pending = {EVERYTHING}
        if self._pending and self._timer is None and self._notify:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(loop.time(), self._last + _QUIET), self._send_soon)

    async def close(self) -> None:
        """What was noted last is still told."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        if self._sending is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._sending
        if self._pending and self._notify and self._database.is_open:
            await self._send()

    def _send_soon(self) -> None:
        self._timer = None
        if self._sending is not None and not self._sending.done():
            # The one before has not got through: more of them would only pile up.
            self._timer = asyncio.get_running_loop().call_later(_QUIET, self._send_soon)
            return
        self._last = asyncio.get_running_loop().time()
        if self._database.is_open:
            self._sending = asyncio.create_task(self._send(), name="headrace-announce", context=Context())

    async def _send(self) -> None:
        topics, self._pending = self._pending, set()
        # A hint that is lost costs whoever watches a look of its own.
        with contextlib.suppress(HeadraceError, asyncpg.PostgresError):
            await self._database.fetch(self._queries["announce"], list(packed(topics, limit=_LONGEST)))


class Watchers:
    """One LISTEN connection for all who watch through this store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._watchers: set[Hints] = set()
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def watch(self) -> AsyncGenerator[AsyncIterator[str]]:
        hints = Hints()
        self._watchers.add(hints)
        if self._task is None or self._task.done():
            channels = {f"{self._database.name}_live": self._hear}
            served = listen_for_ever(self._database, channels, lambda: self._tell((EVERYTHING,)))
            self._task = asyncio.create_task(served, name="headrace-watch", context=Context())
        else:
            hints.offer((EVERYTHING,))  # as for one who has just connected: what came before was not heard
        try:
            yield hints
        finally:
            self._watchers.discard(hints)
            if not self._watchers:
                await self.close()

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _hear(self, message: str) -> None:
        self._tell(unpacked(message))

    def _tell(self, topics: Collection[str]) -> None:
        for hints in self._watchers:
            hints.offer(topics)


class Live:
    def __init__(self, database: Database, queries: Mapping[str, str]) -> None:
        self._database = database
        self._queries = queries

    async def job_events(self, job: int, *, after: int = -1, limit: int = 500) -> list[JobEvent]:
        rows = await self._database.fetch(self._queries["job_events"], job, after, limit, repeatable=True)
        return [_event(row) for row in rows]

    async def last_job_events(self, job: int, *, limit: int = 500) -> list[JobEvent]:
        rows = await self._database.fetch(self._queries["last_job_events"], job, limit, repeatable=True)
        return [_event(row) for row in reversed(rows)]

    async def job_lines(self, job: int, *, after: int = -1, limit: int = 500) -> list[JobLine]:
        rows = await self._database.fetch(self._queries["job_lines"], job, after, limit, repeatable=True)
        return [JobLine(**row) for row in rows]

    async def last_job_lines(self, job: int, *, limit: int = 500) -> list[JobLine]:
        rows = await self._database.fetch(self._queries["last_job_lines"], job, limit, repeatable=True)
        return [JobLine(**row) for row in reversed(rows)]

    async def job_heads(self, jobs: Sequence[int]) -> dict[int, JobHead]:
        rows = await self._database.fetch(self._queries["job_heads"], list(jobs), repeatable=True)
        return {row["job"]: JobHead(event=row["event"], line=row["line"]) for row in rows}

    async def task_heads(self, tasks: Sequence[int]) -> dict[int, TaskHead]:
        rows = await self._database.fetch(self._queries["task_heads"], list(tasks), repeatable=True)
        return {
            row["id"]: TaskHead(
                state=TaskState(row["state"]), claim_no=row["claim_no"], line=row["line"], progress=row["progress"]
            )
            for row in rows
        }


def _event(row: Mapping[str, Any]) -> JobEvent:
    fields: dict[str, Any] = {**row, "state": JobState(row["state"])}
    return JobEvent(**fields)
