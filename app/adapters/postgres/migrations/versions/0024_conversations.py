"""Threads know what was asked in them, when last, and for which groups; runs keep what they showed beside their end."""

from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    # title: what somebody called it. groups: those whose documents its runs may have been shown; NULL: every document.
    # asked_by: the callers; an empty name stands for those who were not kept.
    op.execute("""
        ALTER TABLE threads
            ADD COLUMN title text,
            ADD COLUMN asked text NOT NULL DEFAULT '',
            ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now(),
            ADD COLUMN groups text[],
            ADD COLUMN asked_by text[] NOT NULL DEFAULT '{""}'
        """)
    # Replays repeat what was asked elsewhere: a thread that has nothing else is no conversation.
    op.execute("""
        UPDATE threads SET asked = said.asked, updated_at = said.updated_at, groups = said.groups
        FROM (
            SELECT workspace_id, thread_id, max(started_at) AS updated_at,
                left(coalesce(string_agg(question, E'\\n' ORDER BY started_at) FILTER (WHERE forked_from IS NULL), ''),
                     10000) AS asked,
                CASE WHEN bool_and(coalesce(scope ? 'groups', false)) THEN ARRAY(
                    SELECT DISTINCT jsonb_array_elements_text(run.scope -> 'groups') FROM runs AS run
                    WHERE run.workspace_id = runs.workspace_id AND run.thread_id = runs.thread_id
                    ORDER BY 1
                ) END AS groups
            FROM runs GROUP BY workspace_id, thread_id
        ) AS said
        WHERE threads.workspace_id = said.workspace_id AND threads.thread_id = said.thread_id""")
    op.execute("""
        CREATE INDEX conversations ON threads (workspace_id, updated_at DESC, thread_id DESC) WHERE asked <> ''""")
    op.execute("""
        CREATE INDEX conversations_by_words ON threads
        USING gin (workspace_id, (coalesce(title, '') || E'\\n' || asked) gin_trgm_ops)
        WITH (gin_pending_list_limit = 256)""")
    # As in 0022: behind the table's policy no index would serve the search for words.
    op.execute("""
        CREATE VIEW threads_of_workspace AS SELECT * FROM threads
        WHERE (workspace_id = (SELECT current_setting('askgraph.workspace', true))) IS TRUE""")

    # Sources that the answer does not cite, steps, and what was withdrawn.
    op.execute("ALTER TABLE accepted_runs ADD COLUMN shown jsonb")
