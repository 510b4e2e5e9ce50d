"""The ledger: tasks, their history, attempts, keys, limits, jobs, queues, workers.

Frozen: `store.schema` goes on from here, this file does not, or old databases would differ from new ones.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.sql.ddl import CreateSequence, DropSequence

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None
min_code = "0.1.0"

LIVE = """CASE state WHEN 'pending' THEN worker IS NULL
    WHEN 'claimed' THEN worker IS NOT NULL AND ready_at IS NULL
    WHEN 'running' THEN worker IS NOT NULL AND ready_at IS NULL
    WHEN 'paused' THEN worker IS NOT NULL AND ready_at IS NULL
    WHEN 'cancelling' THEN worker IS NOT NULL AND ready_at IS NULL
    WHEN 'pending_approval' THEN worker IS NULL AND ready_at IS NULL
    WHEN 'blocked' THEN worker IS NULL AND ready_at IS NULL
    WHEN 'lost' THEN worker IS NULL AND ready_at IS NULL
    ELSE false END"""
DONE = "'completed', 'failed', 'cancelled', 'rejected'"
ATTEMPT = (
    "'running', 'succeeded', 'failed', 'timed_out', 'cancelled', 'lost', 'snoozed', 'suspended', 'released', 'refused'"
)
_ROW = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # the row's own number in SQLite, only by this name
JOB = "'pending', 'running', 'completed', 'failed', 'cancelled'"

# In the order of creation.
TABLES = (
    "tasks", "history", "attempts", "keys", "gates", "slots", "jobs", "job_counts", "job_additions", "checkpoints",
    "queues", "workers", "outcomes", "leaders", "logs", "meta",
)  # fmt: skip


class _App:
    """The names of one app's objects: schema `name` on PostgreSQL, prefix `name_` on SQLite."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sqlite = op.get_bind().dialect.name == "sqlite"
        self.schema = None if self.sqlite else name

    def table(self, table: str) -> str:
        return f"{self.name}_{table}" if self.sqlite else table

    def create(self, table: str, *parts: Any, fillfactor: int | None = None) -> None:
        storage: dict[str, Any] = {} if fillfactor is None else {"postgresql_with": {"fillfactor": fillfactor}}
        op.create_table(self.table(table), *parts, schema=self.schema, **storage)

    def check(self, table: str, suffix: str, condition: str) -> sa.CheckConstraint:
        return sa.CheckConstraint(condition, name=f"{self.name}_{table}_{suffix}")

    def one_of(self, column: str, values: str) -> str:
        # For an IN of more than two values SQLite fills a table of its own each time a statement runs.
        if self.sqlite:
            return "(" + " OR ".join(f"{column} = {value}" for value in values.split(", ")) + ")"
        return f"{column} IN ({values})"

    def index(self, table: str, suffix: str, *columns: str, where: str | None = None) -> None:
        predicate: dict[str, Any] = {}
        if where is not None:
            predicate = {"sqlite_where": sa.text(where), "postgresql_where": sa.text(where)}
        op.create_index(
            f"{self.name}_{table}_{suffix}",
            self.table(table),
            [sa.text(column) if " " in column else column for column in columns],
            schema=self.schema,
            **predicate,
        )

    # Columns. An instant is timestamptz, and integer microseconds since 1970 UTC on SQLite.

    def instant(self, column: str, *, required: bool = False) -> sa.Column[Any]:
        return sa.Column(column, sa.BigInteger() if self.sqlite else sa.DateTime(timezone=True), nullable=not required)

    def task(self) -> list[sa.Column[Any]]:
        """What live and done rows share, in one order."""
        return [
            sa.Column("id", _ROW, primary_key=True, autoincrement=False),
            _text("name"),
            _text("kind"),
            _text("queue"),
            _text("pool"),
            sa.Column("lane", sa.SmallInteger(), nullable=False, server_default=sa.text("0")),
            _number("priority"),
            _text("state"),
            _maybe("reason"),
            _number("claim_no"),
            _number("attempt"),
            _number("losses"),
            _number("run_no", 1),
            _number("max_attempts", 4),
            _maybe("worker"),
            sa.Column("job", sa.BigInteger()),
            _flag("critical", default=True),
            _flag("dead_letter"),
            _text("arguments"),
            _text("codec"),
            _number("version", 1),
            _text("options"),
            _maybe("gates"),
            _maybe("order_key"),
            _flag("keyed"),
            sa.Column("max_age", sa.Float()),
            self.instant("created_at", required=True),
            self.instant("enqueued_at", required=True),
            self.instant("eligible_at", required=True),
            self.instant("order_at", required=True),
            self.instant("expires_at"),
            self.instant("claimed_at"),
            self.instant("started_at"),
            self.instant("cancelling_at"),
            _maybe("progress"),
        ]


def _text(column: str) -> sa.Column[Any]:
    return sa.Column(column, sa.Text(), nullable=False)


def _maybe(column: str) -> sa.Column[Any]:
    return sa.Column(column, sa.Text())


