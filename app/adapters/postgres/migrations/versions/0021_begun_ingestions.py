"""How often the reading of a file was begun and neither ended nor handed back: its process died."""

from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    op.execute("ALTER TABLE ingestions ADD COLUMN begun integer NOT NULL DEFAULT 0")
