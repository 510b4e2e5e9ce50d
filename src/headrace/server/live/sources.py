"""What a topic is read from. The store has the truth; a source says which part of it, and what has changed since."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol, override

from headrace.core.live import LATE_JOIN, JobHead, TaskHead
from headrace.server.live import messages
from headrace.server.live.messages import BEGINNING, Message, Position
from headrace.server.overview.looking import stand
from headrace.server.overview.showing import OUTCOMES, depths
from headrace.settings import Settings
from headrace.store.base import Store
from headrace.telemetry.redaction import DEFAULT, Redaction

# Of the time of one server process, figures of the whole ledger take at most this part.
_BUDGET = 0.02
_MINUTE = timedelta(minutes=1)


class Source(Protocol):
    """One sequence, and beside it perhaps a state of which only the present value counts."""

    name: str
    hints: tuple[str, ...]  # what is announced when it has grown; none: it is looked at each second
    parts: int  # numbers in a position
    late_join: int  # how many of the sequence somebody who comes late is shown; 0: it has none

    async def last(self, store: Store) -> tuple[list[Message], Position]:
        """The end of the sequence, for who comes late, and the position that it is behind."""
        ...

    async def behind(self, store: Store, position: Position, limit: int) -> list[Message]:
        """What comes after that position, in order."""
        ...

    async def state(self, store: Store) -> Message | None: ...


class JobStatus:
    parts = 1
    late_join = 1  # the current status; whoever wants more says from where

    def __init__(self, job: int) -> None:
        self.job = job
        self.name = f"job/{job}/status"
        self.hints = (f"job/{job}",)

    async def last(self, store: Store) -> tuple[list[Message], Position]:
        if events := await store.last_job_events(self.job, limit=self.late_join):
            return [messages.job_event(event) for event in events], (events[0].seq - 1,)
        job = await store.get_job(self.job)
        return ([] if job is None else [messages.job_as_it_is(job)]), BEGINNING

    async def behind(self, store: Store, position: Position, limit: int) -> list[Message]:
        return [messages.job_event(event) for event in await store.job_events(self.job, after=position[0], limit=limit)]

    async def state(self, store: Store) -> None:
        return None

    @staticmethod
    def next_of(head: JobHead) -> int:
        return head.event


class JobLogs:
    parts = 1
    late_join = LATE_JOIN

    def __init__(self, job: int, rules: Redaction = DEFAULT) -> None:
        self.job = job
        self._rules = rules
        self.name = f"job/{job}/logs"
        self.hints = (f"job/{job}",)

    async def last(self, store: Store) -> tuple[list[Message], Position]:
        lines = await store.last_job_lines(self.job, limit=self.late_join)
        return [messages.job_line(line, self._rules) for line in lines], (lines[0].seq - 1,) if lines else BEGINNING

    async def behind(self, store: Store, position: Position, limit: int) -> list[Message]:
        lines = await store.job_lines(self.job, after=position[0], limit=limit)
        return [messages.job_line(line, self._rules) for line in lines]

    async def state(self, store: Store) -> None:
        return None

    @staticmethod
    def next_of(head: JobHead) -> int:
        return head.line


class TaskSource:
    """Its lines in the order of claims and numbers, and its state. Who comes late sees lines of its latest claim.

    Lines that a worker writes after it has lost its claim are behind nobody who has seen a line of the next one: they
    are in the log (REST), and not shown here. In a job's own sequence they have a number like all others."""

    parts = 2
    late_join = LATE_JOIN

    def __init__(self, task: int, rules: Redaction = DEFAULT) -> None:
        self.task = task
        self._rules = rules
        self.name = f"task/{task}"
        self.hints = (f"task/{task}",)
        self.head: TaskHead | None = None

    async def last(self, store: Store) -> tuple[list[Message], Position]:
        head = (await store.task_heads([self.task])).get(self.task)
        if head is None:
            return [], BEGINNING
        after = max(-1, head.line - self.late_join - 1)
        lines = await store.logs(self.task, claim_no=head.claim_no, after=after, limit=self.late_join)
        return [messages.task_line(line, self._rules) for line in lines], (head.claim_no, after)

    async def behind(self, store: Store, position: Position, limit: int) -> list[Message]:
        claim_no, number = (*position, -1)[:2]
        lines = await store.logs(self.task, seen=(claim_no, number), limit=limit)
        return [messages.task_line(line, self._rules) for line in lines]

    async def state(self, store: Store) -> Message | None:
        found = (await store.get([self.task])).get(self.task)
        return None if found is None else messages.task_state(found, self._rules)


