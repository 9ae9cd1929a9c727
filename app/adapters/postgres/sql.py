"""Every statement, so that a reader and a database administrator find them in one place.

`%(workspace_id)s` is bound by `pool.Session`; no statement goes without it. Those about processes are in `queue_sql`.
"""

from typing import LiteralString

# Ids of what is found come as text, because they leave as text: making objects of hundreds of them takes longer than
# finding them.


def fit_dimension(statement: LiteralString, dimension: int) -> LiteralString:
    """The statement for vectors of this dimension, which SQL takes as a literal only."""
    return statement.replace(":dimension", str(dimension))


# False once the documents have been embedded anew, with another model than the question was; asked before a vector is
# looked at.
_SAME_EMBEDDER: LiteralString = (
    "(%(embedder)s::text IS NULL OR EXISTS (SELECT FROM embedding_model WHERE name = %(embedder)s))"
)

# --- search -----------------------------------------------------------------------------------------------------

_DENSE: LiteralString = """
    -- Few chunks in scope, or no graph of the workspace yet: compare every one, found by the b-tree. Many: walk the
    -- graph. PostgreSQL runs only the branch that `way` chooses.
    WITH way AS MATERIALIZED (
        SELECT chunks <= %(exact_rows)s
            OR NOT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(%(index)s) AND indisvalid) AS exact
        FROM ({size}) AS size
        WHERE {same_embedder}
    ),
    exact AS (
        SELECT id, document_id, embedding <=> %(embedding)s AS distance
        FROM chunks
        WHERE workspace_id = %(workspace_id)s {in_documents} AND (SELECT exact FROM way)
        ORDER BY distance, id
        LIMIT %(limit)s
    ),
    approximate AS (
        -- IS TRUE keeps the b-tree out, which would fetch and sort the whole workspace, and is how the condition of
        -- the workspace's index is written (vector_index.py).
        SELECT id, document_id, embedding <=> %(embedding)s AS distance
        FROM chunks
        WHERE (workspace_id = %(workspace_id)s) IS TRUE {in_documents_of_index} AND NOT (SELECT exact FROM way)
        ORDER BY embedding::halfvec(:dimension) <=> %(embedding)s::halfvec(:dimension)
        LIMIT {taken}
    )
    SELECT id::text AS chunk_id, document_id::text, 1 - distance AS score
    FROM (SELECT * FROM exact UNION ALL SELECT * FROM approximate) AS found
    ORDER BY distance, id
    LIMIT %(limit)s
"""

SEARCH_DENSE: LiteralString = _DENSE.format(
    same_embedder=_SAME_EMBEDDER,
    size="SELECT chunks FROM workspaces WHERE workspace_id = %(workspace_id)s",
    in_documents="",
    in_documents_of_index="",
    taken="%(limit)s",
)

SEARCH_DENSE_IN_DOCUMENTS: LiteralString = _DENSE.format(
    same_embedder=_SAME_EMBEDDER,
    size="""
        SELECT coalesce(sum(chunks), 0) AS chunks FROM documents
        WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
    """,
    in_documents="AND document_id = ANY(%(document_ids)s::uuid[])",
    in_documents_of_index="AND (document_id = ANY(%(document_ids)s::uuid[])) IS TRUE",
    # A filtered scan stops at the limit although later rows may be nearer: taking more makes up for it.
    taken="2 * %(limit)s",
)

# How many chunks hold each term; without a term, how many chunks the workspace has, and the state it is in; with the
# term -1, how many of these are in the documents in scope.
COUNT_TERMS: LiteralString = """
    SELECT term, chunks, NULL::uuid AS corpus FROM term_frequencies
    WHERE workspace_id = %(workspace_id)s AND term = ANY(%(terms)s::int[])
    UNION ALL
    SELECT NULL, chunks, corpus FROM workspaces WHERE workspace_id = %(workspace_id)s
    UNION ALL
    SELECT -1, coalesce(sum(chunks), 0), NULL FROM documents
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
"""

