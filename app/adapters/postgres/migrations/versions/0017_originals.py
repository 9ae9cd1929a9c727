"""The files from which documents were read are kept, by their content."""

from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    # In parts, so that no statement handles a whole file. Documents of one workspace that say the same share the file.
    op.execute("""
        CREATE TABLE originals (
            workspace_id text NOT NULL REFERENCES workspaces,
            content_hash text NOT NULL,
            part integer NOT NULL,
            bytes bytea NOT NULL,
            PRIMARY KEY (workspace_id, content_hash, part)
        )""")
