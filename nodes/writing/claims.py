"""Checks the claims of an answer against the sources that they cite, without a language model."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from domain.documents import Claim, Source
from domain.outcome import Framing, find_claimed
from domain.ports.judgement import ClaimVerifier
from domain.text.claims import is_statement, split_claims
from domain.text.injections import gives_orders
from domain.text.markers import strip_markers
from domain.text.sentences import split_sentences

_QUOTED = "The source says so in these words."

_MARKS = re.compile(r"^[ \t]*(?:[-*+•>]|\d{1,3}[.)])[ \t]+|[*_`|]+", re.MULTILINE)
"""Signs of items and quotations, emphasis, and the bars of table rows."""

_ORDERING = "Its source gives orders to whoever answers, and is no evidence."


async def check_claims(
    answer: str, framing: Framing, sources: list[Source], verifier: ClaimVerifier
) -> tuple[list[Claim], float]:
    """Return the answer's claims with the local verdict on each, and how well the sources support them all, 0-1.

    The framing claims nothing. A source that gives orders to its reader supports nothing.
    """
    stated, end = find_claimed(answer, framing)
    ordering = find_ordering(sources)
    by_number = {source["number"]: source for source in sources if source["number"] not in ordering}
    spans = split_claims(answer[stated:end], [source["chunk_id"] for source in sources])
    texts = [answer[span.start + stated : span.end + stated] for span in spans]
    cited = [[by_number[number] for number in span.markers if number in by_number] for span in spans]
    checks, score = await verifier.verify(list(zip(texts, cited, strict=True)))
    claims: list[Claim] = []
    for text, span, evidence, outcome in zip(texts, spans, cited, checks, strict=True):
        claim = Claim(
            text=text,
            start=span.start + stated,
            end=span.end + stated,
            markers=list(span.markers),
            verdict=outcome.verdict,
            reason=_ORDERING if not evidence and ordering & set(span.markers) else outcome.reason,
            score=round(outcome.score, 4),
        )
        if quoted := find_quoted(text, evidence or ([] if span.markers else by_number.values())):
            claim |= {
                "markers": claim["markers"] or quoted[:1],
                "verdict": "supported",
                "reason": _QUOTED,
                "score": 1.0,
            }
        claims.append(claim)
    return claims, round(score, 4)


def find_quoted(statement: str, sources: Iterable[Source]) -> list[int]:
    """Return the numbers of the sources that have the statement as a whole sentence or line. A part of a sentence may
    say something else."""
    level = _level(statement)
    if not level or not is_statement(strip_markers(statement).strip()):
        return []
    return [source["number"] for source in sources if level in _read_quotable(source["text"])]


@lru_cache(maxsize=64)
def _read_quotable(text: str) -> frozenset[str]:
    """Return the sentences and lines of a source, levelled. All claims of an answer are compared with the same few
    sources."""
    text = strip_markers(text)
    sentences = (text[start:end] for start, end in split_sentences(text))
    return frozenset(map(_level, (*sentences, *text.splitlines())))


def _level(text: str) -> str:
    """Level case, white space, marks of Markdown and final stops."""
    return " ".join(_MARKS.sub(" ", strip_markers(text)).lower().split()).rstrip(" .!…")


def find_ordering(sources: Sequence[Source]) -> set[int]:
    """Return the numbers of the sources that give orders to whoever answers."""
    return {source["number"] for source in sources if gives_orders(f"{source['title']}\n{source['text']}")}
