"""Threads keep the notes of clients that make them, and the branches in which such threads go on."""

from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    # client_metadata: NULL where no such client has used the thread. branch_of: the thread that goes on in this one.
    # branched_at: the checkpoint of it, or of another branch of it, from which this one went on.
    op.execute("""
        ALTER TABLE threads
            ADD COLUMN client_metadata jsonb,
            ADD COLUMN branch_of text,
            ADD COLUMN branched_at text""")
    op.execute("CREATE INDEX branches ON threads (branch_of) WHERE branch_of IS NOT NULL")
