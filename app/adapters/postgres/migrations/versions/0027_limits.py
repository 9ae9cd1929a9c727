"""Limits of API keys."""

from alembic import op

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    op.execute("""
        ALTER TABLE api_keys
            ADD COLUMN requests_per_minute int,
            ADD COLUMN runs int,
            ADD COLUMN tokens_per_day bigint,
            ADD COLUMN dollars_per_day double precision""")
