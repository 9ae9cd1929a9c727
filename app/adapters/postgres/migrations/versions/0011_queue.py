"""The queue: procrastinate's own schema, how accepted runs stand, and uploads that wait to be read."""

from alembic import op

from app.adapters.postgres.queue.schema import read_version

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    from procrastinate.schema import SchemaManager

    connection = op.get_bind().connection.driver_connection
    assert connection is not None
    # As the driver's own, because many statements come at once and hold what SQLAlchemy takes for parameters.
    connection.execute(SchemaManager.get_schema())
    # procrastinate does not note in the database which of its migrations have been run.
    op.execute("CREATE TABLE queue_schema (version text NOT NULL)")
    connection.execute("INSERT INTO queue_schema VALUES (%s)", [read_version()])

    # The columns are the fields of domain.runs.RunStatus, and the job that is the run's lease.
    op.execute("""
        CREATE TABLE accepted_runs (
            workspace_id text NOT NULL,
            run_id text NOT NULL,
            thread_id text NOT NULL REFERENCES threads ON DELETE CASCADE,
            request jsonb NOT NULL,
            state text NOT NULL,
            attempt integer NOT NULL,
            accepted_at timestamptz NOT NULL DEFAULT now(),
            started_at timestamptz,
            ended_at timestamptz,
            ended jsonb,
            ended_id text,
            stop_requested boolean NOT NULL DEFAULT false,
            job_id bigint NOT NULL,
            PRIMARY KEY (workspace_id, run_id)
        )""")
    op.execute("CREATE INDEX accepted_runs_by_thread ON accepted_runs (thread_id)")
    op.execute("""
        CREATE INDEX unfinished_runs ON accepted_runs (thread_id, job_id) WHERE state IN ('queued', 'running')""")

    op.execute("""
        CREATE TABLE ingestions (
            workspace_id text NOT NULL,
            ingestion_id text NOT NULL,
            source text NOT NULL,
            media_type text,
            state text NOT NULL,
            accepted_at timestamptz NOT NULL DEFAULT now(),
            ended_at timestamptz,
            content bytea,
            report jsonb,
            PRIMARY KEY (workspace_id, ingestion_id)
        )""")
    # Files are mostly compressed already, and are read once.
    op.execute("ALTER TABLE ingestions ALTER COLUMN content SET STORAGE EXTERNAL")
