"""Measure search on question sets: each leg, each fusion, the blend with late interaction, and the graph's ranking.

    python benchmarks/retrieval.py BENCH [SET ...]

BENCH is a folder of sets, each a folder with `corpus.jsonl.gz` (id, title, text) and `queries.jsonl.gz` (id, question,
rewrite?, relevant: [{doc, grade}], answerable). Documents are cut to chunks as ingestion cuts them; a document ranks
by its best chunk. SAMPLE (environment) takes so many documents of a big corpus, among them all relevant ones. What the
model computes is kept in BENCH_CACHE (default: the temporary folder). Needs 25 ms a chunk the first time.
"""

import asyncio
import gzip
import json
import math
import os
import pickle
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.postgres.library.bm25 import TermIds, weigh_chunk, weigh_query, weigh_terms
from app.adapters.postgres.library.feedback import weigh_marking_terms
from app.adapters.rerankers.late_interaction import LateInteractionEncoder, LateInteractionReranker
from app.ingest.chunking import split
from domain.documents import Candidate, Match, ParsedDocument, Passage, Section, Source, embedding_text
from domain.ports.documents import ChunkVectors
from domain.ports.embedding import Vector
from domain.ports.library import Library, TokenChunk
from domain.profile import RetrievalKnobs
from domain.scope import Scope
from nodes.context import Ledger
from nodes.sources.fusion import blend, choose_examples, fuse, reorder
from nodes.sources.search import score_across_legs

SAMPLE = int(os.environ.get("SAMPLE", 10**9))
LEG = 50
SCOPE = Scope("bench")

Query = dict[str, Any]


def read_lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def question_of(query: Query) -> str:
    return str(query.get("rewrite") or query["question"])


