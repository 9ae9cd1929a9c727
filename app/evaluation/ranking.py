"""Metrics of one ranked list of documents, computed as trec_eval does."""

from collections.abc import Mapping, Sequence
from math import log2


def find_recall(grades: Mapping[str, int], ranking: Sequence[str], depth: int) -> float:
    """Return the share of the relevant documents among the first `depth` of the ranking.

    Manning, Raghavan & Schütze, Introduction to Information Retrieval (2008), section 8.3. Grades are 0 or more, and a
    document is relevant from grade 1 on; at least one must be.
    """
    relevant = {doc for doc, grade in grades.items() if grade > 0}
    return sum(doc in relevant for doc in ranking[:depth]) / len(relevant)


def find_precision(grades: Mapping[str, int], ranking: Sequence[str], depth: int) -> float:
    """Return the share of the first `depth` of the ranking that is relevant; a shorter ranking counts as `depth` long.

    Manning, Raghavan & Schütze, Introduction to Information Retrieval (2008), section 8.4.
    """
    return sum(grades.get(doc, 0) > 0 for doc in ranking[:depth]) / depth


def find_reciprocal_rank(grades: Mapping[str, int], ranking: Sequence[str], depth: int) -> float:
    """Return 1 / the rank of the first relevant document, or 0 if the first `depth` hold none.

    Voorhees, The TREC-8 Question Answering Track Report (1999). Its mean over questions is the MRR.
    """
    return next((1 / rank for rank, doc in enumerate(ranking[:depth], 1) if grades.get(doc, 0) > 0), 0.0)


def find_ndcg(grades: Mapping[str, int], ranking: Sequence[str], depth: int) -> float:
    """Return the discounted cumulative gain of the first `depth`, divided by that of the best possible ranking.

    Järvelin & Kekäläinen, Cumulated Gain-Based Evaluation of IR Techniques, TOIS 20(4), 2002. The gain is the grade,
    the discount log2(rank + 1). At least one document must be relevant.
    """
    ideal = sorted(grades.values(), reverse=True)
    return _discount([grades.get(doc, 0) for doc in ranking[:depth]]) / _discount(ideal[:depth])


def _discount(gains: Sequence[int]) -> float:
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, 1))
