"""abstain: say that the documents do not answer, and what was searched."""

from collections.abc import Sequence

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.documents import Source, name_place
from domain.outcome import (
    BudgetSpent,
    Framing,
    LowConfidence,
    NothingFound,
    Outcome,
    Reason,
    RetriesSpent,
)
from domain.state import ExecutedStep, Level, Turn
from domain.text.question import split_carried
from domain.text.terms import analyse, find_terms
from nodes.context import Context, profile_of
from nodes.sources.titles import list_recent
from nodes.step import SPEAKS, Step
from nodes.wording.notices import wording_of
from nodes.writing.missing import list_missing
from nodes.writing.stream import AnsweringInput, AnswerWriter, finish_turn

_NEAREST = 3
"""Places that an abstention names."""


class AbstainInput(AnsweringInput):
    """The part of the state that abstain reads."""

    queries_tried: list[str]
    sources: list[Source]
    confidence: float
    missing: list[str]
    retries: int
    steps: list[ExecutedStep]


class AbstainUpdate(TypedDict):
    """The part of the state that abstain writes."""

    answer: str
    outcome: Outcome
    outcome_reasons: list[Reason]
    framing: Framing
    confidence: float
    level: Level
    turns: list[Turn]


async def abstain(state: AbstainInput, runtime: Runtime[Context]) -> AbstainUpdate:
    """Abstain, and name the first query and the nearest places, so that the reader can look there or ask otherwise."""
    reasons = await _find_reasons(state, runtime.context)
    writer = AnswerWriter(runtime.stream_writer)
    writer.write(wording_of(profile_of(state), state["language"]).abstain(reasons))
    return AbstainUpdate(
        answer=writer.text,
        outcome="abstained",
        outcome_reasons=reasons,
        framing=Framing(opening=0, closing=0),
        confidence=0.0,
        level="none",
        turns=finish_turn(state, writer.text, [], "abstained"),
    )


async def _find_reasons(state: AbstainInput, context: Context) -> list[Reason]:
    profile = profile_of(state)
    searched, _ = split_carried((state["queries_tried"] or [state["question"]])[0])
    nearest = _name_nearest(searched, state["sources"])
    is_empty = not state["sources"] and await list_recent(state, context, 1) == []
    reasons: list[Reason] = [
        NothingFound(code="nothing_found", searched=searched, nearest=nearest, scope_is_empty=is_empty)
    ]
    if state["sources"]:
        reasons.append(LowConfidence(code="low_confidence", confidence=state["confidence"]))
        reasons += list_missing(state["question"], state["missing"])
    breach = profile.budget.find_breach(state["steps"])
    if breach is not None and state["retries"] < profile.grade.max_retries:
        reasons.append(BudgetSpent(code="over_budget", limit=breach))
    elif state["retries"]:
        reasons.append(RetriesSpent(code="retries_spent", retries=state["retries"]))
    return reasons


def _name_nearest(searched: str, sources: Sequence[Source]) -> list[str]:
    """Return title and heading of the sources that have half of the question's words at least: others are about
    something else, and naming them would send the reader there in vain."""
    terms = set(analyse(searched))
    near = [
        name_place(source["title"], source["heading_path"][-1:])
        for source in sources
        if 2 * len(terms & find_terms(f"{name_place(source['title'], source['heading_path'])} {source['text']}"))
        >= max(len(terms), 1)
    ]
    return list(dict.fromkeys(near))[:_NEAREST]


STEP = Step(run=abstain, label="Finding nothing that answers", knobs=SPEAKS | {"grade.max_retries"})
