"""Measures speed and recall with many chunks.

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
from typing import cast

import numpy as np
from langgraph.runtime import Runtime
from pgvector.psycopg import SparseVector  # type: ignore[import-untyped]

from app.adapters.embedded import open_servers
from app.adapters.postgres.documents.frequencies import CHUNKS as ALL
from app.adapters.postgres.library import dense, lexical
from app.adapters.postgres.library.bm25 import TERM_IDS, LexicalQuery, weigh_query, weigh_terms
from app.adapters.postgres.library.ids import parse_ids
from app.adapters.postgres.pool import Pool, open_pool, open_session
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


class Bench:
    """Everything open, and what the measurements share."""

    def __init__(self, services: Services, pool: Pool, sizes: Mapping[str, int]) -> None:
        """`sizes` are the workspaces and their numbers of chunks."""
        self.services = services
        self.pool = pool
        self.questions = {name: make_questions(name, size, QUESTIONS) for name, size in sizes.items()}
        self.sizes = sizes
        everyone = [question for questions in self.questions.values() for question in questions]
        self.context = replace(services.make_context(), embedder=PreparedEmbedder(everyone))

    async def load(self) -> None:
        """Fill the workspaces, the large one last, beside the others."""
        for name, size in sorted(self.sizes.items(), key=lambda item: item[1]):
            if await self.services.library.documents.is_untouched(name):
                documents = list(make_documents(name, size))
                started = time.perf_counter()
                for document in documents:
                    await self.services.library.documents.replace(name, document)
                await self.services.library.wait_for_indexes()
                rate = size / (time.perf_counter() - started)
                report("load", name, f"{size} chunks, {rate:.0f}/s, with the index")

    async def measure_retrieval(self) -> None:
        """The real node, without the embedding call."""
        for name, questions in self.questions.items():
            report_times(f"retrieve, {name}", [await measure(self.retrieve(name, question)) for question in questions])
        await self._measure_chosen_documents()

    async def _measure_chosen_documents(self) -> None:
        documents = await self.services.library.documents.list("large")
        for share in (0.001, 0.02, 0.1, 0.5):
            chosen = [document.id for document in documents[:: round(1 / share)]]
            times = [await measure(self.retrieve("large", question, chosen)) for question in self.questions["large"]]
            report_times(f"retrieve, {share:.1%} of the documents of large", times)

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

    async def measure_recall(self) -> None:
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
            counts = await session.fetch(
                lexical.COUNT_TERMS, terms=[ALL, *sorted(terms)], document_ids=None, groups=None
            )
            frequencies = {row["term"]: row["chunks"] for row in counts if row["term"] is not None}
            weights = weigh_terms(terms, frequencies.pop(ALL), frequencies)
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


def report_times(what: str, times: Sequence[float]) -> None:
    """Print p50 and p95."""
    report("time", what, "{:7.1f} / {:7.1f} ms".format(*np.percentile(times[WARM:], [50, 95])))


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
        bench = Bench(services, await stack.enter_async_context(open_pool(url)), WORKSPACES)
        await bench.load()
        await bench.measure_retrieval()
        await bench.measure_recall()


if __name__ == "__main__":
    asyncio.run(main())
