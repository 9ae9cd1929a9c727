"""Documents carry groups, and some searches read their workspace through views (`row_security.VIEWS`)."""

from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    # None: everybody of the workspace sees the document.
    op.execute("ALTER TABLE documents ADD COLUMN groups text[] NOT NULL DEFAULT '{}'")
    # NULL: those that the source has.
    op.execute("ALTER TABLE ingestions ADD COLUMN groups text[]")
    op.execute("CREATE INDEX documents_of_groups ON documents (workspace_id) WHERE groups <> '{}'")
    for view, table in (
        ("documents_of_workspace", "documents"),
        ("terms_of_workspace", "chunk_terms"),
        ("words_of_workspace", "vocabulary"),
    ):
        # The owner's right to read applies, so the policy of the table does not. The condition is that of the policy.
        op.execute(f"""
            CREATE VIEW {view} AS SELECT * FROM {table}
            WHERE (workspace_id = (SELECT current_setting('askgraph.workspace', true))) IS TRUE""")