class Figures:
    """Figures of the whole ledger, at most once a second, and less often where counting takes long."""

    parts = 0
    late_join = 0
    hints: tuple[str, ...] = ()
    name: str

    def __init__(self) -> None:
        self.due_at = 0.0

    async def last(self, store: Store) -> tuple[list[Message], Position]:
        return [], BEGINNING

    async def behind(self, store: Store, position: Position, limit: int) -> list[Message]:
        return []

    async def state(self, store: Store) -> Message | None:
        began = time.monotonic()
        counted = await self.count(store)
        now = time.monotonic()
        self.due_at = now + (now - began) / _BUDGET
        return counted

    async def count(self, store: Store) -> Message:
        raise NotImplementedError


class QueueFigures(Figures):
    name = "queues"

    @override
    async def count(self, store: Store) -> Message:
        return messages.queue_figures(await store.queues())


class SystemFigures(Figures):
    name = "system"

    @override
    async def count(self, store: Store) -> Message:
        counts, workers = await asyncio.gather(store.counts(), store.workers(states=_RUNNING))
        return messages.system_figures(counts, dict(Counter(worker.state for worker in workers)))


class OverviewFigures(Figures):
    """For the first page, in one message: the last two minutes of what ended, states, depths and workers."""

    name = "overview"

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings

    @override
    async def count(self, store: Store) -> Message:
        standing = await stand(store)
        this = standing.at.replace(second=0, microsecond=0)
        minutes = {this - _MINUTE: Counter[str](), this: Counter[str]()}
        for each in await store.outcome_sums(since=this - _MINUTE, until=this + _MINUTE, bucket=60):
            if each.at in minutes:
                minutes[each.at][each.outcome] += each.n
        counted = [(at, {outcome: found[outcome] for outcome in OUTCOMES}) for at, found in minutes.items()]
        queues = [depths(self._settings, queue).model_dump() for queue in standing.queues]
        workers = standing.workers._asdict()
        return messages.overview_figures(standing.at, counted, standing.states, queues, workers)


class NewestTasks(Figures):
    """For lists: what they begin with, of all or of one owner."""

    def __init__(self, owner: str | None) -> None:
        super().__init__()
        self._owner = owner
        self.name = "tasks" if owner is None else f"tasks/{owner}"

    @override
    async def count(self, store: Store) -> Message:
        return messages.newest_tasks(await store.newest(owner=self._owner))


_RUNNING = ("active", "idle", "stopping")


async def grown(store: Store, sources: Sequence[tuple[Source, Position]]) -> set[str]:
    """The names of those whose sequence or state is not what was seen: one query for all jobs, one for all tasks."""
    jobs = sorted({source.job for source, _ in sources if isinstance(source, (JobStatus, JobLogs))})
    tasks = sorted({source.task for source, _ in sources if isinstance(source, TaskSource)})
    job_heads = await store.job_heads(jobs) if jobs else {}
    task_heads = await store.task_heads(tasks) if tasks else {}
    found: set[str] = set()
    now = time.monotonic()
    for source, seen in sources:
        match source:
            case JobStatus() | JobLogs():
                head = job_heads.get(source.job)
                if head is not None and source.next_of(head) - 1 > seen[0]:
                    found.add(source.name)
            case TaskSource():
                if task_heads.get(source.task) != source.head:
                    source.head = task_heads.get(source.task)
                    found.add(source.name)
            case Figures():
                if now >= source.due_at:
                    found.add(source.name)
            case _:
                pass
    return found
