"""Search: the dense and the lexical leg, and reading what they found."""

import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from pgvector.psycopg import SparseVector  # type: ignore[import-untyped]
from psycopg.rows import DictRow

from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.postgres import sql, vector_index
from app.adapters.postgres.embedding_model import require_embedder
from app.adapters.postgres.feedback import mark
from app.adapters.postgres.lexical import CANDIDATES, TERM_IDS, count_terms, plan_search
from app.adapters.postgres.pool import Pool, Session, open_session
from app.adapters.postgres.vocabulary import suggest_words
from domain.documents import Line, Match, Passage
from domain.ports.embedding import Embedder, Vector
from domain.scope import Scope

NAMESAKES = 10
"""A title that more documents have names none of them."""

REMEMBERED_QUERIES = 256
"""So many queries keep the weights of their words: what one leg has found is scored by these just afterwards."""

REMEMBERED_SCOPES = 8
"""So many choices of documents, which may be of thousands, are kept as they are sent."""

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def parse_ids(ids: Sequence[str]) -> list[UUID]:
    """Those of the ids that can be one: all others name nothing that is stored."""
    parsed = []
    for text in ids:
        try:
            parsed.append(UUID(text))
        except ValueError:
            continue
    return parsed


def join_ids(ids: Iterable[str]) -> str:
    """The same as one parameter, for `::uuid[]`. Ids as we write them are taken as they are, because a search may be
    given thousands."""
    kept: list[str] = []
    others: list[str] = []
    for text in ids:
        (kept if _ID.fullmatch(text) else others).append(text)
    return f"{{{','.join([*kept, *map(str, parse_ids(others))])}}}"


@lru_cache(maxsize=REMEMBERED_SCOPES)
def _join_documents(scope: Scope) -> str | None:
    """The ids of the documents in scope as one parameter; None where all are."""
    return None if scope.document_ids is None else join_ids(scope.document_ids)


@lru_cache(maxsize=REMEMBERED_SCOPES)
def _list_documents(scope: Scope) -> frozenset[str] | None:
    """The same as the database writes them."""
    joined = _join_documents(scope)
    return None if joined is None else frozenset(joined[1:-1].split(","))