@dataclass
class Corpus:
    """One set in memory, with exact search in place of the database."""

    passages: list[Passage]
    vectors: list[ChunkVectors]
    queries: list[Query]
    embedder: OnnxEmbedder

    def __post_init__(self) -> None:
        self._embeddings = np.array([v.embedding for v in self.vectors])
        self._tokens = {p.chunk_id: v.tokens for p, v in zip(self.passages, self.vectors, strict=True)}
        self._of_document: defaultdict[str, list[Passage]] = defaultdict(list)
        for passage in self.passages:
            self._of_document[passage.document_id].append(passage)
        ids = TermIds(SCOPE.workspace_id)
        self._impacts = [weigh_chunk(ids, _text(p)) for p in self.passages]
        self._frequencies = Counter(term for terms in self._impacts for term in terms)
        self._reranker = LateInteractionReranker(self.embedder, self)

    async def read_tokens(self, scope: Scope, chunk_ids: Sequence[str]) -> dict[str, bytes]:
        return {chunk_id: self._tokens[chunk_id] for chunk_id in chunk_ids}

    async def read_token_chunks(self, scope: Scope, places: Sequence[tuple[str, int, int]]) -> list[TokenChunk]:
        return [
            TokenChunk(p.document_id, p.start, p.text, p.title, p.heading_path, p.lead, self._tokens[p.chunk_id])
            for document_id, start, end in places
            for p in self._of_document[document_id]
            if p.start < end and start < p.end
        ]

    async def read_around(self, scope: Scope, chunk_ids: Sequence[str], before: int, after: int) -> list[Passage]:
        named = [self.passages[int(chunk_id)] for chunk_id in chunk_ids]
        places = {(p.document_id, p.chunk_index + by) for p in named for by in range(-before, after + 1)}
        return [
            p
            for document_id in {p.document_id for p in named}
            for p in self._of_document[document_id]
            if (p.document_id, p.chunk_index) in places
        ]

    async def search(self, question: str) -> tuple[list[Match], list[Match]]:
        dense = self._embeddings @ await self.embedder.embed_query(question)
        lexical = np.zeros(len(self.passages))
        for match in await self.score_lexical(SCOPE, question, [p.chunk_id for p in self.passages]):
            lexical[int(match.chunk_id)] = match.score
        return self._best(dense), [match for match in self._best(lexical) if match.score > 0]

    async def score_dense(self, scope: Scope, embedding: Vector, chunk_ids: Sequence[str]) -> list[Match]:
        scores = self._embeddings[[int(i) for i in chunk_ids]] @ embedding
        return [self._match(int(i), score) for i, score in zip(chunk_ids, scores, strict=True)]

    async def score_lexical(self, scope: Scope, query: str, chunk_ids: Sequence[str]) -> list[Match]:
        return self._score(self._weigh(weigh_query(scope.workspace_id, query)), chunk_ids)

    async def score_related(
        self, scope: Scope, query: str, examples: Mapping[str, float], chunk_ids: Sequence[str]
    ) -> list[Match]:
        own = weigh_query(scope.workspace_id, query)
        impacts = {chunk_id: self._impacts[int(chunk_id)] for chunk_id in examples}
        terms = {term: 1.0 for chunk in impacts.values() for term in chunk if term not in own}
        return self._score(weigh_marking_terms(impacts, examples, self._weigh(terms)), chunk_ids)

    def _weigh(self, terms: Mapping[int, float]) -> dict[int, float]:
        return weigh_terms(terms, len(self.passages), self._frequencies)

    def _score(self, weights: Mapping[int, float], chunk_ids: Sequence[str]) -> list[Match]:
        return [
            self._match(int(i), sum(weights[term] * self._impacts[int(i)].get(term, 0.0) for term in weights))
            for i in chunk_ids
        ]

    def _match(self, place: int, score: float) -> Match:
        return Match(str(place), self.passages[place].document_id, float(score))

    def _best(self, scores: NDArray[Any]) -> list[Match]:
        best = np.argsort(-scores, kind="stable")[:LEG]
        return [self._match(int(i), scores[i]) for i in best]

    async def rerank(self, question: str, candidates: Sequence[Candidate]) -> list[float]:
        passages = [self.passages[int(c["chunk_id"])] for c in candidates]
        return await self._reranker.score(SCOPE, question, passages, Ledger())

    async def rank(self, question: str) -> list[tuple[Candidate, float]]:
        """Candidates with their relevance, best first, as the graph's retrieve and rerank have them."""
        candidates = await self.find_candidates(question)
        relevance = blend(candidates, await self.rerank(question, candidates))
        return _sort(candidates, await self.learn(question, candidates, relevance))

    async def find_candidates(self, question: str) -> list[Candidate]:
        legs = await self.search(question)
        library = cast(Library, self)
        legs_ = await score_across_legs(*legs, SCOPE, await self.embedder.embed_query(question), question, library)
        return fuse(*legs_, KNOBS)[: KNOBS.candidates]

    async def learn(
        self, question: str, candidates: Sequence[Candidate], relevance: Sequence[float]
    ) -> Sequence[float]:
        chunk_ids = [candidate["chunk_id"] for candidate in candidates]
        related = await self.score_related(SCOPE, question, choose_examples(chunk_ids, relevance), chunk_ids)
        return reorder(relevance, [match.score for match in related])

    async def find_sources(self, question: str, keep: int = 5) -> list[Source]:
        """Return the sources that the graph's rerank step would pass on."""
        best = (await self.rank(question))[:keep]
        return [self._make_source(n, candidate, score) for n, (candidate, score) in enumerate(best, 1)]

    def _make_source(self, number: int, candidate: Candidate, score: float) -> Source:
        p = self.passages[int(candidate["chunk_id"])]
        return Source(
            number=number, chunk_id=p.chunk_id, chunk_index=p.chunk_index, document_id=p.document_id, title=p.title,
            heading_path=[], text=p.text, start=p.start, end=p.end, page=None, lines=[], score=score,
            dense=candidate["dense"], lexical=candidate["lexical"],
        )  # fmt: skip


KNOBS = RetrievalKnobs(leg_limit=LEG)


def _text(passage: Passage) -> str:
    return embedding_text(passage.title, passage.heading_path, passage.text, passage.lead)


def _sort(candidates: Sequence[Candidate], relevance: Sequence[float]) -> list[tuple[Candidate, float]]:
    return sorted(zip(candidates, relevance, strict=True), key=lambda pair: -pair[1])


