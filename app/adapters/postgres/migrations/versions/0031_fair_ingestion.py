"""Files that wait are found by workspace: each new one takes its turn after those of its own workspace."""

from alembic import op

revision = "0031"
down_revision = "0027"


def upgrade() -> None:
    op.execute("""
        CREATE INDEX waiting_ingestions ON procrastinate_jobs ((args ->> 'workspace_id'), priority)
        WHERE queue_name = 'ingestion' AND status = 'todo'""")
