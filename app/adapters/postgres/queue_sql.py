"""The statements about processes and their jobs, which are of no workspace: what a dead process held belongs to whoever
lives. Those about one run are in `sql`."""

from typing import LiteralString

from app.adapters.postgres.sql import UNFINISHED

# A new job takes the old one's place, before others of its thread: procrastinate finishes a job by its number alone,
# and so a worker that was away and is back would finish what another one is doing. Locked first, so that of several
# who find the same jobs one gives each back; whoever hands back its own waits for the other, and then it is done.
_GIVE_BACK: LiteralString = """
    gone AS (DELETE FROM procrastinate_jobs USING found WHERE procrastinate_jobs.id = found.id),
    again AS (
        INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, args, attempts)
        SELECT queue_name, task_name, priority + 1, lock, args, attempts + 1 FROM found ORDER BY id
        RETURNING id, args
    ),
    queued AS (
        UPDATE accepted_runs SET state = 'queued', job_id = again.id FROM again
        WHERE workspace_id = args ->> 'workspace_id' AND run_id = args ->> 'run_id' AND state = 'running'
    )
    SELECT id FROM again
"""

HAND_BACK_JOBS: LiteralString = f"""
    WITH found AS (
        SELECT * FROM procrastinate_jobs
        WHERE id = ANY (%(job_ids)s) AND status = 'doing' AND worker_id = %(worker_id)s
        ORDER BY id FOR UPDATE
    ),
    {_GIVE_BACK}
"""

RESCUE_JOBS: LiteralString = f"""
    WITH found AS (
        SELECT * FROM procrastinate_jobs
        WHERE status = 'doing' AND (
            worker_id IS NULL
            OR EXISTS (
                SELECT FROM procrastinate_workers AS worker
                WHERE worker.id = worker_id AND last_heartbeat < now() - make_interval(secs => %(seconds)s)
            )
        )
        FOR UPDATE SKIP LOCKED
    ),
    {_GIVE_BACK}
"""

# Keeps the job from being given back until the transaction ends, and does not hinder that its worker is
# forgotten.
HOLD_LEASE: LiteralString = """
    SELECT FROM procrastinate_jobs WHERE id = %(lease)s AND status = 'doing' FOR KEY SHARE
"""

REGISTER_WORKER: LiteralString = "SELECT worker_id FROM procrastinate_register_worker_v1()"

UNREGISTER_WORKER: LiteralString = "SELECT procrastinate_unregister_worker_v1(%(worker_id)s)::text"

PRUNE_WORKERS: LiteralString = "SELECT worker_id FROM procrastinate_prune_stalled_workers_v1(%(seconds)s)"

# procrastinate's own function does not say whether the worker is still known.
BEAT: LiteralString = """
    UPDATE procrastinate_workers SET last_heartbeat = now() WHERE id = ANY (%(worker_ids)s) RETURNING id
"""

LIST_HELD_RUNS: LiteralString = f"""
    SELECT id AS job_id, worker_id, args ->> 'run_id' AS run_id, attempt, coalesce(stop_requested, false) AS stop
    FROM procrastinate_jobs AS job
    LEFT JOIN accepted_runs AS run
        ON run.workspace_id = args ->> 'workspace_id' AND run.run_id = args ->> 'run_id'
        AND {UNFINISHED}
    WHERE job.status = 'doing' AND worker_id = ANY (%(worker_ids)s) AND queue_name = %(queue)s
"""