def _key(column: str) -> sa.Column[Any]:
    return sa.Column(column, sa.Text(), primary_key=True)


def _flag(column: str, *, default: bool = False) -> sa.Column[Any]:
    return sa.Column(column, sa.Boolean(), nullable=False, server_default=sa.text("true" if default else "false"))


def _number(column: str, default: int = 0) -> sa.Column[Any]:
    return sa.Column(column, sa.Integer(), nullable=False, server_default=sa.text(str(default)))


def _integer(column: str) -> sa.Column[Any]:
    return sa.Column(column, sa.Integer(), nullable=False)


def _id(column: str) -> sa.Column[Any]:
    return sa.Column(column, sa.BigInteger(), nullable=False)


def upgrade(name: str) -> None:
    app = _App(name)
    _tasks(app)
    _history(app)
    _attempts(app)
    _keys_and_limits(app)
    _jobs(app)
    _workers(app)
    app.create(
        "checkpoints",
        _id("task"),
        _text("name"),
        _text("value"),
        _integer("claim_no"),
        _integer("attempt"),
        app.instant("created_at", required=True),
        sa.PrimaryKeyConstraint("task", "name"),
    )
    app.create(
        "queues",
        _key("name"),
        _flag("paused"),
        sa.Column("settings", sa.Text(), nullable=False, server_default=sa.text("'{}'")),
    )
    app.create(
        "logs",
        _id("task"),
        _integer("claim_no"),
        _integer("seq"),
        app.instant("at", required=True),
        _text("stream"),
        _text("line"),
        sa.PrimaryKeyConstraint("task", "claim_no", "seq"),
    )
    app.create("meta", _key("key"), _text("value"))
    if app.sqlite:
        app.create("ids", _key("name"), _id("next"))
    else:
        for sequence in _sequences(name):
            op.execute(CreateSequence(sequence))
        _create_functions(name)


def downgrade(name: str) -> None:
    app = _App(name)
    if app.sqlite:
        op.drop_table(app.table("ids"))
    else:
        _drop_functions(name)
        for sequence in _sequences(name):
            op.execute(DropSequence(sequence))
    for table in reversed(TABLES):
        op.drop_table(app.table(table), schema=app.schema)


def _sequences(name: str) -> tuple[sa.Sequence, sa.Sequence]:
    return (
        sa.Sequence("ids", start=281_474_976_710_656, increment=100, schema=name),
        sa.Sequence("repeats", start=1, increment=1, schema=name),
    )


def _tasks(app: _App) -> None:
    app.create(
        "tasks",
        *app.task(),
        app.instant("ready_at"),
        _maybe("waiting_on"),
        app.check("tasks", "state", LIVE),
        app.check("tasks", "lane", "lane IN (0, 1)"),
        fillfactor=70,
    )
    app.index(
        "tasks", "ready", "queue", "pool", "lane", "priority DESC", "order_at", "id",
        where="state = 'pending' AND ready_at IS NOT NULL",
    )  # fmt: skip
    app.index("tasks", "due", "eligible_at", where="state = 'pending' AND ready_at IS NULL AND waiting_on IS NULL")
    app.index(
        "tasks", "waiting", "waiting_on", "order_at", "id",
        where="waiting_on IS NOT NULL OR " + app.one_of("state", "'pending_approval', 'blocked', 'lost'"),
    )  # fmt: skip
    app.index("tasks", "order", "order_key", "created_at", "id", where="order_key IS NOT NULL")
    app.index("tasks", "worker", "worker", where="worker IS NOT NULL")
    app.index("tasks", "job", "job", where="job IS NOT NULL")
    app.index("tasks", "expires", "expires_at", where="expires_at IS NOT NULL AND state = 'pending'")


def _history(app: _App) -> None:
    app.create(
        "history",
        *app.task(),
        app.instant("finished_at", required=True),
        _maybe("result"),
        _maybe("result_ref"),
        app.instant("result_expires_at"),
        _flag("result_expired"),
        _maybe("error_class"),
        _maybe("error_message"),
        _maybe("executor"),
        app.check("history", "state", app.one_of("state", DONE)),
    )
    app.index("history", "state", "state", "finished_at", "id")
    app.index("history", "queue_name", "queue", "name", "state", "finished_at", "id")
    app.index("history", "job", "job", "id", where="job IS NOT NULL")
    app.index("history", "dead", "finished_at", "id", where="dead_letter AND state = 'failed'")
    app.index("history", "results", "result_expires_at", where="result_expires_at IS NOT NULL")


