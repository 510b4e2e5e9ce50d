"""The last changes of each breaker, and jobs of one name from the newest on. A new table, and an index that knows more
than the one before it: code that knows nothing of them goes on.

Frozen: `store.schema` goes on from here, this file does not, or old databases would differ from new ones.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None
min_code = "0.1.0"

_COLUMNS = ("service", "revision", "status", "forced", "until", "calls", "failures", "changed_at", "changed_by")


def upgrade(name: str) -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    schema = None if sqlite else name

    def instant(column: str, *, required: bool = True) -> sa.Column[Any]:
        return sa.Column(column, sa.BigInteger() if sqlite else sa.DateTime(timezone=True), nullable=not required)

    open_or_closed = "(status = 'closed' OR status = 'open')" if sqlite else "status IN ('closed', 'open')"
    op.create_table(
        _called("breaker_changes", name, sqlite=sqlite),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("forced", sa.Boolean(), nullable=False, server_default=sa.text("false")),
        instant("until", required=False),
        *(sa.Column(column, sa.Integer(), nullable=False, server_default=sa.text("0")) for column in _COLUMNS[5:7]),
        instant("changed_at"),
        sa.Column("changed_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("service", "revision"),
        sa.CheckConstraint(open_or_closed, name=f"{name}_breaker_changes_status"),
        schema=schema,
    )
    # The history of those that are there begins with what they are.
    prefix, columns = f"{name}_" if sqlite else f'"{name}".', ", ".join(_COLUMNS)
    op.execute(f"INSERT INTO {prefix}breaker_changes ({columns}) SELECT {columns} FROM {prefix}breakers")
    _index_names(name, ["name", "id"], sqlite=sqlite)


def downgrade(name: str) -> None:
    """What breakers were before is gone; what they are stays."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    op.drop_table(_called("breaker_changes", name, sqlite=sqlite), schema=None if sqlite else name)
    _index_names(name, ["name"], sqlite=sqlite)


def _index_names(name: str, columns: list[str], *, sqlite: bool) -> None:
    schema, jobs = None if sqlite else name, _called("jobs", name, sqlite=sqlite)
    op.drop_index(f"{name}_jobs_name", jobs, schema=schema)
    op.create_index(f"{name}_jobs_name", jobs, columns, schema=schema)


def _called(table: str, name: str, *, sqlite: bool) -> str:
    return f"{name}_{table}" if sqlite else table
