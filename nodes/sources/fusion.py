"""Fuse the dense and the lexical search into one ranking, and turn a ranking into relevance.

Pure functions. Constants were chosen by measuring on public sets: docs/decisions/06-retrieval-and-fusion.md.
"""

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from domain.documents import Candidate, Match
from domain.profile import RetrievalKnobs

_Scores = NDArray[np.float64]

RERANKED = (-6.68, 0.66, 7.95)
"""log-odds = a + b * z(fused) + c * rerank score. Logistic fit of "this chunk holds what the question asks for" on the
best candidates of four sets; b to c is the ratio that ranks best."""

FUSED = (-4.08, 0.91, 4.15)
"""The same without a reranker: a + b * z(fused) + c * cosine similarity."""

RELATED = 0.8
"""Weight of z(related) beside those of `RERANKED`. 1.2 suits questions with many answers and costs those with one
(docs/decisions/06-retrieval-and-fusion.md)."""

EXAMPLES = 5
"""Best candidates that count as examples of what is asked; 3 to 12 rank about as well."""

USUAL_CANDIDATES = 20
"""Number of candidates that the fit had. Only this many are used to standardise a longer list, so that relevance does
not depend on its length. A shorter list is filled up with its lowest score: otherwise the best of three could not stand
out like the best of twenty, and a small library would be graded too low."""

USUAL_SIMILARITY = 0.4
"""Stands in for the cosine where the whole dense leg is missing. An estimate, not fitted."""


def fuse(dense: Sequence[Match], lexical: Sequence[Match], knobs: RetrievalKnobs) -> list[Candidate]:
    """Fuse everything that either leg found into one ranking, best first.

    Where a leg did not return a candidate, its score there is taken to be the leg's lowest: the true score is that or
    less. A leg that is empty takes no part. Candidates known to be less similar than `knobs.similarity_threshold` are
    dropped.
    """
    by_dense = {match.chunk_id: match for match in dense}
    by_lexical = {match.chunk_id: match for match in lexical}
    found = by_lexical | by_dense
    if knobs.fusion == "dense" and dense:
        found = by_dense
    # Dense order first, so that ties do not depend on anything else.
    chunk_ids = [*(i for i in by_dense if i in found), *(i for i in by_lexical if i in found and i not in by_dense)]
    scores = _score(chunk_ids, dense, lexical, knobs)
    candidates = [
        Candidate(
            chunk_id=chunk_id,
            document_id=found[chunk_id].document_id,
            score=float(score),
            dense=by_dense[chunk_id].score if chunk_id in by_dense else None,
            lexical=by_lexical[chunk_id].score if chunk_id in by_lexical else None,
            relevance=None,
        )
        for chunk_id, score in zip(chunk_ids, scores, strict=True)
    ]
    threshold = knobs.similarity_threshold
    kept = [c for c in candidates if threshold is None or c["dense"] is None or c["dense"] >= threshold]
    return sorted(kept, key=lambda candidate: -candidate["score"])


def blend(candidates: Sequence[Candidate], rerank: Sequence[float] | None) -> list[float]:
    """Return the relevance of each candidate, in order: the estimated probability that it holds what the question asks
    for, 0-1 and comparable between questions.

    `rerank` are the scores of the local reranker, None where none ran. They are weighed with the fused score, not put
    in its place: alone, they rank long abstracts worse than the search did.
    """
    if not candidates:
        return []
    fused = np.array([candidate["score"] for candidate in candidates])
    usual = np.sort(fused)[::-1][:USUAL_CANDIDATES]
    fused = _standardise(fused, np.pad(usual, (0, USUAL_CANDIDATES - len(usual)), mode="minimum"))
    if rerank is None:
        base, by_fused, by_other = FUSED
        known = [c["dense"] for c in candidates if c["dense"] is not None]
        lowest = min(known, default=USUAL_SIMILARITY)
        other = np.array([lowest if c["dense"] is None else c["dense"] for c in candidates])
    else:
        base, by_fused, by_other = RERANKED
        other = np.array(rerank)
    relevance: list[float] = (1 / (1 + np.exp(-(base + by_fused * fused + by_other * other)))).tolist()
    return relevance


