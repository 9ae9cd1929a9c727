"""Maximal marginal relevance: choose sources that do not all say the same.

Carbonell & Goldstein, "The Use of MMR, Diversity-Based Reranking for Reordering Documents and Producing Summaries",
SIGIR 1998.
"""

from collections.abc import Sequence

import numpy as np

from domain.ports.embedding import Vector


def diversify(relevance: Sequence[float], embeddings: Vector, keep: int, mmr_lambda: float) -> list[int]:
    """Return the positions of up to `keep` candidates in the order of choice.

    Each choice has the highest `mmr_lambda * relevance - (1 - mmr_lambda) * similarity`, where similarity is the
    highest cosine to one chosen before it. `relevance` is in 0-1, `embeddings` has a unit row for each candidate. Of
    equals the first is taken.
    """
    wanted = mmr_lambda * np.asarray(relevance)
    similarities = embeddings @ embeddings.T
    nearest = np.zeros(len(wanted))
    left = np.ones(len(wanted), dtype=bool)
    chosen: list[int] = []
    while len(chosen) < min(keep, len(wanted)):
        gain = np.where(left, wanted - (1 - mmr_lambda) * nearest, -np.inf)
        best = int(gain.argmax())
        chosen.append(best)
        left[best] = False
        nearest = np.maximum(nearest, similarities[best])
    return chosen