# The GIN index finds chunks with a rare term, IS TRUE keeps the b-tree out. The planner sees the parameters and drops
# the conditions that are NULL.
SEARCH_LEXICAL: LiteralString = """
    SELECT chunk_id::text, document_id::text, score
    FROM (
        SELECT * FROM (
            SELECT chunk_id, document_id, -(impacts <#> %(weights)s) AS score
            FROM chunk_terms
            WHERE (workspace_id = %(workspace_id)s) IS TRUE
              AND terms && %(rare)s::int[]
              AND (%(support)s::int[] IS NULL OR terms && %(support)s::int[])
              AND (%(document_ids)s::uuid[] IS NULL OR (document_id = ANY(%(document_ids)s::uuid[])) IS TRUE)
            LIMIT %(candidates)s
        ) AS candidates
        ORDER BY score DESC, chunk_id
        LIMIT %(limit)s
    ) AS best
    ORDER BY score DESC, best.chunk_id
"""

# Scores every chunk of a few documents.
SEARCH_LEXICAL_IN_DOCUMENTS: LiteralString = """
    SELECT chunk_id::text, document_id::text, score
    FROM (
        SELECT * FROM (
            SELECT chunk_id, document_id, -(impacts <#> %(weights)s) AS score
            FROM chunk_terms
            WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
            OFFSET 0
        ) AS scored
        WHERE score > 0
        ORDER BY score DESC, chunk_id
        LIMIT %(limit)s
    ) AS best
    ORDER BY score DESC, best.chunk_id
"""

# One chunk for each title: the nearest of all documents so titled. A title is known without what it says in brackets
# at its end, and in any case of its letters from A to Z. `documents_by_title` is over the same expression. What many
# documents are titled ("Overview") names none of them.
SEARCH_TITLED: LiteralString = rf"""
    WITH named AS MATERIALIZED (
        SELECT document_id, lower(left(regexp_replace(title, '\s*\([^()]*\)\s*$', ''), 200) COLLATE "C") AS known_as
        FROM documents
        WHERE workspace_id = %(workspace_id)s
          AND lower(left(regexp_replace(title, '\s*\([^()]*\)\s*$', ''), 200) COLLATE "C") = ANY(%(names)s::text[])
          AND (%(document_ids)s::uuid[] IS NULL OR document_id = ANY(%(document_ids)s::uuid[]))
    ),
    titled AS MATERIALIZED (
        SELECT document_id, known_as
        FROM (SELECT document_id, known_as, count(*) OVER (PARTITION BY known_as) AS bearers FROM named) AS counted
        WHERE bearers <= %(most)s
    ),
    nearest AS (
        SELECT DISTINCT ON (known_as) c.id, document_id, c.embedding <=> %(embedding)s AS distance
        FROM titled JOIN chunks c USING (document_id)
        WHERE c.workspace_id = %(workspace_id)s AND {_SAME_EMBEDDER}
        ORDER BY known_as, distance, c.id
    )
    SELECT id::text AS chunk_id, document_id::text, 1 - distance AS score FROM nearest ORDER BY distance, id
"""

# IS TRUE keeps the b-tree of the workspace out, which may be a thousand times as long as the list.
SCORE_DENSE: LiteralString = f"""
    SELECT id::text AS chunk_id, document_id::text, 1 - (embedding <=> %(embedding)s) AS score
    FROM chunks
    WHERE (workspace_id = %(workspace_id)s) IS TRUE AND id = ANY(%(chunk_ids)s::uuid[]) AND {_SAME_EMBEDDER}
"""

# Nothing where the weights are of another state of the workspace.
SCORE_LEXICAL: LiteralString = """
    SELECT chunk_id::text, document_id::text, -(impacts <#> %(weights)s) AS score
    FROM chunk_terms
    WHERE (workspace_id = %(workspace_id)s) IS TRUE AND chunk_id = ANY(%(chunk_ids)s::uuid[])
      AND (%(corpus)s::uuid IS NULL
           OR %(corpus)s = (SELECT corpus FROM workspaces WHERE workspace_id = %(workspace_id)s))
"""

# The chunks' impacts, then how many chunks hold each of their terms; without either, how many the workspace has.
READ_IMPACTS: LiteralString = """
    WITH examples AS MATERIALIZED (
        SELECT chunk_id, terms, impacts FROM chunk_terms
        WHERE (workspace_id = %(workspace_id)s) IS TRUE AND chunk_id = ANY(%(chunk_ids)s::uuid[])
    )
    SELECT chunk_id::text, impacts, NULL::int AS term, NULL::int AS chunks FROM examples
    UNION ALL
    SELECT NULL, NULL, term, chunks FROM term_frequencies
    WHERE workspace_id = %(workspace_id)s AND term = ANY(ARRAY(SELECT DISTINCT unnest(terms) FROM examples))
    UNION ALL
    SELECT NULL, NULL, NULL, chunks FROM workspaces WHERE workspace_id = %(workspace_id)s
"""

