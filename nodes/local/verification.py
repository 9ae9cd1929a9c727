"""Checks statements against the sources they cite, without a language model."""

from collections.abc import Sequence
from dataclasses import dataclass

from domain.citations import find_markers
from domain.documents import Source, Verdict
from domain.ports import Embedder
from domain.sentences import split_sentences
from domain.terms import analyse

SUPPORTED = 0.5
"""Score from which a claim counts as supported (benchmarks/verification.py)."""


@dataclass(frozen=True, slots=True)
class Check:
    """What the check of one claim said, with a reason that a reader of the answer understands."""

    verdict: Verdict
    reason: str
    score: float


@dataclass(frozen=True, slots=True)
class ClaimSpan:
    """A statement at `answer[start:end]`, markers included, and the sources that it cites."""

    start: int
    end: int
    markers: tuple[int, ...]


def split_claims(answer: str, chunk_ids: Sequence[str]) -> list[ClaimSpan]:
    """The answer's sentences with the markers in or right behind them."""
    markers = find_markers(answer, chunk_ids)
    claims = []
    for start, end in split_sentences(answer):
        numbers = [n for span in markers if start <= span.start < end for n in span.numbers]
        claims.append(ClaimSpan(start, end, tuple(dict.fromkeys(numbers))))
    return claims


async def check(claim: str, cited: Sequence[Source], embedder: Embedder) -> Check:
    """Whether `cited` supports `claim`.

    Raises `EmbedderUnavailable`.
    """
    wanted = set(analyse(claim))
    given = {term for source in cited for term in analyse(source["text"])}
    score = len(wanted & given) / len(wanted) if wanted else 1.0
    if score >= SUPPORTED:
        return Check("supported", "The cited source says so.", score)
    return Check("unsupported", "The cited source does not say this.", score)
