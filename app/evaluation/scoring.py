"""Computes the metrics of a set from its outcomes, without calling anything.

A metric is left out if the set lacks what it needs: without judged documents there is no nDCG.
"""

import re
import string
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean

import numpy as np

from app.evaluation.asking import Outcome
from app.evaluation.practical import is_useful, list_flaws, score_usefulness
from app.evaluation.ranking import find_ndcg, find_precision, find_recall, find_reciprocal_rank
from app.evaluation.sets import EvaluationSet, Question
from domain.state import add_costs
from domain.text.markers import strip_markers

Pair = tuple[Question, Outcome]
Metrics = dict[str, float]


def score(each: EvaluationSet, outcomes: Mapping[str, Outcome]) -> Metrics:
    """Return every metric that can be computed for the set, by name. A failed question counts as finding nothing."""
    pairs = pair_up(each, outcomes)
    metrics = {"questions": float(len(pairs)), "failed": float(sum(o.error is not None for _, o in pairs))}
    if each.is_practical:
        metrics |= score_usefulness(pairs)
    else:
        metrics |= average(score_rankings(pairs).values()) | score_answers(pairs) | score_citations(pairs)
    metrics |= score_abstention(pairs)
    return metrics | score_latency([o for _, o in pairs]) | score_cost([o for _, o in pairs])


def pair_up(each: EvaluationSet, outcomes: Mapping[str, Outcome]) -> list[Pair]:
    """Return the questions that were asked, with their outcomes."""
    return [(question, outcomes[question.id]) for question in each.questions if question.id in outcomes]


def is_right(each: EvaluationSet, question: Question, outcome: Outcome) -> bool:
    """Return True if the outcome of a question is as it should be.

    A question that cannot be answered must not be. Any other must be answered from a relevant document where these are
    known, and with an accepted answer where there are some. An answer of a practical set must be useful.
    """
    if outcome.error is not None:
        return False
    if each.is_practical:
        return is_useful(question, outcome)
    if question.answerable is False or not outcome.answered:
        return question.answerable is False and not outcome.answered
    is_cited = any(cited.doc in question.grades for cited in outcome.citations) or not question.grades
    return is_cited and (contains_gold(question, outcome) or not question.answers)


def explain(each: EvaluationSet, question: Question, outcome: Outcome) -> str:
    """Say why the outcome is wrong, as far as it shows; empty if it is right."""
    if is_right(each, question, outcome):
        return ""
    if outcome.error is not None:
        return "ended by an error"
    if each.is_practical:
        return ", ".join(list_flaws(question, outcome))
    if question.answerable is False:
        return "answered what cannot be"
    if outcome.route != "needs_retrieval":
        return "not searched for"
    if not outcome.answered:
        return f"not answered{_locate(question, outcome)}"
    if question.answers and not contains_gold(question, outcome):
        return f"no accepted answer{_locate(question, outcome)}"
    return f"no relevant document cited{_locate(question, outcome)}"


def _locate(question: Question, outcome: Outcome) -> str:
    """Say how far the best relevant document came; empty if these are not known."""
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
    """Return the mean of each metric over the rows."""
    return {name: fmean(row[name] for row in rows) for name in next(iter(rows), {})}


def score_rankings(pairs: Sequence[Pair]) -> dict[str, Metrics]:
    """Return the metrics of each question that has relevant documents, by its id.

    These are precision@5, recall@5, recall@10, mrr@10 and ndcg@10 as `app.evaluation.ranking` defines them, and
    all@10, which is 1 if every relevant document is among the first ten.
    """
    rows: dict[str, Metrics] = {}
    for question, outcome in pairs:
        grades, found = question.grades, outcome.ranking
        if any(grades.values()):
            rows[question.id] = {
                "precision@5": find_precision(grades, found, 5),
                "recall@5": find_recall(grades, found, 5),
                "recall@10": (recall := find_recall(grades, found, 10)),
                "mrr@10": find_reciprocal_rank(grades, found, 10),
                "ndcg@10": find_ndcg(grades, found, 10),
                "all@10": float(recall == 1),
            }
    return rows


