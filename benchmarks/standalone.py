"""Measure how well follow-ups find their documents as asked, with the whole conversation, and as route makes of them.

    python benchmarks/standalone.py BENCH

Takes the set `mtrag` of BENCH (see retrieval.py), whose queries have a `history`. Searches and reranks as the graph
does, but for what links and retries bring; `askgraph eval mtrag` asks the graph itself.
"""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np

from app.adapters.embeddings.onnx import OnnxEmbedder
from benchmarks.retrieval import KNOBS, LEG, SCOPE, Corpus, Query, load_corpus, score
from domain.documents import Match
from domain.ports.library import Library
from domain.state import Turn
from nodes.route.local.standalone import add_background, make_standalone
from nodes.sources.fusion import blend, fuse
from nodes.sources.search import score_across_legs


def read_turns(query: Query) -> list[Turn]:
    turns: list[Turn] = []
    said = [message["content"] for message in query["history"]]
    for question, answer in zip(said[::2], said[1::2], strict=False):
        turns.append(
            Turn(
                run_id="", question=question, standalone_question=make_standalone(question, turns),
                route="needs_retrieval", answer=answer, documents=[], outcome="answered",
            )
        )  # fmt: skip
    return turns


def join_turns(query: Query) -> str:
    return " ".join([*(m["content"] for m in query["history"] if m["role"] == "user"), query["question"]])


async def rank(corpus: Corpus, texts: list[str], question: str) -> list[str]:
    """Documents found by the texts together, as nodes/retrieve/step.py has it, reranked against the question."""
    mean = np.mean([await corpus.embedder.embed_query(text) for text in texts], axis=0)
    embedding, words = mean / np.linalg.norm(mean), " ".join(texts)
    ids = [passage.chunk_id for passage in corpus.passages]
    best: Callable[[list[Match]], list[Match]] = lambda leg: sorted(leg, key=lambda match: -match.score)[:LEG]  # noqa: E731
    dense = best(await corpus.score_dense(SCOPE, embedding, ids))
    lexical = [match for match in best(await corpus.score_lexical(SCOPE, words, ids)) if match.score > 0]
    legs = await score_across_legs(dense, lexical, SCOPE, embedding, words, cast(Library, corpus))
    found = fuse(*legs, KNOBS)[: KNOBS.candidates]
    relevance = await corpus.learn(question, found, blend(found, await corpus.rerank(question, found)))
    order = sorted(range(len(found)), key=lambda place: -relevance[place])
    return [found[place]["document_id"] for place in order]


async def main() -> None:
    embedder = OnnxEmbedder.load()
    corpus = await load_corpus(Path(sys.argv[1]) / "mtrag", embedder)
    queries = [query for query in corpus.queries if query["relevant"] and query["history"]]
    turns = {query["id"]: read_turns(query) for query in queries}
    alone = {query["id"]: make_standalone(query["question"], turns[query["id"]]) for query in queries}
    asks: dict[str, Callable[[Query], tuple[list[str], str]]] = {
        "as asked": lambda query: ([query["question"]], query["question"]),
        "all turns joined": lambda query: ([join_turns(query)], join_turns(query)),
        "stand-alone": lambda query: ([alone[query["id"]]], alone[query["id"]]),
        "with background": lambda query: (
            list(dict.fromkeys([query["question"], add_background(query["question"], turns[query["id"]])])),
            alone[query["id"]],
        ),
    }
    for name, ask in asks.items():
        ndcg, recall = np.mean([score(query, await rank(corpus, *ask(query))) for query in queries], axis=0)
        print(f"{name:18s} nDCG@10 {ndcg:.3f}  Recall@5 {recall:.3f}  ({len(queries)} follow-ups)", flush=True)
    print("left unchanged:", sum(alone[query["id"]] == query["question"] for query in queries))
    embedder.close()


if __name__ == "__main__":
    asyncio.run(main())
