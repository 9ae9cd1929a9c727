"""Fit the constants of nodes/local/grading.py and print how well they tell questions apart.

    python benchmarks/fit_grading.py BENCH

Three kinds of questions of the sets in BENCH (see retrieval.py): answerable ones, unanswerable ones about the same
documents, and unrelated ones (the set `routing` asked of documents that have nothing to do with them). AUCs are
cross-validated, five folds by document or conversation.
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.adapters.onnx import OnnxEmbedder
from benchmarks.retrieval import Query, load_corpus, question_of, read_lines
from domain.documents import Source
from nodes.local.grading import read_signs

WEIGHTS = {"answerable": 100.0, "gold found": 40.0, "unanswerable": 100.0, "unrelated": 60.0}
"""Of each set in the fit. `gold found` are the sets that have answerable questions only."""
PASS, SHARE = 0.4, 0.93
"""The intercept is set so that this share of the answerable questions whose passage was found passes."""

Array = NDArray[np.float64]


@dataclass
class Row:
    kind: str
    set_name: str
    group: str
    signs: tuple[float, ...]
    found: bool
    """Whether a relevant document is among the sources."""


def make_row(kind: str, set_name: str, query: Query, sources: Sequence[Source]) -> Row:
    signs = astuple(read_signs(question_of(query), sources, sources[0]["dense"] or 0.0))
    relevant = {r["doc"] for r in query["relevant"]}
    group = str(query.get("article") or query.get("conversation") or query["id"])
    return Row(kind, set_name, group, signs, any(s["document_id"] in relevant for s in sources))


async def collect(bench: Path, embedder: OnnxEmbedder) -> list[Row]:
    unrelated = read_lines(bench / "routing" / "queries.jsonl.gz")
    rows = []
    for name in ("squad2", "mtrag", "scifact", "cranfield", "multihop"):
        corpus = await load_corpus(bench / name, embedder)
        for query in corpus.queries:
            kind = "answerable" if query["answerable"] else "unanswerable"
            row = make_row(kind, name, query, await corpus.find_sources(question_of(query)))
            if name in ("squad2", "mtrag"):
                rows.append(row)
            elif row.found:
                row.kind = "gold found"
                rows.append(row)
        if name in ("squad2", "cranfield"):
            for query in unrelated:
                rows.append(make_row("unrelated", name, query, await corpus.find_sources(query["question"])))
    return rows


def fit(signs: Array, truth: Array, weights: Array) -> Array:
    """Logistic regression by Newton's method, lightly regularised."""
    inputs = np.c_[np.ones(len(signs)), signs]
    penalty = np.diag([0.0, *[0.3] * signs.shape[1]])
    odds = np.zeros(inputs.shape[1])
    for _ in range(40):
        guess = 1 / (1 + np.exp(-inputs @ odds))
        hessian = inputs.T @ (inputs * (weights * guess * (1 - guess))[:, None]) + penalty
        odds += np.linalg.solve(hessian, inputs.T @ (weights * (truth - guess)) - penalty @ odds)
    return odds


def area(scores: Array, truth: Array) -> float:
    """Under the ROC curve: how often a true one scores above a false one."""
    above = scores[truth == 1][:, None] - scores[truth == 0][None, :]
    return float((above > 0).mean() + (above == 0).mean() / 2)


async def main() -> None:
    embedder = OnnxEmbedder.load()
    rows = await collect(Path(sys.argv[1]), embedder)
    embedder.close()
    signs = np.array([row.signs for row in rows])
    truth = np.array([float(row.kind in ("answerable", "gold found")) for row in rows])
    kinds = np.array([f"{row.set_name} {row.kind}" for row in rows])
    weights = np.array([WEIGHTS[row.kind] / (kinds == kind).sum() for row, kind in zip(rows, kinds, strict=True)])

    groups = sorted({row.group for row in rows})
    fold_of = dict(zip(groups, np.random.default_rng(0).integers(0, 5, len(groups)), strict=True))
    folds = np.array([fold_of[row.group] for row in rows])
    held_out = np.zeros(len(rows))
    for fold in range(5):
        odds = fit(signs[folds != fold], truth[folds != fold], weights[folds != fold])
        held_out[folds == fold] = odds[0] + signs[folds == fold] @ odds[1:]
    for name in ("squad2", "mtrag"):
        chosen = np.isin(kinds, [f"{name} answerable", f"{name} unanswerable"])
        print(f"{name}: AUC answerable or not {area(held_out[chosen], truth[chosen]):.3f}")

    odds = fit(signs, truth, weights)
    found = np.array([row.found for row in rows])
    linear = signs @ odds[1:]
    by_set = [np.quantile(linear[found & (truth == 1) & np.char.startswith(kinds, n)], 1 - SHARE)
              for n in ("squad2", "mtrag", "scifact", "cranfield", "multihop")]  # fmt: skip
    odds[0] = np.log(PASS / (1 - PASS)) - np.mean(by_set)
    print("weights", np.round(odds, 2))
    confidence = 1 / (1 + np.exp(-(odds[0] + linear)))
    for kind in sorted(set(kinds)):
        chosen = (kinds == kind) & (found | (truth == 0))
        share = [f">= {t}: {(confidence[chosen] >= t).mean():.3f}" for t in (0.4, 0.6, 0.8)]
        print(f"{kind:24s} {chosen.sum():4d}  {'  '.join(share)}")


if __name__ == "__main__":
    asyncio.run(main())
