"""The schema, once, for both databases (SQLAlchemy Core). Migrations must arrive at exactly this.

Two tables hold tasks: `tasks` is live and stays small, `history` has what ended and carries the indexes that lists
need. An index that mentioned `state` on the live table would make every transition rewrite every index.
Instants are `timestamptz` on PostgreSQL and integer microseconds since 1970 UTC on SQLite.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    Float,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Sequence,
    SmallInteger,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import TypeEngine

from headrace.core.accounts import Role
from headrace.core.states import AttemptState, JobState, TaskState
from headrace.store.instants import FIRST_POSTGRES_ID, ID_BLOCK, from_micros, to_micros


class Instant(TypeDecorator[datetime]):
    """An aware UTC instant."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(BigInteger() if dialect.name == "sqlite" else DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None or dialect.name != "sqlite":
            return value
        return to_micros(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        if value is None or dialect.name != "sqlite":
            return value
        return from_micros(value)


POSTGRES_ONLY = ("standbys",)
LIVE_STATES = tuple(s.value for s in TaskState if not s.terminal)
DONE_STATES = tuple(s.value for s in TaskState if s.terminal)
HELD_STATES = tuple(s.value for s in TaskState if s.held)


def _one_of(column: str, values: tuple[str, ...], *, sqlite: bool) -> str:
    if sqlite:
        # For an IN of more than two values SQLite fills a table of its own each time a statement runs.
        return "(" + " OR ".join(f"{column} = {v!r}" for v in values) + ")"
    return f"{column} IN ({', '.join(repr(v) for v in values)})"


def _live_row() -> str:
    """What the state says of the holder and of the ready index. One CASE, the commonest states first: it is evaluated
    at every transition, and costs a comparison or two where a condition per rule would cost a dozen."""
    held = "worker IS NOT NULL AND ready_at IS NULL"
    rules = {"pending": "worker IS NULL", **dict.fromkeys(HELD_STATES, held)}
    for state in LIVE_STATES:
        rules.setdefault(state, "worker IS NULL AND ready_at IS NULL")
    return f"CASE state {' '.join(f'WHEN {state!r} THEN {rule}' for state, rule in rules.items())} ELSE false END"


_LIVE_ROW = _live_row()


def build(dialect: str, name: str = "headrace") -> MetaData:
    """The tables of one app: schema `name` on PostgreSQL, prefix `name_` on SQLite."""
    sqlite = dialect == "sqlite"
    metadata = MetaData(schema=None if sqlite else name)

    def called(table: str) -> str:
        return f"{name}_{table}" if sqlite else table

    def index(table: str, suffix: str, *columns: Any, where: str | None = None) -> Index:
        return Index(
            f"{name}_{table}_{suffix}",
            *columns,
            sqlite_where=text(where) if where else None,
            postgresql_where=text(where) if where else None,
        )

    def table(table_name: str, *parts: Any, fillfactor: int | None = None, logged: bool = True) -> Table:
        keywords: dict[str, Any] = {} if logged else {"prefixes": ["UNLOGGED"]}
        if fillfactor is not None:
            keywords["postgresql_with"] = {"fillfactor": fillfactor}
        return Table(called(table_name), metadata, *parts, **keywords)

    # INTEGER, by just this name, is the row's own number in SQLite; a BIGINT would be an index beside the table.
    number_of_row = BigInteger().with_variant(Integer(), "sqlite")

    def one_of(column: str, values: tuple[str, ...]) -> str:
        return _one_of(column, values, sqlite=sqlite)

    def flag(column: str, *, default: bool = False) -> Column[bool]:
        return Column(column, Boolean(), nullable=False, server_default=text("true" if default else "false"))

    def number(column: str, default: int = 0) -> Column[int]:
        return Column(column, Integer, nullable=False, server_default=text(str(default)))

    def task_columns() -> list[Column[Any]]:
        """What live and done rows share, in one order, so that a row moves by INSERT ... SELECT."""
        return [
            Column("id", number_of_row, primary_key=True, autoincrement=False),
            Column("name", Text, nullable=False),
            Column("kind", Text, nullable=False),
            Column("queue", Text, nullable=False),
            Column("pool", Text, nullable=False),
            Column("lane", SmallInteger, nullable=False, server_default=text("0")),
            number("priority"),
            Column("state", Text, nullable=False),
            Column("reason", Text),
            number("claim_no"),
            number("attempt"),
            number("losses"),
            number("run_no", 1),
            number("max_attempts", 4),
            Column("worker", Text),
            Column("job", BigInteger),
            flag("critical", default=True),
            flag("dead_letter"),  # its policy keeps dead letters: it is one when it has failed
            Column("arguments", Text, nullable=False),
            Column("codec", Text, nullable=False),
            number("version", 1),
            Column("options", Text, nullable=False),
            Column("gates", Text),  # canonical JSON of core.limits.Gate; NULL costs nothing
            Column("order_key", Text),  # the gate of kind `order`, where an index can see it
            flag("keyed"),  # holds rows in `keys`
            Column("max_age", Float),  # seconds; with enqueued_at it gives expires_at, also after a manual retry
            Column("created_at", Instant, nullable=False),
            Column("enqueued_at", Instant, nullable=False),  # start of the current run: the age counts from here
            Column("eligible_at", Instant, nullable=False),
            Column("order_at", Instant, nullable=False),  # eligible_at, or the job's created_at for a job's tasks
            Column("expires_at", Instant),
            Column("claimed_at", Instant),
            Column("started_at", Instant),
            Column("cancelling_at", Instant),
            Column("progress", Text),
        ]

    table(
        "tasks",
        *task_columns(),
        Column("ready_at", Instant),  # NULL while not due, parked or not pending
        Column("waiting_on", Text),  # the gate key a parked task waits for
        Column("owner", Text),  # the user in whose name it runs; NULL: whoever has the code or the database
        CheckConstraint(_LIVE_ROW, name=f"{name}_tasks_state"),
        CheckConstraint("lane IN (0, 1)", name=f"{name}_tasks_lane"),
        index(
            "tasks",
            "ready",
            "queue",
            "pool",
            "lane",
            text("priority DESC"),
            "order_at",
            "id",
            where="state = 'pending' AND ready_at IS NOT NULL",
        ),
        index("tasks", "due", "eligible_at", where="state = 'pending' AND ready_at IS NULL AND waiting_on IS NULL"),
        # Whoever waits for something else than time and a worker: a gate, an approval, another task.
        index(
            "tasks",
            "waiting",
            "waiting_on",
            "order_at",
            "id",
            where=f"waiting_on IS NOT NULL OR {one_of('state', ('pending_approval', 'blocked', 'lost'))}",
        ),
        index("tasks", "order", "order_key", "created_at", "id", where="order_key IS NOT NULL"),
        index("tasks", "worker", "worker", where="worker IS NOT NULL"),
        # Asked for four times a second: while some transaction holds an old snapshot, all that a worker ever held since
        # is in the index before this one (120 ms a look after a minute).
        *([index("tasks", "cancelling", "worker", where="state = 'cancelling'")] if dialect == "postgresql" else []),
        index("tasks", "job", "job", where="job IS NOT NULL"),
        index("tasks", "expires", "expires_at", where="expires_at IS NOT NULL AND state = 'pending'"),
        index("tasks", "owner", "owner", "id", where="owner IS NOT NULL"),
        fillfactor=70,
    )
    table(
        "history",
        *task_columns(),
        Column("finished_at", Instant, nullable=False),
        Column("result", Text),
        Column("result_ref", Text),
        Column("result_expires_at", Instant),
        flag("result_expired"),
        Column("error_class", Text),
        Column("error_message", Text),
        # What a plain success would say in `attempts` beside all this: its row here is that attempt.
        Column("executor", Text),
        Column("owner", Text),
        CheckConstraint(one_of("state", DONE_STATES), name=f"{name}_history_state"),
        # Whatever ends is written into each of these: lists probe them once per state, or per queue, name and state.
        index("history", "state", "state", "finished_at", "id"),
        index("history", "queue_name", "queue", "name", "state", "finished_at", "id"),
        index("history", "job", "job", "id", where="job IS NOT NULL"),
        index("history", "owner", "owner", "finished_at", "id", where="owner IS NOT NULL"),
        index("history", "dead", "finished_at", "id", where="dead_letter AND state = 'failed'"),
        index("history", "results", "result_expires_at", where="result_expires_at IS NOT NULL"),
    )
    table(
        "attempts",
        Column("task", BigInteger, nullable=False),
        Column("claim_no", Integer, nullable=False),
        number("run_no", 1),
        Column("attempt", Integer),
        Column("state", Text, nullable=False),
        flag("charged"),
        Column("worker", Text),
        Column("executor", Text),
        Column("handle", Text),
        Column("claimed_at", Instant),
        Column("started_at", Instant),
        Column("finished_at", Instant),
        Column("error_class", Text),
        Column("error_message", Text),
        Column("traceback", Text),
        Column("exit_code", Integer),
        Column("recorded_by", Text),
        Column("late_state", Text),
        Column("late_at", Instant),
        PrimaryKeyConstraint("task", "claim_no"),
        CheckConstraint(one_of("state", tuple(s.value for s in AttemptState)), name=f"{name}_attempts_state"),
    )
    table(
        "keys",
        Column("scope", Text, nullable=False),
        Column("key", Text, nullable=False),
        Column("task", BigInteger, nullable=False),
        Column("ttl", Float),  # unique: none; idem: seconds it is kept from the enqueue on
        Column("expires_at", Instant),
        PrimaryKeyConstraint("scope", "key"),
        index("keys", "task", "task"),
        index("keys", "expires", "expires_at", where="expires_at IS NOT NULL"),
    )
    # One row per gate key: what concurrent admits and finishes lock, so that a parked task is never forgotten.
    table(
        "gates",
        Column("key", Text, primary_key=True),
        Column("tokens", Float),
        Column("updated_at", Instant),
        # When its bucket is full again: the row says nothing more from then on.
        Column("full_at", Instant),
        # Not on PostgreSQL, where an update that touches no index stays on its page.
        *([index("gates", "full", "full_at")] if sqlite else []),
        fillfactor=50,
    )
    table(
        "slots",
        Column("key", Text, nullable=False),
        Column("slot", Integer, nullable=False),
        Column("task", BigInteger, nullable=False),
        Column("claim_no", Integer, nullable=False),
        PrimaryKeyConstraint("key", "slot"),
        index("slots", "task", "task"),
    )
    table(
        "jobs",
        Column("id", number_of_row, primary_key=True, autoincrement=False),
        Column("name", Text, nullable=False),
        Column("description", Text),
        Column("state", Text, nullable=False, server_default=text("'pending'")),
        Column("reason", Text),
        number("run_no", 1),
        Column("timeout", Float),
        Column("created_at", Instant, nullable=False),
        Column("started_at", Instant),
        Column("completed_at", Instant),
        Column("deadline_at", Instant),
        Column("on_success", Text),  # canonical JSON of the NewTask that runs when the job ends
        Column("on_failure", Text),
        number("hooked_run"),  # the last run whose hook was enqueued
        Column("metadata", Text, nullable=False, server_default=text("'{}'")),
        Column("owner", Text),
        CheckConstraint(one_of("state", tuple(s.value for s in JobState)), name=f"{name}_jobs_state"),
        index("jobs", "state", "state", "id"),
        # With the id: those of one name are read from the newest on.
        index("jobs", "name", "name", "id"),
        index("jobs", "created", "created_at"),
        index("jobs", "owner", "owner", "id", where="owner IS NOT NULL"),
        index("jobs", "deadline", "deadline_at", where="deadline_at IS NOT NULL AND state IN ('pending', 'running')"),
    )
    # Narrow and often updated: counters live off the wide job row.
    table(
        "job_counts",
        Column("job", number_of_row, primary_key=True, autoincrement=False),
        number("total"),
        number("completed"),
        number("failed"),
        number("cancelled"),
        Column("seq", BigInteger, nullable=False, server_default=text("0")),
        fillfactor=50,
    )
    # Tasks added to a job inside a user's transaction, which must not lock the job's counters.
    table(
        "job_additions",
        Column("id", number_of_row, primary_key=True, autoincrement=False),
        Column("job", BigInteger, nullable=False),
        Column("n", Integer, nullable=False),
        index("job_additions", "job", "job"),
    )
    table(
        "checkpoints",
        Column("task", BigInteger, nullable=False),
        Column("name", Text, nullable=False),
        Column("value", Text, nullable=False),
        Column("claim_no", Integer, nullable=False),
        Column("attempt", Integer, nullable=False),
        Column("created_at", Instant, nullable=False),
        PrimaryKeyConstraint("task", "name"),
    )
    # An edge: `task` waits for `upstream`. Written once; what is left to wait for is counted in `barriers`.
    table(
        "dependencies",
        Column("task", BigInteger, nullable=False),
        Column("place", Integer, nullable=False),
        Column("upstream", BigInteger, nullable=False),
        Column("kind", SmallInteger, nullable=False),  # 0 on_success, 1 on_done, 2 on_failure
        Column("input", Integer),
        PrimaryKeyConstraint("task", "place"),
        CheckConstraint("kind IN (0, 1, 2)", name=f"{name}_dependencies_kind"),
        index("dependencies", "upstream", "upstream", "task", "kind"),
    )
    # How many of its edges a blocked task still waits for. Narrow: a fan-in of many updates its row once per batch.
    table(
        "barriers",
        Column("task", number_of_row, primary_key=True, autoincrement=False),
        Column("remaining", Integer, nullable=False),
        CheckConstraint("remaining >= 0", name=f"{name}_barriers_remaining"),
        fillfactor=50,
    )
    # An ended task with more dependents than one transaction frees: those up to `after` have been looked at.
    table(
        "releases",
        Column("upstream", number_of_row, primary_key=True, autoincrement=False),
        Column("state", Text, nullable=False),  # in which it ended
        Column("after", BigInteger, nullable=False),
    )
    table(
        "events",
        Column("id", number_of_row, primary_key=True, autoincrement=False),
        Column("name", Text, nullable=False),
        Column("key", Text, nullable=False),
        Column("payload", Text, nullable=False),
        Column("created_at", Instant, nullable=False),
        index("events", "name", "name", "key", "created_at", "id"),
        index("events", "created", "created_at"),
    )
    # A wait of a durable task for an event; kept with its checkpoints, `taken` says which event it was.
    table(
        "waits",
        Column("task", BigInteger, nullable=False),
        Column("step", Text, nullable=False),
        Column("event", Text, nullable=False),
        Column("key", Text, nullable=False),
        Column("expires_at", Instant),
        Column("taken", BigInteger),
        flag("over"),  # taken, or its time is over
        PrimaryKeyConstraint("task", "step"),
        index("waits", "event", "event", "key", where="NOT over"),
        index("waits", "expires", "expires_at", where="NOT over AND expires_at IS NOT NULL"),
    )
    table(
        "queues",
        Column("name", Text, primary_key=True),
        flag("paused"),
        Column("settings", Text, nullable=False, server_default=text("'{}'")),
    )
    table(
        "workers",
        Column("id", Text, primary_key=True),
        Column("kind", Text, nullable=False),
        Column("hostname", Text, nullable=False),
        Column("pid", Integer, nullable=False),
        Column("state", Text, nullable=False),
        Column("beat", BigInteger, nullable=False, server_default=text("0")),
        Column("lease", Float, nullable=False),
        Column("queues", Text, nullable=False),
        Column("version", Text, nullable=False),
        Column("started_at", Instant, nullable=False),
        Column("last_heartbeat", Instant, nullable=False),
        Column("stopped_at", Instant),
        Column("tasks_completed", BigInteger, nullable=False, server_default=text("0")),
        Column("tasks_failed", BigInteger, nullable=False, server_default=text("0")),
        CheckConstraint(one_of("state", ("active", "idle", "stopping", "stopped")), name=f"{name}_workers_state"),
        index("workers", "state", "state"),
        index("workers", "hostname", "hostname"),
        index("workers", "heartbeat", "last_heartbeat"),
        fillfactor=50,
    )
    table(
        "outcomes",
        Column("worker", Text, nullable=False),
        Column("queue", Text, nullable=False),
        Column("name", Text, nullable=False),
        Column("minute", Instant, nullable=False),
        Column("outcome", Text, nullable=False),
        Column("n", BigInteger, nullable=False),
        PrimaryKeyConstraint("worker", "queue", "name", "minute", "outcome"),
        index("outcomes", "minute", "minute"),
    )
    table(
        "depths",
        Column("queue", Text, nullable=False),  # "": all of them together
        Column("minute", Instant, nullable=False),
        Column("depths", Text, nullable=False),  # JSON, without those that are 0
        PrimaryKeyConstraint("queue", "minute"),
        index("depths", "minute", "minute"),
    )
    table(
        "leaders",
        Column("role", Text, primary_key=True),
        Column("worker", Text, nullable=False),
        Column("expires_at", Instant, nullable=False),
    )
    table(
        "logs",
        Column("task", BigInteger, nullable=False),
        Column("claim_no", Integer, nullable=False),
        Column("seq", Integer, nullable=False),
        Column("at", Instant, nullable=False),
        Column("stream", Text, nullable=False),
        Column("line", Text, nullable=False),
        Column("job", BigInteger),
        Column("job_seq", BigInteger),  # its number among the lines of all tasks of the job; see job_lines
        PrimaryKeyConstraint("task", "claim_no", "seq"),
        Index(
            f"{name}_logs_job",
            "job",
            "job_seq",
            unique=True,
            sqlite_where=text("job IS NOT NULL"),
            postgresql_where=text("job IS NOT NULL"),
        ),
    )
    # Apart from the counts: whoever writes lines does not make a finish wait.
    table(
        "job_lines",
        Column("job", number_of_row, primary_key=True, autoincrement=False),
        Column("next", BigInteger, nullable=False),
        fillfactor=50,
    )
    # Written by whoever raises job_counts.seq, with the number that it had.
    table(
        "job_events",
        Column("job", BigInteger, nullable=False),
        Column("seq", BigInteger, nullable=False),
        Column("at", Instant, nullable=False),
        Column("state", Text, nullable=False),
        number("total"),
        number("completed"),
        number("failed"),
        number("cancelled"),
        PrimaryKeyConstraint("job", "seq"),
    )
    table(
        "breakers",
        Column("service", Text, primary_key=True),
        Column("status", Text, nullable=False),
        flag("forced"),
        Column("until", Instant),
        Column("probe_by", Text),
        Column("probe_at", Instant),
        number("calls"),
        number("failures"),
        Column("revision", BigInteger, nullable=False),
        Column("changed_at", Instant, nullable=False),
        Column("changed_by", Text, nullable=False),
        CheckConstraint(one_of("status", ("closed", "open")), name=f"{name}_breakers_status"),
    )
    # The last changes of each, written by the statement that makes them, which drops those before.
    table(
        "breaker_changes",
        Column("service", Text, nullable=False),
        Column("revision", BigInteger, nullable=False),
        Column("status", Text, nullable=False),
        flag("forced"),
        Column("until", Instant),
        number("calls"),
        number("failures"),
        Column("changed_at", Instant, nullable=False),
        Column("changed_by", Text, nullable=False),
        PrimaryKeyConstraint("service", "revision"),
        CheckConstraint(one_of("status", ("closed", "open")), name=f"{name}_breaker_changes_status"),
    )
    # Tasks that every event of a name enqueues, in the transaction that sends it.
    table(
        "subscriptions",
        Column("name", Text, primary_key=True),
        Column("event", Text, nullable=False),
        Column("task", Text, nullable=False),  # canonical JSON of the NewTask
        Column("declared_by", Text),
        Column("changed_at", Instant, nullable=False),
        index("subscriptions", "event", "event"),
    )
    table(
        "users",
        Column("name", Text, primary_key=True),
        Column("role", Text, nullable=False),
        Column("password", Text),
        flag("disabled"),
        number("failed_logins"),
        Column("locked_until", Instant),
        Column("created_at", Instant, nullable=False),
        Column("changed_at", Instant, nullable=False),
        CheckConstraint(one_of("role", tuple(role.value for role in Role)), name=f"{name}_users_role"),
    )
    table(
        "tokens",
        Column("id", number_of_row, primary_key=True, autoincrement=False),
        Column("user", Text, nullable=False),
        Column("kind", Text, nullable=False),
        Column("label", Text, nullable=False),
        Column("digest", Text, nullable=False),
        Column("hint", Text, nullable=False),
        Column("scopes", Text, nullable=False),
        Column("created_at", Instant, nullable=False),
        Column("expires_at", Instant),
        Column("last_used_at", Instant),
        Column("revoked_at", Instant),
        UniqueConstraint("digest", name=f"{name}_tokens_digest"),
        CheckConstraint(one_of("kind", ("api", "session")), name=f"{name}_tokens_kind"),
        index("tokens", "user", "user"),
        index("tokens", "expires", "expires_at", where="expires_at IS NOT NULL"),
    )
    table(
        "audit",
        Column("id", number_of_row, primary_key=True, autoincrement=False),
        Column("at", Instant, nullable=False),
        Column("actor", Text, nullable=False),
        Column("act", Text, nullable=False),
        Column("subject", Text, nullable=False),
        Column("detail", Text, nullable=False),
        Column("request", Text),
        Column("outcome", Text),
        index("audit", "actor", "actor", "id"),
        index("audit", "act", "act", "id"),
        index("audit", "subject", "subject", "id"),
    )
    table(
        "schedules",
        Column("id", number_of_row, primary_key=True, autoincrement=False),
        Column("name", Text, nullable=False),
        Column("cadence", Text, nullable=False),
        Column("task", Text, nullable=False),  # canonical JSON of the NewTask that each fire enqueues
        Column("catch_up", Text, nullable=False),
        Column("grace", Float, nullable=False),
        Column("overlap", Text, nullable=False),
        Column("jitter", Float, nullable=False),
        flag("paused"),
        Column("declared_by", Text),
        Column("declaration", Text),  # digest of what the code said last: what an operator changed since then stands
        number("revision", 1),
        Column("cursor", Instant, nullable=False),
        Column("next_at", Instant),
        Column("problem", Text),
        Column("created_at", Instant, nullable=False),
        Column("changed_at", Instant, nullable=False),
        UniqueConstraint("name", name=f"{name}_schedules_name"),
        index("schedules", "due", "next_at", where="NOT paused AND problem IS NULL AND next_at IS NOT NULL"),
        fillfactor=70,
    )
    table(
        "schedule_runs",
        Column("schedule", BigInteger, nullable=False),
        Column("tick", Instant, nullable=False),
        flag("manual"),
        Column("task", BigInteger),  # NULL: it was left out
        Column("fired_at", Instant, nullable=False),
        # Its task was unfinished when somebody looked last: a fire looks at these, however many runs are kept.
        flag("open"),
        PrimaryKeyConstraint("schedule", "tick", "manual"),
        CheckConstraint("task IS NOT NULL OR NOT open", name=f"{name}_schedule_runs_open"),
        index("schedule_runs", "open", "schedule", where="open"),
        index("schedule_runs", "fired", "fired_at"),
    )
    table("meta", Column("key", Text, primary_key=True), Column("value", Text, nullable=False))
    # Ids of tasks, jobs and additions come from one place, before the insert: a repeat after a lost COMMIT is then
    # `ON CONFLICT DO NOTHING`. SQLite counts in a row under its write lock, PostgreSQL hands out blocks of ID_BLOCK.
    if sqlite:
        table("ids", Column("name", Text, primary_key=True), Column("next", BigInteger, nullable=False))
    else:
        Sequence("ids", start=FIRST_POSTGRES_ID, increment=ID_BLOCK, metadata=metadata, schema=name)
        Sequence("repeats", start=1, increment=1, metadata=metadata, schema=name)  # of enqueues; see inserted_v1
        # Idle workers to whom an enqueue may hand its task; see hand_over_v1. Unlogged: to stand by costs no sync, and
        # after a crash of the server nobody does. Rows are updated in place, so the table stays a page or two.
        table(
            "standbys",
            Column("worker", Text, primary_key=True),
            Column("channel", Text, nullable=False),  # where its process listens
            Column("queues", ARRAY(Text), nullable=False),
            Column("pools", ARRAY(Text), nullable=False),
            Column("open", Boolean, nullable=False),
            Column("renewed_at", Instant, nullable=False),
            fillfactor=25,
            logged=False,
        )
    return metadata
