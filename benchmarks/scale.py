"""Measures speed and recall with many chunks, beside langchain-postgres' PGVectorStore on the same rows.

    BENCH_CHUNKS=100000 python -m benchmarks.scale    # 20,000 unless told; four more workspaces beside these
    BENCH_HOME=/tmp/bench ...                         # keeps what was loaded for the next run

Vectors are made up (`benchmarks.corpus`), so no model runs except where a row says so. Milliseconds are p50 / p95;
compare the rows of one run with each other: another machine, or a busy one, has other figures but much the same
ratios.
"""

import asyncio
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_postgres import Column, PGEngine, PGVectorStore
from langchain_postgres.v2.hybrid_search_config import HybridSearchConfig
from langchain_postgres.v2.indexes import HNSWIndex
from langgraph.runtime import Runtime
from pgvector.psycopg import SparseVector  # type: ignore[import-untyped]

from app.adapters.embedded import open_servers
from app.adapters.postgres.library import dense, lexical
from app.adapters.postgres.library.bm25 import TERM_IDS, LexicalQuery, weigh_query, weigh_terms
from app.adapters.postgres.library.ids import parse_ids
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, borrow, open_pool, open_session
from app.settings import read_settings
from app.wiring.services import Services, open_services
from benchmarks.corpus import DIMENSION, Question, make_documents, make_questions
from domain.documents import Candidate
from domain.ports.embedding import Vector
from domain.ports.models import UsageSink
from domain.profile import MODES
from domain.scope import Scope
from domain.state import blank_question
from nodes.retrieve.step import RetrieveInput, retrieve

