"""Fits the weights of units (`nodes/local/reading/scoring.py`) and of confidence (`nodes/local/grading/grader.py`).

    python -m benchmarks.fit_reading ../shared/training/reading.jsonl.gz

Each set's paragraphs are searched as one small corpus. Every question is asked twice: as it is, and with its own
paragraph taken away, so that what is left is about the matter and does not answer. Only sets whose licence allows it
take part: SQuAD (CC BY-SA 4.0), QED (CC BY-SA 3.0), COVID-QA and the e-manuals (Apache-2.0).
"""

import asyncio
import gzip
import json
import random
import sys
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.adapters.embeddings.onnx import OnnxEmbedder
from domain.documents import Match, Source
from domain.profile import RetrievalKnobs
from domain.text.terms import analyse
from nodes.fusion import blend, fuse
from nodes.local.reading.scoring import EMBEDDED, WEIGHTS, cover, describe, weigh_terms
from nodes.local.reading.units import split_units

SETS = {"squad2_train_part": 170, "squad1_train_part": 90, "qed_nq": 220, "emanual": 190, "covidqa": 110}
"""Questions asked of each set."""
PARAGRAPHS = 300
"""Paragraphs of a set that are searched."""
KEEP = 5
_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Example:
    """The units of a question's sources: features (units, weights), which of them answer, and the signs of
    confidence."""

    features: _Floats
    answers: NDArray[np.bool_]
    signs: tuple[float, float]


async def read_examples(path: str, embedder: OnnxEmbedder) -> list[Example]:
    """Return the examples of all sets, from the rows of `path`."""
    by_set: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            if row["set"] in SETS and row["answerable"]:
                by_set[row["set"]].append(row)
    examples: list[Example] = []
    for name, rows in by_set.items():
        contexts = list(dict.fromkeys(row["context"] for row in rows))[:PARAGRAPHS]
        known = [row for row in rows if row["context"] in set(contexts)]
        vectors = await embedder.embed_passages(contexts)
        for row in random.Random(1).sample(known, min(SETS[name], len(known))):
            similarities = vectors @ await embedder.embed_query(row["question"])
            for without in (False, True):
                sources = _search(row, contexts, similarities, without=without)
                examples.append(await _describe(row, sources, embedder))
    return examples


def _search(row: dict[str, Any], contexts: list[str], similarities: Any, *, without: bool) -> list[Source]:
    order = [int(i) for i in np.argsort(-similarities) if not (without and contexts[i] == row["context"])][:40]
    matches = [Match(str(i), str(i), float(similarities[i])) for i in order]
    candidates = fuse(matches, [], RetrievalKnobs())
    scores = blend(candidates, None)
    best = sorted(zip(scores, order, strict=True), reverse=True)[:KEEP]
    return [
        Source(
            number=number,
            chunk_id=str(i),
            chunk_index=0,
            document_id=str(i),
            title=row["title"],
            heading_path=[],
            text=contexts[i],
            start=0,
            end=len(contexts[i]),
            page=None,
            lines=[],
            score=score,
            dense=float(similarities[i]),
            lexical=None,
        )
        for number, (score, i) in enumerate(best, 1)
    ]


async def _describe(row: dict[str, Any], sources: list[Source], embedder: OnnxEmbedder) -> Example:
    question = row["question"]
    units = [unit for source in sources for unit in split_units(source)]
    held = [frozenset(analyse(unit.text)) for unit in units]
    wanted = weigh_terms(question, question, held)
    features = describe(question, units, held, wanted)
    chosen = sorted(range(len(units)), key=lambda i: -(features @ WEIGHTS)[i])[:EMBEDDED]
    found = await embedder.embed_passages([units[i].shown for i in chosen]) @ await embedder.embed_query(question)
    features[:, 0] = found.min()
    features[chosen, 0] = found
    answers = [
        unit.source["text"] == row["context"] and any(unit.start <= each["start"] < unit.end for each in row["answers"])
        for unit in units
    ]
    covered = cover(wanted, frozenset().union(*held))
    return Example(features.astype(float), np.array(answers), (covered, float(sources[0]["dense"] or 0)))


def fit_units(examples: list[Example], steps: int = 2000, rate: float = 0.05) -> _Floats:
    """Return the weights under which the units that answer have the highest share, by gradient ascent."""
    weights = np.zeros(len(WEIGHTS))
    asked = [each for each in examples if each.answers.any()]
    for _ in range(steps):
        gradient = -0.004 * weights
        for each in asked:
            merits = each.features @ weights
            shares = np.exp(merits - merits.max())
            shares /= shares.sum()
            right = shares * each.answers
            gradient += (right / right.sum() - shares) @ each.features / len(asked)
        weights += rate * gradient
    return weights


def fit_confidence(examples: list[Example], weights: _Floats, steps: int = 20_000, rate: float = 0.02) -> _Floats:
    """Return intercept and weights of merit, coverage and similarity."""
    rows = np.array([(1.0, (each.features @ weights).max(), *each.signs) for each in examples])
    held = np.array([each.answers.any() for each in examples], dtype=float)
    found = np.zeros(rows.shape[1])
    for _ in range(steps):
        found += rate * ((held - 1 / (1 + np.exp(-rows @ found))) @ rows / len(rows))
    return found


async def main() -> None:
    embedder = OnnxEmbedder.load()
    examples = await read_examples(sys.argv[1], embedder)
    weights = fit_units(examples)
    print("units", [round(float(weight), 2) for weight in weights])
    print("confidence", [round(float(weight), 2) for weight in fit_confidence(examples, weights)])
    embedder.close()


if __name__ == "__main__":
    asyncio.run(main())
