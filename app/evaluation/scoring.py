"""Metrics over the outcomes of a set. Pure: nothing here asks anything.

Each metric is there only where the set has what it needs, so a set without judged documents has no nDCG.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from app.evaluation.asking import Outcome
from app.evaluation.ranking import find_ndcg, find_recall, find_reciprocal_rank
from app.evaluation.sets import ROUTES, EvaluationSet, Question
from domain.state import Route, add_costs
from domain.text.markers import strip_markers

Pair = tuple[Question, Outcome]
Metrics = dict[str, float]

BINS = 10
"""Of the calibration error; equally wide."""

LABELS = {"supported": True, "SUPPORT": True, "unsupported": False, "CONTRADICT": False}
"""What people say of a response, or of a claim, and its evidence."""


def score(each: EvaluationSet, outcomes: Mapping[str, Outcome]) -> Metrics:
    """Every metric that the set has what it takes for, by name. Questions that failed count as found nothing."""
    pairs = pair_up(each, outcomes)
    metrics = {"questions": float(len(pairs)), "failed": float(sum(o.error is not None for _, o in pairs))}
    if each.kind == "verification":
        metrics |= score_verification([(q.type, q.label, o) for q, o in pairs])
    else:
        # Claims whose evidence supports or contradicts them: one type, called as the set is.
        metrics |= score_verification([(each.name, q.label, o) for q, o in pairs])
        metrics |= average(score_rankings(pairs).values())
        metrics |= score_answers(pairs) | score_citations(pairs) | score_abstention(pairs)
        metrics |= score_routing(list_routes(each, pairs)) | score_retries(pairs)
        if each.kind == "routing":
            metrics |= score_off_topic(pairs)
    return metrics | score_latency([o for _, o in pairs]) | score_cost([o for _, o in pairs])


def pair_up(each: EvaluationSet, outcomes: Mapping[str, Outcome]) -> list[Pair]:
    """The questions that were asked, with what became of them."""
    return [(question, outcomes[question.id]) for question in each.questions if question.id in outcomes]


def is_right(each: EvaluationSet, question: Question, outcome: Outcome) -> bool:
    """Whether a question came out as it should. A response: judged as people did. A request of a routing set: sent
    where it belongs, or, off topic, not answered. A question that cannot be answered: not answered. Any other:
    answered, from a relevant document where these are known, else with an accepted answer."""
    if outcome.error is not None:
        return False
    if each.kind == "verification":
        return LABELS.get(question.label or "") in (None, outcome.verdict)
    if each.kind == "routing":
        wanted = ROUTES[question.type]
        return outcome.route == wanted or (wanted == "out_of_scope" and not outcome.answered)
    if question.answerable is False or not outcome.answered:
        return question.answerable is False and not outcome.answered
    if question.grades:
        return any(cited.doc in question.grades for cited in outcome.citations)
    return not question.answers or contains_gold(question, outcome)


def explain(each: EvaluationSet, question: Question, outcome: Outcome) -> str:
    """Why a question did not come out right, as far as its outcome shows; empty where it did."""
    if is_right(each, question, outcome):
        return ""
    if outcome.error is not None:
        return "ended by an error"
    if each.kind == "verification":
        return f"people say {question.label}"
    if each.kind == "routing":
        return f"belongs to {ROUTES[question.type]}"
    if question.answerable is False:
        return "answered what cannot be"
    if outcome.route != "needs_retrieval":
        return "not searched for"
    said = "no relevant document cited" if question.grades else "no accepted answer"
    return f"{said if outcome.answered else 'not answered'}{_locate(question, outcome)}"


def _locate(question: Question, outcome: Outcome) -> str:
    """How far the best relevant document came, where these are known."""
    if not question.grades:
        return ""
    if question.grades.keys() & set(outcome.sources):
        return "; one was among the sources"
    return (
        "; one was found, but not among the sources"
        if question.grades.keys() & set(outcome.ranking)
        else "; none was found"
    )


def average(rows: Collection[Metrics]) -> Metrics:
    """The mean of each metric over the rows."""
    return {name: _mean(row[name] for row in rows) for name in next(iter(rows), {})}


def score_rankings(
    pairs: Sequence[Pair], ranking: Callable[[Outcome], Sequence[str]] = lambda outcome: outcome.ranking
) -> dict[str, Metrics]:
    """Return the metrics of each question that has relevant documents, by its id.

    These are recall@5, recall@10, mrr@10 and ndcg@10 as `app.evaluation.ranking` defines them, and all@10, which is 1
    if every relevant document is among the first ten.
    """
    rows: dict[str, Metrics] = {}
    for question, outcome in pairs:
        grades, found = question.grades, ranking(outcome)
        if any(grades.values()):
            rows[question.id] = {
                "recall@5": find_recall(grades, found, 5),
                "recall@10": (recall := find_recall(grades, found, 10)),
                "mrr@10": find_reciprocal_rank(grades, found, 10),
                "ndcg@10": find_ndcg(grades, found, 10),
                "all@10": float(recall == 1),
            }
    return rows


def score_answers(pairs: Sequence[Pair]) -> Metrics:
    """Against the known answers: `answered` (share of the answerable questions), `answer_em` and `answer_f1` as SQuAD
    computes them, and `contains_gold`: where a relevant document was among the sources, whether the answer contains
    an accepted one."""
    metrics: Metrics = {}
    if answerable := [o for q, o in pairs if q.answerable]:
        metrics["answered"] = _mean(o.answered for o in answerable)
    known = [(q, o) for q, o in pairs if q.answerable and q.answers and q.answers_known]
    if known:
        metrics["answer_em"] = _mean(max(_exact(a, text_of(o)) for a in q.answers) for q, o in known)
        metrics["answer_f1"] = _mean(max(_overlap(a, text_of(o)) for a in q.answers) for q, o in known)
    if retrieved := [(q, o) for q, o in known if q.grades.keys() & set(o.sources)]:
        metrics["contains_gold"] = _mean(contains_gold(q, o) for q, o in retrieved)
    return metrics


def contains_gold(question: Question, outcome: Outcome) -> bool:
    """Whether the answer contains an accepted one, both normalised."""
    said = f" {normalise(text_of(outcome))} "
    return outcome.answered and any(f" {gold} " in said for a in question.answers if (gold := normalise(a)))


def text_of(outcome: Outcome) -> str:
    """Return what the answer states, without markers and caveat; empty where it states nothing."""
    return strip_markers(outcome.answer[outcome.opening :]).strip() if outcome.answered else ""


def normalise(text: str) -> str:
    """Lower case, without punctuation and articles, single spaces: Rajpurkar et al., EMNLP 2016, their script."""
    text = "".join(character for character in text.lower() if character not in string.punctuation)
    return " ".join(re.sub(r"\b(?:a|an|the)\b", " ", text).split())


def _exact(gold: str, said: str) -> bool:
    return normalise(gold) == normalise(said)


def _overlap(gold: str, said: str) -> float:
    wanted, given = normalise(gold).split(), normalise(said).split()
    if not wanted or not given:
        return float(wanted == given)
    shared = (Counter(wanted) & Counter(given)).total()
    return 2 * shared / (len(wanted) + len(given))


def score_citations(pairs: Sequence[Pair]) -> Metrics:
    """Over the answerable questions with relevant documents. Precision: of the citations of an answer, the share that
    overlaps a gold span (where the document has none: that cites the document or page). Recall: of the relevant
    documents, the share that is cited so; an abstention cites none."""
    judged = [(q, o) for q, o in pairs if q.answerable and q.relevant]
    if not judged:
        return {}
    precisions, recalls = [], []
    for question, outcome in judged:
        spans = {relevant.doc: relevant.spans for relevant in question.relevant}
        hits = [
            c.doc
            for c in outcome.citations
            if c.doc in spans
            and (not spans[c.doc] or any(c.start < end and start < c.end for start, end in spans[c.doc]))
        ]
        recalls.append(len(set(hits)) / len(spans))
        if outcome.citations:
            precisions.append(len(hits) / len(outcome.citations))
    metrics = {"citation_recall": _mean(recalls)}
    return {"citation_precision": _mean(precisions), **metrics} if precisions else metrics


def score_abstention(pairs: Sequence[Pair]) -> Metrics:
    """Whether what cannot be answered is not answered (precision and recall of that), how well confidence tells both
    apart (AUC), and the calibration error of confidence (ECE: Naeini et al., AAAI 2015) as the probability that a
    question is answerable and a relevant document is among its sources."""
    judged = [(q, o) for q, o in pairs if q.answerable is not None]
    metrics: Metrics = {}
    abstained = [not q.answerable for q, o in judged if not o.answered]
    unanswerable = [o for q, o in judged if not q.answerable]
    if unanswerable and len(unanswerable) < len(judged):
        if abstained:
            metrics["abstention_precision"] = _mean(abstained)
        metrics["abstention_recall"] = _mean(not o.answered for o in unanswerable)
        metrics["abstention_auc"] = area([o.confidence for _, o in judged], [bool(q.answerable) for q, _ in judged])
    searched = [(q, o) for q, o in judged if o.ranking]
    if searched:
        metrics["calibration_error"] = _find_calibration_error(
            np.array([o.confidence for _, o in searched]),
            np.array([bool(q.answerable and q.grades.keys() & set(o.sources)) for q, o in searched]),
        )
    return metrics


def area(scores: Sequence[float], positive: Sequence[bool]) -> float:
    """Area under the ROC curve: how often a positive scores above a negative; ties count half. Both must occur."""
    values, is_positive = np.array(scores), np.array(positive, dtype=bool)
    good, bad = values[is_positive][:, None], values[~is_positive]
    return float((good > bad).mean() + 0.5 * (good == bad).mean())


def _find_calibration_error(confidences: NDArray[np.float64], happened: NDArray[np.bool_]) -> float:
    bins = np.minimum((confidences * BINS).astype(int), BINS - 1)
    gaps = [
        (bins == b).mean() * abs(confidences[bins == b].mean() - happened[bins == b].mean()) for b in np.unique(bins)
    ]
    return float(sum(gaps))


def list_routes(each: EvaluationSet, pairs: Sequence[Pair]) -> list[tuple[Route, Route]]:
    """Where each request belongs, and where it went. Questions about documents need retrieval."""
    return [
        (ROUTES[q.type] if each.kind == "routing" else "needs_retrieval", o.route) for q, o in pairs if o.error is None
    ]


def score_routing(routes: Sequence[tuple[Route, Route]]) -> Metrics:
    """Recall of each class that occurs, and the mean F1 of these classes."""
    metrics: Metrics = {}
    f1s = []
    for name in sorted({wanted for wanted, _ in routes}):
        hits = sum(wanted == name == went for wanted, went in routes)
        of_class = sum(wanted == name for wanted, _ in routes)
        metrics[f"routing_recall.{name}"] = hits / of_class
        f1s.append(2 * hits / (of_class + sum(went == name for _, went in routes)))
    return metrics | {"routing_macro_f1": _mean(f1s)} if f1s else {}


def count_routes(routes: Sequence[tuple[Route, Route]]) -> dict[str, dict[str, int]]:
    """The confusion table: how often what belongs here went there."""
    table: dict[str, dict[str, int]] = {}
    for wanted, went in routes:
        row = table.setdefault(wanted, {})
        row[went] = row.get(went, 0) + 1
    return table


def score_off_topic(pairs: Sequence[Pair]) -> Metrics:
    """Share of the requests for something else that were not answered from the documents, but declined, talked away
    or abstained from."""
    stopped = [not o.answered for q, o in pairs if ROUTES[q.type] == "out_of_scope" and o.error is None]
    return {"off_topic_stopped": _mean(stopped)} if stopped else {}


def score_retries(pairs: Sequence[Pair]) -> Metrics:
    """How many questions were searched for again, and for how many that raised or lowered nDCG@10."""
    retried = [(q, o) for q, o in pairs if o.retries]
    before = score_rankings(retried, lambda outcome: outcome.first_ranking)
    after = score_rankings(retried)
    changes = [after[q]["ndcg@10"] - before[q]["ndcg@10"] for q in after]
    return {
        "retried": float(len(retried)),
        "retries_helped": float(sum(change > 1e-9 for change in changes)),
        "retries_hurt": float(sum(change < -1e-9 for change in changes)),
    }


def score_verification(rows: Sequence[tuple[str, str | None, Outcome]]) -> Metrics:
    """By type, where both labels occur: balanced accuracy of verify's verdict, and AUC of its score. Rows are type,
    label and outcome; labels that are not in `LABELS` (borderline cases) are left out."""
    metrics: Metrics = {}
    for kind in sorted({kind for kind, _, _ in rows}):
        judged = [
            (LABELS[label], outcome)
            for k, label, outcome in rows
            if k == kind and label in LABELS and outcome.verdict is not None
        ]
        passed = [bool(o.verdict) for good, o in judged if good]
        caught = [not o.verdict for good, o in judged if not good]
        if passed and caught:
            metrics[f"verification_balanced_accuracy.{kind}"] = (_mean(passed) + _mean(caught)) / 2
            metrics[f"verification_auc.{kind}"] = area([o.support or 0.0 for _, o in judged], [g for g, _ in judged])
    return metrics


def score_latency(outcomes: Sequence[Outcome]) -> Metrics:
    """Median and 95th percentile of what a node took per question that it ran for, all its attempts together."""
    times: dict[str, list[float]] = {}
    for outcome in outcomes:
        for node, ms in outcome.timings.items():
            times.setdefault(node, []).append(ms)
    return {
        f"latency_ms.{node}.p{percent}": round(float(np.percentile(values, percent)), 2)
        for node, values in times.items()
        for percent in (50, 95)
    }


def score_cost(outcomes: Sequence[Outcome]) -> Metrics:
    """Calls of language models, their tokens, and US dollars where all prices are known."""
    cost = add_costs(outcome.cost for outcome in outcomes)
    metrics = {"calls": float(sum(o.calls for o in outcomes)), "tokens": float(sum(o.tokens for o in outcomes))}
    return metrics if cost is None else {**metrics, "cost": float(cost)}


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)