READ_PASSAGES: LiteralString = """
    SELECT c.id AS chunk_id, c.document_id, c.content, c.heading_path, d.title,
           p.chunk_index, p.start_offset, p.end_offset, p.lines
    FROM chunks c
    JOIN chunk_places p ON p.chunk_id = c.id
    JOIN documents d ON d.document_id = c.document_id
    WHERE c.workspace_id = %(workspace_id)s AND c.id = ANY(%(chunk_ids)s::uuid[])
"""

# Of no certain dimension, which a prepared statement could not see change.
READ_EMBEDDINGS: LiteralString = """
    SELECT id AS chunk_id, embedding::vector AS embedding FROM chunks
    WHERE workspace_id = %(workspace_id)s AND id = ANY(%(chunk_ids)s::uuid[])
      AND (%(document_ids)s::uuid[] IS NULL OR document_id = ANY(%(document_ids)s::uuid[]))
"""

READ_AROUND: LiteralString = """
    WITH named AS MATERIALIZED (
        SELECT c.document_id, p.chunk_index
        FROM chunks c JOIN chunk_places p ON p.chunk_id = c.id
        WHERE c.workspace_id = %(workspace_id)s AND c.id = ANY(%(chunk_ids)s::uuid[])
    )
    SELECT c.id AS chunk_id, c.document_id, c.content, c.heading_path, d.title,
           p.chunk_index, p.start_offset, p.end_offset, p.lines
    FROM documents d
    JOIN chunks c ON c.workspace_id = %(workspace_id)s AND c.document_id = d.document_id
    JOIN chunk_places p ON p.chunk_id = c.id
    WHERE d.workspace_id = %(workspace_id)s AND d.document_id IN (SELECT document_id FROM named)
      AND (%(document_ids)s::uuid[] IS NULL OR d.document_id = ANY(%(document_ids)s::uuid[]))
      AND EXISTS (
          SELECT FROM named n
          WHERE n.document_id = c.document_id
            AND p.chunk_index BETWEEN n.chunk_index - %(before)s AND n.chunk_index + %(after)s
      )
"""

READ_TITLES: LiteralString = """
    SELECT title FROM documents
    WHERE workspace_id = %(workspace_id)s
      AND (%(document_ids)s::uuid[] IS NULL OR document_id = ANY(%(document_ids)s::uuid[]))
    ORDER BY updated_at DESC, document_id
    LIMIT %(limit)s
"""

READ_TOKENS: LiteralString = """
    SELECT chunk_id, tokens FROM chunk_tokens
    WHERE workspace_id = %(workspace_id)s AND chunk_id = ANY(%(chunk_ids)s::uuid[])
"""

# --- documents --------------------------------------------------------------------------------------------------

_DOCUMENT: LiteralString = (
    "document_id, workspace_id, source, title, media_type, content_hash, pages, characters, chunks, "
    "created_at, updated_at"
)

FIND_DOCUMENT: LiteralString = f"""
    SELECT {_DOCUMENT} FROM documents WHERE workspace_id = %(workspace_id)s AND source = %(source)s
"""

FIND_DOCUMENT_BY_HASH: LiteralString = f"""
    SELECT {_DOCUMENT} FROM documents
    WHERE workspace_id = %(workspace_id)s AND content_hash = %(content_hash)s
    ORDER BY created_at, document_id
    LIMIT 1
"""

GET_DOCUMENT: LiteralString = f"""
    SELECT {_DOCUMENT} FROM documents
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
"""

GET_TEXT: LiteralString = """
    SELECT text FROM documents
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
"""

LIST_DOCUMENTS: LiteralString = f"""
    SELECT {_DOCUMENT} FROM documents WHERE workspace_id = %(workspace_id)s ORDER BY source
"""

CREATE_WORKSPACE: LiteralString = """
    INSERT INTO workspaces (workspace_id) VALUES (%(workspace_id)s) ON CONFLICT DO NOTHING
"""

NUMBER_ARRIVAL: LiteralString = "SELECT nextval('arrivals') AS number"

CONFIRM_DOCUMENT: LiteralString = """
    UPDATE documents SET arrival = greatest(arrival, %(arrival)s)
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
        AND content_hash = %(content_hash)s
    RETURNING document_id
"""

