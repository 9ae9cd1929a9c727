"""Measure the scale of an embedding model's similarities (domain/library/similarities.toml).

    python -m benchmarks.fit_similarities ../shared/training/reading.jsonl.gz [multilingual]

Four small libraries are made of passages of four kinds: privacy policies, manuals, papers and encyclopedia articles.
`related` is the median similarity of a question and the best passage of the library that answers it; `unrelated` is the
same for the libraries that it has nothing to do with.
"""

import asyncio
import gzip
import json
import random
import statistics
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from app.adapters.embeddings.multilingual import load_multilingual
from app.adapters.embeddings.onnx import OnnxEmbedder
from domain.documents import embedding_text

SETS = ("policyqa", "emanual", "covidqa", "squad2_train_part")
QUESTIONS = 100
PASSAGE = 500
"""Characters, as chunks have."""


def read_rows(path: Path) -> dict[str, list[tuple[str, str]]]:
    """Return a fixed sample of questions by set, each with the passage around its answer."""
    rows: dict[str, list[tuple[str, str]]] = defaultdict(list)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            if row["set"] in SETS and row["answerable"]:
                start = max(0, row["answers"][0]["start"] - PASSAGE // 2)
                passage = row["context"][start : start + PASSAGE]
                rows[row["set"]].append((row["question"], embedding_text(row["title"], (), passage)))
    chance = random.Random(1)
    return {name: chance.sample(found, min(QUESTIONS, len(found))) for name, found in rows.items()}


async def main(path: Path, multilingual: bool) -> None:
    embedder = load_multilingual() if multilingual else OnnxEmbedder.load()

    related: list[float] = []
    unrelated: list[float] = []
    rows = read_rows(path)
    libraries = {
        name: np.asarray(await embedder.embed_passages([passage for _, passage in found]))
        for name, found in rows.items()
    }
    for name, found in rows.items():
        for question, _ in found:
            embedding = await embedder.embed_query(question)
            for other, library in libraries.items():
                (related if other == name else unrelated).append(float((library @ embedding).max()))
    embedder.close()
    for label, values in (("unrelated", unrelated), ("related", related)):
        quartiles = ", ".join(f"{value:.3f}" for value in statistics.quantiles(values, n=4))
        print(f"{label}: median {statistics.median(values):.3f} (quartiles {quartiles}, n = {len(values)})")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2:] == ["multilingual"]))
