"""Claims of a whole answer, checked together."""

from app.adapters.embeddings.onnx import OnnxEmbedder
from domain.outcome import Framing
from domain.ports.judgement import SUPPORTED
from nodes.verify.local import LocalVerifier
from nodes.writing.claims import check_claims
from tests.sources import make_source

SOURCES = [
    make_source("The canteen opens at 11:30. Lunch costs nine francs."),
    make_source("Visitors park behind the station.", number=2),
]
UNFRAMED = Framing(opening=0, closing=0)


async def test_each_claim_has_its_span_and_is_checked_against_its_citations(embedder: OnnxEmbedder) -> None:
    caveat = "Perhaps only in part. "
    answer = f"{caveat}Lunch costs nine francs [1]. Visitors park beneath a hospital [1]."
    claims, score = await check_claims(answer, Framing(opening=len(caveat), closing=0), SOURCES, LocalVerifier())
    assert [answer[claim["start"] : claim["end"]] for claim in claims] == [claim["text"] for claim in claims]
    assert [(claim["verdict"], claim["markers"]) for claim in claims] == [("supported", [1]), ("unsupported", [1])]
    assert score < SUPPORTED


async def test_the_framing_is_no_claim_whatever_it_says(embedder: OnnxEmbedder) -> None:
    opening, claimed, closing = (
        "Visitors may park anywhere. ",
        "Lunch costs nine francs [1].",
        " Zurich is not mentioned [2].",
    )
    answer = opening + claimed + closing
    framing = Framing(opening=len(opening), closing=len(closing))
    claims, _ = await check_claims(answer, framing, SOURCES, LocalVerifier())
    assert [(claim["text"], claim["start"]) for claim in claims] == [(claimed, len(opening))]
    assert len((await check_claims(answer, UNFRAMED, SOURCES, LocalVerifier()))[0]) == 3


async def test_the_whole_is_scored_too(embedder: OnnxEmbedder) -> None:
    answer = "Lunch costs nine francs [1]. Visitors park there [2]."
    claims, score = await check_claims(answer, UNFRAMED, SOURCES, LocalVerifier())
    assert [claim["verdict"] for claim in claims] == ["supported", "supported"]
    assert SUPPORTED < score <= 1.0
    scores = [claim["score"] for claim in claims]
    assert scores == [round(each, 4) for each in scores]
    assert any(each != round(each) for each in scores)
    assert await check_claims("", UNFRAMED, SOURCES, LocalVerifier()) == ([], 0.0)