# Also the lock that makes changes of one document follow each other, taken in ascending order. clock_timestamp,
# because a change that had to wait began, for now(), before the one it waited for. What came later stays; but what
# comes as it is stored comes now.
UPSERT_DOCUMENTS: LiteralString = f"""
    INSERT INTO documents
        (workspace_id, document_id, source, title, media_type, content_hash, pages, characters, chunks, text, arrival)
    SELECT %(workspace_id)s, n.document_id, n.source, n.title, n.media_type, n.content_hash, n.pages, n.characters,
        n.chunks, n.text, coalesce(n.arrival, nextval('arrivals'))
    FROM unnest(%(document_ids)s::uuid[], %(sources)s::text[], %(titles)s::text[], %(media_types)s::text[],
                %(content_hashes)s::text[], %(pages)s::int[], %(characters)s::int[], %(chunks)s::int[],
                %(texts)s::text[], %(arrivals)s::bigint[])
        AS n (document_id, source, title, media_type, content_hash, pages, characters, chunks, text, arrival)
    ORDER BY n.document_id
    ON CONFLICT (document_id) DO UPDATE SET
        title = excluded.title, media_type = excluded.media_type, content_hash = excluded.content_hash,
        pages = excluded.pages, characters = excluded.characters, chunks = excluded.chunks, text = excluded.text,
        arrival = greatest(documents.arrival, excluded.arrival), updated_at = clock_timestamp()
    WHERE documents.arrival <= excluded.arrival OR cardinality(array_remove(%(arrivals)s::bigint[], NULL)) = 0
    RETURNING {_DOCUMENT}
"""

LOCK_DOCUMENT: LiteralString = """
    SELECT FROM documents
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
    FOR UPDATE
"""

DELETE_DOCUMENT: LiteralString = """
    WITH gone AS (
        DELETE FROM documents
        WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
        RETURNING document_id
    )
    INSERT INTO deleted_documents (document_id, workspace_id, arrival)
    SELECT document_id, %(workspace_id)s, nextval('arrivals') FROM gone
    ON CONFLICT (document_id) DO UPDATE SET arrival = excluded.arrival
"""

# Asked by who holds the documents' rows, in a statement of its own: another would not see a deletion that it had to
# wait for.
FIND_DELETED: LiteralString = """
    SELECT FROM deleted_documents AS gone
    JOIN unnest(%(document_ids)s::uuid[], %(arrivals)s::bigint[]) AS n (document_id, arrival)
        ON n.document_id = gone.document_id AND n.arrival < gone.arrival
    WHERE workspace_id = %(workspace_id)s
    LIMIT 1
"""

# Chunks first: a document that goes looks for its chunks one by one.
CLEAR_WORKSPACE: tuple[LiteralString, ...] = (
    "DELETE FROM chunks WHERE workspace_id = %(workspace_id)s",
    "DELETE FROM documents WHERE workspace_id = %(workspace_id)s",
    "DELETE FROM term_frequencies WHERE workspace_id = %(workspace_id)s",
    "DELETE FROM vocabulary WHERE workspace_id = %(workspace_id)s",
    """UPDATE workspaces SET generation = generation + 1, corpus = gen_random_uuid(), chunks = 0
       WHERE workspace_id = %(workspace_id)s""",
)

GET_CORPUS: LiteralString = "SELECT generation, corpus FROM workspaces WHERE workspace_id = %(workspace_id)s"

# The model too: what is found in the same documents by another one's vectors is something else.
FINGERPRINT_DOCUMENTS: LiteralString = """
    SELECT document_id, content_hash, updated_at, (SELECT name FROM embedding_model) AS model FROM documents
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
"""

# --- chunks -----------------------------------------------------------------------------------------------------

STORED_CHUNKS: LiteralString = """
    SELECT id AS chunk_id, content_hash FROM chunks
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
"""

READ_VECTORS: LiteralString = """
    SELECT DISTINCT ON (c.document_id, c.content_hash)
           c.document_id, c.content_hash, c.embedding, coalesce(t.tokens, '') AS tokens
    FROM chunks c LEFT JOIN chunk_tokens t ON t.chunk_id = c.id
    WHERE c.workspace_id = %(workspace_id)s AND c.document_id = ANY(%(document_ids)s::uuid[])
      AND c.content_hash = ANY(%(content_hashes)s::text[])
"""

