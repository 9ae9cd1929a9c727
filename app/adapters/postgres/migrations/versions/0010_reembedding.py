"""Documents can be re-embedded while the old index is searched (app/adapters/postgres/vectors/reembedding.py)."""

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    # The model that `chunks_next` is being filled with; NULL where nobody is at it.
    op.execute("ALTER TABLE embedding_model ADD COLUMN next text")
