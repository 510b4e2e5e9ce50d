"""What a ledger should say, kept in plain dictionaries: the twin that the state machine compares the stores with."""

from dataclasses import dataclass, field

from headrace.core.settlement import Settlement

HELD = {"claimed", "running", "cancelling"}
ENDED = {"completed", "failed", "cancelled"}


@dataclass(slots=True, kw_only=True)
class ModelTask:
    id: int
    priority: int
    max_attempts: int
    key: str | None = None
    limit: str | None = None
    job: int | None = None
    critical: bool = True
    state: str = "pending"
    lane: int = 0
    attempt: int = 0
    claim_no: int = 0
    run_no: int = 1
    worker: str | None = None
    admitted: bool = False

    @property
    def held(self) -> bool:
        return self.state in HELD

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    def leave(self, state: str) -> None:
        """Out of its worker's hands."""
        self.state, self.worker, self.admitted = state, None, False


@dataclass(slots=True, kw_only=True)
class ModelJob:
    id: int
    run_no: int = 1
    over: str | None = None  # its terminal state in this run


@dataclass(slots=True)
class LedgerModel:
    tasks: dict[int, ModelTask] = field(default_factory=dict[int, ModelTask])
    jobs: dict[int, ModelJob] = field(default_factory=dict[int, ModelJob])
    paused: bool = False

    def holder(self, key: str) -> ModelTask | None:
        return next((task for task in self.tasks.values() if task.key == key and not task.ended), None)

    def free_slots(self, limit: str, n: int) -> int:
        return n - sum(task.limit == limit and task.admitted for task in self.tasks.values())

    def of_job(self, job: int) -> list[ModelTask]:
        return [task for task in self.tasks.values() if task.job == job]

    def claim(self, task_id: int, worker: str) -> None:
        task = self.tasks[task_id]
        task.state, task.worker = "claimed", worker
        task.claim_no += 1

    def finish(self, settlement: Settlement) -> None:
        task = self.tasks[settlement.task]
        state = settlement.state.value
        if state == "pending" and task.state == "cancelling":
            state = "cancelled"
        task.attempt += settlement.charged
        if state == "pending" and settlement.lane is not None:
            task.lane = int(settlement.lane)
        task.leave(state)
        if state == "failed" and task.critical and task.job is not None and self.jobs[task.job].over is None:
            self.jobs[task.job].over = "failed"
            self.stop_tasks_of(task.job)

    def cancel(self, task_id: int) -> str:
        """What the store must answer."""
        task = self.tasks[task_id]
        if task.ended:
            return "too_late"
        if task.held:
            task.state = "cancelling"
            return "cancelling"
        task.leave("cancelled")
        return "cancelled"

    def stop_tasks_of(self, job: int) -> None:
        for task in self.of_job(job):
            self.cancel(task.id)

    def run_again(self, task_id: int) -> None:
        task = self.tasks[task_id]
        task.leave("pending")
        task.lane, task.attempt = 1, 0
        task.run_no += 1
