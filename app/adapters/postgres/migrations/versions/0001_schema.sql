-- The schema of 1.0.0, in which LangGraph made the tables of saved states itself. Policies and grants are not in it:
-- `row_security` gives them to tables whenever these come.

CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS btree_gin;

CREATE TABLE workspaces (
    workspace_id text PRIMARY KEY,
    -- Advances with every change of a document.
    generation bigint NOT NULL DEFAULT 0,
    -- Renewed with every change, for the keys of cached answers: a counter is the same in two databases that have seen
    -- as many changes, and a cache may serve both.
    corpus uuid NOT NULL DEFAULT gen_random_uuid(),
    chunks bigint NOT NULL DEFAULT 0,
    -- The highest revision of a document that was forgotten. New ones begin after it: its own are not used again.
    forgotten_revision integer NOT NULL DEFAULT 0
);

-- Numbers files as they come: of two files of one source, the later one is kept, whichever is read first.
CREATE SEQUENCE arrivals;

CREATE TABLE documents (
    document_id uuid NOT NULL,
    workspace_id text NOT NULL REFERENCES workspaces,
    source text NOT NULL,
    title text NOT NULL,
    media_type text NOT NULL,
    content_hash text NOT NULL,
    pages integer,
    characters integer NOT NULL,
    chunks integer NOT NULL DEFAULT 0,
    text text NOT NULL,
    metadata jsonb NOT NULL DEFAULT '{}',
    -- Those who may see the document; everybody of the workspace where it has none.
    groups text[] NOT NULL DEFAULT '{}',
    arrival bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- Metadata may change without a new revision: `revised_at` is when the text came, `updated_at` when anything did.
    revision integer NOT NULL,
    revised_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, document_id)
);
-- Compressing 5 MB takes a tenth of a second, in which nothing else can be stored.
ALTER TABLE documents ALTER COLUMN text SET STORAGE EXTERNAL;
-- Not unique: a document that is hidden from somebody must not keep its name from them.
CREATE INDEX documents_by_source ON documents (workspace_id, source);
CREATE INDEX documents_by_hash ON documents (workspace_id, content_hash);
CREATE INDEX documents_by_update ON documents (workspace_id, updated_at DESC);
-- For what one document says of another, by its title. Cut, because a b-tree refuses long values.
CREATE INDEX documents_by_title ON documents
    (workspace_id, (lower(left(regexp_replace(title, '\s*\([^()]*\)\s*$', ''), 200) COLLATE "C")));
-- Serves the equalities in a filter; `metadata @@ jsonpath` is the condition (library/filters.py).
CREATE INDEX documents_by_metadata ON documents USING gin (metadata jsonb_path_ops);
CREATE INDEX documents_of_groups ON documents (workspace_id) WHERE groups <> '{}';

-- Superseded revisions only, for the answers that quote them; the current one is in `documents`.
CREATE TABLE document_revisions (
    document_id uuid NOT NULL,
    revision integer NOT NULL,
    workspace_id text NOT NULL,
    content_hash text NOT NULL,
    title text NOT NULL,
    text text NOT NULL,
    created_at timestamptz NOT NULL,
    superseded_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, document_id, revision),
    FOREIGN KEY (workspace_id, document_id) REFERENCES documents ON DELETE CASCADE
);

-- The groups that superseded revisions and deleted documents had, for as long as a run may have used them.
CREATE TABLE revision_groups (
    workspace_id text NOT NULL,
    document_id uuid NOT NULL,
    revision integer NOT NULL,
    groups text[] NOT NULL,
    PRIMARY KEY (workspace_id, document_id, revision)
);
CREATE FUNCTION keep_groups() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO revision_groups VALUES (old.workspace_id, old.document_id, old.revision, old.groups)
    ON CONFLICT (workspace_id, document_id, revision) DO UPDATE SET groups = excluded.groups;
    RETURN NULL;
END $$;
CREATE TRIGGER keep_groups_of_superseded AFTER UPDATE OF revision ON documents
    FOR EACH ROW WHEN (old.revision <> new.revision) EXECUTE FUNCTION keep_groups();
CREATE TRIGGER keep_groups_of_deleted AFTER DELETE ON documents FOR EACH ROW EXECUTE FUNCTION keep_groups();

