"""Fits the weights of units (`nodes/reading/scoring.py`) and of confidence (`nodes/grade/local.py`).

    python -m benchmarks.fit_reading ../shared/training/reading.jsonl.gz [reader]

Each set is searched as one small library: chunks are found, ranked and widened as the graph does it. Paragraphs of one
article are one document; other paragraphs are documents of their own. Every question is asked twice: as it is, and with
its own paragraph taken away, so that what is left is about the matter and does not answer. Only sets whose licence
allows it take part: SQuAD (CC BY-SA 4.0), QED (CC BY-SA 3.0), COVID-QA and the e-manuals (Apache-2.0).

With a reader, only documents that it was not trained on are asked about, and only the weights of confidence are fitted.

Prints the weights fitted on all questions, and how often the best unit answers where a third of the documents is held
out. Takes five minutes on two cores; vectors are kept in BENCH_CACHE, as by `benchmarks/retrieval.py`.
"""

import asyncio
import gzip
import json
import random
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.rerankers.cross_encoder import OnnxCrossEncoder
from app.adapters.rerankers.unit_scorer import LateInteractionUnitScorer
from benchmarks.carrying import fit_logistic
from benchmarks.retrieval import SCOPE, Corpus, make_corpus
from domain.documents import FoundSpan, Passage, Source
from domain.ports.library import Library
from domain.ports.reading import Reader
from domain.scope import Scope
from domain.text.terms import find_terms
from nodes.grade.local import read_signs
from nodes.reading.scoring import WEIGHTS, describe, fill_closeness, list_stretches, weigh_terms
from nodes.reading.units import split_units
from nodes.sources.fusion import blend
from nodes.sources.neighbours import SPARE, widen_sources
from nodes.sources.sourcing import make_source
from training.data import is_held_out

ARTICLES = ("squad2_train_part", "squad1_train_part", "squadshifts_new_wiki")
"""Sets whose paragraphs come in the order of their articles."""
SETS = {"squad2_train_part": 300, "squad1_train_part": 200, "qed_nq": 400, "emanual": 190, "covidqa": 250}
"""Questions asked of each set."""
HELD_OUT_SETS = {
    "squadshifts_new_wiki": 250, "squad1_paragraphs": 100, "qed_nq": 43, "covidqa": 42, "emanual": 10, "fairytaleqa": 60
}  # fmt: skip
"""The same where a reader takes part: of documents that it was not trained on."""
PARAGRAPHS = 400
"""Paragraphs of a set that are searched."""
KEEP = 5
NAMES = (
    "tokens", "whole", "own", "context", "relevance", "first", "figure", "near", "found"
)  # fmt: skip
_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Gold:
    """The paragraph of a question at `start`-`end` of a document, and the offsets of its answers."""

    document_id: str
    start: int
    end: int
    answers: tuple[int, ...]

    def touches(self, passage: Passage) -> bool:
        return passage.document_id == self.document_id and passage.start < self.end and self.start < passage.end


@dataclass(frozen=True, slots=True)
class Example:
    """The units of a question's sources: features (units, weights), which of them answer, coverage, similarity, number
    of words and, with a reader, its log-odds, and whether the question's document is held out."""

    features: _Floats
    answers: NDArray[np.bool_]
    signs: tuple[float, ...]
    held_out: bool


@dataclass(frozen=True, slots=True)
class Without:
    """A library from which a paragraph is taken away."""

    corpus: Corpus
    gold: Gold | None

    async def read_around(self, scope: Scope, chunk_ids: Sequence[str], before: int, after: int) -> list[Passage]:
        around = await self.corpus.read_around(scope, chunk_ids, before, after)
        return [passage for passage in around if self.gold is None or not self.gold.touches(passage)]


