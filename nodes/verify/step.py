"""verify: split the answer into claims, and check each against the sources; with a model, check too whether the answer
is one to the question."""

from typing import Any, Literal

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.documents import Citation, Source, Verification
from domain.events import Verified
from domain.outcome import ANSWERS, BesideQuestion, Framing, Outcome, Reason, judge_answer
from domain.text.languages import Language
from nodes.context import Context, profile_of, scope_of
from nodes.prompting.answerers import LOCAL
from nodes.prompting.messages import PICTURES
from nodes.step import Step
from nodes.wording.notices import read_catalogue
from nodes.writing.claims import check_claims, is_miscited, trust_quotes
from nodes.writing.judging import PROMPT, judge_claims
from nodes.writing.pictures import draw_pictures


class VerifyInput(TypedDict):
    """The part of the state that verify reads."""

    standalone_question: str
    language: Language
    answer: str
    outcome: Outcome | None
    outcome_reasons: list[Reason]
    framing: Framing
    citations: list[Citation]
    answered_by: str
    sources: list[Source]
    scope: dict[str, Any]
    profile: dict[str, Any]


class VerifyUpdate(TypedDict):
    """The part of the state that verify writes."""

    verification: Verification
    outcome: Outcome | None
    outcome_reasons: list[Reason]


async def verify(state: VerifyInput, runtime: Runtime[Context]) -> VerifyUpdate:
    """Give every claim a verdict, its span and the sources that say so.

    The model judges where there is one, else the local check. An answer is unsupported where a claim is, where a right
    one cites another source than those that say so, and where it cites nothing; what no source says needs no citation.
    """
    context = runtime.context
    answer, sources = state["answer"], state["sources"]
    claims, score = await check_claims(answer, state["framing"], sources, context.judges.verifier)
    held: Literal["supported", "quoted"] = "supported"
    if state["answered_by"] == LOCAL:
        trust_quotes(claims, sources)
        held = "supported" if context.models.judge else "quoted"
    outcome, reasons = state["outcome"], state["outcome_reasons"]
    if claims and (model := context.models.judge) is not None:
        pictures = await draw_pictures(model, sources, scope_of(state), profile_of(state), context)
        claims, answers = await judge_claims(
            model, state["standalone_question"], answer, claims, sources, context, pictures
        )
        if not answers and outcome in ANSWERS:
            reasons = [*reasons, BesideQuestion(code="beside_question")]
            outcome = judge_answer(reasons)
    uncited = not state["citations"] and not any(claim["kind"] == "absence" for claim in claims)
    unsupported = uncited or any(claim["verdict"] == "unsupported" or is_miscited(claim) for claim in claims)
    verification = Verification(
        status="unsupported" if unsupported else held if claims else "skipped", claims=claims, score=score
    )
    if not unsupported and outcome != state["outcome"]:
        # Else reconcile warns, if anything is left of the answer.
        context.ledger.warn(read_catalogue(state["language"]).warnings.beside_question)
    runtime.stream_writer(Verified(type="verification", status=verification["status"], claims=claims))
    return VerifyUpdate(verification=verification, outcome=outcome, outcome_reasons=reasons)


STEP = Step(
    run=verify,
    label="Checking every statement",
    knobs=frozenset({"generate.pictures"}),
    prompts=[PROMPT, PICTURES],
    asks="judge",
)
