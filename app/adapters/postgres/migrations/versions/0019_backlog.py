"""Chunks are found by their words before they are embedded."""

from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    # What a run of `askgraph reindex` has filled is made anew: it was created with the constraint.
    op.execute("DROP TABLE IF EXISTS chunks_next")
    op.execute("ALTER TABLE chunks ALTER COLUMN embedding DROP NOT NULL")
    # Workers take the lowest round first. A document's first chunks are in round 0, the next ones in round 1 and so on,
    # so that short documents do not wait for long ones. A claim that a dead worker has left runs out.
    op.execute("""
        CREATE TABLE chunks_to_embed (
            chunk_id uuid PRIMARY KEY REFERENCES chunks ON DELETE CASCADE,
            workspace_id text NOT NULL,
            document_id uuid NOT NULL,
            round integer NOT NULL,
            number bigint GENERATED ALWAYS AS IDENTITY,
            claimed_until timestamptz NOT NULL DEFAULT '-infinity'
        )""")
    op.execute("CREATE INDEX chunks_to_embed_in_order ON chunks_to_embed (round, number)")
    op.execute("CREATE INDEX chunks_to_embed_by_document ON chunks_to_embed (workspace_id, document_id)")
