"""Schedules and their runs. Two new tables: code that knows nothing of them goes on beside them.

Frozen: `store.schema` goes on from here, this file does not, or old databases would differ from new ones.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None
min_code = "0.1.0"

_ROW = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # the row's own number in SQLite, only by this name


def upgrade(name: str) -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    schema = None if sqlite else name
    schedules, runs = _tables(name, sqlite=sqlite)

    def instant(column: str, *, required: bool = True) -> sa.Column[Any]:
        return sa.Column(column, sa.BigInteger() if sqlite else sa.DateTime(timezone=True), nullable=not required)

    op.create_table(
        schedules,
        sa.Column("id", _ROW, primary_key=True, autoincrement=False),
        _text("name"),
        _text("cadence"),
        _text("task"),
        _text("catch_up"),
        sa.Column("grace", sa.Float(), nullable=False),
        _text("overlap"),
        sa.Column("jitter", sa.Float(), nullable=False),
        _flag("paused"),
        sa.Column("declared_by", sa.Text()),
        sa.Column("declaration", sa.Text()),
        sa.Column("revision", sa.Integer(), nullable=False, server_default=sa.text("1")),
        instant("cursor"),
        instant("next_at", required=False),
        sa.Column("problem", sa.Text()),
        instant("created_at"),
        instant("changed_at"),
        sa.UniqueConstraint("name", name=f"{name}_schedules_name"),
        schema=schema,
        postgresql_with={"fillfactor": 70},
    )
    op.create_table(
        runs,
        sa.Column("schedule", sa.BigInteger(), nullable=False),
        instant("tick"),
        _flag("manual"),
        sa.Column("task", sa.BigInteger()),
        instant("fired_at"),
        _flag("open"),
        sa.PrimaryKeyConstraint("schedule", "tick", "manual"),
        sa.CheckConstraint("task IS NOT NULL OR NOT open", name=f"{name}_schedule_runs_open"),
        schema=schema,
    )
    for suffix, table, column, where in (
        ("schedules_due", schedules, "next_at", "NOT paused AND problem IS NULL AND next_at IS NOT NULL"),
        ("schedule_runs_open", runs, "schedule", "open"),
        ("schedule_runs_fired", runs, "fired_at", None),
    ):
        predicate: dict[str, Any] = {}
        if where is not None:
            predicate = {"sqlite_where": sa.text(where), "postgresql_where": sa.text(where)}
        op.create_index(f"{name}_{suffix}", table, [column], schema=schema, **predicate)


def downgrade(name: str) -> None:
    """Schedules and the list of their runs are gone with their tables; the tasks they became stay."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    for table in reversed(_tables(name, sqlite=sqlite)):
        op.drop_table(table, schema=None if sqlite else name)


def _tables(name: str, *, sqlite: bool) -> tuple[str, str]:
    return (f"{name}_schedules", f"{name}_schedule_runs") if sqlite else ("schedules", "schedule_runs")


def _text(column: str) -> sa.Column[Any]:
    return sa.Column(column, sa.Text(), nullable=False)


def _flag(column: str) -> sa.Column[Any]:
    return sa.Column(column, sa.Boolean(), nullable=False, server_default=sa.text("false"))
