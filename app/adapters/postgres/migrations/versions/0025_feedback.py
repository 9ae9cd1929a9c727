"""What readers say of answers, and how far the reading of a file has come."""

from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE feedback (
            workspace_id text NOT NULL,
            run_id text NOT NULL,
            rating text NOT NULL,
            reason text,
            comment text NOT NULL,
            given_by text NOT NULL,
            given_at timestamptz NOT NULL DEFAULT clock_timestamp(),
            PRIMARY KEY (workspace_id, run_id),
            FOREIGN KEY (workspace_id, run_id) REFERENCES accepted_runs ON DELETE CASCADE
        )""")
    op.execute("CREATE INDEX feedback_by_time ON feedback (workspace_id, given_at)")

    # Written while a worker reads the file, at most once a second.
    op.execute("ALTER TABLE ingestions ADD COLUMN progress jsonb")
    op.execute("CREATE INDEX ingestions_by_end ON ingestions (workspace_id, ended_at)")
