"""${message}"""

from alembic import op
import sqlalchemy as sa

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None
min_code = ""  # the oldest version of headrace that may work with this schema


def upgrade(name: str) -> None:
    ${upgrades if upgrades else "pass"}


def downgrade(name: str) -> None:
    ${downgrades if downgrades else "pass"}
