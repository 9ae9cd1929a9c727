"""Dense search: the nearest chunks by cosine similarity, with pgvector."""

from collections.abc import Sequence
from typing import LiteralString

from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.postgres.library.filters import FilteredDocuments
from app.adapters.postgres.library.ids import join_ids, keep_documents
from app.adapters.postgres.pool import Pool, open_session
from app.adapters.postgres.vectors import vector_index
from app.adapters.postgres.vectors.embedding_model import require_embedder
from domain.documents import Match
from domain.ports.embedding import Embedder, Vector
from domain.scope import Scope

NAMESAKES = 10
"""A title that more documents than this share does not identify any of them."""

# False once the index has been rebuilt with another model than the one that embedded the question. It is checked
# before any vector is compared.
_SAME_EMBEDDER: LiteralString = (
    "(%(embedder)s::text IS NULL OR EXISTS (SELECT FROM embedding_model WHERE name = %(embedder)s))"
)

MOST_WALKED = 700
"""Largest number of candidates of a walk (`hnsw.ef_search`). The more chunks, the wider the walk must be for the same
recall: 230 among 4,000, 320 among 20,000, 700 among a million (docs/measurements.md)."""

_SEARCH: LiteralString = """
    -- A scope of few chunks, or a workspace without an HNSW graph: compare every chunk, found by the b-tree. Otherwise:
    -- walk the graph. PostgreSQL executes only the branch that `way` chooses.
    WITH way AS MATERIALIZED (
        SELECT chunks <= %(exact_rows)s
            OR NOT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(%(index)s) AND indisvalid) AS exact,
            -- Evaluated before the walk begins, and for this transaction alone.
            set_config('hnsw.ef_search', ({walked})::int::text, true) AS walked
        FROM ({size}) AS size
        WHERE {same_embedder}
    ),
    exact AS (
        SELECT id, document_id, embedding <=> %(embedding)s AS distance
        FROM chunks
        WHERE workspace_id = %(workspace_id)s {in_documents} AND (SELECT exact FROM way) AND embedding IS NOT NULL
        ORDER BY distance, id
        LIMIT %(limit)s
    ),
    approximate AS (
        -- IS TRUE keeps the planner off the b-tree, with which it would fetch and sort the whole workspace. The
        -- condition of the workspace's graph is written the same way (vectors/vector_index.py).
        SELECT id, document_id, embedding <=> %(embedding)s AS distance
        FROM chunks
        WHERE (workspace_id = %(workspace_id)s) IS TRUE {in_documents_of_index} AND NOT (SELECT exact FROM way)
        ORDER BY embedding::halfvec(:dimension) <=> %(embedding)s::halfvec(:dimension)
        LIMIT {taken}
    )
    SELECT id::text AS chunk_id, document_id::text, 1 - distance AS score
    FROM (SELECT * FROM exact UNION ALL SELECT * FROM approximate) AS found
    WHERE distance IS NOT NULL
    ORDER BY distance, id
    LIMIT %(limit)s
"""

SEARCH: LiteralString = _SEARCH.format(
    same_embedder=_SAME_EMBEDDER,
    size="SELECT chunks FROM workspaces WHERE workspace_id = %(workspace_id)s",
    in_documents="",
    in_documents_of_index="",
    walked=f"least({MOST_WALKED}, 44 * greatest(chunks, 1) ^ 0.2)",
    taken="%(limit)s",
)

SEARCH_IN_DOCUMENTS: LiteralString = _SEARCH.format(
    same_embedder=_SAME_EMBEDDER,
    size="""
        SELECT coalesce(sum(chunks), 0) AS chunks FROM documents
        WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
    """,
    in_documents="AND document_id = ANY(%(document_ids)s::uuid[])",
    walked=f"{MOST_WALKED}",
    in_documents_of_index="AND (document_id = ANY(%(document_ids)s::uuid[])) IS TRUE",
    # A filtered index scan stops at the limit although later rows may be nearer: fetching twice as many makes up for
    # it.
    taken="2 * %(limit)s",
)

