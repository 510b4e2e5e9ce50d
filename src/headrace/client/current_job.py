"""`current.job`: the job of the task that runs, for what it adds to it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from headrace.client.bridge import run_blocking, running_loop
from headrace.core.task import JobRecord

if TYPE_CHECKING:
    from headrace.client.jobs import Added, Jobs, Waited
    from headrace.workflows.compose import Part


class CurrentJob:
    """`current.job.add(…)`. What is added is counted in the transaction that writes it, while the task that adds it is
    open: the job cannot be over before it.
    """

    __slots__ = ("_jobs", "_task_id", "id")

    def __init__(self, jobs: "Jobs", job_id: int, task_id: int) -> None:
        self._jobs = jobs
        self._task_id = task_id
        self.id = job_id

    async def aadd(self, *flows: "Part", after: "Waited | None" = None) -> "Any":
        """Add signatures, compositions or graphs; the handle of it, or of several a list.

        `after`: what they wait for besides, handles, ids of tasks of this job, or `current` for the task itself.
        """
        handles: Sequence[Added] = await self._jobs.aadd(self.id, *flows, after=self._meant(after))
        return handles[0] if len(flows) == 1 else handles

    async def arecord(self) -> JobRecord:
        """The job with its counters."""
        return await self._jobs.aget(self.id)

    def add(self, *flows: "Part", after: "Waited | None" = None) -> "Any":
        """As `aadd`. In an `async def` it is awaited; where no loop runs it blocks and gives the handles themselves."""
        work = self.aadd(*flows, after=after)
        return work if running_loop() is not None else run_blocking("aadd", work)

    def record(self) -> "Any":
        """As `arecord`, awaited or not like `add`."""
        work = self.arecord()
        return work if running_loop() is not None else run_blocking("arecord", work)

    def _meant(self, after: Any) -> Any:
        """Something with a `task_id` is the running task."""
        if after is None or isinstance(after, int):
            return after
        if hasattr(after, "task_id"):
            return self._task_id
        if isinstance(after, list | tuple):
            return [self._meant(one) for one in cast("Sequence[Any]", after)]
        return after

    def __repr__(self) -> str:
        return f"<CurrentJob {self.id} of task {self._task_id}>"
