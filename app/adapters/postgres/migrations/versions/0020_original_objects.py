"""Originals may be kept in S3-compatible storage; the database knows every object there."""

from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    # Every object has a key of its own that is never used again, so that one which is being deleted is never the one
    # that a new document needs. A workspace may be new while a file is uploaded, hence no reference to it.
    op.execute("""
        CREATE TABLE original_objects (
            key text PRIMARY KEY,
            workspace_id text NOT NULL,
            content_hash text NOT NULL,
            size bigint NOT NULL,
            state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'kept', 'dropped')),
            created_at timestamptz NOT NULL DEFAULT clock_timestamp()
        )""")
    op.execute("""
        CREATE UNIQUE INDEX original_objects_kept ON original_objects (workspace_id, content_hash)
        WHERE state = 'kept'""")
    op.execute("CREATE INDEX original_objects_unneeded ON original_objects (key) WHERE state <> 'kept'")
