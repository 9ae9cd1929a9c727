"""A document that was deleted does not come back with a file that came before."""

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    # A row for each source that was ever deleted: without it, nobody would know when.
    op.execute("""
        CREATE TABLE deleted_documents (
            document_id uuid PRIMARY KEY,
            workspace_id text NOT NULL,
            arrival bigint NOT NULL
        )""")