def score_answers(pairs: Sequence[Pair]) -> Metrics:
    """Compare the answers with known ones.

    `answered` is the share of the answerable questions that were answered. `contains_gold` is the share of answers that
    contain an accepted one, among the questions with a relevant document in the sources.
    """
    metrics: Metrics = {}
    if answerable := [o for q, o in pairs if q.answerable]:
        metrics["answered"] = fmean(o.answered for o in answerable)
    known = [(q, o) for q, o in pairs if q.answerable and q.answers]
    if retrieved := [(q, o) for q, o in known if q.grades.keys() & set(o.sources)]:
        metrics["contains_gold"] = fmean(contains_gold(q, o) for q, o in retrieved)
    return metrics


def contains_gold(question: Question, outcome: Outcome) -> bool:
    """Return True if the normalised answer contains a normalised accepted one."""
    said = f" {normalise(text_of(outcome))} "
    return outcome.answered and any(f" {gold} " in said for a in question.answers if (gold := normalise(a)))


def text_of(outcome: Outcome) -> str:
    """Return what the answer states, without markers and caveat; empty where it states nothing."""
    return strip_markers(outcome.answer[outcome.opening :]).strip() if outcome.answered else ""


def normalise(text: str) -> str:
    """Return the text in lower case, without punctuation and articles, as the evaluation script of SQuAD does
    (Rajpurkar et al., EMNLP 2016)."""
    text = "".join(character for character in text.lower() if character not in string.punctuation)
    return " ".join(re.sub(r"\b(?:a|an|the)\b", " ", text).split())


def score_citations(pairs: Sequence[Pair]) -> Metrics:
    """Return precision and recall of citations over the answerable questions with relevant documents.

    A citation is right if it overlaps a gold span of its document; if the document has no spans, if it cites the
    document. Precision is the share of an answer's citations that are right, recall the share of the relevant documents
    that are cited rightly. An abstention cites none.
    """
    judged = [(q, o) for q, o in pairs if q.answerable and q.relevant]
    if not judged:
        return {}
    precisions, recalls = [], []
    for question, outcome in judged:
        spans = {relevant.place: relevant.spans for relevant in question.relevant}
        hits = [
            c.doc
            for c in outcome.citations
            if c.doc in spans
            and (not spans[c.doc] or any(c.start < end and start < c.end for start, end in spans[c.doc]))
        ]
        recalls.append(len(set(hits)) / len(spans))
        if outcome.citations:
            precisions.append(len(hits) / len(outcome.citations))
    metrics = {"citation_recall": fmean(recalls)}
    return {"citation_precision": fmean(precisions), **metrics} if precisions else metrics


def score_abstention(pairs: Sequence[Pair]) -> Metrics:
    """Return precision and recall of abstentions, with unanswerable questions as positives."""
    # Small talk is answered, though no document answers it.
    judged = [(q, o) for q, o in pairs if q.answerable is not None and not q.talk]
    metrics: Metrics = {}
    abstained = [not q.answerable for q, o in judged if not o.answered]
    unanswerable = [o for q, o in judged if not q.answerable]
    if unanswerable and len(unanswerable) < len(judged):
        if abstained:
            metrics["abstention_precision"] = fmean(abstained)
        metrics["abstention_recall"] = fmean(not o.answered for o in unanswerable)
    return metrics


def score_latency(outcomes: Sequence[Outcome]) -> Metrics:
    """Return median and 95th percentile of the milliseconds per node and question, all attempts together."""
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
    """Return calls of language models, their tokens and, if all prices are known, US dollars."""
    cost = add_costs(outcome.cost for outcome in outcomes)
    metrics = {"calls": float(sum(o.calls for o in outcomes)), "tokens": float(sum(o.tokens for o in outcomes))}
    return metrics if cost is None else {**metrics, "cost": float(cost)}
