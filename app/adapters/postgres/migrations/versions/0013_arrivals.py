"""Of two files of one source, the later one is kept, whichever is read first."""

from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.execute("CREATE SEQUENCE arrivals")
    # What is stored already came before whatever comes.
    op.execute("ALTER TABLE documents ADD COLUMN arrival bigint NOT NULL DEFAULT 0")
    op.execute("ALTER TABLE ingestions ADD COLUMN arrival bigint")
    op.execute("""
        UPDATE ingestions SET arrival = nth.number
        FROM (
            SELECT workspace_id, ingestion_id, row_number() OVER (ORDER BY accepted_at, ingestion_id) AS number
            FROM ingestions
        ) AS nth
        WHERE ingestions.workspace_id = nth.workspace_id AND ingestions.ingestion_id = nth.ingestion_id""")
    op.execute("SELECT setval('arrivals', (SELECT count(*) FROM ingestions) + 1)")
    op.execute(
        "ALTER TABLE ingestions ALTER COLUMN arrival SET NOT NULL, ALTER COLUMN arrival SET DEFAULT nextval('arrivals')"
    )
