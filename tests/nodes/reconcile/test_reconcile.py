"""reconcile: which rewrites stand, which citations, and what is left when nothing is."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pytest

from app.adapters.embeddings.onnx import OnnxEmbedder
from domain.documents import Claim, Verdict, Verification
from domain.library.citations import cite
from domain.ports.models import Message, UsageSink
from nodes.context import Models
from nodes.reconcile.step import ReconcileUpdate, Repairs, WithdrawnUpdate, reconcile
from tests.nodes.nodes_alone import make_runtime, make_state
from tests.sources import make_source

TEXT = "Lunch costs nine francs. The canteen opens at 11:30. Dogs wait outside."
SOURCES = [make_source(TEXT), make_source("Visitors park behind the station.", number=2)]
SUPPORTED, INVENTED = "Lunch costs nine francs. [1]", "Dinner costs ninety dollars. [1]"


@dataclass
class Judge:
    """A judge that rewrites every claim as it was told."""

    rewrites: list[str]
    name: str = "judge"

    async def judge(self, messages: Sequence[Message], schema: Any, sink: UsageSink) -> Any:
        return Repairs(rewrites=self.rewrites)

    def stream(self, *_: Any, **__: Any) -> AsyncIterator[str]:
        raise NotImplementedError


def make_claim(answer: str, text: str, verdict: Verdict) -> Claim:
    start = answer.index(text)
    return Claim(text=text, start=start, end=start + len(text), markers=[1], verdict=verdict, reason="…", score=0.5)


async def run(
    embedder: OnnxEmbedder, answer: str, *, by: str = "large", rewrites: list[str] | None = None, **fields: Any
) -> tuple[ReconcileUpdate | WithdrawnUpdate, list[Any]]:
    claims = [make_claim(answer, SUPPORTED, "supported")] if SUPPORTED in answer else []
    claims += [make_claim(answer, INVENTED, "unsupported")]
    verification = Verification(status="unsupported", claims=claims)
    events: list[Any] = []
    state = make_state(
        **{
            "sources": SOURCES,
            "answer": answer,
            "answered_by": by,
            "outcome": "answered",
            "citations": [cite(SOURCES[0])],
            "verification": verification,
            "confidence": 0.9,
            "level": "high",
            **fields,
        }
    )
    models = Models() if rewrites is None else Models(judge=cast(Any, Judge(rewrites)))
    return await reconcile(state, make_runtime(embedder, events, models)), events


async def test_a_rewrite_stands_only_where_its_source_supports_it(embedder: OnnxEmbedder) -> None:
    draft = f"{SUPPORTED} {INVENTED}"
    kept, _ = await run(embedder, draft, rewrites=["Visitors park behind the station [2]."])
    assert kept["verification"]["status"] == "reconciled"
    assert cast(ReconcileUpdate, kept)["answer"] == f"{SUPPORTED} Visitors park behind the station [2]."
    for rewrite in ("Visitors park in Paris for ninety dollars [2].", "Visitors park behind the station.", ""):
        update, [correction] = await run(embedder, draft, rewrites=[rewrite])
        assert cast(ReconcileUpdate, update)["answer"] == SUPPORTED == correction["answer"]
        assert correction["reason"] == "1 of 2 statements withdrawn: the sources do not say so."


async def test_a_quotation_keeps_its_span(embedder: OnnxEmbedder) -> None:
    span = (0, TEXT.index(" The"))
    quoted = [cite(SOURCES[0], [span])]
    update, _ = await run(embedder, f"{SUPPORTED} {INVENTED}", by="local", citations=quoted)
    assert cast(ReconcileUpdate, update)["citations"] == quoted
    written, _ = await run(embedder, f"{SUPPORTED} {INVENTED}", by="large", citations=quoted)
    [citation] = cast(ReconcileUpdate, written)["citations"]
    assert (citation["start"], citation["end"]) == (0, len(TEXT))


async def test_what_is_left_keeps_its_outcome_and_framing(embedder: OnnxEmbedder) -> None:
    caveat = "Only in part. "
    reasons = [{"code": "low_confidence", "confidence": 0.5}]
    update, _ = await run(
        embedder,
        f"{caveat}{INVENTED} {SUPPORTED}",
        outcome="answered_with_caveat",
        outcome_reasons=reasons,
        framing={"opening": len(caveat), "closing": 0},
    )
    left = cast(ReconcileUpdate, update)
    assert (left["outcome"], left["outcome_reasons"]) == ("answered_with_caveat", reasons)
    assert left["answer"][: left["framing"]["opening"]] == caveat
    assert left["answer"] == f"{caveat}{SUPPORTED}"


async def test_a_draft_of_which_nothing_is_left_has_failed(embedder: OnnxEmbedder) -> None:
    update, events = await run(embedder, INVENTED)
    assert events == []
    failure = cast(WithdrawnUpdate, update)["failure"]
    assert (failure["code"], failure["given_up"]) == ("unsupported_answer", "large")


async def test_quotations_of_which_nothing_is_left_are_an_abstention(embedder: OnnxEmbedder) -> None:
    update, [correction] = await run(
        embedder, INVENTED, by="local", framing={"opening": 3, "closing": 3}, outcome_reasons=[{"code": "uncited"}]
    )
    left = cast(ReconcileUpdate, update)
    assert left["outcome"] == "abstained"
    assert left["outcome_reasons"] == [{"code": "nothing_supported", "claims": 1}]
    assert left["framing"] == {"opening": 0, "closing": 0}
    assert (left["citations"], left["confidence"], left["level"]) == ([], 0.0, "none")
    assert left["turns"][-1]["outcome"] == "abstained"
    assert correction["answer"] == left["answer"]


@pytest.mark.parametrize(
    ("rewrites", "left"),
    [
        (None, "Lunch costs nine francs. [1]"),
        (["Dogs wait outside. [1]"], "Lunch costs nine francs. [1] Dogs wait outside. [1]"),
    ],
)
async def test_a_statement_keeps_the_marker_that_stood_in_the_one_behind_it(
    embedder: OnnxEmbedder, rewrites: list[str] | None, left: str
) -> None:
    answer = "Lunch costs nine francs. Dinner costs ninety dollars. [1]"
    claims = [make_claim(answer, "Lunch costs nine francs.", "supported"), make_claim(answer, INVENTED, "unsupported")]
    verification = Verification(status="unsupported", claims=claims)
    update, _ = await run(embedder, answer, rewrites=rewrites, verification=verification)
    reconciled = cast(ReconcileUpdate, update)
    assert reconciled["answer"] == left
    assert [citation["marker"] for citation in reconciled["citations"]] == [1]


async def test_an_unsupported_statement_leaves_no_marker_behind(embedder: OnnxEmbedder) -> None:
    kept = "Visitors park behind the station [2]."
    answer = f"Lunch is free. {INVENTED} {kept}"
    claims = [
        make_claim(answer, "Lunch is free.", "unsupported"),
        make_claim(answer, INVENTED, "unsupported"),
        make_claim(answer, kept, "supported"),
    ]
    claims[-1]["markers"] = [2]
    update, _ = await run(embedder, answer, verification=Verification(status="unsupported", claims=claims))
    assert cast(ReconcileUpdate, update)["answer"] == kept
    assert [citation["marker"] for citation in cast(ReconcileUpdate, update)["citations"]] == [2]
