"""Lexical search: BM25 over the terms of the chunks. `bm25` turns texts and queries into numbers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from pgvector.psycopg import SparseVector  # type: ignore[import-untyped]

from app.adapters.postgres.conversations.threads import list_groups
from app.adapters.postgres.documents.frequencies import CHUNKS
from app.adapters.postgres.library.bm25 import (
    CANDIDATES,
    TERM_IDS,
    LexicalQuery,
    plan_search,
    weigh_query,
    weigh_terms,
)
from app.adapters.postgres.library.feedback import weigh_marking_terms
from app.adapters.postgres.library.filters import FilteredDocuments
from app.adapters.postgres.library.ids import join_ids, keep_documents
from app.adapters.postgres.pool import Pool, Session, open_session
from app.adapters.postgres.row_security import READABLE
from domain.documents import Match
from domain.scope import Scope

# Returns the number of chunks that hold each term, `CHUNKS` among them, in documents that the asker may read. The row
# without a term holds the number of chunks in the scope's documents.
COUNT_TERMS: LiteralString = f"""
    SELECT term, sum(chunks)::int AS chunks FROM term_frequencies
    WHERE workspace_id = %(workspace_id)s AND {READABLE} AND term = ANY(%(terms)s::int[]) GROUP BY term
    UNION ALL
    SELECT NULL, coalesce(sum(documents.chunks), 0)::int FROM documents
    WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