async def read_examples(path: str, embedder: OnnxEmbedder, reader: Reader | None) -> list[Example]:
    """Return the examples of all sets, from the rows of `path`."""
    sets = HELD_OUT_SETS if reader else SETS
    by_set: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            if (
                row["set"] in sets
                and row["answerable"]
                and (reader is None or is_held_out(row["title"] or row["context"]))
            ):
                by_set[row["set"]].append(row)
    examples: list[Example] = []
    for name, rows in by_set.items():
        documents, places = _make_documents(rows, whole=name in ARTICLES)
        corpus = await make_corpus(name, documents, [], embedder)
        scorer = LateInteractionUnitScorer(embedder, corpus)
        known = [row for row in rows if row["context"] in places]
        for row in random.Random(1).sample(known, min(sets[name], len(known))):
            document_id, start = places[row["context"]]
            answers = tuple(start + each["start"] for each in row["answers"])
            gold = Gold(document_id, start, start + len(row["context"]), answers)
            for without in (None, gold):
                sources = await _search(row["question"], Without(corpus, without))
                if sources:
                    examples.append(await _describe(row["question"], sources, gold, scorer, reader))
        print(name, len(documents), "documents,", len(corpus.passages), "chunks,", len(examples), "examples")
    return examples


def _make_documents(
    rows: list[dict[str, Any]], *, whole: bool
) -> tuple[list[dict[str, str]], dict[str, tuple[str, int]]]:
    """Return documents, and where in them each paragraph begins. `whole` joins the paragraphs of a title."""
    texts: dict[str, list[str]] = defaultdict(list)
    titles: dict[str, str] = {}
    places: dict[str, tuple[str, int]] = {}
    for row in rows:
        if row["context"] in places or len(places) == PARAGRAPHS:
            continue
        key = row["title"] if whole else str(len(places))
        titles[key] = row["title"].replace("_", " ")
        places[row["context"]] = (key, sum(len(text) + 2 for text in texts[key]))
        texts[key].append(row["context"])
    return [{"id": key, "title": titles[key], "text": "\n\n".join(texts[key])} for key in texts], places


async def _search(question: str, library: Without) -> list[Source]:
    """Return the sources as retrieve and rerank pass them on."""
    corpus, gold = library.corpus, library.gold
    found = await corpus.find_candidates(question)
    candidates = [c for c in found if gold is None or not gold.touches(corpus.passages[int(c["chunk_id"])])]
    if not candidates:
        return []
    relevance = await corpus.learn(question, candidates, blend(candidates, await corpus.rerank(question, candidates)))
    ranked = sorted(zip(candidates, relevance, strict=True), key=lambda pair: -pair[1])[: KEEP + SPARE]
    sources = []
    for number, (candidate, score) in enumerate(ranked, 1):
        passage = corpus.passages[int(candidate["chunk_id"])]
        source = make_source(number, passage, score=score, dense=candidate["dense"], lexical=candidate["lexical"])
        source["found"] = [FoundSpan(start=passage.start, end=passage.end, score=source["score"])]
        sources.append(source)
    return await widen_sources(sources, KEEP, SCOPE, cast(Library, library))


async def _describe(
    question: str, sources: list[Source], gold: Gold, scorer: LateInteractionUnitScorer, reader: Reader | None
) -> Example:
    units = [unit for source in sources for unit in split_units(source)]
    held = [find_terms(unit.whole) for unit in units]
    features = describe(question, units, held, weigh_terms(question, question, held))
    scored = await scorer.score(SCOPE, question, list_stretches(units))
    fill_closeness(features, [each for stretch in scored for each in stretch])
    signs = await read_signs(question, sources, scorer, SCOPE, reader=reader)
    answers = [
        unit.source["document_id"] == gold.document_id
        and any(unit.start <= at - unit.source["start"] < unit.end for at in gold.answers)
        for unit in units
    ]
    held_out = crc32(gold.document_id.encode()) % 3 == 0
    known: tuple[float, ...] = (signs.covered, signs.similarity, signs.words)
    if signs.answered is not None:
        known += (signs.answered,)
    return Example(features.astype(float), np.array(answers), known, held_out)