# Its places, terms and token vectors go with a chunk.
DELETE_CHUNKS: LiteralString = """
    DELETE FROM chunks WHERE workspace_id = %(workspace_id)s AND id = ANY(%(chunk_ids)s::uuid[])
"""

MOVE_CHUNKS: LiteralString = """
    UPDATE chunk_places AS p
    SET chunk_index = n.chunk_index, start_offset = n.start_offset, end_offset = n.end_offset, lines = n.lines
    FROM unnest(%(chunk_ids)s::uuid[], %(indexes)s::int[], %(starts)s::int[], %(ends)s::int[], %(lines)s::jsonb[])
        AS n (chunk_id, chunk_index, start_offset, end_offset, lines)
    WHERE p.workspace_id = %(workspace_id)s AND p.chunk_id = n.chunk_id
      AND (p.chunk_index, p.start_offset, p.end_offset, p.lines)
          IS DISTINCT FROM (n.chunk_index, n.start_offset, n.end_offset, n.lines)
"""

COPY_CHUNKS: LiteralString = """
    COPY chunks (id, workspace_id, document_id, content_hash, heading_path, content, metadata, embedding)
    FROM STDIN WITH (FORMAT binary)
"""

COPY_PLACES: LiteralString = """
    COPY chunk_places (chunk_id, workspace_id, chunk_index, start_offset, end_offset, lines)
    FROM STDIN WITH (FORMAT binary)
"""

COPY_TERMS: LiteralString = """
    COPY chunk_terms (chunk_id, workspace_id, document_id, terms, impacts) FROM STDIN WITH (FORMAT binary)
"""

# Several times as many terms are indexed at once while many documents are stored ...
ALLOW_LONG_PENDING_LIST: LiteralString = "SET LOCAL gin_pending_list_limit = '4MB'"

# ... and the rest when the last is.
INDEX_PENDING_TERMS: LiteralString = "SELECT gin_clean_pending_list('chunk_terms_by_term')"

COPY_TOKENS: LiteralString = """
    COPY chunk_tokens (chunk_id, workspace_id, tokens) FROM STDIN WITH (FORMAT binary)
"""

COUNT_CHUNK_TERMS: LiteralString = """
    SELECT term, count(*) AS chunks
    FROM chunk_terms, unnest(terms) AS term
    WHERE workspace_id = %(workspace_id)s AND chunk_id = ANY(%(chunk_ids)s::uuid[])
    GROUP BY term
"""

# The terms come in ascending order, so that two changes never wait for each other's rows in a circle.
ADD_TERMS: LiteralString = """
    INSERT INTO term_frequencies AS f (workspace_id, term, chunks)
    SELECT %(workspace_id)s, term, change
    FROM unnest(%(terms)s::int[], %(changes)s::int[]) AS n (term, change)
    ON CONFLICT (workspace_id, term) DO UPDATE SET chunks = f.chunks + excluded.chunks
"""

ADVANCE_GENERATION: LiteralString = """
    UPDATE workspaces SET generation = generation + 1, corpus = gen_random_uuid(), chunks = chunks + %(chunks)s
    WHERE workspace_id = %(workspace_id)s
    RETURNING chunks,
        EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(%(index)s) AND indisvalid) AS has_index
"""

# --- vocabulary -------------------------------------------------------------------------------------------------

# In ascending order, as the terms.
ADD_WORDS: LiteralString = """
    INSERT INTO vocabulary (workspace_id, word, term)
    SELECT %(workspace_id)s, word, term FROM unnest(%(words)s::text[], %(terms)s::int[]) AS n (word, term)
    ON CONFLICT DO NOTHING
"""

FORGET_WORDS: LiteralString = """
    DELETE FROM vocabulary AS v
    USING term_frequencies AS f
    WHERE v.workspace_id = %(workspace_id)s AND v.term = ANY(%(terms)s::int[])
      AND f.workspace_id = %(workspace_id)s AND f.term = v.term AND f.chunks <= 0
"""

FIND_UNKNOWN_WORDS: LiteralString = """
    SELECT n.word FROM unnest(%(words)s::text[], %(terms)s::int[]) AS n (word, term)
    WHERE NOT EXISTS (
        SELECT FROM term_frequencies AS f
        WHERE f.workspace_id = %(workspace_id)s AND f.term = n.term AND f.chunks > 0
    )
"""

