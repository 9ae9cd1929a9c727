"""Token vectors for late interaction. Chunks loaded before this have none and keep their fused score."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE chunk_tokens (
            chunk_id uuid PRIMARY KEY REFERENCES chunks ON DELETE CASCADE,
            workspace_id text NOT NULL,
            tokens bytea NOT NULL
        )""")
    # Quantised vectors do not compress; trying costs time on every write and read.
    op.execute("ALTER TABLE chunk_tokens ALTER COLUMN tokens SET STORAGE EXTERNAL")