-- What is known of a document beside its row in `documents`. There are two kinds of rows. One stands for a name, and is
-- locked by whoever changes a document of that name, even before there is one; its id is the one that the document of
-- this name gets for readers of all groups. The other stands for a deleted document: its revisions are not used again,
-- and a file that arrived before the deletion does not bring it back.
CREATE TABLE document_marks (
    workspace_id text NOT NULL,
    document_id uuid NOT NULL,
    name uuid NOT NULL,
    revision integer NOT NULL,
    -- The arrival of its deletion, and who could read it.
    deleted bigint NOT NULL DEFAULT 0,
    groups text[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (workspace_id, document_id)
);
CREATE INDEX document_marks_by_name ON document_marks (workspace_id, name);

-- The files from which documents were read, by their content, in parts, so that no statement handles a whole file.
-- Documents of one workspace that say the same share the file.
CREATE TABLE originals (
    workspace_id text NOT NULL REFERENCES workspaces,
    content_hash text NOT NULL,
    part integer NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (workspace_id, content_hash, part)
);
-- Files are mostly compressed already.
ALTER TABLE originals ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- The files in S3-compatible storage. Every object has a key of its own that is never used again, so that one which is
-- being deleted is never the one that a new document needs. A workspace may be new while a file is uploaded, hence no
-- reference to it.
CREATE TABLE original_objects (
    key text NOT NULL,
    workspace_id text NOT NULL,
    content_hash text NOT NULL,
    size bigint NOT NULL,
    state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'kept', 'dropped')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (workspace_id, key)
);
CREATE UNIQUE INDEX original_objects_kept ON original_objects (workspace_id, content_hash) WHERE state = 'kept';
CREATE INDEX original_objects_unneeded ON original_objects (key) WHERE state <> 'kept';

-- What `askgraph sync` last saw of a file. Only documents that are listed here are deleted with their file.
CREATE TABLE synced_files (
    workspace_id text NOT NULL,
    folder text NOT NULL,
    source text NOT NULL,
    content_hash text NOT NULL,
    stamp text NOT NULL,
    document_id text,
    PRIMARY KEY (workspace_id, folder, source)
);

-- Readable by langchain-postgres' PGVectorStore, hence the names id, content, embedding and metadata. What an edit
-- elsewhere in the document moves stands in chunk_places: an update here would enter the row into the HNSW index anew.
-- Large workspaces have an HNSW index of their own (vectors/vector_index.py).
CREATE TABLE chunks (
    id uuid NOT NULL,
    workspace_id text NOT NULL,
    document_id uuid NOT NULL,
    content_hash text NOT NULL,
    heading_path text[] NOT NULL,
    content text NOT NULL,
    metadata jsonb NOT NULL,
    -- NULL until it is embedded: a chunk is found by its words before.
    embedding vector(384),
    -- The id first, so that it alone finds the row.
    PRIMARY KEY (id, workspace_id),
    FOREIGN KEY (workspace_id, document_id) REFERENCES documents ON DELETE CASCADE
) WITH (toast_tuple_target = 4096);
-- The exact search reads every embedding of a workspace: they stay in the row instead of in the TOAST table.
ALTER TABLE chunks ALTER COLUMN embedding SET STORAGE PLAIN;
CREATE INDEX chunks_by_document ON chunks (workspace_id, document_id);

CREATE TABLE chunk_places (
    chunk_id uuid NOT NULL,
    workspace_id text NOT NULL,
    chunk_index integer NOT NULL,
    start_offset integer NOT NULL,
    end_offset integer NOT NULL,
    -- [start, end, page, x, y, width, height] for each line of the page.
    lines jsonb NOT NULL,
    PRIMARY KEY (chunk_id, workspace_id),
    FOREIGN KEY (chunk_id, workspace_id) REFERENCES chunks ON DELETE CASCADE
) WITH (fillfactor = 80);