def _attempts(app: _App) -> None:
    app.create(
        "attempts",
        _id("task"),
        _integer("claim_no"),
        _number("run_no", 1),
        sa.Column("attempt", sa.Integer()),
        _text("state"),
        _flag("charged"),
        _maybe("worker"),
        _maybe("executor"),
        _maybe("handle"),
        app.instant("claimed_at"),
        app.instant("started_at"),
        app.instant("finished_at"),
        _maybe("error_class"),
        _maybe("error_message"),
        _maybe("traceback"),
        sa.Column("exit_code", sa.Integer()),
        _maybe("recorded_by"),
        _maybe("late_state"),
        app.instant("late_at"),
        sa.PrimaryKeyConstraint("task", "claim_no"),
        app.check("attempts", "state", app.one_of("state", ATTEMPT)),
    )


def _keys_and_limits(app: _App) -> None:
    app.create(
        "keys",
        _text("scope"),
        _text("key"),
        _id("task"),
        sa.Column("ttl", sa.Float()),
        app.instant("expires_at"),
        sa.PrimaryKeyConstraint("scope", "key"),
    )
    app.index("keys", "task", "task")
    app.index("keys", "expires", "expires_at", where="expires_at IS NOT NULL")
    app.create(
        "gates",
        _key("key"),
        sa.Column("tokens", sa.Float()),
        app.instant("updated_at"),
        app.instant("full_at"),
        fillfactor=50,
    )
    if app.sqlite:
        app.index("gates", "full", "full_at")
    app.create(
        "slots",
        _text("key"),
        _integer("slot"),
        _id("task"),
        _integer("claim_no"),
        sa.PrimaryKeyConstraint("key", "slot"),
    )
    app.index("slots", "task", "task")


def _jobs(app: _App) -> None:
    app.create(
        "jobs",
        sa.Column("id", _ROW, primary_key=True, autoincrement=False),
        _text("name"),
        _maybe("description"),
        sa.Column("state", sa.Text(), nullable=False, server_default=sa.text("'pending'")),
        _maybe("reason"),
        _number("run_no", 1),
        sa.Column("timeout", sa.Float()),
        app.instant("created_at", required=True),
        app.instant("started_at"),
        app.instant("completed_at"),
        app.instant("deadline_at"),
        _maybe("on_success"),
        _maybe("on_failure"),
        _number("hooked_run"),
        sa.Column("metadata", sa.Text(), nullable=False, server_default=sa.text("'{}'")),
        app.check("jobs", "state", app.one_of("state", JOB)),
    )
    app.index("jobs", "state", "state", "id")
    app.index("jobs", "name", "name")
    app.index("jobs", "created", "created_at")
    app.index("jobs", "deadline", "deadline_at", where="deadline_at IS NOT NULL AND state IN ('pending', 'running')")
    app.create(
        "job_counts",
        sa.Column("job", _ROW, primary_key=True, autoincrement=False),
        _number("total"),
        _number("completed"),
        _number("failed"),
        _number("cancelled"),
        sa.Column("seq", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        fillfactor=50,
    )
    app.create(
        "job_additions",
        sa.Column("id", _ROW, primary_key=True, autoincrement=False),
        _id("job"),
        _integer("n"),
    )
    app.index("job_additions", "job", "job")


def _workers(app: _App) -> None:
    app.create(
        "workers",
        _key("id"),
        _text("kind"),
        _text("hostname"),
        _integer("pid"),
        _text("state"),
        sa.Column("beat", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("lease", sa.Float(), nullable=False),
        _text("queues"),
        _text("version"),
        app.instant("started_at", required=True),
        app.instant("last_heartbeat", required=True),
        app.instant("stopped_at"),
        sa.Column("tasks_completed", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("tasks_failed", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        app.check("workers", "state", app.one_of("state", "'active', 'idle', 'stopping', 'stopped'")),
        fillfactor=50,
    )
    app.index("workers", "state", "state")
    app.index("workers", "hostname", "hostname")
    app.index("workers", "heartbeat", "last_heartbeat")
    app.create(
        "outcomes",
        _text("worker"),
        _text("queue"),
        _text("name"),
        app.instant("minute", required=True),
        _text("outcome"),
        _id("n"),
        sa.PrimaryKeyConstraint("worker", "queue", "name", "minute", "outcome"),
    )
    app.index("outcomes", "minute", "minute")
    app.create("leaders", _key("role"), _text("worker"), app.instant("expires_at", required=True))


def _create_functions(name: str) -> None:
    # Imported here: only a database that has them needs the driver. Their names carry a version, and a released one
    # keeps its meaning, so that what this revision installs stays what it was.
    from headrace.store.postgres.functions import load_functions
    from headrace.store.postgres.migrating import run_script

    for script in load_functions(name):
        run_script(op.get_bind(), script)


def _drop_functions(name: str) -> None:
    found = op.get_bind().scalars(sa.text(_OUR_FUNCTIONS), {"name": name}).all()
    for function in found:
        op.get_bind().exec_driver_sql(f"DROP FUNCTION {function}")


# With their argument types, as DROP wants them; those an extension brought are not ours.
_OUR_FUNCTIONS = """
SELECT p.oid::regprocedure::text FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname = :name
  AND NOT EXISTS (
    SELECT FROM pg_depend AS d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
  )
ORDER BY 1
"""
