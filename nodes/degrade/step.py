"""degrade: fall back, and report what it fell back from.

Three edges lead here: the answerer failed, verification left nothing of its draft, or the run has spent its budget. The
state keeps what was given up, what took its place and why; the run's record and its `done` event report it.
"""

from collections.abc import Mapping
from typing import Any

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.documents import Source
from domain.errors import ContextTooLong, ModelThoughtAloud, OverBudget, UnsupportedAnswer
from domain.events import Sources
from domain.library.citations import cite
from domain.state import Degradation, ExecutedStep, Failure
from nodes.context import Context, profile_of
from nodes.prompting.answerers import LOCAL, find_next, list_answerers, name_answerer
from nodes.sources.neighbours import number_sources
from nodes.step import Step


class DegradeInput(TypedDict):
    """The part of the state that degrade reads."""

    profile: dict[str, Any]
    standalone_question: str
    query: str
    queries_tried: list[str]
    sources: list[Source]
    set_aside: list[Source]
    confidence: float
    answerer: str
    failure: Failure | None
    steps: list[ExecutedStep]


class DegradeUpdate(TypedDict):
    """The part of the state that degrade writes."""

    answerer: str
    sources: list[Source]
    set_aside: list[Source]


async def degrade(state: DegradeInput, runtime: Runtime[Context]) -> DegradeUpdate:
    """Choose a cheaper or safer way to answer.

    - The prompt was too long: keep half of the sources, or ask the next answerer, which may have room for all.
    - The answerer failed: ask the next one, or the same one, whose thoughts were taken for its answer.
    - Verification left nothing of the draft: quote the sources.
    - The budget is spent: search no more, and quote the sources.
    """
    context = runtime.context
    profile = profile_of(state)
    failure, sources, set_aside = state["failure"], state["sources"], state["set_aside"]
    answerer = asked = state["answerer"] or list_answerers(profile.generate, context.models)[0]

    breach = profile.budget.find_breach(state["steps"])

    def over_budget(given_up: str) -> Failure:
        problem = OverBudget(breach and profile.budget.explain(breach))
        return Failure(code=problem.code, given_up=given_up, message=problem.message)

    def give_up(failure: Failure, instead: str, consequence: str) -> None:
        code, given_up, message = failure["code"], failure["given_up"], f"{consequence}: {failure['message']}"
        # The fallback is filed under generate, the step that it concerns.
        context.ledger.degrade(
            Degradation(node="generate", code=code, given_up=given_up, instead=instead, message=message)
        )

    def hand_over(failure: Failure, following: str) -> str:
        instead = name_answerer(following, profile.generate, context.models)
        written = f"{instead} was asked for the answer, in place of {failure['given_up']}"
        quoted = "The answer is quoted from the documents, not written"
        give_up(failure, instead, quoted if instead == LOCAL else written)
        return following

    if failure is not None and failure["code"] == ContextTooLong().code and len(sources) > 1:
        # generate reports in the end how many sources were left out: it may have to come back for fewer still.
        kept = len(sources) // 2
        sources, set_aside = sources[:kept], [*sources[kept:], *set_aside]
    elif failure is not None and failure["code"] == UnsupportedAnswer().code:
        answerer = hand_over(failure, LOCAL)
    elif failure is not None:
        if failure["code"] != ModelThoughtAloud().code:
            answerer = hand_over(failure, find_next(answerer, profile.generate, context.models))
    elif state["query"] not in state["queries_tried"]:
        give_up(over_budget("another search"), "what was found", "Nothing more was searched for")
    if answerer != LOCAL and can_answer(state) and breach:
        answerer = hand_over(over_budget(name_answerer(answerer, profile.generate, context.models)), LOCAL)
    if answerer != asked:
        sources, set_aside = [*sources, *set_aside], []
        if answerer == LOCAL:  # A model reads what is of one document together; quotes are of the best.
            sources = number_sources(sorted(sources, key=lambda source: source["score"], reverse=True))
    if sources != state["sources"]:
        shown = [cite(source, statements=[state["standalone_question"]]) for source in sources]
        runtime.stream_writer(Sources(type="sources", citations=shown))
    return DegradeUpdate(answerer=answerer, sources=sources, set_aside=set_aside)


def can_answer(state: Mapping[str, Any]) -> bool:
    """Return True where the sources found so far are good enough to answer from. A model says itself what they do not
    hold; a quote cannot."""
    knobs = profile_of(state).grade
    writes = state["failure"] is not None and state["answerer"] != LOCAL
    return writes or bool(state["confidence"] >= min(knobs.caveat, knobs.sufficient))


STEP = Step(
    run=degrade,
    label="Falling back",
    knobs=frozenset({"generate.model", "grade.sufficient", "grade.caveat", "models"}),
    retry=True,
)
