"""Measure whether the quoted sentences hold a known answer, and how long they are.

    python benchmarks/extraction.py BENCH

Takes the answerable questions of the set `squad2` of BENCH (see retrieval.py) and the five sources that the graph's
rerank step would hand on; counts those whose sources hold the annotated answer at its place.
"""

import asyncio
import re
import sys
import time
from pathlib import Path

from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.rerankers.unit_scorer import LateInteractionUnitScorer
from benchmarks.retrieval import SCOPE, Query, load_corpus
from domain.documents import Source
from nodes.generate.local import LocalFinder


def level(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def has_gold(query: Query, sources: list[Source]) -> bool:
    return any(
        source["document_id"] == relevant["doc"] and source["start"] <= start and end <= source["end"]
        for source in sources
        for relevant in query["relevant"]
        for start, end in relevant["spans"]
    )


async def measure(
    asked: list[tuple[Query, list[Source]]], finder: LocalFinder, limit: int
) -> tuple[float, float, float, float]:
    """Share with an answer, characters, quotes, and milliseconds of one question."""
    hits = characters = count = 0
    started = time.perf_counter()
    for query, sources in asked:
        quotes = await finder.find(query["question"], sources, scope=SCOPE, most=limit)
        joined = level(" ".join(quote.text for quote in quotes))
        hits += any(level(answer) in joined for answer in query["answers"])
        characters += sum(len(quote.text) for quote in quotes)
        count += len(quotes)
    milliseconds = (time.perf_counter() - started) * 1000
    return hits / len(asked), characters / len(asked), count / len(asked), milliseconds / len(asked)


async def main() -> None:
    embedder = OnnxEmbedder.load()
    corpus = await load_corpus(Path(sys.argv[1]) / "squad2", embedder)
    answerable = [query for query in corpus.queries if query["answerable"]]
    found = [(query, await corpus.find_sources(query["question"])) for query in answerable]
    asked = [(query, sources) for query, sources in found if has_gold(query, sources)]
    print(f"{len(asked)} of {len(answerable)} questions have the answer among their sources")
    finder = LocalFinder(LateInteractionUnitScorer(embedder, corpus))
    for limit in (1, 2):
        hit, characters, quotes, ms = await measure(asked, finder, limit)
        print(f"at most {limit}: answered {hit:.3f}, {characters:.0f} characters in {quotes:.2f} quotes, {ms:.0f} ms")
    embedder.close()


if __name__ == "__main__":
    asyncio.run(main())
