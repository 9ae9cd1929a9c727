"""Leases: a procrastinate job that is being done belongs to the worker that does it, and may be taken back.

These statements belong to no workspace: any living process takes over what a dead one held.
"""

from typing import LiteralString

UNFINISHED: LiteralString = "state IN ('queued', 'running')"
"""Condition for runs and ingestions that have not ended."""

# A new job takes the old one's place, ahead of others of its thread: procrastinate finishes a job by its id alone, so a
# worker that comes back after it was given up would otherwise finish a job that another one is doing. The jobs are
# locked first, so that only one of several finders gives each back.
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

# Puts jobs that a living worker holds back into the queue.
HAND_BACK_JOBS: LiteralString = f"""
    WITH found AS (
        SELECT * FROM procrastinate_jobs
        WHERE id = ANY (%(job_ids)s) AND status = 'doing' AND worker_id = %(worker_id)s
        ORDER BY id FOR UPDATE
    ),
    {_GIVE_BACK}
"""

# Puts the jobs of workers without heartbeats back into the queue.
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

# Keeps the job from being given back until the transaction ends. FOR KEY SHARE still allows its worker's row to be
# deleted.
HOLD_LEASE: LiteralString = """
    SELECT FROM procrastinate_jobs WHERE id = %(lease)s AND status = 'doing' FOR KEY SHARE
"""
