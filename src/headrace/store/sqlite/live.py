"""What grows while somebody watches: numbered events and lines of jobs, and hints by datagrams."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import orjson

from headrace.core.live import VALUES, JobEvent, JobHead, JobLine, TaskHead
from headrace.core.states import JobState, TaskState
from headrace.core.task import Ref
from headrace.store.instants import from_micros
from headrace.store.sqlite.connection import Part, Row, Transaction
from headrace.store.sqlite.ending import ids_json
from headrace.store.sqlite.sockets import bound, remove_forgotten, send, socket_folder, unbound
from headrace.store.texts import mended
from headrace.store.watching import EVERYTHING, Hints, job_topic, packed, task_topic, unpacked

_LONGEST_MESSAGE = 4096
_DEAF_POLL = 1.0  # where no socket can be had

type Line = tuple[Ref, int, str, str]


def append_logs(transaction: Transaction, lines: Sequence[Line]) -> None:
    """Those of a job's tasks are numbered in the order of the call; one that was written before keeps its number."""
    tasks = ids_json({ref.id for ref, _, _, _ in lines})
    places = orjson.dumps([(ref.id, ref.claim_no, seq) for ref, seq, _, _ in lines]).decode()
    written: set[Row] = set(transaction.rows("written_lines", (places,)))
    owners: dict[int, int] = dict(transaction.rows("owners_of_lines", {"ids": tasks}))
    following: dict[int, int] = {}
    if owners:
        following = dict.fromkeys(owners.values(), 0) | dict(
            transaction.rows("next_lines", (ids_json(set(owners.values())),))
        )
    grown: set[int] = set()
    rows: list[Row] = []
    for ref, seq, stream, line in lines:
        if (place := (ref.id, ref.claim_no, seq)) in written:
            continue
        written.add(place)
        job = owners.get(ref.id) if stream != VALUES else None
        number = None
        if job is not None:
            number = following[job]
            following[job] = number + 1
            grown.add(job)
        rows.append((*place, transaction.now, stream, mended(line), job, number))
    transaction.insert_all("append_logs", rows)
    transaction.run_many("set_next_line", [{"job": job, "next": following[job]} for job in sorted(grown)])
    transaction.grown.update(map(job_topic, grown))
    transaction.grown.update(task_topic(ref.id) for ref, _, _, _ in lines)


class Watching(Part):
    _watchers: set[Hints]
    _live_folder: Path | None

    def prepare_watching(self) -> None:
        """Told by the store once its database exists."""
        self._watchers = set()
        # Apart from the sockets of workers, who are not to be woken by this.
        self._live_folder = None if self.database.in_memory else socket_folder(f"{self.database.path}#live")
        self.database.grown = self._tell

    def _tell(self, topics: set[str]) -> None:
        if self._live_folder is not None:
            send(self._live_folder, packed(topics, limit=_LONGEST_MESSAGE))
            return
        for hints in tuple(self._watchers):
            hints.offer_from_thread(topics)

    @asynccontextmanager
    async def watch(self) -> AsyncGenerator[AsyncIterator[str]]:
        hints = Hints()
        hints.offer((EVERYTHING,))  # what came before was not heard
        loop = asyncio.get_running_loop()
        folder = self._live_folder
        self._watchers.add(hints)
        try:
            if folder is None:
                yield hints
                return
            await asyncio.to_thread(remove_forgotten)
            receiver = bound(folder)
            if receiver is None:
                poll = asyncio.create_task(_hint_each_second(hints), name="headrace-watch")
                try:
                    yield hints
                finally:
                    poll.cancel()
                return

            def receive() -> None:
                with suppress(BlockingIOError):
                    while True:
                        hints.offer(unpacked(receiver.recv(_LONGEST_MESSAGE).decode(errors="replace")))

            loop.add_reader(receiver.fileno(), receive)
            try:
                yield hints
            finally:
                loop.remove_reader(receiver.fileno())
                unbound(receiver)
        finally:
            self._watchers.discard(hints)

    async def announce(self, topics: Iterable[str]) -> None:
        if grown := set(topics):
            self._tell(grown)

    async def append_logs(self, lines: Sequence[Line]) -> None:
        if lines:
            await self.database.write(lambda transaction: append_logs(transaction, lines))

    async def job_events(self, job: int, *, after: int = -1, limit: int = 500) -> list[JobEvent]:
        return await self._list("job_events", _event, {"job": job, "after": after, "limit": limit})

    async def last_job_events(self, job: int, *, limit: int = 500) -> list[JobEvent]:
        return (await self._list("last_job_events", _event, {"job": job, "limit": limit}))[::-1]

    async def job_lines(self, job: int, *, after: int = -1, limit: int = 500) -> list[JobLine]:
        return await self._list("job_lines", _line, {"job": job, "after": after, "limit": limit})

    async def last_job_lines(self, job: int, *, limit: int = 500) -> list[JobLine]:
        return (await self._list("last_job_lines", _line, {"job": job, "limit": limit}))[::-1]

    async def _list[T](self, query: str, made: Callable[[Row], T], parameters: Mapping[str, Any]) -> list[T]:
        rows = await self.database.read(lambda transaction: transaction.rows(query, parameters))
        return [made(row) for row in rows]

    async def job_heads(self, jobs: Sequence[int]) -> dict[int, JobHead]:
        rows = await self.database.read(lambda transaction: transaction.rows("job_heads", (ids_json(jobs),)))
        return {job: JobHead(event=event, line=line) for job, event, line in rows}

    async def task_heads(self, tasks: Sequence[int]) -> dict[int, TaskHead]:
        rows = await self.database.read(lambda transaction: transaction.rows("task_heads", {"ids": ids_json(tasks)}))
        return {
            id: TaskHead(state=TaskState(state), claim_no=claim_no, line=line, progress=progress)
            for id, state, claim_no, progress, line in rows
        }


async def _hint_each_second(hints: Hints) -> None:
    while True:
        await asyncio.sleep(_DEAF_POLL)
        hints.offer((EVERYTHING,))


def _event(row: Row) -> JobEvent:
    job, seq, at, state, total, completed, failed, cancelled = row
    return JobEvent(
        job=job,
        seq=seq,
        at=from_micros(at),
        state=JobState(state),
        total=total,
        completed=completed,
        failed=failed,
        cancelled=cancelled,
    )


def _line(row: Row) -> JobLine:
    job, seq, task, claim_no, at, stream, line = row
    return JobLine(job=job, seq=seq, task=task, claim_no=claim_no, at=from_micros(at), stream=stream, line=line)
