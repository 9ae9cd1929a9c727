"""Measure search on question sets: each leg, each fusion, and the blend with late interaction.

    python benchmarks/retrieval.py BENCH [SET ...]

BENCH is a folder of sets, each a folder with `corpus.jsonl.gz` (id, title, text) and `queries.jsonl.gz` (id, question,
rewrite?, relevant: [{doc, grade}], answerable). Documents are cut to chunks as ingestion cuts them; a document ranks
by its best chunk. Chunks of a big corpus are sampled to `SAMPLE` documents, among them all relevant ones. What the
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from semantic_text_splitter import TextSplitter

from app.adapters.late_interaction import LateInteractionEncoder, LateInteractionReranker
from app.adapters.onnx import OnnxEmbedder
from domain.documents import Candidate, Match, Passage, Scope, Source, embedding_text
from domain.ports import ChunkVectors
from domain.profile import RetrievalKnobs
from domain.terms import analyse
from nodes.fusion import blend, fuse

SAMPLE = 1500
LEG = 100
CANDIDATES = 20
K1, B = 1.4, 0.75

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
        self._postings = _index([_text(p) for p in self.passages])
        self._reranker = LateInteractionReranker(self.embedder, self)

    async def read_tokens(self, scope: Scope, chunk_ids: Sequence[str]) -> dict[str, bytes]:
        return {chunk_id: self._tokens[chunk_id] for chunk_id in chunk_ids}

    async def search(self, question: str) -> tuple[list[Match], list[Match]]:
        dense = self._embeddings @ await self.embedder.embed_query(question)
        lexical = np.zeros(len(self.passages))
        for term in analyse(question):
            if term in self._postings:
                places, impacts = self._postings[term]
                lexical[places] += impacts
        return self._best(dense), [match for match in self._best(lexical) if match.score > 0]

    def _best(self, scores: NDArray[Any]) -> list[Match]:
        best = np.argsort(-scores, kind="stable")[:LEG]
        return [Match(str(i), self.passages[i].document_id, float(scores[i])) for i in best]

    async def rerank(self, question: str, candidates: Sequence[Candidate]) -> list[float]:
        return await self._reranker.score(
            Scope("bench"), question, [self.passages[int(c["chunk_id"])] for c in candidates]
        )

    async def find_sources(self, question: str, keep: int = 5) -> list[Source]:
        """What the graph's rerank step would hand on."""
        candidates = fuse(*await self.search(question), KNOBS)[:CANDIDATES]
        relevance = blend(candidates, await self.rerank(question, candidates))
        best = sorted(zip(relevance, candidates, strict=True), key=lambda pair: -pair[0])[:keep]
        return [self._make_source(n, candidate, score) for n, (score, candidate) in enumerate(best, 1)]

    def _make_source(self, number: int, candidate: Candidate, score: float) -> Source:
        p = self.passages[int(candidate["chunk_id"])]
        return Source(
            number=number, chunk_id=p.chunk_id, chunk_index=p.chunk_index, document_id=p.document_id, title=p.title,
            heading_path=[], text=p.text, start=p.start, end=p.end, page=None, lines=[], score=score,
            dense=candidate["dense"], lexical=candidate["lexical"],
        )  # fmt: skip


KNOBS = RetrievalKnobs(leg_limit=LEG, lexical_weight=0.7)


def _text(passage: Passage) -> str:
    return embedding_text(passage.title, passage.heading_path, passage.text)


def _index(texts: Sequence[str]) -> dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """BM25 impacts by term."""
    terms = [Counter(analyse(text)) for text in texts]
    lengths = np.array([counts.total() for counts in terms])
    postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for place, counts in enumerate(terms):
        for term, count in counts.items():
            postings[term].append((place, count))
    index = {}
    for term, found in postings.items():
        places, counts_ = np.array([p for p, _ in found]), np.array([float(c) for _, c in found])
        idf = math.log(1 + (len(texts) - len(found) + 0.5) / (len(found) + 0.5))
        norm = K1 * (1 - B + B * lengths[places] / lengths.mean())
        index[term] = (places, idf * counts_ * (K1 + 1) / (counts_ + norm))
    return index


async def load_corpus(folder: Path, embedder: OnnxEmbedder) -> Corpus:
    queries = read_lines(folder / "queries.jsonl.gz")
    documents = read_lines(folder / "corpus.jsonl.gz")
    relevant = {r["doc"] for query in queries for r in query["relevant"]}
    others = [d for d in documents if d["id"] not in relevant]
    random.Random(7).shuffle(others)
    kept = [d for d in documents if d["id"] in relevant]
    kept += others[: max(0, SAMPLE - len(kept))]
    splitter = TextSplitter(500, overlap=50)
    passages: list[Passage] = []
    for document in kept:
        for index, (start, text) in enumerate(splitter.chunk_indices(document["text"])):
            place = (str(len(passages)), index, document["id"], document["title"], text, start, start + len(text))
            passages.append(Passage(*place))
    cache = (
        Path(os.environ.get("BENCH_CACHE", tempfile.gettempdir())) / f"askgraph-{folder.name}-{len(passages)}.pickle"
    )
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
        found = fuse(dense, lexical, KNOBS)
        head, tail = found[:CANDIDATES], found[CANDIDATES:]
        reranked = await corpus.rerank(question, head)
        for name, relevance in (("late interaction alone", reranked), ("standardised + late", blend(head, reranked))):
            order = sorted(range(len(head)), key=lambda i: -relevance[i])
            figures[name].append(score(query, documents([*(head[i] for i in order), *tail])))
    return {name: (float(np.mean(v, axis=0)[0]), float(np.mean(v, axis=0)[1])) for name, v in figures.items()}


async def main() -> None:
    bench, *names = sys.argv[1:]
    embedder = OnnxEmbedder.load()
    for name in names or ["squad2", "mtrag", "scifact", "cranfield", "multihop"]:
        corpus = await load_corpus(Path(bench) / name, embedder)
        print(f"{name}: {len(corpus.passages)} chunks")
        for kind, (ndcg, recall) in (await measure(corpus)).items():
            print(f"  {kind:24s} nDCG@10 {ndcg:.3f}  Recall@5 {recall:.3f}", flush=True)
    embedder.close()


if __name__ == "__main__":
    asyncio.run(main())
