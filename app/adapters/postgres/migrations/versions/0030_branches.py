"""Finding the branches of a run."""

from alembic import op

revision = "0030"
down_revision = "0027"


def upgrade() -> None:
    op.execute("""
        CREATE INDEX runs_branches ON runs (workspace_id, (forked_from ->> 'run_id')) WHERE forked_from IS NOT NULL""")
