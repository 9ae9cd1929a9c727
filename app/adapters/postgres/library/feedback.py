"""Relevance feedback: find the terms that mark the best passages beyond the question's own.

The relevance model of Lavrenko & Croft ("Relevance-Based Language Models", SIGIR 2001), with BM25 weights in place of
language models. Measured in docs/decisions/06-retrieval-and-fusion.md.
"""

from collections import defaultdict
from collections.abc import Mapping

TERMS = 20
"""Number of terms that are kept. 10 to 60 rank about equally well."""


def weigh_marking_terms(
    impacts: Mapping[str, Mapping[int, float]], shares: Mapping[str, float], idf: Mapping[int, float]
) -> dict[int, float]:
    """Return the terms that mark the given chunks with their weights in a query. The weight is the inverse document
    frequency times the term's part in the chunks.

    `impacts` gives each chunk's terms, `shares` the weight of each chunk. Terms without `idf` are left out.
    """
    parts: dict[int, float] = defaultdict(float)
    for chunk_id, terms in impacts.items():
        weighed = {term: impact * idf[term] for term, impact in terms.items() if term in idf}
        total = sum(weighed.values())
        for term, weight in weighed.items():
            parts[term] += shares[chunk_id] * weight / total
    best = sorted(parts, key=lambda term: (-parts[term], term))[:TERMS]
    return {term: parts[term] * idf[term] for term in best}
