"""reconcile: which rewrites stand, which citations, and what is left when nothing is."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from app.adapters.embeddings.onnx import OnnxEmbedder
from domain.documents import Claim, Verdict, Verification
from domain.library.citations import cite
from domain.ports.models import Message, UsageSink
from domain.text.markers import strip_markers
from nodes.context import Models
from nodes.reconcile.step import ReconcileUpdate, Repairs, WithdrawnUpdate, reconcile
from nodes.verify.step import verify
from nodes.writing.judging import Judgements
from tests.nodes.nodes_alone import make_runtime, make_state
from tests.sources import make_source

TEXT = "Lunch costs nine francs. The canteen opens at 11:30. Dogs wait outside."
SOURCES = [make_source(TEXT), make_source("Visitors park behind the station.", number=2)]
SUPPORTED, INVENTED = "Lunch costs nine francs. [1]", "Dinner costs ninety dollars. [1]"

VERDICTS: list[tuple[str, Verdict]] = [(SUPPORTED, "supported"), (INVENTED, "unsupported")]


@dataclass
class Judge:
    """A judge that rewrites every claim as it was told, and gives every rewrite the same verdict."""

    rewrites: list[str]
    verdict: str = "supported"
    sources: tuple[int, ...] = ()
    name: str = "judge"
    sees: bool = False
    prompts: list[str] = field(default_factory=list)

    async def judge(self, messages: Sequence[Message], schema: Any, sink: UsageSink) -> Any:
        self.prompts.append(messages[-1].content)
        if schema is Repairs:
            return Repairs(rewrites=self.rewrites)
        judgement = {"claim": 1, "verdict": self.verdict, "sources": list(self.sources)}
        return Judgements.model_validate({"judgements": [judgement]})

    def stream(self, *_: Any, **__: Any) -> AsyncIterator[str]:
        raise NotImplementedError


def make_claim(answer: str, text: str, verdict: Verdict) -> Claim:
    start = answer.index(text)
    return Claim(
        text=text,
        start=start,
        end=start + len(text),
        markers=[1],
        kind="statement",
        sources=[1] if verdict == "supported" else [],
        verdict=verdict,
        reason="…",
        score=0.5,
    )


async def run(
    embedder: OnnxEmbedder,
    answer: str,
    *,
    by: str = "large",
    rewrites: list[str] | None = None,
    judge: Any = None,
    **fields: Any,
) -> tuple[ReconcileUpdate | WithdrawnUpdate, list[Any]]:
    claims = fields.pop("claims", None) or [
        make_claim(answer, text, verdict) for text, verdict in VERDICTS if text in answer
    ]
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
    models = Models(judge=judge if rewrites is None else cast(Any, Judge(rewrites)))
    return await reconcile(state, make_runtime(embedder, events, models)), events


async def test_a_rewrite_stands_only_where_the_judge_finds_it_in_the_sources(embedder: OnnxEmbedder) -> None:
    draft = f"{SUPPORTED} {INVENTED}"
    told = "Parking is to be found at the back of the station"
    for judge, answer in (
        (Judge([f"{told} [2]."], sources=(2,)), f"{SUPPORTED} {told} [2]."),
        # The judge says which source it is.
        (Judge([f"{told} [1]."], sources=(2,)), f"{SUPPORTED} {told} [2]."),
        (Judge([f"{told}."], sources=(2,)), f"{SUPPORTED} {told}. [2]"),
        (Judge([f"{told} [2]."], verdict="not_found"), SUPPORTED),
        (Judge([""]), SUPPORTED),
    ):
        update, [correction] = await run(embedder, draft, judge=judge, question="Where is lunch?")
        assert cast(ReconcileUpdate, update)["answer"] == answer == correction["answer"]
        assert update["verification"]["status"] == "reconciled"
        assert all("Where is lunch?" in prompt for prompt in judge.prompts)


async def test_what_is_withdrawn_stands_in_the_outcome_and_in_the_warnings(embedder: OnnxEmbedder) -> None:
    events: list[Any] = []
    runtime = make_runtime(embedder, events)
    claims = [make_claim(f"{SUPPORTED} {INVENTED}", *each) for each in VERDICTS]
    state = make_state(
        sources=SOURCES, answer=f"{SUPPORTED} {INVENTED}", answered_by="large", outcome="answered",
        verification=Verification(status="unsupported", claims=claims),
    )  # fmt: skip
    left = cast(ReconcileUpdate, await reconcile(state, runtime))
    assert left["outcome"] == "answered_with_caveat"
    assert left["outcome_reasons"] == [{"code": "withdrawn", "statements": ["Dinner costs ninety dollars."]}]
    assert runtime.context.ledger.warnings == [events[0]["reason"]]
    assert "1 of 2 statements withdrawn" in events[0]["reason"]
    assert "Dinner costs ninety dollars." in events[0]["reason"]


async def test_what_nobody_checked_is_withdrawn_and_not_rewritten(embedder: OnnxEmbedder) -> None:
    rest = "Visitors park below. " * 50
    answer = f"{SUPPORTED} {rest}".strip()
    unchecked = make_claim(answer, rest.strip(), "unsupported")
    unchecked["kind"] = "unchecked"
    judge = Judge(["Visitors park behind the station [2]."])
    claims = [make_claim(answer, SUPPORTED, "supported"), unchecked]
    left, events = await run(embedder, answer, claims=claims, judge=judge)
    assert (left.get("answer"), judge.prompts) == (SUPPORTED, [])
    assert f"{rest[:100].strip()}…" in events[0]["reason"]
    assert rest[:120] not in events[0]["reason"]


@pytest.mark.parametrize(
    ("answer", "corrected"),
    [
        # The marker is missing, or of another source.
        ("Lunch costs nine francs.", "Lunch costs nine francs. [1]"),
        ("Lunch costs nine francs [2].", "Lunch costs nine francs [1]."),
        ("- Lunch costs nine francs. [2]\n- Dogs wait outside. [1]", "- Lunch costs nine francs. [1]\n- Dogs wait outside. [1]"),
        # It covered the sentence before, which keeps it.
        (
            "Visitors park behind the station. Lunch costs nine francs [2].",
            "Visitors park behind the station. [2] Lunch costs nine francs [1].",
        ),
    ],
)  # fmt: skip
async def test_a_right_statement_gets_the_marker_of_the_source_that_says_so(
    embedder: OnnxEmbedder, answer: str, corrected: str
) -> None:
    events: list[Any] = []
    runtime = make_runtime(embedder, events)
    state = make_state(sources=SOURCES, answer=answer, answered_by="large", outcome="answered")
    checked = await verify(state | {"citations": [cite(SOURCES[1])]}, runtime)
    assert checked["verification"]["status"] == "unsupported"
    assert {claim["verdict"] for claim in checked["verification"]["claims"]} == {"supported"}
    left = cast(ReconcileUpdate, await reconcile(state | checked, runtime))
    assert left["answer"] == corrected
    assert 1 in [citation["marker"] for citation in left["citations"]]
    assert (left["outcome"], left["outcome_reasons"]) == ("answered", [])
    assert runtime.context.ledger.warnings == []
    assert events[-1]["type"] == "correction"


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
    assert (left["outcome"], left["outcome_reasons"][:1]) == ("answered_with_caveat", reasons)
    assert left["answer"][: left["framing"]["opening"]] == caveat
    assert left["answer"] == f"{caveat}{SUPPORTED}"


async def test_a_draft_of_which_nothing_is_left_has_failed(embedder: OnnxEmbedder) -> None:
    update, events = await run(embedder, INVENTED, graded=0.5)
    assert events == []
    withdrawn = cast(WithdrawnUpdate, update)
    assert (withdrawn["failure"]["code"], withdrawn["failure"]["given_up"]) == ("unsupported_answer", "large")
    # The draft's confidence goes with it.
    assert (withdrawn["confidence"], withdrawn["level"]) == (0.5, "low")


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
    claims[-1] |= {"markers": [2], "sources": [2]}
    update, _ = await run(embedder, answer, verification=Verification(status="unsupported", claims=claims))
    assert cast(ReconcileUpdate, update)["answer"] == kept
    assert [citation["marker"] for citation in cast(ReconcileUpdate, update)["citations"]] == [2]


LINES = [
    "Lunch costs nine francs, approx. 4 percent more than last year.",
    "The canteen is closed on the following days:",
    "- On Sundays, e.g. on 3 May, nobody cooks.",
    "- At Easter.",
    "plan | price",
    "--- | ---",
    "Basic (max. 3 users) | 5 francs",
    "1. Press the red button. Then wait for no. 7.",
    "> Nobody may enter without a badge, cf. sec. 4.",
    "Das Mittagessen kostet ca. 9 Franken. Es gibt z. B. Suppe.",
    "Term of notice",
    ": It is three months.",
]


@pytest.mark.parametrize("marker", ["", " [1]", " [2]"])
@pytest.mark.parametrize("lines", [LINES, LINES[::-1], *([line] for line in LINES)], ids=lambda lines: lines[0][:12])
async def test_no_line_of_a_source_is_withdrawn_whatever_it_cites(
    embedder: OnnxEmbedder, lines: list[str], marker: str
) -> None:
    answer = "\n\n".join(f"{line}{marker}" for line in lines)
    sources = [make_source("\n".join(LINES)), SOURCES[1]]
    state = make_state(
        sources=sources, answer=answer, answered_by="large", outcome="answered", citations=[cite(sources[1])]
    )
    runtime = make_runtime(embedder, [])
    state |= await verify(state, runtime)
    assert [claim["text"] for claim in state["verification"]["claims"] if claim["verdict"] != "supported"] == []
    if state["verification"]["status"] == "unsupported":
        state |= await reconcile(state, runtime)
    assert strip_markers(state["answer"]).split() == strip_markers(answer).split()


@pytest.mark.parametrize(
    ("answer", "wrong", "rewrite", "left"),
    [
        ("Prices [1]\n\na | b\n--- | ---\nLunch | 9\nTea | 90", "Tea | 90", "Tea | 3", "Prices [1]\n\na | b\n--- | ---\nLunch | 9\nTea | 3 [1]"),
        ("Prices [1]\n\na | b\n--- | ---\nLunch | 9\nTea | 90", "Tea | 90", "Tea costs three.", "Prices [1]\n\na | b\n--- | ---\nLunch | 9"),
        ("Both [1]:\n\n- Lunch at 9\n- Tea at 90", "- Tea at 90", "Tea at 3", "Both [1]:\n\n- Lunch at 9\n- Tea at 3 [1]"),
        ("Both [1]:\n\n- Lunch at 9\n- Tea at 90", "- Tea at 90", "", "Both [1]:\n\n- Lunch at 9"),
    ],
)  # fmt: skip
async def test_tables_and_lists_stay_whole(
    embedder: OnnxEmbedder, answer: str, wrong: str, rewrite: str, left: str
) -> None:
    kept = next(text for text in ("Lunch | 9", "- Lunch at 9") if text in answer)
    claims = [make_claim(answer, kept, "supported"), make_claim(answer, wrong, "unsupported")]
    update, _ = await run(embedder, answer, judge=Judge([rewrite], sources=(1,)), claims=claims)
    assert cast(ReconcileUpdate, update)["answer"] == left
