"""Edges between tasks, and events that tasks wait for. New tables only: code that knows nothing of them goes on.

Frozen: `store.schema` goes on from here, this file does not, or old databases would differ from new ones.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None
min_code = "0.1.0"

_ROW = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # the row's own number in SQLite, only by this name
_TABLES = ("dependencies", "barriers", "releases", "events", "waits")


def upgrade(name: str) -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    schema = None if sqlite else name
    called = _called(name, sqlite=sqlite)

    def instant(column: str, *, required: bool = True) -> sa.Column[Any]:
        return sa.Column(column, sa.BigInteger() if sqlite else sa.DateTime(timezone=True), nullable=not required)

    op.create_table(
        called["dependencies"],
        _number("task"),
        sa.Column("place", sa.Integer(), nullable=False),
        _number("upstream"),
        sa.Column("kind", sa.SmallInteger(), nullable=False),
        sa.Column("input", sa.Integer()),
        sa.PrimaryKeyConstraint("task", "place"),
        sa.CheckConstraint("kind IN (0, 1, 2)", name=f"{name}_dependencies_kind"),
        schema=schema,
    )
    op.create_table(
        called["barriers"],
        sa.Column("task", _ROW, primary_key=True, autoincrement=False),
        sa.Column("remaining", sa.Integer(), nullable=False),
        sa.CheckConstraint("remaining >= 0", name=f"{name}_barriers_remaining"),
        schema=schema,
        postgresql_with={"fillfactor": 50},
    )
    op.create_table(
        called["releases"],
        sa.Column("upstream", _ROW, primary_key=True, autoincrement=False),
        _text("state"),
        _number("after"),
        schema=schema,
    )
    op.create_table(
        called["events"],
        sa.Column("id", _ROW, primary_key=True, autoincrement=False),
        _text("name"),
        _text("key"),
        _text("payload"),
        instant("created_at"),
        schema=schema,
    )
    op.create_table(
        called["waits"],
        _number("task"),
        _text("step"),
        _text("event"),
        _text("key"),
        instant("expires_at", required=False),
        sa.Column("taken", sa.BigInteger()),
        sa.Column("over", sa.Boolean(), nullable=False, server_default=sa.text("false")),
        sa.PrimaryKeyConstraint("task", "step"),
        schema=schema,
    )
    for suffix, table, columns, where in (
        ("dependencies_upstream", "dependencies", ["upstream", "task", "kind"], None),
        ("events_name", "events", ["name", "key", "created_at", "id"], None),
        ("events_created", "events", ["created_at"], None),
        ("waits_event", "waits", ["event", "key"], "NOT over"),
        ("waits_expires", "waits", ["expires_at"], "NOT over AND expires_at IS NOT NULL"),
    ):
        predicate: dict[str, Any] = {}
        if where is not None:
            predicate = {"sqlite_where": sa.text(where), "postgresql_where": sa.text(where)}
        op.create_index(f"{name}_{suffix}", called[table], columns, schema=schema, **predicate)
    if not sqlite:
        _create_functions(name)


def _create_functions(name: str) -> None:
    """Those that an older version installed know nothing of edges."""
    # Imported here: only a database that has them needs the driver.
    from headrace.store.postgres.functions import load_functions
    from headrace.store.postgres.migrating import run_script

    for script in load_functions(name):
        run_script(op.get_bind(), script)


def downgrade(name: str) -> None:
    """Edges and events are gone with their tables. Tasks that wait for others stay blocked: finish or cancel them
    first."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    called = _called(name, sqlite=sqlite)
    for table in reversed(_TABLES):
        op.drop_table(called[table], schema=None if sqlite else name)


def _called(name: str, *, sqlite: bool) -> dict[str, str]:
    return {table: f"{name}_{table}" if sqlite else table for table in _TABLES}


def _text(column: str) -> sa.Column[Any]:
    return sa.Column(column, sa.Text(), nullable=False)


def _number(column: str) -> sa.Column[Any]:
    return sa.Column(column, sa.BigInteger(), nullable=False)
