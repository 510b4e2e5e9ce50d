"""Where a task is asked for: in the app's own store, and where it has moved when it is not there any more.

Only what is not found costs a second look. A ledger that never moved says so in it, and that is all.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from headrace.core.errors import MovedAway, NotFound, StoreUnavailable, UniqueBusy
from headrace.core.live import TaskHead
from headrace.core.task import AttemptRecord, Enqueued, JobRecord, NewTask, TaskRecord
from headrace.store.base import CancelAnswer, LogLine, Movable, Store, Trace
from headrace.store.expecting import Expected
from headrace.store.removing import DeleteAnswer

# A parcel of `db move` is on its way for some milliseconds, or for as long as its mover is dead.
_PATIENCE = 2.0
_PAUSE = 0.02


class Following:
    """The verbs that name a task or a job, in whichever of the two ledgers that is. Lives on the background loop."""

    def __init__(self, store: Store, connect: Callable[[str], Store]) -> None:
        self._store = store
        self._connect = connect
        self._other: Store | None = None
        self._opening = asyncio.Lock()

    async def close(self) -> None:
        other, self._other = self._other, None
        if other is not None:
            await other.close()

    async def get(self, ids: Sequence[int]) -> dict[int, TaskRecord]:
        found = await self._store.get(ids)
        if len(found) == len(set(ids)):
            return found
        missing = [id for id in ids if id not in found]
        trace, other = await self._trace(missing)
        if other is None:
            return {**found, **trace.here}
        # Where both have it, the other's word is the later one.
        return {**found, **trace.on_their_way, **await other.get(missing), **trace.here}

    async def cancel(self, ids: Sequence[int], *, reason: str) -> dict[int, CancelAnswer]:
        answers = await self._store.cancel(ids, reason=reason)
        unknown = [id for id in ids if answers.get(id, CancelAnswer.UNKNOWN) is CancelAnswer.UNKNOWN]
        if unknown and (other := await self._arrived("what is to be cancelled", _anything, unknown)):
            answers.update(await other.cancel(unknown, reason=reason))
        return answers

    async def delete(self, ids: Sequence[int], *, expected: Expected | None = None) -> dict[int, DeleteAnswer]:
        answers = await self._store.delete(ids, expected=expected)
        left = [id for id in ids if answers.get(id, DeleteAnswer.UNKNOWN) in _NOT_FOUND]
        other = await self._arrived("what is to be deleted", _anything, left) if left else None
        if other is not None and (gone := await self._not_here(left)):
            answers.update(await other.delete(gone, expected=expected))
        return answers

    async def retry(self, ids: Sequence[int], *, expected: Expected | None = None) -> list[int]:
        changed = await self._store.retry(ids, expected=expected)
        left = [id for id in ids if id not in changed]
        other = await self._arrived("what is to be retried", _anything, left) if left else None
        if other is not None and (gone := await self._not_here(left)):
            changed = [*changed, *await other.retry(gone, expected=expected)]
        return changed

    async def _not_here(self, ids: Sequence[int]) -> list[int]:
        """What is here stays as it is, and what the other ledger has of it is a copy from before."""
        here = (await self._trace(ids))[0].here
        return [id for id in ids if id not in here]

    async def attempts(self, task: int, *, limit: int | None = None, before: int | None = None) -> list[AttemptRecord]:
        return await (await self._store_of(task)).attempts(task, limit=limit, before=before)

    async def logs(self, task: int, *, claim_no: int | None, after: int, limit: int) -> list[LogLine]:
        return await (await self._store_of(task)).logs(task, claim_no=claim_no, after=after, limit=limit)

    async def lines(self, task: int, *, seen: tuple[int, int], limit: int) -> list[LogLine]:
        """Those behind the one that was seen last, over all attempts."""
        return await (await self._store_of(task)).logs(task, seen=seen, limit=limit)

    async def task_head(self, task: int) -> TaskHead | None:
        if found := (await self._store.task_heads([task])).get(task):
            return found
        # Where it may have moved, its record says as much.
        record = (await self.get([task])).get(task)
        if record is None:
            return None
        return TaskHead(state=record.state, claim_no=record.claim_no, line=0, progress=record.progress)

    async def get_job(self, job: int) -> JobRecord | None:
        found = await self._store.get_job(job)
        if found is None:
            trace, other = await self._trace(())
            if other is not None:
                found = await other.get_job(job) or trace.jobs_on_their_way.get(job)
        return found

    async def with_job[T](self, job: int, act: Callable[[Store], Awaitable[T]]) -> T:
        """An act that raises NotFound where the job is not."""
        try:
            return await act(self._store)
        except NotFound:
            other = await self._arrived(f"job {job}", _job(job))
            if other is None:
                raise
            return await act(other)

    async def with_task[T](self, task: int, act: Callable[[Store], Awaitable[T]]) -> T:
        """An act that raises NotFound where the task is not."""
        try:
            return await act(self._store)
        except NotFound:
            other = await self._arrived(f"task {task}", _anything, [task])
            if other is None:
                raise
            return await act(other)

    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Enqueued]:
        """Keys and jobs that have moved are decided where they are; then a call is two transactions."""
        try:
            return await self._store.enqueue(tasks)
        except MovedAway as moved:
            other = await self._arrived(f"the holder of key {moved.key!r}", _anything, [moved.task_id])
            theirs = {place for place, task in enumerate(tasks) if any(key.key == moved.key for key in task.keys)}
        except NotFound:
            jobs = {task.job for task in tasks}
            other = await self._arrived("its job", lambda trace: not jobs.isdisjoint(trace.jobs_on_their_way))
            theirs = {place for place, task in enumerate(tasks) if task.job is not None}
            if other is None:
                raise
        assert other is not None  # a key's holder moves with its ledger
        there = await other.enqueue([tasks[place] for place in sorted(theirs)])
        left = [task for place, task in enumerate(tasks) if place not in theirs]
        answers, here = iter(there), iter(await self.enqueue(left) if left else ())
        return [next(answers) if place in theirs else next(here) for place in range(len(tasks))]

    async def _store_of(self, task: int) -> Store:
        if not isinstance(self._store, Movable):
            return self._store
        trace, other = await self._trace([task])
        return self._store if other is None or trace.here else other

    async def _arrived(self, what: str, on_its_way: Callable[[Trace], bool], ids: Sequence[int] = ()) -> Store | None:
        """The other ledger, once nothing of this is on its way any more; None where the ledger has not moved."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            trace, other = await self._trace(ids)
            if other is None or not on_its_way(trace):
                return other
            if time.monotonic() > deadline:
                told = (
                    f"{what} has been on its way to another database (headrace db move) for {_PATIENCE:g} s: nothing "
                    "was changed. Run the move again, if nobody does; it is safe to try again"
                )
                raise UniqueBusy(told) if what.startswith("the holder") else StoreUnavailable(told)
            await asyncio.sleep(_PAUSE)

    async def _trace(self, ids: Sequence[int]) -> tuple[Trace, Store | None]:
        if not isinstance(self._store, Movable):
            return _NOWHERE, None
        trace = await self._store.trace(ids)
        return trace, None if trace.moved_to is None else await self._opened(trace.moved_to)

    async def _opened(self, url: str) -> Store:
        async with self._opening:
            if self._other is None:
                other = self._connect(url)
                try:
                    await other.open()
                except BaseException:
                    await other.close()
                    raise
                self._other = other
            return self._other


# One that was expected otherwise, and one that is not here at all, are answered alike.
_NOT_FOUND = (DeleteAnswer.UNKNOWN, DeleteAnswer.CHANGED_MEANWHILE)


def _anything(trace: Trace) -> bool:
    return bool(trace.on_their_way)


def _job(job: int) -> Callable[[Trace], bool]:
    return lambda trace: job in trace.jobs_on_their_way


_NOWHERE = Trace(here={}, on_their_way={}, jobs_on_their_way={}, moved_to=None)