# Words that are one of the variants, words that begin with the prefix, and words that share trigrams with a long one.
FIND_SIMILAR_WORDS: LiteralString = """
    WITH found AS MATERIALIZED (
        SELECT word, term FROM vocabulary
        WHERE workspace_id = %(workspace_id)s AND word = ANY(%(variants)s::text[])
        UNION ALL
        SELECT word, term FROM vocabulary
        WHERE workspace_id = %(workspace_id)s
          AND word BETWEEN %(prefix)s::text AND %(prefix_end)s::text
        UNION ALL
        SELECT near.word, near.term
        FROM unnest(%(long)s::text[]) AS n (word) CROSS JOIN LATERAL (
            SELECT word, term FROM vocabulary
            WHERE workspace_id = %(workspace_id)s AND word %% n.word
              AND char_length(word) BETWEEN char_length(n.word) - 2 AND char_length(n.word) + 2
            ORDER BY similarity(word, n.word) DESC, word
            LIMIT %(similar)s
        ) AS near
    )
    SELECT word, max(chunks) AS chunks
    FROM found CROSS JOIN LATERAL (
        SELECT chunks FROM term_frequencies AS f
        WHERE f.workspace_id = %(workspace_id)s AND f.term = found.term AND f.chunks > 0
        OFFSET 0
    ) AS known
    GROUP BY word
"""

# --- conversations ----------------------------------------------------------------------------------------------

# Returns no row where another workspace owns the id.
CLAIM_THREAD: LiteralString = """
    INSERT INTO threads (thread_id, workspace_id) VALUES (%(thread_id)s, %(workspace_id)s)
    ON CONFLICT (thread_id) DO UPDATE SET thread_id = excluded.thread_id
        WHERE threads.workspace_id = excluded.workspace_id
    RETURNING thread_id
"""

THREAD_EXISTS: LiteralString = """
    SELECT FROM threads WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s
"""

# The thread's row would do, did not others need to refer to it meanwhile.
HOLD_THREAD: LiteralString = """
    SELECT pg_advisory_xact_lock(hashtextextended(%(workspace_id)s || '/' || %(thread_id)s, 0))
"""

_RUN: LiteralString = (
    "run_id, thread_id, workspace_id, mode, question, started_at, standalone_question, queries, document_ids, route, "
    "retries, candidates, sources, top_score, confidence, verification, cached, answer, citations, usage, cost, "
    "timings, warnings, error, forked_from, answered_by, degraded, prompts, outcome, outcome_reasons"
)

_RUN_VALUES: LiteralString = (
    "%(run_id)s, %(thread_id)s, %(workspace_id)s, %(mode)s, %(question)s, %(started_at)s, %(standalone_question)s, "
    "%(queries)s, %(document_ids)s, %(route)s, %(retries)s, %(candidates)s, %(sources)s, %(top_score)s, "
    "%(confidence)s, %(verification)s, %(cached)s, %(answer)s, %(citations)s, %(usage)s, %(cost)s, %(timings)s, "
    "%(warnings)s, %(error)s, %(forked_from)s, %(answered_by)s, %(degraded)s, %(prompts)s, "
    "%(outcome)s, %(outcome_reasons)s"
)

GET_RUN: LiteralString = f"""
    SELECT {_RUN} FROM runs WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
"""

LIST_THREAD_RUNS: LiteralString = f"""
    SELECT {_RUN} FROM runs
    WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s
    ORDER BY started_at, run_id
"""


def _sum_costs(by: LiteralString) -> LiteralString:
    # The last row is the sum of all runs. A run without a call has no row of usage, and so no node or model.
    return f"""
        SELECT
            {by} AS name,
            count(DISTINCT (workspace_id, run_id)) AS runs,
            count(DISTINCT (workspace_id, run_id)) FILTER (WHERE cached) AS cached,
            coalesce(sum(u.calls), 0)::bigint AS calls,
            coalesce(sum(u.input_tokens), 0)::bigint AS input_tokens,
            coalesce(sum(u.output_tokens), 0)::bigint AS output_tokens,
            coalesce(sum(u.cost), 0) AS cost,
            coalesce(sum(u.calls) FILTER (WHERE u.cost IS NULL), 0)::bigint AS unpriced
        FROM (
            SELECT workspace_id, run_id, started_at, mode, cached, usage FROM runs
            UNION ALL SELECT workspace_id, run_id, started_at, mode, cached, usage FROM pruned_runs
        ) AS r
            LEFT JOIN LATERAL jsonb_to_recordset(r.usage)
                AS u (node text, model text, calls bigint, input_tokens bigint, output_tokens bigint, cost float8)
                ON true
        WHERE started_at >= %(since)s AND (%(everywhere)s OR workspace_id = %(workspace_id)s)
        GROUP BY GROUPING SETS (({by}), ())
        ORDER BY grouping({by}), cost DESC, calls DESC, name
    """


