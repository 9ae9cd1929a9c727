"""Measure the local check of claims against people's judgement.

    python benchmarks/verification.py BENCH

Takes the sets `verification` (responses judged against their evidence; borderline ones are left out) and `scifact`
(claims that an abstract supports or contradicts) of BENCH (see retrieval.py). Each sentence of a response cites all of
its evidence; the response is judged as a whole.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.adapters.embeddings.onnx import OnnxEmbedder
from benchmarks.retrieval import Query, read_lines
from domain.documents import Source
from domain.ports.judgement import SUPPORTED
from domain.text.sentences import split_sentences
from nodes.verify.local import LocalVerifier

Array = NDArray[Any]


def make_source(number: int, document: Query) -> Source:
    text = document["text"]
    return Source(
        number=number, chunk_id=str(number), chunk_index=0, document_id=document["id"], title=document["title"],
        heading_path=[], text=text, start=0, end=len(text), page=None, lines=[], score=1.0, dense=None, lexical=None,
    )  # fmt: skip


def balance(passed: Array, supported: Array) -> float:
    """Balanced accuracy."""
    return float((passed[supported].mean() + (~passed[~supported]).mean()) / 2)


def area(scores: Array, supported: Array) -> float:
    """Area under the ROC curve."""
    good, bad = scores[supported][:, None], scores[~supported]
    return float((good > bad).mean() + 0.5 * (good == bad).mean())


async def main() -> None:
    bench = Path(sys.argv[1])
    embedder = OnnxEmbedder.load()
    judged: dict[str, list[tuple[float, bool, bool]]] = {}
    for name in ("verification", "scifact"):
        corpus = {document["id"]: document for document in read_lines(bench / name / "corpus.jsonl.gz")}
        for query in read_lines(bench / name / "queries.jsonl.gz"):
            label = query["label"].lower()
            if label not in ("supported", "unsupported", "support", "contradict"):
                continue
            sources = [make_source(n, corpus[r["doc"]]) for n, r in enumerate(query["relevant"], 1)]
            response = query.get("response", query["question"])
            statements = [(response[start:end], sources) for start, end in split_sentences(response)]
            _, score = await LocalVerifier().verify(statements)
            row = (score, score >= SUPPORTED, label.startswith("support"))
            judged.setdefault(name if name == "scifact" else query["type"], []).append(row)
    for kind, rows in judged.items():
        scores, passed, supported = (np.array(column) for column in zip(*rows, strict=True))
        best, at = max((balance(scores >= threshold, supported), threshold) for threshold in np.unique(scores))
        print(
            f"{kind:12s} {len(rows)}: balanced accuracy {balance(passed, supported):.3f} "
            f"(at best {best:.3f}, from {at:.2f}), AUC {area(scores, supported):.3f}"
        )

    embedder.close()


if __name__ == "__main__":
    asyncio.run(main())