-- `terms` finds candidates, `impacts` scores them. Kept inline for the same reason as the embedding. How long the list
-- of terms that wait to be indexed may get is up to the session, so that a load may have a longer one.
CREATE TABLE chunk_terms (
    chunk_id uuid NOT NULL,
    workspace_id text NOT NULL,
    document_id uuid NOT NULL,
    terms integer[] NOT NULL,
    impacts sparsevec(1000000000) NOT NULL,
    PRIMARY KEY (chunk_id, workspace_id),
    FOREIGN KEY (chunk_id, workspace_id) REFERENCES chunks ON DELETE CASCADE
) WITH (toast_tuple_target = 8160);
CREATE INDEX chunk_terms_by_document ON chunk_terms (workspace_id, document_id);
CREATE INDEX chunk_terms_by_term ON chunk_terms USING gin (terms);

CREATE TABLE term_frequencies (
    workspace_id text NOT NULL,
    term integer NOT NULL,
    chunks integer NOT NULL,
    PRIMARY KEY (workspace_id, term)
) WITH (fillfactor = 70);

-- The words of each workspace as they are written, by which a misspelt question finds what it means. Compared byte by
-- byte, so that words with a common beginning are neighbours whatever the server's language.
CREATE TABLE vocabulary (
    workspace_id text NOT NULL,
    word text COLLATE "C" NOT NULL,
    -- The word's stem: term_frequencies says how many chunks hold it.
    term integer NOT NULL,
    PRIMARY KEY (workspace_id, word)
);
CREATE INDEX vocabulary_by_term ON vocabulary (workspace_id, term);
-- A search reads the list of what waits to be indexed from end to end, so it is kept short (kilobytes; else 4 MB).
CREATE INDEX vocabulary_by_trigram ON vocabulary
    USING gin (workspace_id, word gin_trgm_ops) WITH (gin_pending_list_limit = 256);

-- Token vectors for late interaction, and where the tokens begin. Quantised vectors do not compress; trying costs time
-- on every write and read.
CREATE TABLE chunk_tokens (
    chunk_id uuid NOT NULL,
    workspace_id text NOT NULL,
    tokens bytea NOT NULL,
    places bytea,
    PRIMARY KEY (chunk_id, workspace_id),
    FOREIGN KEY (chunk_id, workspace_id) REFERENCES chunks ON DELETE CASCADE
);
ALTER TABLE chunk_tokens ALTER COLUMN tokens SET STORAGE EXTERNAL;

-- Workers take the lowest round first. A document's first chunks are in round 0, the next ones in round 1 and so on, so
-- that short documents do not wait for long ones. A claim that a dead worker has left runs out.
CREATE TABLE chunks_to_embed (
    chunk_id uuid NOT NULL,
    workspace_id text NOT NULL,
    document_id uuid NOT NULL,
    round integer NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    claimed_until timestamptz NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (chunk_id, workspace_id),
    FOREIGN KEY (chunk_id, workspace_id) REFERENCES chunks ON DELETE CASCADE
);
CREATE INDEX chunks_to_embed_in_order ON chunks_to_embed (round, number);
CREATE INDEX chunks_to_embed_by_document ON chunks_to_embed (workspace_id, document_id);

CREATE TABLE embedding_model (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    name text NOT NULL,
    dimension integer NOT NULL,
    -- The model that `chunks_next` is being filled with; NULL where nobody is at it.
    next text
);

