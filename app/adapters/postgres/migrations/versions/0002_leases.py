"""Leases in the rows of runs and ingestions, in place of the jobs of a queue of its own (procrastinate)."""

ADD = """
-- `place`: the number of the run in its thread. `claimed_until`: until then nobody but the holder of `attempt` may
-- execute the run, or, where it waits, nobody at all.
ALTER TABLE accepted_runs ADD place bigint, ADD claimed_until timestamptz NOT NULL DEFAULT '-infinity';

-- The same for files. `turn`: their order, see queue/ingestions.py.
ALTER TABLE ingestions ADD attempt integer NOT NULL DEFAULT 0, ADD turn bigint NOT NULL DEFAULT 0,
    ADD claimed_until timestamptz NOT NULL DEFAULT '-infinity';

-- When old conversations are deleted next.
CREATE TABLE housekeeping (due timestamptz NOT NULL);
INSERT INTO housekeeping VALUES (now() + interval '1 hour');
"""

# Runs of a thread ended in the order in which they were executed. Those that have not ended go on in the order in which
# procrastinate would have taken them.
MOVE = """
UPDATE accepted_runs AS run SET place = numbered.place
FROM (
    SELECT workspace_id, run_id, row_number() OVER (
        PARTITION BY workspace_id, thread_id
        ORDER BY ended_at NULLS LAST, state = 'running' DESC, attempt > 0 DESC, job_id
    ) AS place
    FROM accepted_runs
) AS numbered
WHERE run.workspace_id = numbered.workspace_id AND run.run_id = numbered.run_id;

DO $$
BEGIN
    IF to_regclass('procrastinate_jobs') IS NOT NULL THEN
        UPDATE ingestions SET attempt = attempts, turn = -priority, claimed_until = coalesce(scheduled_at, '-infinity')
        FROM procrastinate_jobs
        WHERE queue_name = 'ingestion' AND args ->> 'workspace_id' = workspace_id
            AND args ->> 'ingestion_id' = ingestion_id;
    END IF;
END
$$;
"""

INDEXES = """
DROP INDEX unfinished_runs;
DROP INDEX accepted_runs_by_thread;
ALTER TABLE accepted_runs ALTER place SET NOT NULL, DROP job_id;
CREATE UNIQUE INDEX accepted_runs_by_thread ON accepted_runs (workspace_id, thread_id, place);
CREATE INDEX unfinished_runs ON accepted_runs (workspace_id, thread_id, place) WHERE state IN ('queued', 'running');

CREATE INDEX ingestions_by_arrival ON ingestions (workspace_id, arrival);
CREATE INDEX ingestions_in_line ON ingestions (turn, arrival) WHERE state IN ('queued', 'running');
CREATE INDEX ingestions_in_line_of_workspace ON ingestions (workspace_id, turn) WHERE state IN ('queued', 'running');
"""

# All names are read before the first is dropped.
DROP = """
DO $$
DECLARE
    statements text;
BEGIN
    SELECT string_agg(format('DROP %s IF EXISTS %s CASCADE;', kind, name), ' ' ORDER BY number) INTO statements FROM (
        SELECT 1 AS number, 'TABLE' AS kind, oid::regclass::text AS name FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
            AND (starts_with(relname, 'procrastinate_') OR relname = 'queue_schema')
        UNION ALL
        SELECT 2, 'FUNCTION', oid::regprocedure::text FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace AND starts_with(proname, 'procrastinate_')
        UNION ALL
        SELECT 3, 'TYPE', pg_type.oid::regtype::text FROM pg_type LEFT JOIN pg_class ON pg_class.oid = typrelid
        WHERE typnamespace = current_schema()::regnamespace AND starts_with(typname, 'procrastinate_')
            AND (typtype = 'e' OR relkind = 'c')
    ) AS found;
    IF statements IS NOT NULL THEN
        EXECUTE statements;
    END IF;
END
$$;
"""


def list_statements() -> list[str]:
    return [ADD, MOVE, INDEXES, DROP]