def fit_units(examples: Sequence[Example], used: Sequence[int], steps: int = 3000, rate: float = 0.05) -> _Floats:
    """Return the weights, 0 for features that are not used, under which the units that answer have the highest share.
    By gradient ascent, from the logarithm of that share, less a little for large weights."""
    asked = [each for each in examples if each.answers.any()]
    most = max(len(each.answers) for each in asked)
    features = np.zeros((len(asked), most, len(NAMES)))
    answers = np.zeros((len(asked), most))
    missing = np.zeros((len(asked), most))
    for i, each in enumerate(asked):
        count = len(each.answers)
        features[i, :count], answers[i, :count], missing[i, count:] = each.features, each.answers, -np.inf
    mask = np.isin(np.arange(len(NAMES)), used)
    weights = np.zeros(len(NAMES))
    for _ in range(steps):
        merits = features @ weights + missing
        shares = np.exp(merits - merits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        right = shares * answers
        right /= right.sum(axis=1, keepdims=True)
        gradient = np.einsum("iu,iuf->f", right - shares, features) / len(asked) - 0.004 * weights
        weights += rate * gradient * mask
    return weights


def measure_units(examples: Sequence[Example], weights: _Floats) -> tuple[float, float, float]:
    """Return how often the best unit answers, the mean reciprocal rank of the best that does, and the mean of the share
    that such units have together."""
    first, reciprocal, share = [], [], []
    for each in examples:
        if each.answers.any():
            merits = each.features @ weights
            best = merits[each.answers].max()
            first.append(best >= merits.max())
            reciprocal.append(1 / (1 + (merits > best).sum()))
            shares = np.exp(merits - merits.max())
            share.append(shares[each.answers].sum() / shares.sum())
    return float(np.mean(first)), float(np.mean(reciprocal)), float(np.mean(share))


def fit_confidence(examples: Sequence[Example], weights: _Floats) -> _Floats:
    """Return intercept and weights of merit, coverage, similarity, number of words and, where one read, the reader, of
    greatest likelihood."""
    rows, held = _list_signs(examples, weights)
    return fit_logistic(rows, held, ridge=0.0)


def measure_confidence(examples: Sequence[Example], weights: _Floats, found: _Floats) -> float:
    """Return the AUC: how often a question with its answer gets more than one without."""
    rows, held = _list_signs(examples, weights)
    scores = rows @ found
    return float(np.mean(scores[held > 0][:, None] > scores[held == 0][None, :]))


def _list_signs(examples: Sequence[Example], weights: _Floats) -> tuple[_Floats, _Floats]:
    rows = np.array([(1.0, (each.features @ weights).max(), *each.signs) for each in examples])
    return rows, np.array([each.answers.any() for each in examples], dtype=float)


async def main() -> None:
    embedder = OnnxEmbedder.load()
    if len(sys.argv) > 2:
        await _fit_with_reader(sys.argv[1], embedder, OnnxCrossEncoder.load_reader())
        embedder.close()
        return
    examples = await read_examples(sys.argv[1], embedder, None)
    seen, unseen = [each for each in examples if not each.held_out], [each for each in examples if each.held_out]
    everything = list(range(len(NAMES)))
    print(f"{len(examples)} examples, {sum(each.answers.any() for each in examples)} with an answer")
    print("held out:", sum(each.answers.any() for each in unseen), "questions: best unit, MRR, share")
    print("  today's weights", _show(measure_units(unseen, WEIGHTS.astype(float))))
    for left_out in ((), (0,), (1,), (0, 1), (8,)):
        used = [each for each in everything if each not in left_out]
        name = "without " + " and ".join(NAMES[each] for each in left_out) if left_out else "all features"
        weights = fit_units(seen, used)
        auc = measure_confidence(unseen, weights, fit_confidence(seen, weights))
        print(f"  {name:25}", _show(measure_units(unseen, weights)), f"confidence AUC {auc:.3f}")
    for name, used in (("all", everything), ("without found", everything[:-1])):
        weights = fit_units(examples, used)
        print(f"units, {name}:", _show(weights, 2))
        print(f"confidence, {name}:", _show(fit_confidence(examples, weights), 2))
    embedder.close()


async def _fit_with_reader(path: str, embedder: OnnxEmbedder, reader: OnnxCrossEncoder) -> None:
    examples = [each for each in await read_examples(path, embedder, reader) if len(each.signs) == 4]
    reader.close()
    seen, unseen = [each for each in examples if not each.held_out], [each for each in examples if each.held_out]
    weights = WEIGHTS.astype(float)
    for name, signs in (("without", slice(3)), ("with", slice(4))):
        some, others = ([replace(each, signs=each.signs[signs]) for each in part] for part in (seen, unseen))
        fitted = fit_confidence(some, weights)
        print(f"{name} the reader: AUC {measure_confidence(others, weights, fitted):.3f} of", len(others))
        print("  fitted on all:", _show(fit_confidence([*some, *others], weights), 2))


def _show(values: Sequence[float] | _Floats, digits: int = 3) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in values)


if __name__ == "__main__":
    asyncio.run(main())
