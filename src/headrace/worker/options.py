"""How a worker is told to behave; the same value goes through the command line, the supervisor and its processes."""

import json
import os
from dataclasses import asdict, dataclass, field

from headrace.core.errors import OptionError
from headrace.core.lanes import DEFAULT_RETRY_RATIO
from headrace.core.memory import memory_bytes, shown_memory
from headrace.telemetry.logs import FORMATS, LEVELS, LogFormat, LogOptions


def _cores() -> int:
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """Durations are seconds. `queues` None is every queue in the store and every one that the app's tasks name."""

    queues: tuple[str, ...] | None = None
    concurrency: int = 100  # coroutines per process
    children: int = field(default_factory=_cores)  # killable processes for `def` tasks, per process
    threads: int = 0
    commands: int = field(default_factory=_cores)  # commands at once, per process
    processes: int = 1
    burst: bool = False  # stop when nothing is ready and nothing runs
    grace: float = 30.0  # how long running tasks may take to end after SIGTERM
    lease: float = 30.0
    heartbeat: float | None = None  # None: a third of the lease
    max_tasks: int | None = None  # a child is replaced after so many tasks
    max_memory: int | None = None  # bytes: a process above it is replaced, a child after its task, a worker by draining
    kill_memory: int | None = None  # bytes: a child above it is killed in the middle of its task
    poll: float = 1.0  # longest pause between claims while idle
    retry_ratio: float = DEFAULT_RETRY_RATIO
    retry_warning: int = 1000  # waiting retries of a queue from which on they get a fifth of the starts,
    retry_critical: int = 5000  # and above which a tenth
    keep: float = 7 * 86_400.0  # finished tasks are pruned after this
    cancel_grace: float = 10.0
    late_start: float = 0.2  # a task that still runs after this is written as running
    unstarted_after: float = 1.0  # a buffered task that has not started goes back
    verify_after: float = 0.5  # a buffered task older than this asks the store whether it is still ours
    gather: float = 0.002  # how long outcomes wait for company
    metrics_port: int | None = None  # the supervisor serves /metrics there; 0: a free one
    metrics_host: str = "127.0.0.1"
    scheduler: bool = True  # the supervisor fires schedules
    log_level: str = "info"
    log_format: LogFormat = "console"

    def __post_init__(self) -> None:
        for name in ("concurrency", "children", "threads", "commands"):
            if getattr(self, name) < 0:
                raise OptionError(f"{name} must not be negative, not {getattr(self, name)!r}")
        if not self.concurrency + self.children + self.threads + self.commands:
            raise OptionError("a worker needs room for something: concurrency, children and threads are all 0")
        if not 1 <= self.processes <= 64:
            raise OptionError(f"processes must be from 1 to 64, not {self.processes!r}")
        if self.metrics_port is not None and not 0 <= self.metrics_port < 65_536:
            raise OptionError(f"metrics_port must be from 0 to 65535, not {self.metrics_port!r}")
        for name in ("max_memory", "kill_memory"):
            if (amount := getattr(self, name)) is not None:
                memory_bytes(amount, name=name)
        if self.max_memory is not None and self.kill_memory is not None and self.kill_memory < self.max_memory:
            raise OptionError(
                f"kill_memory ({shown_memory(self.kill_memory)}) must not be less than max_memory "
                f"({shown_memory(self.max_memory)}): no child would live to be replaced"
            )
        if self.log_level not in LEVELS:
            raise OptionError(f"log_level must be one of {', '.join(LEVELS)}, not {self.log_level!r}")
        if self.log_format not in FORMATS:
            raise OptionError(f"log_format must be one of {', '.join(FORMATS)}, not {self.log_format!r}")
        if self.lease <= 0 or self.heartbeat_interval * 2 > self.lease:
            raise OptionError(
                f"a lease of {self.lease} s needs at least two heartbeats; set heartbeat to at most {self.lease / 2} s"
            )

    @property
    def heartbeat_interval(self) -> float:
        return self.lease / 3 if self.heartbeat is None else self.heartbeat

    @property
    def logs(self) -> LogOptions:
        return LogOptions(level=self.log_level, format=self.log_format)

    @property
    def slots(self) -> int:
        """How many attempts of one process can be inside user code at once."""
        return self.concurrency + self.children + self.threads + self.commands

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "WorkerOptions":
        data = json.loads(text)
        if data.get("queues") is not None:
            data["queues"] = tuple(data["queues"])
        return cls(**data)