class PostgresLibrary:
    """The searchable chunks, in PostgreSQL with pgvector."""

    def __init__(self, pool: Pool, embedder: Embedder | None = None) -> None:
        """`embedder` makes the vectors that are searched for. Without it, they are taken to be of the index."""
        self._pool = pool
        self._weights: OrderedDict[tuple[str, str], tuple[UUID | None, SparseVector]] = OrderedDict()
        self._embedder = None if embedder is None else embedder.name
        dimension = OnnxEmbedder.dimension if embedder is None else embedder.dimension
        self._search_dense = sql.fit_dimension(sql.SEARCH_DENSE, dimension)
        self._search_dense_in_documents = sql.fit_dimension(sql.SEARCH_DENSE_IN_DOCUMENTS, dimension)

    async def search_dense(self, scope: Scope, embedding: Vector, limit: int) -> list[Match]:
        query = self._search_dense if scope.document_ids is None else self._search_dense_in_documents
        async with open_session(self._pool, scope.workspace_id) as session:
            rows = await session.fetch(
                query,
                prepare=False,
                embedding=embedding,
                limit=limit,
                exact_rows=vector_index.EXACT_ROWS,
                index=vector_index.name_index(scope.workspace_id),
                document_ids=_join_documents(scope),
                embedder=self._embedder,
            )
            if not rows:
                await require_embedder(session, self._embedder)
        return [Match(row["chunk_id"], row["document_id"], row["score"]) for row in rows]

    async def search_lexical(self, scope: Scope, query: str, limit: int) -> list[Match]:
        terms = count_terms(scope.workspace_id, query)
        if not terms:
            return []
        document_ids = _join_documents(scope)
        async with open_session(self._pool, scope.workspace_id) as session:
            counts = await _count(session, terms, document_ids)
            in_documents = counts.in_documents
            share = 1.0 if document_ids is None else in_documents / max(counts.chunks, 1)
            plan = plan_search(terms, counts.chunks, counts.frequencies, share)
            if plan is None:
                return []
            self._weights[scope.workspace_id, query] = counts.corpus, plan.weights
            if len(self._weights) > REMEMBERED_QUERIES:
                self._weights.popitem(last=False)
            few = document_ids is not None and in_documents <= 2 * CANDIDATES
            rows = await session.fetch(
                sql.SEARCH_LEXICAL_IN_DOCUMENTS if few else sql.SEARCH_LEXICAL,
                prepare=False,
                rare=plan.rare,
                support=plan.support,
                weights=plan.weights,
                candidates=CANDIDATES,
                limit=limit,
                document_ids=document_ids,
            )
        return [Match(row["chunk_id"], row["document_id"], row["score"]) for row in rows]

    async def search_titled(self, scope: Scope, names: Sequence[str], embedding: Vector) -> list[Match]:
        async with open_session(self._pool, scope.workspace_id) as session:
            rows = await session.fetch(
                sql.SEARCH_TITLED,
                # As the index has them: bytes know the letters from A to Z only.
                names=[name.encode().lower().decode() for name in names],
                embedding=embedding,
                document_ids=_join_documents(scope),
                most=NAMESAKES,
                embedder=self._embedder,
            )
        return [Match(row["chunk_id"], row["document_id"], row["score"]) for row in rows]

    async def suggest_words(self, scope: Scope, words: Sequence[str], unfinished: str | None) -> dict[str, str]:
        async with open_session(self._pool, scope.workspace_id) as session:
            return await suggest_words(session, words, unfinished)

    async def score_dense(self, scope: Scope, embedding: Vector, chunk_ids: Sequence[str]) -> list[Match]:
        if not chunk_ids:
            return []
        async with open_session(self._pool, scope.workspace_id) as session:
            rows = await session.fetch(
                sql.SCORE_DENSE,
                embedder=self._embedder,
                embedding=embedding,
                chunk_ids=join_ids(chunk_ids),
            )
        return _match(rows, scope)

    async def score_lexical(self, scope: Scope, query: str, chunk_ids: Sequence[str]) -> list[Match]:
        if not chunk_ids:
            return []
        async with open_session(self._pool, scope.workspace_id) as session:
            if (known := self._weights.get((scope.workspace_id, query))) is not None:
                corpus, weights = known
                if matches := await _score_terms(session, scope, chunk_ids, weights, corpus):
                    return matches
            terms = count_terms(scope.workspace_id, query)
            counts = await _count(session, terms, None)
            return await _score_terms(session, scope, chunk_ids, _weigh(terms, counts.chunks, counts.frequencies))

    async def score_related(
        self, scope: Scope, query: str, examples: Mapping[str, float], chunk_ids: Sequence[str]
    ) -> list[Match]:
        own = count_terms(scope.workspace_id, query)
        async with open_session(self._pool, scope.workspace_id) as session:
            rows = await session.fetch(sql.READ_IMPACTS, chunk_ids=join_ids(examples))
            impacts = {
                row["chunk_id"]: dict(zip(row["impacts"].indices(), row["impacts"].values(), strict=True))
                for row in rows
                if row["chunk_id"] is not None
            }
            frequencies = {row["term"]: row["chunks"] for row in rows if row["chunk_id"] is None}
            chunks = frequencies.pop(None, 0)
            terms = Counter({term: 1 for term in frequencies if term not in own})
            weights = mark(impacts, examples, _weigh(terms, chunks, frequencies))
            return await _score_terms(session, scope, chunk_ids, weights)

    async def read_passages(self, scope: Scope, chunk_ids: Sequence[str]) -> list[Passage]:
        async with open_session(self._pool, scope.workspace_id) as session:
            rows = await session.fetch(sql.READ_PASSAGES, chunk_ids=parse_ids(chunk_ids))
        allowed = None if scope.document_ids is None else set(parse_ids(scope.document_ids))
        found = {row["chunk_id"]: row for row in rows if allowed is None or row["document_id"] in allowed}
        return [
            _read_passage(row) for row in (found.get(chunk_id) for chunk_id in parse_ids(chunk_ids)) if row is not None
        ]

    async def read_around(self, scope: Scope, chunk_ids: Sequence[str], before: int, after: int) -> list[Passage]:
        async with open_session(self._pool, scope.workspace_id) as session:
            rows = await session.fetch(
                sql.READ_AROUND,
                chunk_ids=parse_ids(chunk_ids),
                before=before,
                after=after,
                document_ids=_join_documents(scope),
            )
        return [_read_passage(row) for row in rows]

    async def read_embeddings(self, scope: Scope, chunk_ids: Sequence[str]) -> dict[str, Vector]:
        async with open_session(self._pool, scope.workspace_id) as session:
            rows = await session.fetch(
                sql.READ_EMBEDDINGS,
                chunk_ids=parse_ids(chunk_ids),
                document_ids=_join_documents(scope),
            )
        return {str(row["chunk_id"]): row["embedding"] for row in rows}

    async def read_titles(self, scope: Scope, limit: int) -> list[str]:
        async with open_session(self._pool, scope.workspace_id) as session:
            rows = await session.fetch(
                sql.READ_TITLES,
                limit=limit,
                document_ids=_join_documents(scope),
            )
        return [row["title"] for row in rows]

    async def read_tokens(self, scope: Scope, chunk_ids: Sequence[str]) -> dict[str, bytes]:
        """Encoded token vectors by chunk id, for late interaction, of the workspace's chunks. Those without any are
        left out."""
        async with open_session(self._pool, scope.workspace_id) as session:
            rows = await session.fetch(sql.READ_TOKENS, chunk_ids=join_ids(chunk_ids))
        return {str(row["chunk_id"]): row["tokens"] for row in rows}


