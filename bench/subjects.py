"""Who is measured: headrace and its peers, each in the configurations among which its best is looked for."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

type StoreName = Literal["postgres", "redis", "sqlite"]

# How the store says that a task is not finished yet: a query, or commands of Redis whose answers are added up.
# Celery (without late acknowledgement) and Huey drop a message before they run it; for them this only adds to the
# count of executions, which every subject must reach first.
type Unfinished = str | tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One configuration. `tasks` is how many a drain at full size has: a few seconds' worth."""

    name: str
    adapter: str
    store: StoreName
    tasks: int
    unfinished: Unfinished
    finished: str | None = None  # a query that must count every task in the end
    configuration: str = "defaults"
    workers: int = 1  # worker commands that are started
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def using(self, configuration: str, *, workers: int = 1, tasks: int | None = None, **options: Any) -> Self:
        return replace(
            self,
            configuration=configuration,
            workers=workers,
            tasks=tasks or self.tasks,
            options={**self.options, **options},
        )

    @property
    def label(self) -> str:
        return f"{self.name} ({self.configuration})"


HEADRACE = Subject(
    name="headrace",
    adapter="headrace",
    store="postgres",
    tasks=120_000,
    unfinished="SELECT count(*) FROM headrace.tasks",
    finished="SELECT count(*) FROM headrace.history WHERE state = 'completed'",
)
HEADRACE_SQLITE = replace(
    HEADRACE,
    store="sqlite",
    tasks=120_000,
    unfinished="SELECT count(*) FROM headrace_tasks",
    finished="SELECT count(*) FROM headrace_history WHERE state = 'completed'",
)
PGQUEUER = Subject(
    name="PgQueuer",
    adapter="pgqueuer",
    store="postgres",
    tasks=120_000,
    unfinished="SELECT count(*) FROM pgqueuer",
)
PROCRASTINATE = Subject(
    name="Procrastinate",
    adapter="procrastinate",
    store="postgres",
    tasks=3_000,
    unfinished="SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')",
)
CHANCY = Subject(
    name="Chancy",
    adapter="chancy",
    store="postgres",
    tasks=6_000,
    unfinished="SELECT count(*) FROM chancy_jobs WHERE state <> 'succeeded'",
)
DRAMATIQ = Subject(
    name="Dramatiq",
    adapter="dramatiq",
    store="redis",
    tasks=15_000,
    unfinished=(("hlen", "dramatiq:default.msgs"), ("llen", "dramatiq:default")),
)
CELERY = Subject(
    name="Celery",
    adapter="celery",
    store="redis",
    tasks=6_000,
    unfinished=(("llen", "celery"), ("hlen", "unacked")),
)
HUEY = Subject(name="Huey", adapter="huey", store="sqlite", tasks=12_000, unfinished="SELECT count(*) FROM task")


def _processes(subject: Subject, *counts: int, **options: Any) -> tuple[Subject, ...]:
    return tuple(subject.using(_words(n, options), processes=n, **options) for n in counts)


def _words(processes: int, options: Mapping[str, Any]) -> str:
    words = [f"{processes} process{'es' * (processes > 1)}"]
    return ", ".join(
        words + [f"{value} {name}" for name, value in options.items() if name not in ("task", "synchronous")]
    )


COROUTINES = _processes(HEADRACE, 1, 2, 3)
CHILDREN = _processes(replace(HEADRACE, tasks=20_000), 1, 2, task="in_child")
THREADS = _processes(replace(HEADRACE, tasks=30_000), 1, 2, task="in_thread", threads=8)
SQLITE_FULL = _processes(HEADRACE_SQLITE, 1, 2)
SQLITE_NORMAL = _processes(HEADRACE_SQLITE, 1, synchronous="NORMAL")

PGQUEUERS = tuple(
    PGQUEUER.using(f"{workers} × batch {batch}", workers=workers, batch=batch)
    for workers, batch in ((1, 500), (2, 100), (2, 500), (3, 500))
)
PROCRASTINATES = tuple(
    PROCRASTINATE.using(f"{workers} × concurrency 20", workers=workers, concurrency=20) for workers in (1, 2)
)
DRAMATIQS = (
    DRAMATIQ.using("2 processes × 8 threads", processes=2, threads=8),
    DRAMATIQ.using("2 processes × 2 threads, prefetch 1000", processes=2, threads=2, prefetch=1000),
    DRAMATIQ.using("1 process × 8 threads", processes=1, threads=8),
)
PREFORKS = (
    CELERY.using("prefork 2, prefetch 128", pool="prefork", concurrency=2, prefetch=128),
    CELERY.using("prefork 2", pool="prefork", concurrency=2, prefetch=4),
)
CELERIES = (
    CELERY.using("2 × solo, prefetch 128", workers=2, pool="solo", concurrency=1, prefetch=128),
    CELERY.using("2 × threads 8, prefetch 128", workers=2, pool="threads", concurrency=8, prefetch=128),
    PREFORKS[0],
)
HUEYS_FULL = (
    HUEY.using("1 thread, synchronous FULL", kind="thread", threads=1, fsync=True),
    HUEY.using("2 processes, synchronous FULL", kind="process", threads=2, fsync=True),
)
HUEYS_OFF = (
    HUEY.using("1 thread, sync off", tasks=30_000, kind="thread", threads=1, fsync=False),
    HUEY.using("2 processes, sync off", tasks=30_000, kind="process", threads=2, fsync=False),
)
# On an idle system one process of everyone, as their documentation starts it.
PICKUP_PEERS = (
    PGQUEUER.using("batch 10", batch=10),
    PROCRASTINATE.using("concurrency 20", concurrency=20),
    CHANCY.using("concurrency 100", concurrency=100),
)
