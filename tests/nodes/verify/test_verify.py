"""verify: whose verdict stands, and what makes an answer unsupported."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from app.adapters.embeddings.onnx import OnnxEmbedder
from domain.library.citations import cite
from domain.outcome import Framing
from domain.ports.models import Message, UsageSink
from nodes.context import Models
from nodes.verify.step import ClaimJudgement, Judgements, verify
from tests.nodes.nodes_alone import make_runtime, make_state
from tests.sources import make_source

SOURCE = make_source("Lunch costs nine francs. The canteen opens at 11:30.")
TRUE, FALSE, UNCITED = "A lunch costs nine francs [1].", "Dinner costs ninety dollars [1].", "Zurich has an airport."


@dataclass
class Judge:
    """A judge that gives every claim the same verdict, but for those that it leaves out."""

    supports: bool
    leaves_out: tuple[int, ...] = ()
    name: str = "judge"

    async def judge(self, messages: Sequence[Message], schema: Any, sink: UsageSink) -> Any:
        listed = [line.partition(".")[0] for line in messages[-1].content.split("Claims:\n")[1].splitlines()]
        numbers = [int(number) for number in listed if number.isdigit()]
        assert numbers
        return Judgements(
            judgements=[
                ClaimJudgement(claim=number, supported=self.supports, reason="I say so.")
                for number in numbers
                if number not in self.leaves_out
            ]
        )

    def stream(self, *_: Any, **__: Any) -> AsyncIterator[str]:
        raise NotImplementedError


async def run(
    embedder: OnnxEmbedder, answer: str, judge: Any = None, cited: bool = True
) -> tuple[list[str], str, list[Any]]:
    """The verdict on each claim, the status of the whole, and the events."""
    events: list[Any] = []
    state = make_state(
        answer=answer,
        framing=Framing(opening=0, closing=0),
        sources=[SOURCE],
        citations=[cite(SOURCE)] if cited else [],
    )
    update = await verify(state, make_runtime(embedder, events, Models(judge=judge)))
    found = update["verification"]
    return [claim["verdict"] for claim in found["claims"]], found["status"], events


@pytest.mark.parametrize(
    ("answer", "verdicts", "status"),
    [(TRUE, ["supported"], "supported"), (FALSE, ["unsupported"], "unsupported"), ("", [], "skipped")],
)
async def test_without_a_model_the_local_verdict_stands(
    embedder: OnnxEmbedder, answer: str, verdicts: list[str], status: str
) -> None:
    judged, whole, [event] = await run(embedder, answer)
    assert (judged, whole) == (verdicts, status)
    assert (event["type"], event["status"], len(event["claims"])) == ("verification", status, len(verdicts))


async def test_the_models_verdict_replaces_the_local_one(embedder: OnnxEmbedder) -> None:
    assert (await run(embedder, FALSE, Judge(supports=True)))[:2] == (["supported"], "supported")
    assert (await run(embedder, TRUE, Judge(supports=False)))[:2] == (["unsupported"], "unsupported")


async def test_what_the_model_leaves_out_keeps_its_local_verdict(embedder: OnnxEmbedder) -> None:
    verdicts, status, _ = await run(embedder, f"{TRUE} {FALSE}", Judge(supports=True, leaves_out=(2,)))
    assert (verdicts, status) == (["supported", "unsupported"], "unsupported")


async def test_no_model_supports_a_claim_that_cites_nothing(embedder: OnnxEmbedder) -> None:
    verdicts, status, _ = await run(embedder, f"{TRUE}\n\n{UNCITED}", Judge(supports=True))
    assert (verdicts, status) == (["supported", "unsupported"], "unsupported")


@pytest.mark.parametrize(
    "quote",
    [
        "Lunch costs nine francs. [1]",
        "- **Lunch costs nine francs** [1]",
        "> The canteen opens at 11:30.",
        "Lunch costs nine francs",
    ],
)
async def test_a_sentence_of_a_source_stands_whatever_the_judge_says(embedder: OnnxEmbedder, quote: str) -> None:
    assert (await run(embedder, quote, Judge(supports=False)))[:2] == (["supported"], "supported")


async def test_a_part_of_a_sentence_is_not_its_quotation(embedder: OnnxEmbedder) -> None:
    assert (await run(embedder, "The canteen opens [1].", Judge(supports=False)))[0] == ["unsupported"]


async def test_an_answer_without_citations_is_unsupported(embedder: OnnxEmbedder) -> None:
    assert (await run(embedder, TRUE, Judge(supports=True), cited=False))[1] == "unsupported"
