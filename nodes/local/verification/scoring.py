"""The score of a claim: how much of it the sources have, and how strongly they oppose it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

COVERED = 0.70
"""Share of a claim's words that the sources must have. This and the next two are the best common setting for the public
data sets (benchmarks/verification.py)."""

TOGETHER = 0.59
"""Mean closeness that neighbouring words of a claim must have in the sources."""

SECOND_SOURCE = 6.0
"""Weight, in the closeness, of the share of words that only a second source has: an answer drawn from several sources
puts words side by side that none of them does."""

DECISIVE = 10.0
"""Steepness with which words decide once they miss those bars or pass them. The higher it is, the more is left to
`OPPOSED`."""

OPPOSED = 3.0
"""Weight of the opposition between a claim and the nearest sentence of its sources."""

AGREED = 0.02
"""Usual opposition between a claim and the sentence that it comes from."""

CONTRADICTED = 0.4
"""Factor on the score of a claim that a source contradicts in a point, and of an answer of which more than the share
`_CONTRADICTIONS` is contradicted."""

_CONTRADICTIONS = 0.5

_STEEPNESS = 6.0
"""Slope of the logistic that maps evidence to a score."""


@dataclass(frozen=True, slots=True)
class Signals:
    """The evidence for and against one claim, or its mean over several. Shares are 0-1."""

    coverage: float
    """Share of the words, by weight, that the sources have."""
    closeness: float
    """Mean closeness of neighbouring words of the claim in the sources, 0-1."""
    spread: float
    """Share of the content words that the sources have, but the best of them has not."""
    contradictions: float = 0.0
    """Share of the claims that a source contradicts."""
    opposition: float = AGREED
    """From `find_opposition`."""
    fault: str = ""
    """A sentence for the reader: the point that a source contradicts."""
    quoted: bool = False
    """True where a source has the claim word for word."""
    part: str = ""
    """The claim without framing such as "According to the source,"."""
    near: Sequence[str] = ()
    """The sentences of the sources that share most words with the claim, nearest first."""


def compute_score(signals: Signals) -> float:
    """Return the score, 0-1. Support begins at 0.5."""
    together = min(1.0, signals.closeness + SECOND_SOURCE * signals.spread)
    words = min(_scale(signals.coverage, COVERED), _scale(together, TOGETHER))
    evidence = math.tanh(DECISIVE * (words - 0.5)) / 2 - OPPOSED * (signals.opposition - AGREED)
    score = 1 / (1 + math.exp(-_STEEPNESS * evidence))
    return score * CONTRADICTED if signals.contradictions > _CONTRADICTIONS else score


def _scale(value: float, threshold: float) -> float:
    """Map 0, `threshold` and 1 to 0, 0.5 and 1, linearly in between."""
    return 0.5 * value / threshold if value < threshold else 0.5 + 0.5 * (value - threshold) / (1 - threshold)


def average(signals: Sequence[Signals]) -> Signals:
    """Return the mean of each signal."""
    rows = [(s.coverage, s.closeness, s.spread, s.contradictions, s.opposition) for s in signals]
    return Signals(*(sum(column) / len(rows) for column in zip(*rows, strict=True)))
