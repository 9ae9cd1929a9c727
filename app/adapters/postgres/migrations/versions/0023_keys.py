"""API keys, and a log of what callers changed."""

from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    # Neither belongs to a workspace: a key may open several.
    op.execute("""
        CREATE TABLE api_keys (
            key_id text PRIMARY KEY,
            digest bytea NOT NULL UNIQUE,
            name text NOT NULL,
            workspaces text[],
            groups text[],
            rights text[] NOT NULL,
            created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
            expires_at timestamptz,
            revoked_at timestamptz,
            last_used_at timestamptz
        )""")
    op.execute("""
        CREATE TABLE audit_log (
            entry_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            at timestamptz NOT NULL DEFAULT clock_timestamp(),
            caller text NOT NULL,
            address text,
            action text NOT NULL,
            target text NOT NULL,
            workspace_id text,
            status int NOT NULL
        )""")
    op.execute("CREATE INDEX audit_log_at ON audit_log (at)")