def choose_examples(chunk_ids: Sequence[str], relevance: Sequence[float]) -> dict[str, float]:
    """Return the most relevant chunks, each with its share of their odds; the shares sum to 1."""
    best = sorted(zip(chunk_ids, relevance, strict=True), key=lambda pair: -pair[1])[:EXAMPLES]
    odds = {chunk_id: value / (1 - value) for chunk_id, value in best}
    return {chunk_id: value / sum(odds.values()) for chunk_id, value in odds.items()}


def reorder(relevance: Sequence[float], related: Sequence[float]) -> list[float]:
    """Redistribute the same relevance values by `related`: how much each candidate shares with the best ones besides
    the question's words.

    `related` tells which candidates are better than others, but not how good they are: every ranking has best ones.
    """
    values = np.array(relevance)
    log_odds = np.log(values / (1 - values)) + RELATED * _standardise(np.array(related))
    places = np.argsort(-log_odds, kind="stable")
    values[places] = np.sort(values)[::-1]
    reordered: list[float] = values.tolist()
    return reordered


def _score(chunk_ids: list[str], dense: Sequence[Match], lexical: Sequence[Match], knobs: RetrievalKnobs) -> _Scores:
    if knobs.fusion == "dense":
        return _spread(chunk_ids, dense or lexical)
    if knobs.fusion == "rrf":
        return _rank(chunk_ids, dense, knobs.rrf_k) + _rank(chunk_ids, lexical, knobs.rrf_k)
    by_dense, by_lexical = _spread(chunk_ids, dense), _spread(chunk_ids, lexical)
    if knobs.fusion == "weighted":
        return knobs.dense_weight * _scale(by_dense) + (1 - knobs.dense_weight) * _scale(by_lexical)
    return _standardise(by_dense) + knobs.lexical_weight * _standardise(by_lexical)


def _spread(chunk_ids: list[str], leg: Sequence[Match]) -> _Scores:
    """Return the leg's scores for all candidates."""
    scores = {match.chunk_id: match.score for match in leg}
    lowest = min(scores.values(), default=0.0)
    return np.array([scores.get(chunk_id, lowest) for chunk_id in chunk_ids], dtype=np.float64)


def _rank(chunk_ids: list[str], leg: Sequence[Match], k: int) -> _Scores:
    """Return reciprocal ranks; 0 where the leg did not return the candidate, as in the original formula."""
    ranks = {match.chunk_id: 1 / (k + rank) for rank, match in enumerate(leg, 1)}
    return np.array([ranks.get(chunk_id, 0.0) for chunk_id in chunk_ids], dtype=np.float64)


def _standardise(scores: _Scores, sample: _Scores | None = None) -> _Scores:
    """Standardise by mean and deviation of the sample, by default of the scores themselves."""
    sample = scores if sample is None else sample
    deviation = sample.std() if len(sample) else 0.0
    return (scores - sample.mean()) / deviation if deviation > 0 else np.zeros_like(scores)


def _scale(scores: _Scores) -> _Scores:
    highest = scores.max(initial=0.0)
    return scores / highest if highest > 0 else scores


def weigh_by_rank(scores: Sequence[float]) -> float:
    """Return the mean of the scores, best first, each weighted by the inverse of its rank: Σ scoreᵢ / i ÷ Σ 1 / i."""
    weights = [1 / rank for rank in range(1, len(scores) + 1)]
    return sum(weight * score for weight, score in zip(weights, scores, strict=True)) / sum(weights)


def prefer(candidates: Sequence[Candidate], focused: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates with the `focused` ones among them: one that the search found keeps its place, and the
    others take every second place behind the best of the search."""
    known = {candidate["chunk_id"] for candidate in candidates}
    new = [candidate for candidate in focused if candidate["chunk_id"] not in known]
    merged: list[Candidate] = list(candidates[:1])
    rest = list(candidates[1:])
    while new or rest:
        merged += [new.pop(0)] if new else []
        merged += [rest.pop(0)] if rest else []
    return merged


FOCUS = 0.08
"""Relevance that a passage gains in the order where its document is what the conversation is about. A passage of
another document that is clearly better still comes first."""


def favour(relevance: Sequence[float], document_ids: Sequence[str], focus: Collection[str]) -> list[float]:
    """Return the relevance by which passages are ordered: that of documents in `focus` gains `FOCUS`."""
    return [score + FOCUS * (document_id in focus) for score, document_id in zip(relevance, document_ids, strict=True)]
