"""Documents are found by their titles, for what one document says of another."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    # The expression is that of sql.SEARCH_TITLED. Cut, because a b-tree refuses long values.
    op.execute(r"""
        CREATE INDEX documents_by_title ON documents
        (workspace_id, (lower(left(regexp_replace(title, '\s*\([^()]*\)\s*$', ''), 200) COLLATE "C")))""")
