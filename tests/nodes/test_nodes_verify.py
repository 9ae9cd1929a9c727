"""Claims of a whole answer, checked together."""

from app.adapters.embeddings.onnx import OnnxEmbedder
from domain.ports.judgement import SUPPORTED
from nodes.local.verification.verifier import LocalVerifier
from nodes.verify import check_claims
from nodes.writing import ADMISSION, CAVEAT
from tests.sources import make_source

SOURCES = [
    make_source("The canteen opens at 11:30. Lunch costs nine francs."),
    make_source("Visitors park behind the station.", number=2),
]


async def test_each_claim_has_its_span_and_is_held_against_what_it_cites(embedder: OnnxEmbedder) -> None:
    answer = f"{CAVEAT}Lunch costs nine francs [1]. Visitors park behind the station [1]."
    claims, score = await check_claims(answer, SOURCES, LocalVerifier(embedder))
    assert [answer[claim["start"] : claim["end"]] for claim in claims] == [claim["text"] for claim in claims]
    assert [(claim["verdict"], claim["markers"]) for claim in claims] == [("supported", [1]), ("unsupported", [1])]
    assert score < SUPPORTED


async def test_what_an_answer_admits_is_no_claim(embedder: OnnxEmbedder) -> None:
    claims, _ = await check_claims(
        f"Lunch costs nine francs [1].{ADMISSION}“Zurich”.", SOURCES, LocalVerifier(embedder)
    )
    assert [claim["text"] for claim in claims] == ["Lunch costs nine francs [1]."]
    claims, _ = await check_claims(
        f"Lunch costs nine francs [1].{ADMISSION}dinner [2].", SOURCES, LocalVerifier(embedder)
    )
    assert len(claims) == 2


async def test_the_whole_is_scored_too(embedder: OnnxEmbedder) -> None:
    claims, score = await check_claims(
        "Lunch costs nine francs [1]. Visitors park there [2].", SOURCES, LocalVerifier(embedder)
    )
    assert [claim["verdict"] for claim in claims] == ["supported", "supported"]
    assert SUPPORTED < score <= 1.0
    assert await check_claims("", SOURCES, LocalVerifier(embedder)) == ([], 0.0)
