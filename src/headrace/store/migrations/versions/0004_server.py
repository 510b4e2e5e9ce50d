"""What a server needs: owners, users, tokens and audit; numbered events and lines of jobs; shared breakers;
subscriptions. New tables and columns that may be empty: code that knows nothing of them goes on.

Frozen: `store.schema` goes on from here, this file does not, or old databases would differ from new ones.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None
min_code = "0.1.0"

_ROW = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # the row's own number in SQLite, only by this name
_TABLES = ("job_lines", "job_events", "breakers", "subscriptions", "users", "tokens", "audit")
_COLUMNS = (
    ("tasks", sa.Text(), ("owner",)),
    ("history", sa.Text(), ("owner",)),
    ("jobs", sa.Text(), ("owner",)),
    ("logs", sa.BigInteger(), ("job", "job_seq")),
)
_INDEXES: tuple[tuple[str, str, list[str], str | None], ...] = (
    ("tasks_owner", "tasks", ["owner", "id"], "owner IS NOT NULL"),
    ("history_owner", "history", ["owner", "finished_at", "id"], "owner IS NOT NULL"),
    ("jobs_owner", "jobs", ["owner", "id"], "owner IS NOT NULL"),
    ("logs_job", "logs", ["job", "job_seq"], "job IS NOT NULL"),
    ("subscriptions_event", "subscriptions", ["event"], None),
    ("tokens_user", "tokens", ["user"], None),
    ("tokens_expires", "tokens", ["expires_at"], "expires_at IS NOT NULL"),
    ("audit_actor", "audit", ["actor", "id"], None),
    ("audit_act", "audit", ["act", "id"], None),
    ("audit_subject", "audit", ["subject", "id"], None),
)


def upgrade(name: str) -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    schema = None if sqlite else name

    def called(table: str) -> str:
        return f"{name}_{table}" if sqlite else table

    def instant(column: str, *, required: bool = True) -> sa.Column[Any]:
        return sa.Column(column, sa.BigInteger() if sqlite else sa.DateTime(timezone=True), nullable=not required)

    def one_of(column: str, *values: str) -> str:
        if sqlite:
            return "(" + " OR ".join(f"{column} = {value!r}" for value in values) + ")"
        return f"{column} IN ({', '.join(repr(value) for value in values)})"

    for table, kind, columns in _COLUMNS:
        for column in columns:
            op.add_column(called(table), sa.Column(column, kind), schema=schema)
    op.create_table(
        called("job_lines"),
        sa.Column("job", _ROW, primary_key=True, autoincrement=False),
        _number("next"),
        schema=schema,
        postgresql_with={"fillfactor": 50},
    )
    op.create_table(
        called("job_events"),
        _number("job"),
        _number("seq"),
        instant("at"),
        _text("state"),
        *(_count(column) for column in ("total", "completed", "failed", "cancelled")),
        sa.PrimaryKeyConstraint("job", "seq"),
        schema=schema,
    )
    op.create_table(
        called("breakers"),
        sa.Column("service", sa.Text(), primary_key=True),
        _text("status"),
        _flag("forced"),
        instant("until", required=False),
        sa.Column("probe_by", sa.Text()),
        instant("probe_at", required=False),
        _count("calls"),
        _count("failures"),
        _number("revision"),
        instant("changed_at"),
        _text("changed_by"),
        sa.CheckConstraint(one_of("status", "closed", "open"), name=f"{name}_breakers_status"),
        schema=schema,
    )
    op.create_table(
        called("subscriptions"),
        sa.Column("name", sa.Text(), primary_key=True),
        _text("event"),
        _text("task"),
        sa.Column("declared_by", sa.Text()),
        instant("changed_at"),
        schema=schema,
    )
    op.create_table(
        called("users"),
        sa.Column("name", sa.Text(), primary_key=True),
        _text("role"),
        sa.Column("password", sa.Text()),
        _flag("disabled"),
        _count("failed_logins"),
        instant("locked_until", required=False),
        instant("created_at"),
        instant("changed_at"),
        sa.CheckConstraint(one_of("role", "viewer", "user", "operator", "admin"), name=f"{name}_users_role"),
        schema=schema,
    )
    op.create_table(
        called("tokens"),
        sa.Column("id", _ROW, primary_key=True, autoincrement=False),
        *(_text(column) for column in ("user", "kind", "label", "digest", "hint", "scopes")),
        instant("created_at"),
        *(instant(column, required=False) for column in ("expires_at", "last_used_at", "revoked_at")),
        sa.UniqueConstraint("digest", name=f"{name}_tokens_digest"),
        sa.CheckConstraint(one_of("kind", "api", "session"), name=f"{name}_tokens_kind"),
        schema=schema,
    )
    op.create_table(
        called("audit"),
        sa.Column("id", _ROW, primary_key=True, autoincrement=False),
        instant("at"),
        *(_text(column) for column in ("actor", "act", "subject", "detail")),
        sa.Column("request", sa.Text()),
        sa.Column("outcome", sa.Text()),
        schema=schema,
    )
    for suffix, table, columns, where in _INDEXES:
        predicate: dict[str, Any] = {}
        if where is not None:
            predicate = {"sqlite_where": sa.text(where), "postgresql_where": sa.text(where)}
        unique = suffix == "logs_job"
        op.create_index(f"{name}_{suffix}", called(table), columns, schema=schema, unique=unique, **predicate)
    if not sqlite:
        _create_functions(name)


def _create_functions(name: str) -> None:
    """Those that an older version installed know nothing of owners and events."""
    # Imported here: only a database that has them needs the driver.
    from headrace.store.postgres.functions import load_functions
    from headrace.store.postgres.migrating import run_script

    for script in load_functions(name):
        run_script(op.get_bind(), script)


def downgrade(name: str) -> None:
    """Users, tokens, the audit log and who owns what are gone; the tasks stay."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    schema = None if sqlite else name

    def called(table: str) -> str:
        return f"{name}_{table}" if sqlite else table

    for suffix, table, _, _ in _INDEXES:
        if table not in _TABLES:
            op.drop_index(f"{name}_{suffix}", called(table), schema=schema)
    for table in reversed(_TABLES):
        op.drop_table(called(table), schema=schema)
    for table, _, columns in _COLUMNS:
        for column in columns:
            op.drop_column(called(table), column, schema=schema)


def _text(column: str) -> sa.Column[Any]:
    return sa.Column(column, sa.Text(), nullable=False)


def _number(column: str) -> sa.Column[Any]:
    return sa.Column(column, sa.BigInteger(), nullable=False)


def _count(column: str) -> sa.Column[Any]:
    return sa.Column(column, sa.Integer(), nullable=False, server_default=sa.text("0"))


def _flag(column: str) -> sa.Column[Any]:
    return sa.Column(column, sa.Boolean(), nullable=False, server_default=sa.text("false"))
