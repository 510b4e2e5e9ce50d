"""Idle workers to whom an enqueue may hand its task, on PostgreSQL: a new table and new functions, of which older code
knows nothing and goes on.

Frozen: `store.schema` goes on from here, this file does not, or old databases would differ from new ones.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None
min_code = "0.1.0"


def upgrade(name: str) -> None:
    if op.get_bind().dialect.name == "sqlite":
        return  # its workers wait for a transaction of their own process
    op.create_table(
        "standbys",
        sa.Column("worker", sa.Text(), primary_key=True),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("queues", ARRAY(sa.Text()), nullable=False),
        sa.Column("pools", ARRAY(sa.Text()), nullable=False),
        sa.Column("open", sa.Boolean(), nullable=False),
        sa.Column("renewed_at", sa.DateTime(timezone=True), nullable=False),
        schema=name,
        prefixes=["UNLOGGED"],
        postgresql_with={"fillfactor": 25},
    )
    # Imported here: only a database that has them needs the driver.
    from headrace.store.postgres.functions import load_functions
    from headrace.store.postgres.migrating import run_script

    for script in load_functions(name):
        run_script(op.get_bind(), script)


def downgrade(name: str) -> None:
    """Nobody stands by any more: idle workers hear of new tasks by a wake-up."""
    if op.get_bind().dialect.name != "sqlite":
        op.drop_table("standbys", schema=name)
