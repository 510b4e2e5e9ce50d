"""How deep queues were, minute by minute: a new table, of which older code knows nothing and goes on. On PostgreSQL
also an index of what is to be cancelled, and the functions are put in anew: they do the same, for less.

Frozen: `store.schema` goes on from here, this file does not, or old databases would differ from new ones.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None
min_code = "0.1.0"


def upgrade(name: str) -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    schema, depths = None if sqlite else name, _called("depths", name, sqlite=sqlite)
    op.create_table(
        depths,
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("minute", sa.BigInteger() if sqlite else sa.DateTime(timezone=True), nullable=False),
        sa.Column("depths", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("queue", "minute"),
        schema=schema,
    )
    op.create_index(f"{name}_depths_minute", depths, ["minute"], schema=schema)
    if not sqlite:
        cancelling = sa.text("state = 'cancelling'")
        op.create_index(f"{name}_tasks_cancelling", "tasks", ["worker"], schema=schema, postgresql_where=cancelling)
        # Imported here: only a database that has them needs the driver.
        from headrace.store.postgres.functions import load_functions
        from headrace.store.postgres.migrating import run_script

        for script in load_functions(name):
            run_script(op.get_bind(), script)


def downgrade(name: str) -> None:
    """How deep queues were is gone; how deep they are is counted."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    op.drop_table(_called("depths", name, sqlite=sqlite), schema=None if sqlite else name)
    if not sqlite:
        op.drop_index(f"{name}_tasks_cancelling", "tasks", schema=name)


def _called(table: str, name: str, *, sqlite: bool) -> str:
    return f"{name}_{table}" if sqlite else table
