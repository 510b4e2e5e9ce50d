"""A job on the wire, where its tasks are one list."""

from headrace.core.task import NewJob, NewTask
from headrace.core.values import value


@value
class WiredJob:
    name: str
    description: str | None = None
    tasks: tuple[NewTask, ...] = ()
    timeout: float | None = 86_400.0
    on_success: NewTask | None = None
    on_failure: NewTask | None = None
    metadata: str = "{}"
    owner: str | None = None

    @staticmethod
    def of(job: NewJob) -> "WiredJob":
        return WiredJob(
            name=job.name, description=job.description, tasks=tuple(job.tasks), timeout=job.timeout,
            on_success=job.on_success, on_failure=job.on_failure, metadata=job.metadata, owner=job.owner,
        )  # fmt: skip

    def job(self) -> NewJob:
        return NewJob(
            name=self.name, description=self.description, tasks=self.tasks, timeout=self.timeout,
            on_success=self.on_success, on_failure=self.on_failure, metadata=self.metadata, owner=self.owner,
        )  # fmt: skip