SUM_COSTS: dict[str, LiteralString] = {
    "mode": _sum_costs("r.mode"),
    "node": _sum_costs("u.node"),
    "model": _sum_costs("u.model"),
    "workspace": _sum_costs("r.workspace_id"),
}

GET_TAPE: LiteralString = """
    SELECT tape FROM tapes WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
"""

# --- the queue of runs ------------------------------------------------------------------------------------------

# Of runs, and of ingestions.
UNFINISHED: LiteralString = "state IN ('queued', 'running')"

# A run holds its thread by procrastinate's unique index on the locks of jobs that are being done: whoever comes second
# waits. The thread's row, which the claim locks, lets concurrent accepts follow each other. No row where another
# workspace owns the thread; no job where the thread is busy and the run shall not wait.
ACCEPT_RUN: LiteralString = f"""
    WITH thread AS ({CLAIM_THREAD}),
    job (queue_name, task_name, lock, args) AS (
        SELECT %(queue)s, %(task)s, %(lock)s,
            jsonb_build_object('workspace_id', %(workspace_id)s::text, 'run_id', %(run_id)s::text)
        FROM thread
    ),
    begun AS (
        INSERT INTO procrastinate_jobs (queue_name, task_name, lock, args, status, worker_id)
        SELECT job.*, 'doing', %(worker_id)s FROM job
        WHERE NOT EXISTS (
            SELECT FROM accepted_runs WHERE thread_id = %(thread_id)s AND {UNFINISHED}
        )
        ON CONFLICT (lock) WHERE status = 'doing' DO NOTHING
        RETURNING id
    ),
    waiting AS (
        INSERT INTO procrastinate_jobs (queue_name, task_name, lock, args)
        SELECT job.* FROM job WHERE %(wait)s AND NOT EXISTS (SELECT FROM begun)
        RETURNING id
    ),
    run AS (
        INSERT INTO accepted_runs (workspace_id, run_id, thread_id, request, state, attempt, started_at, job_id)
        SELECT %(workspace_id)s, %(run_id)s, %(thread_id)s, %(request)s, 'running', 1, now(), id FROM begun
        UNION ALL
        SELECT %(workspace_id)s, %(run_id)s, %(thread_id)s, %(request)s, 'queued', 0, NULL, id FROM waiting
    )
    SELECT begun.id AS begun, waiting.id AS waiting
    FROM thread LEFT JOIN begun ON true LEFT JOIN waiting ON true
"""

# In the order of their ids, so that two processes that record the same runs do not wait for each other in a circle.
RECORD_SERVED_RUNS: LiteralString = f"""
    WITH served AS MATERIALIZED (
        SELECT r.*, s.request, s.ended, s.ended_id, s.ended_at
        FROM jsonb_to_recordset(%(runs)s)
                AS s (request jsonb, record jsonb, ended jsonb, ended_id text, ended_at timestamptz),
            jsonb_populate_record(NULL::runs, s.record) AS r
        ORDER BY r.run_id
    ),
    thread AS (
        INSERT INTO threads (thread_id, workspace_id) SELECT thread_id, workspace_id FROM served
        ON CONFLICT DO NOTHING
    ),
    run AS (INSERT INTO runs ({_RUN}) SELECT {_RUN} FROM served ON CONFLICT DO NOTHING)
    INSERT INTO accepted_runs
        (workspace_id, run_id, thread_id, request, state, attempt, accepted_at, started_at, ended_at, ended, ended_id,
         job_id)
    SELECT workspace_id, run_id, thread_id, request, 'done', 1, started_at, started_at, ended_at, ended, ended_id, 0
    FROM served
    ON CONFLICT DO NOTHING
"""

BEGIN_RUN: LiteralString = f"""
    UPDATE accepted_runs SET state = 'running', attempt = attempt + 1, started_at = now()
    WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s AND {UNFINISHED}
    RETURNING request, attempt, stop_requested
"""

