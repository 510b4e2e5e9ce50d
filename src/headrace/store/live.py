"""The part of the seam for whoever watches: durable sequences, and hints that they have grown."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from headrace.core.live import JobEvent, JobHead, JobLine, TaskHead


class Live(Protocol):
    async def job_events(self, job: int, *, after: int = -1, limit: int = 500) -> list[JobEvent]:
        """Those behind `after`, in order."""
        ...

    async def last_job_events(self, job: int, *, limit: int = 500) -> list[JobEvent]:
        """The last ones, in order."""
        ...

    async def job_lines(self, job: int, *, after: int = -1, limit: int = 500) -> list[JobLine]: ...

    async def last_job_lines(self, job: int, *, limit: int = 500) -> list[JobLine]: ...

    async def job_heads(self, jobs: Sequence[int]) -> dict[int, JobHead]:
        """How far each job is, in one look; what does not exist is not among the answers."""
        ...

    async def task_heads(self, tasks: Sequence[int]) -> dict[int, TaskHead]:
        """The same for tasks, live or done."""
        ...

    def watch(self) -> AbstractAsyncContextManager[AsyncIterator[str]]:
        """Hints that something has grown: `job/17`, `task/4`, `queue/mail`, or `*` when hints may have been lost. They
        may come twice or never: whoever watches also looks by itself every few seconds."""
        ...

    async def announce(self, topics: Iterable[str]) -> None:
        """Send such hints to every `watch` of this ledger, in whatever process."""
        ...