async def load_corpus(folder: Path, embedder: OnnxEmbedder) -> Corpus:
    queries = read_lines(folder / "queries.jsonl.gz")
    documents = read_lines(folder / "corpus.jsonl.gz")
    relevant = {r["doc"] for query in queries for r in query["relevant"]}
    others = [d for d in documents if d["id"] not in relevant]
    random.Random(7).shuffle(others)
    kept = [d for d in documents if d["id"] in relevant]
    kept += others[: max(0, SAMPLE - len(kept))]
    return await make_corpus(folder.name, kept, queries, embedder)


async def make_corpus(
    name: str, documents: Sequence[Mapping[str, str]], queries: list[Query], embedder: OnnxEmbedder
) -> Corpus:
    """Cut the documents (id, title, text) to chunks and embed them. `name` tells the kept vectors of sets apart."""
    passages: list[Passage] = []
    for document in documents:
        text = document["text"]
        for chunk in split(ParsedDocument(document["title"], text, "text/plain", (Section(0, len(text), ()),))):
            place = (str(len(passages)), chunk.index, document["id"], document["title"])
            passages.append(Passage(*place, chunk.text, chunk.start, chunk.end, lead=chunk.lead))
    cache = Path(os.environ.get("BENCH_CACHE", tempfile.gettempdir())) / f"askgraph-{name}-{len(passages)}-2.pickle"
    if not cache.exists():
        encoded = await LateInteractionEncoder(embedder).encode([_text(p) for p in passages])
        cache.write_bytes(pickle.dumps(encoded))
    return Corpus(passages, pickle.loads(cache.read_bytes()), queries, embedder)


def score(query: Query, documents: Sequence[str]) -> tuple[float, float]:
    """nDCG@10 (linear gain) and Recall@5."""
    grades = {r["doc"]: r.get("grade", 1) for r in query["relevant"]}
    ranked = list(dict.fromkeys(documents))
    gain = sum(grades.get(d, 0) / math.log2(i + 1) for i, d in enumerate(ranked[:10], 1))
    ideal = sum(g / math.log2(i + 1) for i, g in enumerate(sorted(grades.values(), reverse=True)[:10], 1))
    return gain / ideal, sum(d in grades for d in ranked[:5]) / len(grades)


async def measure(corpus: Corpus) -> dict[str, tuple[float, float]]:
    fusions: dict[str, RetrievalKnobs] = {
        name: RetrievalKnobs.model_validate({"fusion": name, "lexical_weight": 0.7})
        for name in ("dense", "rrf", "weighted", "standardised")
    }
    figures: dict[str, list[tuple[float, float]]] = defaultdict(list)
    documents: Callable[[Sequence[Candidate]], list[str]] = lambda found: [c["document_id"] for c in found]  # noqa: E731
    for query in corpus.queries:
        if not query["relevant"]:
            continue
        question = question_of(query)
        dense, lexical = await corpus.search(question)
        figures["BM25"].append(score(query, [match.document_id for match in lexical]))
        for name, knobs in fusions.items():
            figures[name].append(score(query, documents(fuse(dense, lexical, knobs))))
        found = await corpus.find_candidates(question)
        figures["both legs completed"].append(score(query, documents(found)))
        reranked = await corpus.rerank(question, found)
        blended = blend(found, reranked)
        for name, relevance in (
            ("late interaction alone", reranked),
            ("completed, late interaction", blended),
            ("and feedback: as the graph", await corpus.learn(question, found, blended)),
        ):
            figures[name].append(score(query, documents([c for c, _ in _sort(found, relevance)])))
    return {name: (float(np.mean(v, axis=0)[0]), float(np.mean(v, axis=0)[1])) for name, v in figures.items()}


async def main() -> None:
    bench, *names = sys.argv[1:]
    embedder = OnnxEmbedder.load()
    for name in names or ["squad2", "mtrag", "scifact", "cranfield", "multihop"]:
        corpus = await load_corpus(Path(bench) / name, embedder)
        print(f"{name}: {len(corpus.passages)} chunks")
        for kind, (ndcg, recall) in (await measure(corpus)).items():
            print(f"  {kind:28s} nDCG@10 {ndcg:.3f}  Recall@5 {recall:.3f}", flush=True)
    embedder.close()


if __name__ == "__main__":
    asyncio.run(main())
