"""Relevance feedback by words: what marks the best passages, and the question did not say.

The relevance model of Lavrenko & Croft ("Relevance-Based Language Models", SIGIR 2001) over BM25 weights in place of
language models. Measured: docs/decisions/06-retrieval-and-fusion.md.
"""

from collections import defaultdict
from collections.abc import Mapping

TERMS = 20
"""So many terms are kept; 10 to 60 rank about as well."""


def mark(
    impacts: Mapping[str, Mapping[int, float]], shares: Mapping[str, float], idf: Mapping[int, float]
) -> dict[int, float]:
    """The terms that mark some chunks, with their weights in a query: the inverse document frequency, times the term's
    part in the chunks.

    `impacts` holds each chunk's terms, `shares` how much it counts. Terms without `idf` are left out.
    """
    parts: dict[int, float] = defaultdict(float)
    for chunk_id, terms in impacts.items():
        weighed = {term: impact * idf[term] for term, impact in terms.items() if term in idf}
        total = sum(weighed.values())
        for term, weight in weighed.items():
            parts[term] += shares[chunk_id] * weight / total
    best = sorted(parts, key=lambda term: (-parts[term], term))[:TERMS]
    return {term: parts[term] * idf[term] for term in best}
