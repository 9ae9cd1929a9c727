"""The tapes of runs, compressed. They hold what documents said, so they go with their run and their thread."""

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE tapes (
            workspace_id text NOT NULL,
            run_id text NOT NULL,
            thread_id text NOT NULL REFERENCES threads ON DELETE CASCADE,
            created_at timestamptz NOT NULL DEFAULT now(),
            tape bytea NOT NULL,
            PRIMARY KEY (workspace_id, run_id),
            FOREIGN KEY (workspace_id, run_id) REFERENCES runs ON DELETE CASCADE
        )""")
    # Compressed already: the server need not try again.
    op.execute("ALTER TABLE tapes ALTER COLUMN tape SET STORAGE EXTERNAL")
    op.execute("CREATE INDEX tapes_by_thread ON tapes (thread_id)")
