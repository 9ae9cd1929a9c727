-- All that has changed since 1.0.0, the only earlier version whose databases are upgraded.
--
-- Version 1.0.0 had its runs and files in the jobs of a queue (procrastinate); they are leased in their own rows now.

-- `place`: the number of the run in its thread. `claimed_until`: until then nobody but the holder of `attempt` may
-- execute the run, or, where it waits, nobody at all.
ALTER TABLE accepted_runs ADD place bigint, ADD claimed_until timestamptz NOT NULL DEFAULT '-infinity';

-- The same for files. `turn`: their order, see queue/ingestions.py.
ALTER TABLE ingestions ADD attempt integer NOT NULL DEFAULT 0, ADD turn bigint NOT NULL DEFAULT 0,
    ADD claimed_until timestamptz NOT NULL DEFAULT '-infinity';

-- When old conversations are deleted next.
CREATE TABLE housekeeping (due timestamptz NOT NULL);
INSERT INTO housekeeping VALUES (now() + interval '1 hour');

-- Runs of a thread ended in the order in which they were executed. Those that have not ended go on in the order in
-- which procrastinate would have taken them.
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

DROP INDEX unfinished_runs;
DROP INDEX accepted_runs_by_thread;
ALTER TABLE accepted_runs ALTER place SET NOT NULL, DROP job_id;
CREATE UNIQUE INDEX accepted_runs_by_thread ON accepted_runs (workspace_id, thread_id, place);
CREATE INDEX unfinished_runs ON accepted_runs (workspace_id, thread_id, place) WHERE state IN ('queued', 'running');

CREATE INDEX ingestions_by_arrival ON ingestions (workspace_id, arrival);
CREATE INDEX ingestions_in_line ON ingestions (turn, arrival) WHERE state IN ('queued', 'running');
CREATE INDEX ingestions_in_line_of_workspace ON ingestions (workspace_id, turn) WHERE state IN ('queued', 'running');

-- All names are read before the first is dropped.
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

-- What one write stores of a thread's states (checkpoints/packs.py): a run has one row, or several if it takes long.
-- `written` are checkpoints of earlier rows that this one holds writes of. The thread's latest state is the last one of
-- the last row that has any.
CREATE TABLE state_packs (
    workspace_id text NOT NULL,
    thread_id text NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    namespace text NOT NULL,
    run_id text,
    saved_at timestamptz NOT NULL DEFAULT now(),
    checkpoints text[] NOT NULL,
    written text[] NOT NULL,
    pack bytea NOT NULL,
    PRIMARY KEY (workspace_id, thread_id, number)
);
-- Packs are compressed already: the server need not try again.
ALTER TABLE state_packs ALTER COLUMN pack SET STORAGE EXTERNAL;
CREATE INDEX state_packs_by_time ON state_packs (saved_at);

-- Steps are deleted by their age alone.
DROP VIEW threads_of_workspace;
ALTER TABLE threads DROP COLUMN thinned_until;
CREATE VIEW threads_of_workspace AS SELECT * FROM threads
    WHERE (workspace_id = (SELECT current_setting('askgraph.workspace', true))) IS TRUE;

-- Choosing another embedding model fills no second table any more (vectors/choosing.py).
DROP TABLE IF EXISTS chunks_next;
ALTER TABLE embedding_model DROP COLUMN next;

-- `unread`: what of a file is not in its document's text (`domain.documents.Unread`). `given`: what people gave it,
-- apart from what its file says of itself; NULL: from before this, then it is what the file does not say itself.
-- `former`: the names that it had before, which are forgotten with it. `brought_by`: NULL: a command, or from before.
ALTER TABLE documents ADD unread jsonb NOT NULL DEFAULT '[]', ADD given jsonb, ADD former text[] NOT NULL DEFAULT '{}',
    ADD brought_by text;
CREATE OR REPLACE VIEW documents_of_workspace AS SELECT * FROM documents
    WHERE (workspace_id = (SELECT current_setting('askgraph.workspace', true))) IS TRUE;
CREATE INDEX documents_by_bringer ON documents (brought_by) WHERE brought_by IS NOT NULL;
ALTER TABLE document_revisions ADD brought_by text;
CREATE INDEX document_revisions_by_bringer ON document_revisions (brought_by) WHERE brought_by IS NOT NULL;
ALTER TABLE api_keys ADD max_documents int, ADD max_stored_mb int;

-- Of a deleted document: what it had when it was deleted. Its content is known again.
ALTER TABLE document_marks ADD given jsonb, ADD content_hash text;
CREATE INDEX document_marks_by_hash ON document_marks (workspace_id, content_hash) WHERE content_hash IS NOT NULL;

