"""Measure local routing, and sweep its two constants.

    python benchmarks/routing.py BENCH

BENCH as in retrieval.py; the set `routing` has queries only, of the types conversational, meta, in_scope and
out_of_scope. All questions of the document sets need retrieval.
"""

import asyncio
import sys
from collections import Counter
from pathlib import Path

from app.adapters.embeddings.onnx import OnnxEmbedder
from benchmarks.retrieval import read_lines
from nodes.route.local import routing

DOCUMENT_SETS = ("squad2", "mtrag", "scifact", "multihop", "cranfield", "pdf_financebench")


async def main() -> None:
    bench = Path(sys.argv[1])
    embedder = OnnxEmbedder.load()
    asked: dict[str, list[tuple[str, bool]]] = {}
    for name in (*DOCUMENT_SETS, "routing"):
        for query in read_lines(bench / name / "queries.jsonl.gz"):
            kind = query["type"] if name == "routing" else name
            asked.setdefault(kind, []).append((query["question"], bool(query.get("history"))))
    for nearest, lead in ((0.45, 0.06), (0.4, 0.06), (0.5, 0.06), (0.45, 0.0), (0.45, 0.1)):
        routing.NEAREST, routing.LEAD = nearest, lead
        print(f"NEAREST {nearest} LEAD {lead}")
        for kind, questions in asked.items():
            routes = Counter(
                [
                    (await routing.LocalRouter(embedder).route(q, follow_up=follow_up)).route
                    for q, follow_up in questions
                ]
            )
            print(f"  {kind:18s}", ", ".join(f"{r} {n / len(questions):.3f}" for r, n in routes.most_common()))
    embedder.close()


if __name__ == "__main__":
    asyncio.run(main())
