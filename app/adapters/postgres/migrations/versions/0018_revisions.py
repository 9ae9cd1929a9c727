"""What a document said before stays readable from the answers that quote it, and synced folders are remembered."""

from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    # Metadata may change without a new revision: `revised_at` is when the text came, `updated_at` when anything did.
    op.execute("""
        ALTER TABLE documents
            ADD COLUMN revision integer NOT NULL DEFAULT 1,
            ADD COLUMN revised_at timestamptz NOT NULL DEFAULT now()""")
    op.execute("UPDATE documents SET revised_at = updated_at")
    # Superseded revisions only; the current one is in `documents`.
    op.execute("""
        CREATE TABLE document_revisions (
            document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
            revision integer NOT NULL,
            workspace_id text NOT NULL,
            content_hash text NOT NULL,
            title text NOT NULL,
            text text NOT NULL,
            created_at timestamptz NOT NULL,
            superseded_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (document_id, revision)
        )""")
    op.execute("CREATE INDEX document_revisions_by_workspace ON document_revisions (workspace_id)")

    # What `askgraph sync` last saw of a file. Only documents that are listed here are deleted with their file.
    op.execute("""
        CREATE TABLE synced_files (
            workspace_id text NOT NULL,
            folder text NOT NULL,
            source text NOT NULL,
            content_hash text NOT NULL,
            stamp text NOT NULL,
            document_id text,
            PRIMARY KEY (workspace_id, folder, source)
        )""")