CHUNKS = int(os.environ.get("BENCH_CHUNKS", "20000"))
WORKSPACES = {"large": CHUNKS} | {f"{percent} %": CHUNKS * percent // 100 for percent in (12, 8, 4, 2)}
QUESTIONS = 100
COMPARED = 40
"""Questions whose results are compared with those of a search that looks at every chunk."""
LEG, KEPT = MODES["standard"].retrieval.leg_limit, MODES["standard"].retrieval.candidates
WARM = 10
"""The first questions are asked and not counted."""
ROWS_ONE_BY_ONE = 1_000
"""Rows given to PGVectorStore to store, to time it; the others are copied into its table inside the server."""
TABLE = "pgvectorstore"


class PreparedEmbedder:
    """Stands in for the model: knows the questions' vectors."""

    name, dimension = "prepared", DIMENSION

    def __init__(self, questions: Sequence[Question]) -> None:
        self._vectors = {question.text: question.embedding for question in questions}

    async def embed_query(self, text: str, sink: UsageSink | None = None) -> Vector:
        # A query that was corrected is about the same as before.
        return self._vectors.get(text, next(iter(self._vectors.values())))

    async def embed_passages(self, texts: Sequence[str], sink: UsageSink | None = None) -> Vector:
        raise NotImplementedError


class PreparedEmbeddings(Embeddings):
    """Gives PGVectorStore the prepared vectors."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self._vectors = {question.text: question.embedding.tolist() for question in questions}

    def embed_query(self, text: str) -> list[float]:
        vector: list[float] = self._vectors[text]
        return vector

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise NotImplementedError


class Bench:
    """Everything open, and what the measurements share."""

    def __init__(self, services: Services, pool: Pool, url: str, sizes: Mapping[str, int]) -> None:
        """`sizes` are the workspaces and their numbers of chunks."""
        self.services = services
        self.pool = pool
        self.url = url
        self.rate = 0.0
        """Chunks of the large workspace that were loaded in a second, its index included."""
        self.questions = {name: make_questions(name, size, QUESTIONS) for name, size in sizes.items()}
        self.sizes = sizes
        everyone = [question for questions in self.questions.values() for question in questions]
        self.embeddings = PreparedEmbeddings(everyone)
        self.context = replace(services.make_context(), embedder=PreparedEmbedder(everyone))

    async def load(self) -> None:
        """Fill the workspaces, the large one last, beside the others."""
        for name, size in sorted(self.sizes.items(), key=lambda item: item[1]):
            if await self.services.library.documents.is_untouched(name):
                documents = list(make_documents(name, size))
                started = time.perf_counter()
                await self.services.library.documents.load(name, documents)
                self.rate = size / (time.perf_counter() - started)
                report("load", name, f"{size} chunks, {self.rate:.0f}/s")

    async def open_rival(self) -> PGVectorStore:
        """PGVectorStore over the same rows, with the indexes that its documentation recommends."""
        engine = PGEngine.from_connection_string(
            self.url.replace("postgresql://", "postgresql+psycopg://"),
            connect_args={"options": "-c maintenance_work_mem=1GB"},  # or building its index takes many minutes
        )
        search = HybridSearchConfig(tsv_column="content_tsv")
        async with borrow(self.pool, ALL_WORKSPACES) as connection:
            row = await (await connection.execute("SELECT to_regclass(%s) AS found", [TABLE])).fetchone()
        exists = row is not None and row["found"] is not None
        if not exists:
            columns: list[Any] = [Column("workspace_id", "TEXT")]
            await engine.ainit_vectorstore_table(
                TABLE, DIMENSION, metadata_columns=columns, hybrid_search_config=search
            )
        store = await PGVectorStore.create(
            engine, self.embeddings, TABLE, metadata_columns=["workspace_id"], hybrid_search_config=search
        )
        if not exists:
            await self._fill_rival(store)
        return store

    async def _fill_rival(self, store: PGVectorStore) -> None:
        async with borrow(self.pool, ALL_WORKSPACES) as connection:
            await connection.execute(
                f"INSERT INTO {TABLE} (langchain_id, content, embedding, content_tsv, workspace_id) "
                "SELECT id, content, embedding, to_tsvector('english', content), workspace_id FROM chunks"
            )
        await store.aapply_vector_index(HNSWIndex(m=16, ef_construction=64))
        await store.aapply_hybrid_search_index()
        async with borrow(self.pool, ALL_WORKSPACES) as connection:
            await connection.execute(f"ANALYZE {TABLE}")
        documents = list(make_documents("rival", ROWS_ONE_BY_ONE))
        texts = [chunk.text for document in documents for chunk in document.chunks]
        vectors = [v.embedding.tolist() for document in documents for v in document.embeddings.values()]
        started = time.perf_counter()
        await store.aadd_embeddings(texts, vectors, [{"workspace_id": "rival"}] * len(texts))
        rate = len(texts) / (time.perf_counter() - started)
        report("load", "PGVectorStore", f"{len(texts)} rows, {rate:.0f}/s   ratio {self.rate / rate:.1f}")

    async def compare_retrieval(self, rival: PGVectorStore) -> None:
        """The real node, without the embedding call, and PGVectorStore's hybrid search, question by question."""
        for name, questions in self.questions.items():
            ours, theirs = [], []
            for question in questions:
                ours.append(await measure(self.retrieve(name, question)))
                theirs.append(await measure(self._search_rival(rival, name, question)))
            compare(f"retrieve, {name}", ours[WARM:], theirs[WARM:])
        await self._measure_chosen_documents()

    async def _measure_chosen_documents(self) -> None:
        documents = await self.services.library.documents.list("large")
        for share in (0.001, 0.02, 0.1, 0.5):
            chosen = [document.id for document in documents[:: round(1 / share)]]
            times = [await measure(self.retrieve("large", question, chosen)) for question in self.questions["large"]]
            compare(f"retrieve, {share:.1%} of the documents of large", times[WARM:])

    async def retrieve(self, name: str, question: Question, document_ids: list[str] | None = None) -> list[Candidate]:
        """Return what the service's own node finds."""
        state = blank_question() | {
            "question": question.text,
            "query": question.text,
            "standalone_question": question.text,
            "scope": Scope.within(name, document_ids).to_json(),
            "profile": MODES["standard"].model_dump(),
        }
        update = await retrieve(cast(RetrieveInput, state), Runtime(context=self.context))
        return update["candidates"]

    async def _search_rival(self, rival: PGVectorStore, name: str, question: Question) -> None:
        # A config of its own for each search: the store keeps the words of the first in the one that it was given.
        search = HybridSearchConfig(tsv_column="content_tsv", primary_top_k=KEPT, secondary_top_k=KEPT)
        await rival.asimilarity_search(
            question.text, k=KEPT, filter={"workspace_id": name}, hybrid_search_config=search
        )

    async def measure_recall(self, rival: PGVectorStore) -> None:
        """Measure the recall of each leg against an exhaustive search."""
        documents = [document.id for document in await self.services.library.documents.list("large")]
        scopes = [Scope(name) for name in self.sizes] + [Scope("large", tuple(documents[::10]))]
        for scope in scopes:
            name = scope.workspace_id
            shares: dict[str, list[float]] = defaultdict(list)
            for question in self.questions[name][:COMPARED]:
                library = self.services.library.search
                dense_ = await library.search_dense(scope, question.embedding, LEG)
                lexical_ = await library.search_lexical(scope, question.text, LEG)
                exact = await self._search_dense_exactly(scope, question)
                exact_lexical = await self.search_lexical_exactly(scope, question)
                for leg, found, best in (("dense", dense_, exact), ("lexical", lexical_, exact_lexical)):
                    for depth in (KEPT, LEG):
                        shares[f"{leg}@{depth}"].append(recall([m.score for m in found], best, depth))
                if scope.document_ids is None:
                    rows = await rival.asimilarity_search_with_score_by_vector(
                        question.embedding.tolist(),
                        k=KEPT,
                        filter={"workspace_id": name},
                        hybrid_search_config=HybridSearchConfig(primary_top_k=KEPT),
                    )
                    shares[f"PGVectorStore dense@{KEPT}"].append(recall([1 - s for _, s in rows], exact, KEPT))
            described = name if scope.document_ids is None else f"10% of the documents of {name}"
            report("recall", described, ", ".join(f"{leg} {np.mean(s):.3f}" for leg, s in shares.items()))

    async def _search_dense_exactly(self, scope: Scope, question: Question) -> list[float]:
        statement = dense.SEARCH if scope.document_ids is None else dense.SEARCH_IN_DOCUMENTS
        async with open_session(self.pool, scope.workspace_id) as session:
            rows = await session.fetch(
                dense.fit_dimension(statement, DIMENSION),
                prepare=False,
                embedding=question.embedding,
                limit=LEG,
                exact_rows=CHUNKS,
                index="",
                document_ids=parse_ids(scope.document_ids or ()),
                embedder=None,
            )
        return [row["score"] for row in rows]

    async def search_lexical_exactly(self, scope: Scope, question: Question) -> list[float]:
        """Return the scores of the best by BM25 over every chunk."""
        terms = weigh_query(scope.workspace_id, question.text)
        # In a transaction, which has no time limit.
        async with open_session(self.pool, scope.workspace_id, transaction=True) as session:
            counts = await session.fetch(lexical.COUNT_TERMS, terms=sorted(terms), document_ids=None)
            frequencies = {row["term"]: row["chunks"] for row in counts if row["term"] != -1}
            weights = weigh_terms(terms, frequencies.pop(None), frequencies)
            everyone = LexicalQuery([([], list(weights))], sum(self.sizes.values()))
            statement, parameters = lexical.fit_plan(everyone)
            rows = await session.fetch(
                statement,
                prepare=False,
                weights=SparseVector(weights, TERM_IDS),
                limit=LEG,
                document_ids=None if scope.document_ids is None else parse_ids(scope.document_ids),
                **parameters,
            )
        return [row["score"] for row in rows]


async def measure(call: Awaitable[object]) -> float:
    """Milliseconds."""
    started = time.perf_counter()
    await call
    return 1000 * (time.perf_counter() - started)


def recall(found: Sequence[float], exact: Sequence[float], depth: int) -> float:
    """The share of the best that was found. By score, because chunks may tie."""
    best = exact[:depth]
    return sum(score >= best[-1] - 1e-5 for score in found[:depth]) / len(best) if best else 1.0


def compare(what: str, ours: Sequence[float], theirs: Sequence[float] = ()) -> None:
    """Print p50 and p95 of one or both, and the ratio."""
    line = "{:7.1f} / {:7.1f} ms".format(*np.percentile(ours, [50, 95]))
    if theirs:
        ratios = np.percentile(theirs, [50, 95]) / np.percentile(ours, [50, 95])
        line += "   PGVectorStore {:7.1f} / {:7.1f} ms".format(*np.percentile(theirs, [50, 95]))
        line += "   ratio {:.1f} / {:.1f}".format(*ratios)
    report("time", what, line)


def report(kind: str, what: str, figures: str) -> None:
    print(f"{kind:<7}{what:<42}{figures}", flush=True)


async def main() -> None:
    """Load, measure, print."""
    async with AsyncExitStack() as stack:
        home = os.environ.get("BENCH_HOME") or stack.enter_context(
            tempfile.TemporaryDirectory(prefix="askgraph-bench-")
        )
        servers = await stack.enter_async_context(open_servers(Path(home)))
        url = servers.database_url
        assert url
        settings = read_settings(DATABASE_URL=url, REDIS_URL=servers.redis_url, load_samples=False)
        services = await stack.enter_async_context(open_services(settings))
        bench = Bench(services, await stack.enter_async_context(open_pool(url)), url, WORKSPACES)
        await bench.load()
        rival = await bench.open_rival()
        await bench.compare_retrieval(rival)
        await bench.measure_recall(rival)


if __name__ == "__main__":
    asyncio.run(main())
