"""Documents have metadata that questions can be filtered by, and a run's record says which filter it had."""

from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.execute("ALTER TABLE documents ADD COLUMN metadata jsonb NOT NULL DEFAULT '{}'")
    # Serves the equalities in a filter; `metadata @@ jsonpath` is the condition (library/filters.py).
    op.execute("CREATE INDEX documents_by_metadata ON documents USING gin (metadata jsonb_path_ops)")
    op.execute("ALTER TABLE ingestions ADD COLUMN metadata jsonb NOT NULL DEFAULT '{}'")
    # NULL for runs before: their workspace and documents stand in columns of their own, which are still written.
    op.execute("ALTER TABLE runs ADD COLUMN scope jsonb")
