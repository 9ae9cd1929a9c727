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
from domain.text.terms import analyse

_QUOTED = "The source says so in these words."

_MARKS = re.compile(r"^[ \t]*(?:[-*+•>]|\d{1,3}[.)])[ \t]+|[*_`|]+", re.MULTILINE)
"""Signs of items and quotations, emphasis, and the bars of table rows."""

_INTRODUCTION = 2
"""Content words of a line with a colon that only introduces what follows. A longer one that cites may state something:
"It lasts, for both of these models [1]:"."""

_UNCHECKED = "Nobody checked it, because the answer has too many sentences."

_ORDERING = "Its source gives orders to whoever answers, and is no evidence."


async def check_claims(
    answer: str, framing: Framing, sources: list[Source], verifier: ClaimVerifier
) -> tuple[list[Claim], float]:
    """Return the answer's claims with the local verdict on each, and how well the sources support them all, 0-1.

    The framing claims nothing, and remarks about the documents as such stand. What is too long to be read is
    unsupported. A source that gives orders to its reader supports nothing. What a source says in the same words stands,
    whichever source is cited.
    """
    stated, end = find_claimed(answer, framing)
    ordering = find_ordering(sources)
    by_number = {source["number"]: source for source in sources if source["number"] not in ordering}
    claims: list[Claim] = []
    stating: list[Claim] = []
    for span in split_claims(answer[stated:end], [source["chunk_id"] for source in sources]):
        claim = Claim(
            text=answer[span.start + stated : span.end + stated],
            start=span.start + stated,
            end=span.end + stated,
            markers=list(span.markers),
            kind="statement",
            sources=[],
            verdict="supported",
            reason="",
            score=1.0,
        )
        if span.unread:
            claim |= {"kind": "unchecked", "verdict": "unsupported", "reason": _UNCHECKED, "score": 0.0}
            claims.append(claim)
            continue
        said = strip_markers(claim["text"]).strip()
        if is_statement(said) or len(analyse(said)) > _INTRODUCTION:
            claims.append(claim)
            stating += [] if span.about_documents else [claim]
    cited = [[by_number[number] for number in claim["markers"] if number in by_number] for claim in stating]
    checks, score = await verifier.verify(
        [(claim["text"], evidence) for claim, evidence in zip(stating, cited, strict=True)]
    )
    for claim, evidence, check in zip(stating, cited, checks, strict=True):
        if quoted := find_quoted(claim["text"], by_number.values()):
            claim |= {"sources": quoted, "reason": _QUOTED}
            continue
        numbers = [source["number"] for source in evidence] if check.verdict == "supported" else []
        reason = _ORDERING if not evidence and ordering & set(claim["markers"]) else check.reason
        claim |= {"sources": numbers, "verdict": check.verdict, "reason": reason, "score": round(check.score, 4)}
    return claims, round(score, 4)


def trust_quotes(claims: Iterable[Claim], sources: list[Source]) -> None:
    """Let every claim of a quoted answer stand, as what the documents say: unless its source gives orders. A passage
    is what its source says, whether or not it answers."""
    ordering = find_ordering(sources)
    for claim in claims:
        if not (ordering if claim["kind"] == "unchecked" else ordering.intersection(claim["markers"])):
            claim |= {"verdict": "quoted", "reason": "", "score": 1.0, "sources": list(claim["markers"])}


def is_miscited(claim: Claim) -> bool:
    """Return True for a statement that is right, and cites none of the sources that say so."""
    is_right = claim["kind"] == "statement" and claim["verdict"] == "supported"
    return is_right and bool(claim["sources"]) and not set(claim["sources"]).intersection(claim["markers"])


def find_quoted(statement: str, sources: Iterable[Source]) -> list[int]:
    """Return the numbers of the sources that have the statement as a whole sentence or line. A part of a sentence may
    say something else."""
    level = _level(statement)
    if not level or not is_statement(strip_markers(statement).strip()):
        return []
    shown = (
        (source["number"], "\n".join([source.get("computed", ""), source.get("lead", ""), source["text"]]))
        for source in sources
    )
    return [number for number, text in shown if level in _read_quotable(text)]


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
