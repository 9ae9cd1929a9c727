"""Token vectors keep where their tokens begin, so that a question need not cut the chunks into tokens again."""

from alembic import op

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    # NULL where an earlier version has stored the vectors.
    op.execute("ALTER TABLE chunk_tokens ADD COLUMN places bytea")
