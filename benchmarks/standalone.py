"""Measure how well follow-ups find their documents as asked, with the whole conversation, and made to stand alone.

    python benchmarks/standalone.py BENCH

Takes the set `mtrag` of BENCH (see retrieval.py), whose queries have a `history`. The rank is that of the fused search
without rerank.
"""

import asyncio
import sys
from pathlib import Path

import numpy as np

from app.adapters.onnx import OnnxEmbedder
from benchmarks.retrieval import KNOBS, Query, load_corpus, score
from domain.state import Turn
from nodes.fusion import fuse
from nodes.local.standalone import make_standalone


def read_turns(query: Query) -> list[Turn]:
    turns: list[Turn] = []
    said = [message["content"] for message in query["history"]]
    for question, answer in zip(said[::2], said[1::2], strict=False):
        turns.append(
            Turn(
                run_id="", question=question, standalone_question=make_standalone(question, turns),
                route="needs_retrieval", answer=answer, documents=[],
            )
        )  # fmt: skip
    return turns


def join_turns(query: Query) -> str:
    return " ".join([*(m["content"] for m in query["history"] if m["role"] == "user"), query["question"]])


async def main() -> None:
    embedder = OnnxEmbedder.load()
    corpus = await load_corpus(Path(sys.argv[1]) / "mtrag", embedder)
    queries = [query for query in corpus.queries if query["relevant"] and query["history"]]
    alone = {query["id"]: make_standalone(query["question"], read_turns(query)) for query in queries}
    for name, ask in (
        ("as asked", lambda query: query["question"]),
        ("all turns joined", join_turns),
        ("stand-alone", lambda query: alone[query["id"]]),
    ):
        figures = [score(q, [c["document_id"] for c in fuse(*await corpus.search(ask(q)), KNOBS)]) for q in queries]
        ndcg, recall = np.mean(figures, axis=0)
        print(f"{name:18s} nDCG@10 {ndcg:.3f}  Recall@5 {recall:.3f}  ({len(queries)} follow-ups)")
    print("left unchanged:", sum(alone[query["id"]] == query["question"] for query in queries))
    embedder.close()


if __name__ == "__main__":
    asyncio.run(main())
