"""A run says who wrote its answer, what it went on without, and with which prompts it asked its models."""

from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.execute("""
        ALTER TABLE runs
            ADD COLUMN answered_by text NOT NULL DEFAULT '',
            ADD COLUMN degraded jsonb NOT NULL DEFAULT '[]',
            ADD COLUMN prompts jsonb NOT NULL DEFAULT '{}'
        """)