"""

# The GIN index finds the chunks that `fit_plan` asks for; IS TRUE keeps the planner off the b-tree. The statement is
# never prepared, so the planner sees the parameters and drops a condition that is NULL.
SEARCH: LiteralString = """
    SELECT chunk_id::text, document_id::text, score
    FROM (
        SELECT * FROM (
            SELECT chunk_id, document_id, -(impacts <#> %(weights)s) AS score
            FROM terms_of_workspace
            WHERE (workspace_id = %(workspace_id)s) IS TRUE
              AND (:held)
              AND (%(document_ids)s::uuid[] IS NULL OR (document_id = ANY(%(document_ids)s::uuid[])) IS TRUE)
            LIMIT %(candidates)s
        ) AS candidates
        ORDER BY score DESC, chunk_id
        LIMIT %(limit)s
    ) AS best
    ORDER BY score DESC, best.chunk_id
"""

# Scores every chunk of a few documents.
_SEARCH_IN_DOCUMENTS: LiteralString = """
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

_SCORE: LiteralString = """
    SELECT chunk_id::text, document_id::text, -(impacts <#> %(weights)s) AS score
    FROM chunk_terms
    WHERE (workspace_id = %(workspace_id)s) IS TRUE AND chunk_id = ANY(%(chunk_ids)s::uuid[])
"""

# Returns two kinds of rows: a chunk with its impacts, and a term, or `CHUNKS`, with the number of chunks that hold it.
_READ_IMPACTS: LiteralString = f"""
    WITH examples AS MATERIALIZED (
        SELECT chunk_id, terms, impacts FROM chunk_terms
        WHERE (workspace_id = %(workspace_id)s) IS TRUE AND chunk_id = ANY(%(chunk_ids)s::uuid[])
    )
    SELECT chunk_id::text, impacts, NULL::int AS term, NULL::int AS chunks FROM examples
    UNION ALL
    SELECT NULL, NULL, term, sum(chunks)::int FROM term_frequencies
    WHERE workspace_id = %(workspace_id)s AND {READABLE}
        AND term = ANY(%(all)s::int[] || ARRAY(SELECT DISTINCT unnest(terms) FROM examples))
    GROUP BY term
"""


class LexicalSearch:
    """The part of `Library` that compares words."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._filtered = FilteredDocuments()

    async def search_lexical(self, scope: Scope, query: str, limit: int) -> list[Match]:
        terms = weigh_query(scope.workspace_id, query)
        if not terms:
            return []
        async with open_session(self._pool, scope) as session:
            document_ids = await self._filtered.find(session, scope)
            counts = await _count(session, scope, terms, document_ids)
            in_documents = counts.in_documents
            share = 1.0 if document_ids is None else in_documents / max(counts.chunks, 1)
            known = weigh_terms(terms, counts.chunks, counts.frequencies)
            if not known:
                return []
            weights = SparseVector(known, TERM_IDS)
            if document_ids is not None and in_documents <= 2 * CANDIDATES:
                rows = await session.fetch(
                    _SEARCH_IN_DOCUMENTS, prepare=False, weights=weights, limit=limit, document_ids=document_ids
                )
            else:
                plan = plan_search(known, counts.chunks, counts.frequencies, share)
                statement, parameters = fit_plan(plan)
                rows = await session.fetch(
                    statement, prepare=False, weights=weights, limit=limit, document_ids=document_ids, **parameters
                )
        return [Match(row["chunk_id"], row["document_id"], row["score"]) for row in rows]

    async def score_lexical(self, scope: Scope, query: str, chunk_ids: Sequence[str]) -> list[Match]:
        if not chunk_ids:
            return []
        async with open_session(self._pool, scope) as session:
            document_ids = await self._filtered.find(session, scope)
            terms = weigh_query(scope.workspace_id, query)
            counts = await _count(session, scope, terms, None)
            return await _score(session, document_ids, chunk_ids, weigh_terms(terms, counts.chunks, counts.frequencies))

    async def score_related(
        self, scope: Scope, query: str, examples: Mapping[str, float], chunk_ids: Sequence[str]
    ) -> list[Match]:
        own = weigh_query(scope.workspace_id, query)
        async with open_session(self._pool, scope) as session:
            rows = await session.fetch(
                _READ_IMPACTS, chunk_ids=join_ids(examples), all=[CHUNKS], groups=list_groups(scope)
            )
            impacts = {
                row["chunk_id"]: dict(zip(row["impacts"].indices(), row["impacts"].values(), strict=True))
                for row in rows
                if row["chunk_id"] is not None
            }
            frequencies = {row["term"]: row["chunks"] for row in rows if row["chunk_id"] is None}
            chunks = frequencies.pop(CHUNKS, 0)
            terms = {term: 1.0 for term in frequencies if term not in own}
            weights = weigh_marking_terms(impacts, examples, weigh_terms(terms, chunks, frequencies))
            return await _score(session, await self._filtered.find(session, scope), chunk_ids, weights)


@dataclass(frozen=True, slots=True)
class _Counts:
    """Numbers of chunks in the documents of a workspace that an asker may read."""

    chunks: int
    in_documents: int
    """Chunks of the documents in scope."""
    frequencies: dict[int, int]
    """Chunks that hold each of the terms asked for."""


async def _count(session: Session, scope: Scope, terms: Iterable[int], document_ids: str | None) -> _Counts:
    rows = await session.fetch(
        COUNT_TERMS, terms=[CHUNKS, *sorted(terms)], document_ids=document_ids, groups=list_groups(scope)
    )
    frequencies = {row["term"]: row["chunks"] for row in rows}
    return _Counts(frequencies.pop(CHUNKS, 0), frequencies.pop(None, 0), frequencies)


def fit_plan(plan: LexicalQuery) -> tuple[LiteralString, dict[str, Any]]:
    """Return `SEARCH` with the plan's conditions, and the parameters that it adds."""
    conditions = []
    parameters: dict[str, Any] = {"candidates": plan.candidates}
    for number, (first, last) in enumerate(plan.held):
        parameters |= {f"first{number}": first, f"last{number}": last}
        both = f"terms @> %(first{number})s::int[] AND " if first else ""
        conditions.append(f"({both}terms && %(last{number})s::int[])")
    return SEARCH.replace(":held", " OR ".join(conditions)), parameters


async def _score(
    session: Session, document_ids: str | None, chunk_ids: Iterable[str], weights: Mapping[int, float]
) -> list[Match]:
    rows = await session.fetch(_SCORE, weights=SparseVector(weights, TERM_IDS), chunk_ids=join_ids(chunk_ids))
    return keep_documents(rows, document_ids)