# The attempt is the fence. A job that procrastinate's worker does is finished by it a moment later, so that only the
# lock is given up here; one that a worker has taken meanwhile, though this process held it, is that worker's.
END_RUN: LiteralString = f"""
    WITH ended AS (
        UPDATE accepted_runs
        SET state = %(state)s, ended = %(ended)s, ended_id = %(ended_id)s, ended_at = now()
        WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
            AND attempt = %(attempt)s AND {UNFINISHED}
        RETURNING thread_id, run_id, job_id
    ),
    deleted AS (
        DELETE FROM procrastinate_jobs USING ended
        WHERE id = job_id AND NOT %(by_worker)s AND (status = 'todo' OR worker_id = %(worker_id)s)
    ),
    unlocked AS (
        UPDATE procrastinate_jobs SET lock = NULL FROM ended WHERE id = job_id AND %(by_worker)s
    ),
    record AS (INSERT INTO runs ({_RUN}) SELECT {_RUN_VALUES} FROM ended),
    tape AS (
        INSERT INTO tapes (workspace_id, run_id, thread_id, tape)
        SELECT %(workspace_id)s, run_id, thread_id, %(tape)s FROM ended WHERE %(tape)s::bytea IS NOT NULL
    )
    SELECT (
        SELECT pg_notify(
            'procrastinate_queue_v1#' || %(queue)s,
            json_build_object('type', 'job_inserted', 'job_id', next.job_id)::text
        )::text
        FROM accepted_runs AS next
        WHERE next.thread_id = ended.thread_id AND next.job_id <> ended.job_id AND {UNFINISHED}
        ORDER BY next.job_id LIMIT 1
    ) AS woken
    FROM ended
"""

_STATUS: LiteralString = "request, state, attempt, accepted_at, started_at, ended_at, ended, ended_id, stop_requested"

GET_RUN_STATUS: LiteralString = f"""
    SELECT {_STATUS} FROM accepted_runs WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
"""

LIST_UNFINISHED_RUNS: LiteralString = f"""
    SELECT {_STATUS} FROM accepted_runs
    WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s AND {UNFINISHED}
    ORDER BY state = 'running' DESC, attempt > 0 DESC, job_id
"""

REQUEST_RUN_STOP: LiteralString = f"""
    UPDATE accepted_runs SET stop_requested = stop_requested OR {UNFINISHED}
    WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
    RETURNING {_STATUS}
"""

# --- ingestions -------------------------------------------------------------------------------------------------

_INGESTION: LiteralString = "ingestion_id, workspace_id, source, state, accepted_at, ended_at, report"

# The lock keeps two files of one source in order.
ACCEPT_INGESTION: LiteralString = f"""
    WITH job AS (
        INSERT INTO procrastinate_jobs (queue_name, task_name, lock, args)
        SELECT %(queue)s, %(task)s, %(lock)s,
            jsonb_build_object('workspace_id', %(workspace_id)s::text, 'ingestion_id', %(ingestion_id)s::text)
    )
    INSERT INTO ingestions (workspace_id, ingestion_id, source, media_type, state, content)
    VALUES (%(workspace_id)s, %(ingestion_id)s, %(source)s, %(media_type)s, 'queued', %(content)s)
    RETURNING {_INGESTION}
"""

_HAS_LEASE: LiteralString = "EXISTS (SELECT FROM procrastinate_jobs WHERE id = %(lease)s AND status = 'doing')"

BEGIN_INGESTION: LiteralString = f"""
    UPDATE ingestions SET state = 'running'
    WHERE workspace_id = %(workspace_id)s AND ingestion_id = %(ingestion_id)s AND {UNFINISHED}
        AND {_HAS_LEASE}
    RETURNING source, media_type, content, arrival
"""

END_INGESTION: LiteralString = f"""
    UPDATE ingestions SET state = %(state)s, report = %(report)s, ended_at = now(), content = NULL
    WHERE workspace_id = %(workspace_id)s AND ingestion_id = %(ingestion_id)s AND state = 'running' AND {_HAS_LEASE}
    RETURNING ingestion_id
"""

GET_INGESTION: LiteralString = f"""
    SELECT {_INGESTION} FROM ingestions
    WHERE workspace_id = %(workspace_id)s AND ingestion_id = %(ingestion_id)s
"""

LIST_INGESTIONS: LiteralString = f"""
    SELECT {_INGESTION} FROM ingestions WHERE workspace_id = %(workspace_id)s ORDER BY arrival DESC LIMIT %(limit)s
"""
