"""What the benchmark must show: one row per promise, and the only place where a threshold stands."""

from dataclasses import dataclass
from typing import Literal

type Direction = Literal["at least", "at most"]
type PartName = Literal["drain", "enqueue", "latency", "growth", "recovery", "workflows", "server"]

PARTS: tuple[PartName, ...] = ("drain", "enqueue", "latency", "growth", "recovery", "workflows", "server")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A bound on one measured value. `instead` names another measure and its bound: meeting either is enough."""

    measure: str
    part: PartName
    what: str
    unit: str  # "×" for a ratio
    direction: Direction
    required: float
    aim: float | None = None
    instead: tuple[str, float] | None = None


def _row(part: PartName, measure: str, what: str, direction: Direction, required: float, aim: float | None = None,
         *, unit: str = "×", instead: tuple[str, float] | None = None) -> Requirement:  # fmt: skip
    return Requirement(
        measure=measure, part=part, what=what, unit=unit, direction=direction, required=required, aim=aim,
        instead=instead,
    )  # fmt: skip


# fmt: off
REQUIRED: tuple[Requirement, ...] = (
    _row("drain", "postgres_pgqueuer", "PostgreSQL, `async def`, against PgQueuer", "at least", 1.2, 1.5),
    _row("drain", "postgres_dramatiq", "… against Dramatiq on Redis", "at least", 2.5, 3),
    _row("drain", "postgres_celery", "… against Celery on Redis", "at least", 10, 12),
    _row("drain", "postgres_procrastinate", "… against Procrastinate", "at least", 30, 50),
    _row("drain", "postgres_cpu", "… CPU seconds per task, worker and server, against PgQueuer", "at most", 1.2, 1),
    _row("drain", "sqlite_huey_full", "SQLite FULL against Huey on SQLite FULL", "at least", 8, 15),
    _row("drain", "sqlite_huey_off", "SQLite FULL against Huey on SQLite with sync off", "at least", 1.5, 4),
    _row("drain", "children_celery", "`def` in killable children against Celery prefork", "at least", 5, 10),
    _row("drain", "threads_dramatiq", "`def` in threads against Dramatiq", "at least", 1.5, 2),
    _row("enqueue", "one_pgqueuer", "one awaited call at a time, against PgQueuer", "at least", 1),
    _row("enqueue", "sync_async", "… the sync face against the async one", "at least", 0.67),
    _row("enqueue", "concurrent", "100 concurrent callers, durable", "at least", 40_000, 80_000, unit="/s",
         instead=("concurrent_one", 15)),
    _row("enqueue", "bulk_pgqueuer", "bulk, arguments validated, against PgQueuer", "at least", 1.5, 3),
    _row("latency", "postgres_pickup", "pickup p50 on an idle system, PostgreSQL, against the best PostgreSQL peer",
         "at most", 0.6, 0.5),
    _row("latency", "postgres_tail", "… p99 / p50", "at most", 4),
    _row("latency", "sqlite_across", "SQLite pickup p50 across processes", "at most", 5, 1, unit="ms"),
    _row("latency", "sqlite_inside", "SQLite pickup p50 inside `headrace up`", "at most", 2, 1, unit="ms"),
    _row("growth", "buffers_pending", "buffers touched per claim at 1M pending, against an empty store",
         "at most", 1.1, 1),
    _row("growth", "buffers_finished", "… at 5M finished", "at most", 1.1, 1),
    _row("growth", "held_transaction", "drain with a transaction held open for 5 minutes, against none",
         "at least", 0.75, 0.9),
    _row("growth", "memory_postgres", "memory of a worker after 1M tasks against after 10k, PostgreSQL",
         "at most", 1.1),
    _row("growth", "memory_sqlite", "… SQLite", "at most", 1.1),
    _row("recovery", "postgres_2", "1,000 claimed tasks run again after kill -9 of their worker, PostgreSQL, lease 2 s",
         "at most", 2.5, unit="s"),
    _row("recovery", "postgres_30", "… lease 30 s", "at most", 32, unit="s"),
    _row("recovery", "sqlite_2", "… SQLite, lease 2 s", "at most", 2.5, unit="s"),
    _row("recovery", "sqlite_30", "… lease 30 s", "at most", 32, unit="s"),
    _row("workflows", "postgres_fan", "time of a fan-out of 100,000 with its fan-in against half of it, PostgreSQL",
         "at most", 2.3, 2),
    _row("workflows", "postgres_chain", "… of a chain of 10,000", "at most", 2.3, 2),
    _row("workflows", "postgres_grid", "… of a grid of 300 × 300", "at most", 2.3, 2),
    _row("workflows", "sqlite_fan", "… fan-out, SQLite", "at most", 2.3, 2),
    _row("workflows", "sqlite_chain", "… chain, SQLite", "at most", 2.3, 2),
    _row("workflows", "sqlite_grid", "… grid, SQLite", "at most", 2.3, 2),
    _row("workflows", "postgres_client", "memory of the client that writes them, against half the size, PostgreSQL",
         "at most", 1.25, 1.05),
    _row("workflows", "postgres_worker", "… of the worker that runs them", "at most", 1.25, 1.05),
    _row("workflows", "sqlite_client", "… of the client, SQLite", "at most", 1.25, 1.05),
    _row("workflows", "sqlite_worker", "… of the worker, SQLite", "at most", 1.25, 1.05),
    _row("workflows", "postgres_wait_build", "slowest enqueue of another client while they are written, PostgreSQL",
         "at most", 1000, 250, unit="ms"),
    _row("workflows", "postgres_wait", "… while they run", "at most", 1000, 250, unit="ms"),
    _row("workflows", "sqlite_wait", "… while they run, SQLite", "at most", 1000, 250, unit="ms"),
    _row("workflows", "postgres_finish", "a finish with dependents against one without, PostgreSQL", "at most", 2, 1.5),
    _row("workflows", "sqlite_finish", "… SQLite", "at most", 2, 1.5),
    _row("workflows", "map", "map over 10 million rows of Parquet, vectorised, against a plain pool of processes",
         "at least", 0.6, 0.9),
    _row("server", "submits_celery", "submits over HTTP, durable, against the same application on Celery and Redis",
         "at least", 1, 1.5),
    _row("server", "submits_dramatiq", "… on Dramatiq and Redis", "at least", 1, 1.5),
    _row("server", "tail_celery", "… p99 of an answer, against Celery", "at most", 1, 0.7),
    _row("server", "tail_dramatiq", "… against Dramatiq", "at most", 1, 0.7),
    _row("server", "storm_postgres", "wait of new work among 10,000 failing tasks, against none, PostgreSQL",
         "at most", 2, 1.5),
    _row("server", "storm_sqlite", "… SQLite", "at most", 2, 1.5),
    _row("server", "live_throughput", "plain tasks drained beside 2,000 WebSocket clients, against none, PostgreSQL",
         "at least", 0.8, 0.9),
)
# fmt: on