@dataclass(frozen=True, slots=True)
class _Counts:
    """What a workspace holds."""

    chunks: int
    in_documents: int
    """How many of the chunks are in the documents in scope."""
    frequencies: dict[int, int]
    """How many chunks hold each of the terms that were asked for."""
    corpus: UUID | None
    """The state that the workspace was in."""


async def _count(session: Session, terms: Iterable[int], document_ids: str | None) -> _Counts:
    rows = await session.fetch(sql.COUNT_TERMS, terms=sorted(terms), document_ids=document_ids)
    frequencies = {row["term"]: row["chunks"] for row in rows}
    corpus = next((row["corpus"] for row in rows if row["term"] is None), None)
    return _Counts(frequencies.pop(None, 0), frequencies.pop(-1), frequencies, corpus)


def _weigh(terms: Counter[int], chunks: int, frequencies: dict[int, int]) -> dict[int, float]:
    """The inverse document frequency of each term that the workspace knows, times its count."""
    plan = plan_search(terms, chunks, frequencies)
    return {} if plan is None else dict(zip(plan.weights.indices(), plan.weights.values(), strict=True))


async def _score_terms(
    session: Session,
    scope: Scope,
    chunk_ids: Iterable[str],
    weights: Mapping[int, float] | SparseVector,
    corpus: UUID | None = None,
) -> list[Match]:
    rows = await session.fetch(
        sql.SCORE_LEXICAL,
        weights=weights if isinstance(weights, SparseVector) else SparseVector(weights, TERM_IDS),
        chunk_ids=join_ids(chunk_ids),
        corpus=corpus,
    )
    return _match(rows, scope)


def _match(rows: Iterable[DictRow], scope: Scope) -> list[Match]:
    """Those of the rows that are in scope."""
    chosen = _list_documents(scope)
    return [
        Match(row["chunk_id"], row["document_id"], row["score"])
        for row in rows
        if chosen is None or row["document_id"] in chosen
    ]


def _read_passage(row: DictRow) -> Passage:
    return Passage(
        chunk_id=str(row["chunk_id"]),
        chunk_index=row["chunk_index"],
        document_id=str(row["document_id"]),
        title=row["title"],
        text=row["content"],
        start=row["start_offset"],
        end=row["end_offset"],
        heading_path=tuple(row["heading_path"]),
        lines=tuple(_read_line(line) for line in row["lines"]),
    )


def _read_line(line: list[float]) -> Line:
    start, end, page, x, y, width, height = line
    return Line(int(start), int(end), int(page), {"x": x, "y": y, "width": width, "height": height})