# Returns one chunk per title: the nearest of all documents with that title. Titles are compared without a trailing
# bracket, ignoring the case of A to Z; the index `documents_by_title` is on the same expression.
_SEARCH_TITLED: LiteralString = rf"""
    WITH named AS MATERIALIZED (
        SELECT document_id, lower(left(regexp_replace(title, '\s*\([^()]*\)\s*$', ''), 200) COLLATE "C") AS known_as
        FROM documents_of_workspace
        WHERE workspace_id = %(workspace_id)s
          AND lower(left(regexp_replace(title, '\s*\([^()]*\)\s*$', ''), 200) COLLATE "C")
              = ANY(string_to_array(%(names)s, E'\n'))
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
        WHERE c.workspace_id = %(workspace_id)s AND {_SAME_EMBEDDER} AND c.embedding IS NOT NULL
        ORDER BY known_as, distance, c.id
    )
    SELECT id::text AS chunk_id, document_id::text, 1 - distance AS score FROM nearest ORDER BY distance, id
"""

# IS TRUE keeps the planner off the b-tree of the workspace, which may be a thousand times as long as the list of ids.
_SCORE: LiteralString = f"""
    SELECT id::text AS chunk_id, document_id::text, 1 - (embedding <=> %(embedding)s) AS score
    FROM chunks
    WHERE (workspace_id = %(workspace_id)s) IS TRUE AND id = ANY(%(chunk_ids)s::uuid[]) AND {_SAME_EMBEDDER}
      AND embedding IS NOT NULL
"""


class DenseSearch:
    """The part of `Library` that compares embeddings."""

    def __init__(self, pool: Pool, embedder: Embedder | None = None) -> None:
        self._pool = pool
        self._filtered = FilteredDocuments()
        self._embedder = None if embedder is None else embedder.name
        dimension = OnnxEmbedder.dimension if embedder is None else embedder.dimension
        self._search = fit_dimension(SEARCH, dimension)
        self._search_in_documents = fit_dimension(SEARCH_IN_DOCUMENTS, dimension)

    async def search_dense(self, scope: Scope, embedding: Vector, limit: int) -> list[Match]:
        async with open_session(self._pool, scope) as session:
            document_ids = await self._filtered.find(session, scope)
            rows = await session.fetch(
                self._search if document_ids is None else self._search_in_documents,
                prepare=False,
                embedding=embedding,
                limit=limit,
                exact_rows=vector_index.EXACT_ROWS,
                index=vector_index.name_index(scope.workspace_id),
                document_ids=document_ids,
                embedder=self._embedder,
            )
            if not rows:
                await require_embedder(session, self._embedder)
        return [Match(row["chunk_id"], row["document_id"], row["score"]) for row in rows]

    async def search_titled(self, scope: Scope, names: Sequence[str], embedding: Vector) -> list[Match]:
        async with open_session(self._pool, scope) as session:
            rows = await session.fetch(
                _SEARCH_TITLED,
                # They are hundreds, and one text is sent faster than an array. `bytes.lower` changes only A to Z, as
                # the collation of the index does.
                names="\n".join(names).encode().lower().decode(),
                embedding=embedding,
                document_ids=await self._filtered.find(session, scope),
                most=NAMESAKES,
                embedder=self._embedder,
            )
        return [Match(row["chunk_id"], row["document_id"], row["score"]) for row in rows]

    async def score_dense(self, scope: Scope, embedding: Vector, chunk_ids: Sequence[str]) -> list[Match]:
        if not chunk_ids:
            return []
        async with open_session(self._pool, scope) as session:
            rows = await session.fetch(
                _SCORE, embedder=self._embedder, embedding=embedding, chunk_ids=join_ids(chunk_ids)
            )
            return keep_documents(rows, await self._filtered.find(session, scope))


def fit_dimension(statement: LiteralString, dimension: int) -> LiteralString:
    """Put the dimension into the statement, because SQL accepts it only as a literal."""
    return statement.replace(":dimension", str(dimension))
