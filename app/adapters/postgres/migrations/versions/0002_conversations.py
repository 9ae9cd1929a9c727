"""Threads and the log of every run."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    # LangGraph's checkpoints know a thread by its id alone, so an id belongs to one workspace only.
    op.execute("""
        CREATE TABLE threads (
            thread_id text PRIMARY KEY,
            workspace_id text NOT NULL,
            created_at timestamptz NOT NULL DEFAULT now()
        )""")

    # The columns are the fields of domain.runs.RunRecord.
    op.execute("""
        CREATE TABLE runs (
            run_id text NOT NULL,
            thread_id text NOT NULL,
            workspace_id text NOT NULL,
            mode text NOT NULL,
            question text NOT NULL,
            started_at timestamptz NOT NULL,
            standalone_question text NOT NULL,
            queries jsonb NOT NULL,
            document_ids jsonb,
            route text NOT NULL,
            retries integer NOT NULL,
            candidates integer NOT NULL,
            sources integer NOT NULL,
            top_score double precision,
            confidence double precision NOT NULL,
            verification text NOT NULL,
            cached boolean NOT NULL,
            answer text NOT NULL,
            citations jsonb NOT NULL,
            usage jsonb NOT NULL,
            cost double precision,
            timings jsonb NOT NULL,
            warnings jsonb NOT NULL,
            error text,
            forked_from jsonb,
            PRIMARY KEY (workspace_id, run_id)
        )""")
    op.execute("CREATE INDEX runs_by_thread ON runs (workspace_id, thread_id, started_at)")
