"""One drain: how fast a store full of no-ops is worked off.

All tasks are enqueued before any worker is started. The clock starts with the first execution, so that starting a
process counts for nobody, and stops when the store says that nothing is unfinished. That is asked only after every task
was executed, so the question does not slow down the answer. The same for every subject.
"""

import time
from dataclasses import dataclass

from bench import record
from bench.processes import Crew, cpu_seconds
from bench.stage import Failed, Run, Stage
from bench.subjects import Subject

_START_CEILING = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    rate: float  # finished tasks per second
    worker_cpu: float  # seconds per task
    server_cpu: float

    @property
    def cpu(self) -> float:
        return self.worker_cpu + self.server_cpu


def drain(stage: Stage, subject: Subject, tasks: int) -> Drain:
    with stage.fresh(subject) as run:
        run.call("load", tasks)
        run.settle_store()
        with run.crew() as crew:
            measured = watch(run, crew, tasks)
        completed = run.finished()
        if completed is not None and completed != tasks:
            raise Failed(f"{subject.label}: {completed} of {tasks} tasks are completed in the store")
    return measured


def watch(run: Run, crew: Crew, tasks: int, *, before: int = 0) -> Drain:
    """Follow the workers until the store says that all is done; `before` executions belong to earlier work."""
    server = run.services.server_pid(run.subject.store)
    servers = [] if server is None else [server]
    run.wait_until(lambda: run.started() > before, "the first execution", crew, _START_CEILING)
    workers_then, servers_then, started_then = cpu_seconds(crew.pids), cpu_seconds(servers), run.started()
    run.wait_until(lambda: run.started() >= before + tasks, f"{tasks} executions", crew)
    run.wait_until(lambda: run.unfinished() == 0, "nothing unfinished in the store", crew)
    ended = time.time()
    workers_now, servers_now = cpu_seconds(crew.pids), cpu_seconds(servers)
    first = min(started for _, started in record.read(run.record, after=before))
    counted = max(1, before + tasks - started_then)
    return Drain(
        rate=tasks / (ended - first),
        worker_cpu=(workers_now - workers_then) / counted,
        server_cpu=(servers_now - servers_then) / counted,
    )
