"""Fits the weights of units (`nodes/reading/scoring.py`) and of confidence (`nodes.grade.local.py`).

    python -m benchmarks.fit_confidence ../shared/training/reading.jsonl.gz HOME

The paragraphs of a set are shared out to two libraries, every second one to each. Each question is asked of both: the
one has its paragraph, the other what stands round it, which is about the matter and does not answer. It is also asked
of a library of another set. Only sets whose licence allows it take part: SQuAD (CC BY-SA 4.0), QED (CC BY-SA 3.0),
COVID-QA and the e-manuals (Apache-2.0). None has questions that contradict a sentence, so that weight is kept.

Prints the AUC on the third of the documents that is held out, and the weights fitted on all. HOME keeps the libraries.
"""

import asyncio
import gzip
import json
import random
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from app.settings import read_settings
from app.wiring.services import Services, open_services
from domain.documents import Source
from domain.ports.embedding import Vector
from domain.ports.judgement import Grade
from domain.ports.unit_scoring import UnitScorer
from domain.scope import Scope
from domain.state import TurnInput
from domain.text.terms import find_terms
from graphs.answer import build_answer_graph
from nodes.grade.local import _WEIGHTS, LocalGrader, read_features
from nodes.reading.scoring import WEIGHTS, describe, fill_closeness, list_stretches, weigh_terms
from nodes.reading.units import split_units

SETS = {"squad2_train_part": 100, "squad1_train_part": 60, "qed_nq": 130, "emanual": 70, "covidqa": 80}
"""Questions asked of each set."""
PARAGRAPHS = 400
ANSWERABLE = 0.6
"""Share of the questions to a library that it can answer, as far as we know."""
DEPARTURE = 4
"""Place of its weight."""
_Floats = NDArray[np.float64]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its sources: features (units, weights), which units answer, and the signs after a 1."""

    kind: str
    held_out: bool
    features: Vector
    answers: NDArray[np.bool_]
    signs: tuple[float, ...]


@dataclass(slots=True)
class Describer:
    """A `SourceGrader` that describes the sources of the question in `row`, and is sure of none."""

    scorer: UnitScorer
    kind: str
    row: Row
    examples: list[Example]

    async def grade(self, question: str, sources: Sequence[Source], *, scope: Scope, typed: str | None = None) -> Grade:
        units = [unit for source in sources for unit in split_units(source)]
        held = [find_terms(unit.whole) for unit in units]
        features = describe(question, units, held, weigh_terms(question, question, held))
        scored = await self.scorer.score(scope, question, list_stretches(units))
        fill_closeness(features, [each for stretch in scored for each in stretch])
        signs = (1.0, *astuple(await read_features(question, sources, self.scorer, scope)))
        context, answers = self.row["context"], [each["text"] for each in self.row["answers"]]
        right = np.array([u.text in context and any(answer in u.text for answer in answers) for u in units])
        held_out = crc32(self.row["title"].encode()) % 3 == 0
        self.examples.append(Example(self.kind, held_out, features, right, signs))
        return Grade(0.0, [])


async def ingest(services: Services, rows: Sequence[Row]) -> list[Row]:
    """Share the first paragraphs of a set out to its libraries. Return the rows about them, each with its `half`."""
    halves = {context: n % 2 for n, context in enumerate(list(dict.fromkeys(r["context"] for r in rows))[:PARAGRAPHS])}
    documents: dict[tuple[int, str], dict[str, None]] = defaultdict(dict)
    known = [{**row, "half": halves[row["context"]]} for row in rows if row["context"] in halves]
    for row in known:
        documents[row["half"], row["title"].replace("/", " ").replace("_", " ")][row["context"]] = None
    for (half, title), texts in documents.items():
        text = "\n\n".join(texts).encode()
        await services.library.ingestion.add(f"{rows[0]['set']}-{half}", f"{title}.txt", text)
    return known


async def read_examples(path: str, services: Services) -> list[Example]:
    by_set: dict[str, list[Row]] = defaultdict(list)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            if row["set"] in SETS and row["answerable"]:
                by_set[row["set"]].append(row)
    known = {name: await ingest(services, rows) for name, rows in by_set.items()}
    graph, examples = build_answer_graph(), list[Example]()
    profile = services.modes["standard"].model_dump()
    profile["grade"]["max_retries"] = 0
    scorer = cast(LocalGrader, services.models.judges.grader).unit_scorer

    async def ask(kind: str, workspace: str, row: Row) -> None:
        scope = Scope.within(workspace).to_json()
        turn = TurnInput(run_id="fit", question=row["question"], scope=scope, mode="standard", profile=profile)
        context = services.make_context()
        judges = replace(context.judges, grader=Describer(scorer, kind, row, examples))
        await graph.ainvoke(turn, context=replace(context, judges=judges))

    for number, (name, rows) in enumerate(known.items()):
        for row in random.Random(1).sample(rows, min(SETS[name], len(rows))):
            await ask("own half", f"{name}-{row['half']}", row)
            await ask("other half", f"{name}-{1 - row['half']}", row)
            await ask("other set", f"{[*known][number - 1]}-0", row)
    return examples


def fit_units(examples: Sequence[Example], steps: int = 1000, rate: float = 0.05) -> _Floats:
    """Return the weights under which the units that answer have the highest share: by gradient ascent on the logarithm
    of that share, less a little for large weights."""
    weights = WEIGHTS.astype(float)
    asked = [each for each in examples if each.answers.any()]
    for _ in range(steps):
        gradient = -0.004 * weights
        for each in asked:
            shares = np.exp(each.features @ weights)
            right = shares * each.answers
            gradient += (right / right.sum() - shares / shares.sum()) @ each.features / len(asked)
        weights += rate * gradient
    return weights


def fit_signs(examples: Sequence[Example]) -> _Floats:
    """Return intercept and weights of greatest likelihood, by Newton's method, if `ANSWERABLE` of all questions can be
    answered. The weight of contradiction stays as it is."""
    rows, right = list_signs(examples)
    fitted = np.array(_WEIGHTS)
    free = np.arange(len(fitted)) != DEPARTURE
    for _ in range(30):
        p = 1 / (1 + np.exp(-rows @ fitted))
        hessian = (rows * (p * (1 - p))[:, None]).T @ rows
        fitted[free] += np.linalg.solve(hessian[free][:, free], (rows.T @ (right - p))[free])
    fitted[0] += np.log(ANSWERABLE / (1 - ANSWERABLE)) - np.log(right.mean() / (1 - right.mean()))
    return fitted


def list_signs(examples: Sequence[Example]) -> tuple[_Floats, _Floats]:
    return np.array([each.signs for each in examples]), np.array([float(each.answers.any()) for each in examples])


async def main() -> None:
    async with open_services(read_settings(home=Path(sys.argv[2]), load_samples=False)) as services:
        examples = await read_examples(sys.argv[1], services)
    fitted = fit_signs([each for each in examples if not each.held_out])
    for kind in ("other half", "other set"):
        rows, right = list_signs([each for each in examples if each.held_out and each.kind in ("own half", kind)])
        scores = rows @ fitted
        auc = np.mean(scores[right > 0][:, None] > scores[right == 0][None, :])
        print(f"own half against {kind}: AUC {auc:.3f} of {len(right)}")
    print("confidence:", np.round(fit_signs(examples), 2))
    print("units:", np.round(fit_units(examples), 2))


if __name__ == "__main__":
    asyncio.run(main())
