"""Names that clients choose for threads are unique within a workspace: ids are unique across workspaces, so that a name
as an id would tell that another workspace has it."""

from alembic import op

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    op.execute("ALTER TABLE threads ADD COLUMN client_name text")
    op.execute("CREATE UNIQUE INDEX client_names ON threads (workspace_id, client_name) WHERE client_name IS NOT NULL")
