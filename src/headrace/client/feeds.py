"""What comes one after the other: lines, values of streams, events of jobs, handles whose tasks end."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any

from headrace.client.bridge import run_blocking, running_loop
from headrace.client.engine import Engine
from headrace.client.following import Following
from headrace.core.errors import NotFound, RunningLoop
from headrace.core.live import VALUES, JobEvent, JobLine
from headrace.core.payload import loads
from headrace.store.base import LogLine
from headrace.store.watching import job_topic, task_topic

_PAGE = 500

type More[T] = Callable[[], Coroutine[Any, Any, Sequence[T] | None]]
type Look[T] = Callable[[Following], Coroutine[Any, Any, tuple[Sequence[T], bool]]]


class Feed[T]:
    """`for` blocks until the next one is there, `async for` does not. Each loop over it begins anew."""

    def __init__(self, name: str, begin: Callable[[], More[T]]) -> None:
        self._name = name
        self._begin = begin  # gives what is next, each time it is called; None: there is no more

    def __iter__(self) -> Iterator[T]:
        if running_loop() is not None:
            raise RunningLoop(
                f"`for … in {self._name}` would block this thread, which runs an event loop: use `async for`"
            )
        return self._walk()

    def _walk(self) -> Iterator[T]:
        more = self._begin()
        while (found := run_blocking(self._name, more())) is not None:
            yield from found

    async def __aiter__(self) -> AsyncIterator[T]:
        more = self._begin()
        while (found := await more()) is not None:
            for one in found:
                yield one

    def __repr__(self) -> str:
        return f"<Feed of {self._name}>"


def task_lines(engine: Engine, task: int, *, follow: bool) -> Feed[LogLine]:
    def begin() -> More[LogLine]:
        tail = _Tail(task, first=0, wanted=lambda line: line.stream != VALUES)

        async def look(ledger: Following) -> tuple[Sequence[LogLine], bool]:
            lines, ended = await tail.read(ledger)
            return lines, not lines and (ended or not follow)

        return _steps(engine, task_topic(task), look, task=task if follow else None)

    return Feed("handle.logs()", begin)


def task_values(engine: Engine, task: int) -> Feed[tuple[int, Any]]:
    """With the number of the attempt: from the present one on."""

    def begin() -> More[tuple[int, Any]]:
        tail = _Tail(task, first=None, wanted=lambda line: line.stream == VALUES)

        async def look(ledger: Following) -> tuple[Sequence[tuple[int, Any]], bool]:
            lines, ended = await tail.read(ledger)
            return [(line.claim_no, loads(line.line)) for line in lines], not lines and ended

        return _steps(engine, task_topic(task), look, task=task)

    return Feed("handle.stream()", begin)


def plain_values(values: Feed[tuple[int, Any]]) -> Feed[Any]:
    """Without the attempts."""

    def begin() -> More[Any]:
        more = values._begin()  # pyright: ignore[reportPrivateUsage]

        async def next_ones() -> Sequence[Any] | None:
            found = await more()
            return None if found is None else [value for _, value in found]

        return next_ones

    return Feed("handle.stream()", begin)


def job_events(engine: Engine, job: int, *, follow: bool) -> Feed[JobEvent]:
    def begin() -> More[JobEvent]:
        last: JobEvent | None = None

        async def look(ledger: Following) -> tuple[Sequence[JobEvent], bool]:
            nonlocal last
            after = -1 if last is None else last.seq
            events = await ledger.with_job(job, lambda store: _of_job(store.job_events(job, after=after), store, job))
            if events:
                last = events[-1]
                return events, False
            return events, not follow or (last.state.terminal if last is not None else await _is_over(ledger, job))

        return _steps(engine, job_topic(job), look)

    return Feed("handle.events()", begin)


def job_lines(engine: Engine, job: int, *, follow: bool) -> Feed[JobLine]:
    def begin() -> More[JobLine]:
        seen = -1

        async def look(ledger: Following) -> tuple[Sequence[JobLine], bool]:
            nonlocal seen
            # First the job, then its lines: what was written before its end is read after it.
            record = await ledger.get_job(job)
            if record is None:
                raise NotFound(f"no job {job}, so there are no lines of it")
            lines = await ledger.with_job(
                job, lambda store: _of_job(store.job_lines(job, after=seen, limit=_PAGE), store, job)
            )
            seen = lines[-1].seq if lines else seen
            return lines, not lines and (not follow or record.state.terminal)

        return _steps(engine, job_topic(job), look)

    return Feed("handle.logs()", begin)


async def _is_over(ledger: Following, job: int) -> bool:
    """Of one from before there were events."""
    record = await ledger.get_job(job)
    return record is None or record.state.terminal


async def _of_job[T](rows: Coroutine[Any, Any, list[T]], store: Any, job: int) -> list[T]:
    """What a job has; NotFound where that store does not have the job."""
    found = await rows
    if not found and not await store.job_heads([job]):
        raise NotFound(f"no job {job}")
    return found


class _Tail:
    """The lines of one task that were not read yet. Late ones of an earlier claim than the last that was seen are left
    out: the log has them, in their place."""

    def __init__(self, task: int, *, first: int | None, wanted: Callable[[LogLine], bool]) -> None:
        self._task = task
        self._first = first  # claim; None: the one at the first look
        self._wanted = wanted
        self._seen: tuple[int, int] | None = None

    async def read(self, ledger: Following) -> tuple[list[LogLine], bool]:
        """The next ones, and whether it had ended before: then there are no others."""
        # First its state, then its lines: what was written before its end is read after it.
        head = await ledger.task_head(self._task)
        if head is None:
            raise NotFound(
                f"no task {self._task}: its transaction is not committed, or it ended longer ago than history is kept"
            )
        if self._seen is None:
            self._seen = (head.claim_no if self._first is None else self._first, -1)
        while lines := await ledger.lines(self._task, seen=self._seen, limit=_PAGE):
            self._seen = (lines[-1].claim_no, lines[-1].seq)
            if found := [line for line in lines if self._wanted(line)]:
                return found, head.state.terminal
        return [], head.state.terminal


def _steps[T](engine: Engine, topic: str, look: Look[T], *, task: int | None = None) -> More[T]:
    over = False

    async def more() -> Sequence[T] | None:
        nonlocal over
        if over:
            return None
        if task is not None and engine.inline is not None:
            await engine.inline.wanted(task)

        async def try_it(ledger: Following) -> tuple[Sequence[T], bool] | None:
            found, ended = await look(ledger)
            return (found, ended) if found or ended else None

        found, over = await engine.watched((topic,), try_it)
        return found

    return more


def as_completed_ids(engine: Engine, tasks: Iterable[int], timeout: float | None) -> Feed[int]:
    """Each once, as they end."""
    wanted = list(dict.fromkeys(tasks))

    def begin() -> More[int]:
        left = dict.fromkeys(wanted)
        deadline = engine.deadline(timeout)

        async def more() -> Sequence[int] | None:
            if not left:
                return None
            try:
                ended = await engine.some_ended(tuple(left), deadline)
            except TimeoutError:
                raise TimeoutError(
                    f"{len(left)} of {len(wanted)} tasks have not ended within {timeout:g} s; they go on"
                ) from None
            for task in ended:
                del left[task]
            return ended

        return more

    return Feed("as_completed()", begin)
