"""Runs are listed by time."""

from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    op.execute("CREATE INDEX runs_by_time ON runs (workspace_id, started_at DESC, run_id DESC)")
