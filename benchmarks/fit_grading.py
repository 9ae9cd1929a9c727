"""Fit the constants of nodes/local/grading.py and print how well they tell questions apart.

    python benchmarks/fit_grading.py BENCH

Questions of the sets in BENCH (see retrieval.py): answerable ones, unanswerable ones about the same documents, and
unrelated ones (the set `routing` asked of documents that have nothing to do with them). Besides, small libraries of
one to eight runs of paragraphs of squad2, one article each:

* `small answerable`, `small unanswerable`: the library holds the paragraph that the question was written for;
* `small generic`: the same, but the question says "it" for the article's subject, as people ask about their own;
* `small unrelated`: generic questions and those of `routing`, asked of other articles;
* `small renamed`: names in an answerable question replaced by names that the library does not hold.

Follow-ups of a conversation are made to stand alone as the graph does it. The logistic is at once the calibration
(Platt's), for the mix that `WEIGHTS` make. AUCs and calibration errors are cross-validated, five folds by
article or conversation. Takes some minutes.
"""

import asyncio
import random
import re
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.adapters.embeddings.onnx import OnnxEmbedder
from benchmarks.retrieval import Corpus, Query, load_corpus, read_lines
from benchmarks.standalone import read_turns
from domain.text.terms import analyse
from nodes.local.grading.grader import read_signs
from nodes.local.standalone import make_standalone

SETS = ("squad2", "mtrag", "scifact", "cranfield", "multihop")
WEIGHTS = {
    "answerable": 100.0, "gold found": 60.0, "unanswerable": 100.0, "unrelated": 200.0,
    "small answerable": 200.0, "small generic": 200.0, "small unrelated": 100.0, "small renamed": 40.0,
    "small unanswerable": 0.0,
}  # fmt: skip
"""Weight of each kind of each set in the fit; 0 is only measured. `gold found` are the sets of answerable questions
alone. Only short answerable questions to small libraries take part: the others are those of squad2 again."""
SHORT = 3
"""Terms."""
PASS, SHARE = 0.4, 0.93
"""The intercept is set so that this share of the answerable questions whose passage was found passes, over the sets."""
BINS = 10
"""Number of bins of the calibration error."""

NAME = re.compile(r"(?<!^)\b[A-Z][\w.-]*(?:(?: of| the| and)* [A-Z][\w.-]*)*")

Array = NDArray[np.float64]


@dataclass
class Row:
    kind: str
    set_name: str
    group: str
    signs: tuple[float, ...]
    found: bool
    """True if a relevant document is among the sources."""
    terms: int


@dataclass
class Collector:
    embedder: OnnxEmbedder
    rows: list[Row]

    async def add(self, kind: str, corpus: Corpus, query: Query, gold: Sequence[str], question: str = "") -> Row:
        question = question or _make_standalone(query)
        sources = await corpus.find_sources(question)
        signs = astuple(await read_signs(question, sources, self.embedder))
        group = str(query.get("article") or query.get("conversation") or query["id"])
        found = any(s["document_id"] in gold for s in sources)
        self.rows.append(Row(kind, "", group, signs, found, len(set(analyse(question)))))
        return self.rows[-1]

    async def collect(self, bench: Path) -> None:
        unrelated = read_lines(bench / "routing" / "queries.jsonl.gz")
        for name in SETS:
            start = len(self.rows)
            corpus = await load_corpus(bench / name, self.embedder)
            for query in corpus.queries:
                gold = [r["doc"] for r in query["relevant"]]
                kind = "answerable" if query["answerable"] else "unanswerable"
                row = await self.add(kind, corpus, query, gold)
                if name not in ("squad2", "mtrag"):
                    row.kind = "gold found"
                    if not row.found:
                        self.rows.pop()
            if name in ("squad2", "cranfield"):
                for query in unrelated:
                    await self.add("unrelated", corpus, query, [])
            if name == "squad2":
                await self.collect_small(corpus, unrelated)
            for row in self.rows[start:]:
                row.set_name = name

    async def collect_small(self, corpus: Corpus, unrelated: Sequence[Query]) -> None:
        libraries = Libraries(corpus)
        names = {(q["article"], name) for q in corpus.queries for name in NAME.findall(q["question"])}
        for query in corpus.queries:
            gold = [query["source_doc"]]
            generic = say_it(query["question"], query["article"].replace("_", " "))
            library, other = libraries.make(query["article"], gold[0]), libraries.make(query["article"])
            kind = "small answerable" if query["answerable"] else "small unanswerable"
            await self.add(kind, library, query, gold)
            await self.add("small unrelated", other, query, [], generic)
            if not query["answerable"]:
                continue
            if generic != query["question"] and len(set(analyse(generic))) > 1:
                await self.add("small generic", library, query, gold, generic)
            held = " ".join(p.text for p in library.passages).lower()
            strange = sorted(n for article, n in names if article != query["article"] and n.lower() not in held)
            renamed = rename(query["question"], strange, libraries.random)
            if renamed != query["question"]:
                await self.add("small renamed", library, query, [], renamed)
        for query in unrelated:
            await self.add("small unrelated", libraries.make(""), query, [])


def _make_standalone(query: Query) -> str:
    return make_standalone(query["question"], read_turns(query) if query.get("history") else [])