-- `sidecar`: what stands beside the file. NULL as metadata: those of the document stay. A document keeps its id under
-- another name.
ALTER TABLE ingestions ADD sidecar jsonb NOT NULL DEFAULT '{}', ALTER metadata DROP NOT NULL,
    ALTER metadata DROP DEFAULT, ADD moved_from text, ADD brought_by text;
UPDATE ingestions SET metadata = NULL WHERE metadata = '{}';

-- A file belongs to one synced folder, however many it is in. A folder may hold others that are mounted, and that are
-- away at times.
DELETE FROM synced_files AS file USING synced_files AS other
WHERE other.workspace_id = file.workspace_id AND other.source = file.source AND other.folder > file.folder;
ALTER TABLE synced_files DROP CONSTRAINT synced_files_pkey, ADD PRIMARY KEY (workspace_id, source);
CREATE INDEX synced_files_by_folder ON synced_files (workspace_id, folder);
ALTER TABLE synced_files ADD mount text;

-- What was said, compressed, of an erasure that has left something, which is looked for when it is repeated.
ALTER TABLE erasures ADD COLUMN needles bytea;
-- Runs that have ended show nothing any more: `run_documents` says what they read.
UPDATE accepted_runs SET showing = '{}' WHERE ended IS NOT NULL AND showing <> '{}';

-- `groups`: the same in all versions. `key`: what the name is compared by.
ALTER TABLE assistants ADD groups text[] NOT NULL DEFAULT '{}', ADD key text;
DROP INDEX assistants_by_name;
-- Its policy is made anew, with the groups in it (row_security.py).
DROP POLICY IF EXISTS of_workspace ON assistants;

-- `audience`: a number for `groups`, which may be too long for an index. The term -1 stands for all chunks.
ALTER TABLE term_frequencies ADD audience bigint NOT NULL DEFAULT 0, ADD groups text[] NOT NULL DEFAULT '{}';
ALTER TABLE term_frequencies DROP CONSTRAINT term_frequencies_pkey, ADD PRIMARY KEY (workspace_id, term, audience);
-- Its policy is made anew, with the groups in it (row_security.py).
DROP POLICY IF EXISTS of_workspace ON term_frequencies;
INSERT INTO term_frequencies (workspace_id, term, chunks) SELECT workspace_id, -1, chunks FROM workspaces;

-- The audit log holds each name of what was changed by itself, so that it can be erased; and actions hold none.
-- A name that was cut off cannot be erased any more.
ALTER TABLE audit_log RENAME target TO targets;
ALTER TABLE audit_log ALTER targets TYPE text[] USING
    CASE WHEN length(targets) < 1000 THEN string_to_array(targets, ', ')
    ELSE trim_array(string_to_array(targets, ', '), 1) END;
UPDATE audit_log SET targets = substring(action FROM '/documents/([^/]+)') || targets,
    action = regexp_replace(action, '(/documents)/[^/]+', '\1/{document_id}')
WHERE action ~ '/documents/[^/]';

-- What texts share with others (`domain.text.sketch`): those that documents hold, held, and held when deleted.
ALTER TABLE documents ADD sketch bigint[] NOT NULL DEFAULT '{}';
ALTER TABLE document_revisions ADD sketch bigint[] NOT NULL DEFAULT '{}';
ALTER TABLE document_marks ADD sketch bigint[] NOT NULL DEFAULT '{}';

-- The condition is that of the policies, which do not apply to the view's owner. An earlier text has the groups that it
-- had, or those of its document.
CREATE VIEW sketches_of_workspace AS SELECT * FROM (
    SELECT workspace_id, document_id, groups, sketch, true AS is_current FROM documents
    UNION ALL
    SELECT revision.workspace_id, revision.document_id, coalesce(nullif(own.groups, '{}'), document.groups),
        revision.sketch, false
    FROM document_revisions AS revision JOIN documents AS document
        ON (document.workspace_id, document.document_id) = (revision.workspace_id, revision.document_id)
        LEFT JOIN revision_groups AS own ON (own.workspace_id, own.document_id, own.revision)
            = (revision.workspace_id, revision.document_id, revision.revision)
    UNION ALL
    SELECT workspace_id, document_id, groups, sketch, false FROM document_marks AS mark
    WHERE NOT EXISTS (
        SELECT FROM documents
        WHERE documents.workspace_id = mark.workspace_id AND documents.document_id = mark.document_id
    )
) AS held WHERE (workspace_id = (SELECT current_setting('askgraph.workspace', true))) IS TRUE;