-- Whoever asks first chooses the id, within their workspace.
CREATE TABLE threads (
    thread_id text NOT NULL,
    workspace_id text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- What somebody called it.
    title text,
    asked text NOT NULL DEFAULT '',
    -- The callers; an empty name stands for those who were not kept.
    asked_by text[] NOT NULL DEFAULT '{""}',
    -- Where it has no run: whoever has all of these groups may read what it was begun with; NULL: who may read
    -- everything. Otherwise its runs decide, each for itself.
    groups text[],
    -- Runs of the thread that began before this have no steps any more.
    thinned_until timestamptz NOT NULL DEFAULT '-infinity',
    -- NULL where no client that makes notes has used the thread.
    client_metadata jsonb,
    -- The thread that goes on in this one, and the checkpoint of it or of another branch from which this one went on.
    branch_of text,
    branched_at text,
    -- The threads of whose states it holds a copy, since it began with one. Erasing one reaches it, run or not.
    copied_from text[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (workspace_id, thread_id)
);
CREATE INDEX conversations ON threads (workspace_id, updated_at DESC, thread_id DESC) WHERE asked <> '';
CREATE INDEX conversations_by_words ON threads
    USING gin (workspace_id, (coalesce(title, '') || E'\n' || asked) gin_trgm_ops)
    WITH (gin_pending_list_limit = 256);
CREATE INDEX branches ON threads (workspace_id, branch_of) WHERE branch_of IS NOT NULL;

-- The columns are the fields of domain.runs.RunRecord.
CREATE TABLE runs (
    run_id text NOT NULL,
    thread_id text NOT NULL,
    workspace_id text NOT NULL,
    mode text NOT NULL,
    question text NOT NULL,
    started_at timestamptz NOT NULL,
    standalone_question text NOT NULL,
    queries jsonb NOT NULL,
    scope jsonb,
    route text NOT NULL,
    retries integer NOT NULL,
    candidates integer NOT NULL,
    sources integer NOT NULL,
    top_score double precision,
    confidence double precision NOT NULL,
    outcome text,
    outcome_reasons jsonb NOT NULL DEFAULT '[]',
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
    answered_by text NOT NULL DEFAULT '',
    degraded jsonb NOT NULL DEFAULT '[]',
    prompts jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (workspace_id, run_id)
);
CREATE INDEX runs_by_thread ON runs (workspace_id, thread_id, started_at);
CREATE INDEX runs_by_time ON runs (workspace_id, started_at DESC, run_id DESC);
CREATE INDEX runs_branches ON runs (workspace_id, (forked_from ->> 'run_id')) WHERE forked_from IS NOT NULL;

-- The revisions of documents that a run was made from (domain/history/lineage.py): whoever may not read one of them may
-- not read the run, and erasing one reaches the run. Revision 0 stands for whichever was current.
CREATE TABLE run_documents (
    workspace_id text NOT NULL,
    run_id text NOT NULL,
    -- Of a table of LangChain's, ids are any text.
    document_id text NOT NULL,
    revision integer NOT NULL,
    -- False for what was only found, and stands in states and tapes.
    shown boolean NOT NULL,
    PRIMARY KEY (workspace_id, run_id, document_id, revision),
    FOREIGN KEY (workspace_id, run_id) REFERENCES runs ON DELETE CASCADE
);
CREATE INDEX run_documents_by_document ON run_documents (workspace_id, document_id);

-- The turns that a run was given, or goes on from. Where it drew on them, their documents are in `run_documents` as its
-- own. An earlier run may be gone.
CREATE TABLE run_turns (
    workspace_id text NOT NULL,
    run_id text NOT NULL,
    earlier_run_id text NOT NULL,
    drawn_on boolean NOT NULL,
    PRIMARY KEY (workspace_id, run_id, earlier_run_id),
    FOREIGN KEY (workspace_id, run_id) REFERENCES runs ON DELETE CASCADE
);
CREATE INDEX run_turns_by_earlier ON run_turns (workspace_id, earlier_run_id);

-- What is being forgotten. Its process may die: whoever starts next goes on.
CREATE TABLE erasures (
    workspace_id text NOT NULL,
    -- document, thread
    kind text NOT NULL,
    target text NOT NULL,
    -- The runs whose events are still to be erased from the cache server.
    run_ids text[] NOT NULL,
    PRIMARY KEY (workspace_id, kind, target)
);

-- What `askgraph costs` adds up, and nothing that anybody asked or was told.
CREATE TABLE pruned_runs (
    workspace_id text NOT NULL,
    run_id text NOT NULL,
    started_at timestamptz NOT NULL,
    mode text NOT NULL,
    cached boolean NOT NULL,
    usage jsonb NOT NULL,
    PRIMARY KEY (workspace_id, run_id)
);

-- The tapes of runs hold what documents said, so they go with their run and their thread. They are compressed already:
-- the server need not try again.
CREATE TABLE tapes (
    workspace_id text NOT NULL,
    run_id text NOT NULL,
    thread_id text NOT NULL,
    tape bytea NOT NULL,
    PRIMARY KEY (workspace_id, run_id),
    FOREIGN KEY (workspace_id, thread_id) REFERENCES threads ON DELETE CASCADE,
    FOREIGN KEY (workspace_id, run_id) REFERENCES runs ON DELETE CASCADE
);
ALTER TABLE tapes ALTER COLUMN tape SET STORAGE EXTERNAL;
CREATE INDEX tapes_by_thread ON tapes (workspace_id, thread_id);

-- The columns are the fields of domain.runs.RunStatus. 0017 adds the lease, and drops what it replaces.
CREATE TABLE accepted_runs (
    workspace_id text NOT NULL,
    run_id text NOT NULL,
    thread_id text NOT NULL,
    request jsonb NOT NULL,
    state text NOT NULL,
    attempt integer NOT NULL,
    accepted_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    ended_at timestamptz,
    ended jsonb,
    ended_id text,
    stop_requested boolean NOT NULL DEFAULT false,
    -- The documents that a run which goes on has shown so far, and those of the turns that it was given. Once it has
    -- ended, `run_documents` has them.
    showing text[] NOT NULL DEFAULT '{}',
    -- Sources that the answer does not cite, steps, and what was withdrawn.
    shown jsonb,
    job_id bigint NOT NULL,
    PRIMARY KEY (workspace_id, run_id),
    FOREIGN KEY (workspace_id, thread_id) REFERENCES threads ON DELETE CASCADE
);
-- In their order, so that a page of turns asks of no more than its own whether they may be read.
CREATE INDEX accepted_runs_by_thread ON accepted_runs (workspace_id, thread_id, accepted_at, run_id);
CREATE INDEX unfinished_runs ON accepted_runs (workspace_id, thread_id, job_id) WHERE state IN ('queued', 'running');

CREATE TABLE feedback (
    workspace_id text NOT NULL,
    run_id text NOT NULL,
    rating text NOT NULL,
    reason text,
    comment text NOT NULL,
    given_by text NOT NULL,
    given_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (workspace_id, run_id),
    FOREIGN KEY (workspace_id, run_id) REFERENCES accepted_runs ON DELETE CASCADE
);
CREATE INDEX feedback_by_time ON feedback (workspace_id, given_at);

-- Uploads that wait to be read. `begun`: how often the reading was begun and neither ended nor handed back, because its
-- process died. `groups`: NULL for those that the document has. `asking`: those of whoever brought the file; NULL: all.
-- `progress`: written while a worker reads the file.
CREATE TABLE ingestions (
    workspace_id text NOT NULL,
    ingestion_id text NOT NULL,
    source text NOT NULL,
    media_type text,
    metadata jsonb NOT NULL DEFAULT '{}',
    groups text[],
    asking text[],
    state text NOT NULL,
    arrival bigint NOT NULL DEFAULT nextval('arrivals'),
    begun integer NOT NULL DEFAULT 0,
    accepted_at timestamptz NOT NULL DEFAULT now(),
    ended_at timestamptz,
    content bytea,
    progress jsonb,
    report jsonb,
    PRIMARY KEY (workspace_id, ingestion_id)
);
-- Files are mostly compressed already, and are read once.
ALTER TABLE ingestions ALTER COLUMN content SET STORAGE EXTERNAL;
CREATE INDEX ingestions_by_end ON ingestions (workspace_id, ended_at);

-- The one place that says who may read what. They are asked by sessions of a workspace without groups: a session with
-- groups would not see the documents that it hides.
CREATE FUNCTION admits(groups text[], asking text[]) RETURNS boolean LANGUAGE sql IMMUTABLE
    RETURN groups = '{}' OR groups && asking;

-- Whoever asks with these groups (NULL: all) may read a revision if both its own groups and those that the document has
-- now let them: opening a later revision does not open this one, and closing the document closes all. Nobody whose
-- groups are limited may read what is not known, such as a document of another application's table.
CREATE FUNCTION may_read(within text, id text, of_revision integer, asking text[]) RETURNS boolean LANGUAGE sql STABLE
RETURN CASE
    WHEN asking IS NULL THEN true
    WHEN id !~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN false
    ELSE coalesce(
        (
            SELECT admits(document.groups, asking)
                AND (of_revision IN (0, document.revision) OR coalesce(admits(own.groups, asking), false))
            FROM documents AS document LEFT JOIN revision_groups AS own
                ON own.workspace_id = within AND own.document_id = id::uuid AND own.revision = of_revision
            WHERE document.workspace_id = within AND document.document_id = id::uuid
        ),
        (
            SELECT admits(own.groups, asking) FROM revision_groups AS own
            WHERE own.workspace_id = within AND own.document_id = id::uuid AND of_revision IN (0, own.revision)
            ORDER BY own.revision DESC LIMIT 1
        ),
        false
    )
END;

-- Of a run that has ended, the documents decide that it showed; until then the groups of whoever asked, and what it
-- has shown so far.
CREATE FUNCTION may_read_run(within text, id text, asking text[]) RETURNS boolean LANGUAGE sql STABLE
RETURN CASE
    WHEN asking IS NULL THEN true
    WHEN EXISTS (SELECT FROM runs WHERE workspace_id = within AND run_id = id) THEN NOT EXISTS (
        SELECT FROM run_documents
        WHERE workspace_id = within AND run_id = id AND shown AND NOT may_read(within, document_id, revision, asking)
    )
    ELSE coalesce(
        (
            SELECT coalesce(request #> '{turn,scope,groups}' <@ to_jsonb(asking), false)
                AND NOT EXISTS (SELECT FROM unnest(showing) AS document WHERE NOT may_read(within, document, 0, asking))
            FROM accepted_runs
            WHERE workspace_id = within AND run_id = id
        ),
        true
    )
END;

-- Its states, its tape and its prompts also hold what it only found, and the turns that it was given.
CREATE FUNCTION may_read_steps(within text, id text, asking text[]) RETURNS boolean LANGUAGE sql STABLE
RETURN asking IS NULL OR may_read_run(within, id, asking)
    AND NOT EXISTS (
        SELECT FROM run_documents
        WHERE workspace_id = within AND run_id = id AND NOT may_read(within, document_id, revision, asking)
    )
    AND NOT EXISTS (
        SELECT FROM run_turns
        WHERE workspace_id = within AND run_id = id AND NOT may_read_run(within, earlier_run_id, asking)
    );

-- The versions of a team's assistants, none of which is ever changed. The columns are the fields of
-- domain.assistants.Assistant. `current` is true of the one version that answers to the name.
CREATE TABLE assistants (
    workspace_id text NOT NULL,
    assistant_id uuid NOT NULL,
    version integer NOT NULL,
    current boolean NOT NULL,
    name text NOT NULL,
    description text NOT NULL,
    setup jsonb NOT NULL,
    metadata jsonb NOT NULL,
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (workspace_id, assistant_id, version)
);
CREATE UNIQUE INDEX assistants_by_name ON assistants (workspace_id, lower(name)) WHERE current;
CREATE UNIQUE INDEX current_assistants ON assistants (workspace_id, assistant_id) WHERE current;

-- None belongs to a workspace: a key may open several.
CREATE TABLE api_keys (
    key_id text PRIMARY KEY,
    digest bytea NOT NULL UNIQUE,
    name text NOT NULL,
    workspaces text[],
    groups text[],
    rights text[] NOT NULL,
    requests_per_minute int,
    runs int,
    tokens_per_day bigint,
    dollars_per_day double precision,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz
);

-- The browsers that are signed in. Signing out deletes the row.
CREATE TABLE browser_sessions (
    digest bytea PRIMARY KEY,
    began_at timestamptz NOT NULL DEFAULT now()
);

-- What callers changed.
CREATE TABLE audit_log (
    entry_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    caller text NOT NULL,
    address text,
    action text NOT NULL,
    target text NOT NULL,
    workspace_id text,
    status int NOT NULL
);
CREATE INDEX audit_log_at ON audit_log (at);

-- The views of `row_security.VIEWS`. The owner's right to read applies, so the policy of the table does not. The
-- condition is that of the policy.
CREATE VIEW documents_of_workspace AS SELECT * FROM documents
    WHERE (workspace_id = (SELECT current_setting('askgraph.workspace', true))) IS TRUE;

CREATE VIEW terms_of_workspace AS SELECT * FROM chunk_terms
    WHERE (workspace_id = (SELECT current_setting('askgraph.workspace', true))) IS TRUE;

CREATE VIEW threads_of_workspace AS SELECT * FROM threads
    WHERE (workspace_id = (SELECT current_setting('askgraph.workspace', true))) IS TRUE;

CREATE VIEW words_of_workspace AS SELECT * FROM vocabulary
    WHERE (workspace_id = (SELECT current_setting('askgraph.workspace', true))) IS TRUE;
