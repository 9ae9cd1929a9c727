"""Checks the claims of an answer against the sources that they cite, without a language model."""

from collections.abc import Sequence

from domain.documents import Claim, Source
from domain.outcome import Framing, find_claimed
from domain.ports.judgement import ClaimVerifier
from domain.text.claims import split_claims
from domain.text.injections import gives_orders

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
    claims = [
        Claim(
            text=text,
            start=span.start + stated,
            end=span.end + stated,
            markers=list(span.markers),
            verdict=outcome.verdict,
            reason=_ORDERING if not evidence and ordering & set(span.markers) else outcome.reason,
            score=round(outcome.score, 4),
        )
        for text, span, evidence, outcome in zip(texts, spans, cited, checks, strict=True)
    ]
    return claims, round(score, 4)


def find_ordering(sources: Sequence[Source]) -> set[int]:
    """Return the numbers of the sources that give orders to whoever answers."""
    return {source["number"] for source in sources if gives_orders(f"{source['title']}\n{source['text']}")}
