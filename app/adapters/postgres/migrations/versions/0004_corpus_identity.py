"""A corpus is known by a random id that every change renews.

A counter is the same in two databases that have seen as many changes, and a cache may serve both.
"""

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.execute("ALTER TABLE workspaces ADD COLUMN corpus uuid NOT NULL DEFAULT gen_random_uuid()")