class Libraries:
    """Small ones out of a big corpus."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus, self.random = corpus, random.Random(11)
        self.articles: dict[str, list[str]] = defaultdict(list)
        for document in dict.fromkeys(p.document_id for p in corpus.passages):
            self.articles[document.rsplit("#", 1)[0]].append(document)

    def make(self, article: str, document: str = "") -> Corpus:
        """Return chunks of other articles than `article` and, of that one, only a run of paragraphs with `document`."""
        chosen = self.random.sample(sorted(set(self.articles) - {article}), self.random.randint(1, 8))
        kept = {d for name in chosen[bool(document) :] for d in self._run(name)}
        if document:
            kept.update(self._run(article, self.articles[article].index(document)))
        places = [i for i, p in enumerate(self.corpus.passages) if p.document_id in kept]
        passages = [replace(self.corpus.passages[i], chunk_id=str(n)) for n, i in enumerate(places)]
        return Corpus(passages, [self.corpus.vectors[i] for i in places], [], self.corpus.embedder)

    def _run(self, article: str, around: int | None = None) -> list[str]:
        documents, length = self.articles[article], self.random.randint(1, 8)
        place = self.random.randrange(len(documents)) if around is None else around
        start = max(0, place - self.random.randrange(length))
        return documents[start : start + length]


def rename(question: str, names: Sequence[str], choose: random.Random) -> str:
    return NAME.sub(lambda _: choose.choice(names), question)


def say_it(question: str, subject: str) -> str:
    """The question without the words of its subject: "When was Harvard founded?" becomes "When was it founded?"."""
    wanted, words = set(analyse(subject)), []
    for word in question.split():
        bare = word.rstrip("?,.")
        if not wanted.intersection(analyse(bare)):
            words.append(word)
        elif not words or words[-1] not in ("it", "its"):
            if words and words[-1].lower() in ("the", "a", "an"):
                words.pop()
            words.append(("its" if bare.endswith("'s") else "it") + word[len(bare) :])
    return " ".join(words)


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


def find_calibration_error(confidence: Array, truth: Array) -> float:
    """Mean gap between confidence and share of true ones over ten bins (Naeini et al., AAAI 2015)."""
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = [(bins == b).mean() * abs(confidence[bins == b].mean() - truth[bins == b].mean()) for b in np.unique(bins)]
    return float(sum(gaps))


async def main() -> None:
    embedder = OnnxEmbedder.load()
    rows: list[Row] = []
    await Collector(embedder, rows).collect(Path(sys.argv[1]))
    embedder.close()
    signs = np.array([row.signs for row in rows])
    found = np.array([row.found for row in rows])
    short = np.array([row.terms <= SHORT for row in rows])
    true_kinds = ("answerable", "gold found", "small answerable", "small generic")
    truth = np.array([float(row.kind in true_kinds) for row in rows])
    kinds = np.array([f"{row.set_name} {row.kind}" for row in rows])
    weights = np.array([WEIGHTS[row.kind] / (kinds == kind).sum() for row, kind in zip(rows, kinds, strict=True)])
    small = np.isin(kinds, ["squad2 small answerable", "squad2 small generic"])
    weights[small & ~short] = 0
    weights[(kinds == "squad2 small generic") & ~found] = 0

    groups = sorted({row.group for row in rows})
    fold_of = dict(zip(groups, np.random.default_rng(0).integers(0, 5, len(groups)), strict=True))
    folds = np.array([fold_of[row.group] for row in rows])
    held_out = np.zeros(len(rows))
    for fold in range(5):
        odds = fit(signs[folds != fold], truth[folds != fold], weights[folds != fold])
        held_out[folds == fold] = odds[0] + signs[folds == fold] @ odds[1:]
    for name in ("squad2", "mtrag", "squad2 small"):
        chosen = np.isin(kinds, [f"{name} answerable", f"{name} unanswerable"])
        error = find_calibration_error(1 / (1 + np.exp(-held_out[chosen])), truth[chosen] * found[chosen])
        print(f"{name}: AUC {area(held_out[chosen], truth[chosen]):.3f}, calibration error {error:.3f}")

    odds = fit(signs, truth, weights)
    linear = signs @ odds[1:]
    anchors = [found & np.isin(kinds, [f"{name} answerable", f"{name} gold found"]) for name in SETS]
    lowest = np.mean([np.quantile(linear[anchor], 1 - SHARE) for anchor in anchors])
    print("intercept of the mix", np.round(odds[0], 2))
    odds[0] = np.log(PASS / (1 - PASS)) - lowest
    print("weights", np.round(odds, 2))
    confidence = 1 / (1 + np.exp(-(odds[0] + linear)))
    for kind in sorted(set(kinds)):
        for chosen, name in ((kinds == kind, kind), ((kinds == kind) & short, f"{kind}, short")):
            chosen = chosen & (found | (truth == 0))
            if chosen.any() and (name == kind or " small " in kind):
                share = [f">= {t}: {(confidence[chosen] >= t).mean():.3f}" for t in (0.4, 0.6, 0.8)]
                print(f"{name:33s} {chosen.sum():4d}  {'  '.join(share)}")


if __name__ == "__main__":
    asyncio.run(main())
