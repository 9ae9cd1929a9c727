"""Pruning keeps what runs cost, and notes until when a thread's runs have only their final states."""

from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    # Runs of the thread that began before this have no steps any more.
    op.execute("ALTER TABLE threads ADD COLUMN thinned_until timestamptz NOT NULL DEFAULT '-infinity'")
    # What `askgraph costs` adds up, and nothing that anybody asked or was told.
    op.execute("""
        CREATE TABLE pruned_runs (
            workspace_id text NOT NULL,
            run_id text NOT NULL,
            started_at timestamptz NOT NULL,
            mode text NOT NULL,
            cached boolean NOT NULL,
            usage jsonb NOT NULL,
            PRIMARY KEY (workspace_id, run_id)
        )""")
