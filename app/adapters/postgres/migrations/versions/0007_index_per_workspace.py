"""Each large workspace has a vector index of its own, instead of one over all (docs/decisions/16-search-at-scale.md).

How long the list of terms that wait to be indexed may get is up to the session, so that a load may have a longer one.
"""

from alembic import op
from sqlalchemy import text

from app.adapters.postgres.vectors import vector_index

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.execute("DROP INDEX chunks_by_embedding")
    large = text("SELECT workspace_id FROM workspaces WHERE chunks > :rows")
    for (workspace_id,) in op.get_bind().execute(large, {"rows": vector_index.EXACT_ROWS}):
        op.execute(vector_index.describe_index(workspace_id, 384, concurrently=False).as_string())
    op.execute("ALTER INDEX chunk_terms_by_term RESET (gin_pending_list_limit)")
