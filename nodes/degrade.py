"""degrade: give up what cannot be had, say so, and choose how to go on.

Two edges lead here: the answerer that was asked has failed, or the run has spent its budget. What was given up, for
what and why, stays in the state, and goes into the run's record and its `done` event.
"""

from typing import Any

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.documents import Source
from domain.errors import ContextTooLong, OverBudget
from domain.profile import Profile
from domain.state import Degradation, Failure, Step
from nodes.answerers import LOCAL, find_next, list_answerers, name_answerer
from nodes.context import Context
from nodes.scope import profile_of


class DegradeInput(TypedDict):
    """What degrade reads."""

    profile: dict[str, Any]
    sources: list[Source]
    confidence: float
    answerer: str
    failure: Failure | None
    steps: list[Step]


class DegradeUpdate(TypedDict):
    """What degrade writes."""

    answerer: str
    sources: list[Source]


async def degrade(state: DegradeInput, runtime: Runtime[Context]) -> DegradeUpdate:
    """After a failure: fewer sources where they were too long, else the next answerer. Over budget: no more searching,
    and no answerer that costs anything."""
    context = runtime.context
    profile = profile_of(state)
    failure, sources = state["failure"], state["sources"]
    answerer = state["answerer"] or list_answerers(profile.generate, context.models)[0]
    if failure is not None and failure["code"] == ContextTooLong().code and len(sources) > 1:
        kept = len(sources) // 2
        _give_up(
            context,
            failure["code"],
            f"{len(sources)} sources",
            f"the first {kept}",
            f"The answer was written from the first {kept} of {len(sources)} sources: {failure['message']}",
        )
        return DegradeUpdate(answerer=answerer, sources=sources[:kept])
    if failure is not None:
        answerer = _replace(answerer, find_next(answerer, profile.generate, context.models), failure, profile, context)
    elif state["confidence"] < profile.grade.sufficient:
        _give_up(
            context,
            OverBudget().code,
            "another search",
            "what was found",
            f"Nothing more was searched for: {OverBudget().message}",
        )
    if answerer != LOCAL and profile.budget.find_breach(state["steps"]):
        spent = OverBudget()
        name = name_answerer(answerer, profile.generate, context.models)
        answerer = _replace(
            answerer, LOCAL, Failure(code=spent.code, given_up=name, message=spent.message), profile, context
        )
    return DegradeUpdate(answerer=answerer, sources=sources)


def _replace(answerer: str, following: str, failure: Failure, profile: Profile, context: Context) -> str:
    """`following`, with what is said of it."""
    instead = name_answerer(following, profile.generate, context.models)
    consequence = (
        "The answer is quoted from the documents, not written"
        if instead == LOCAL
        else f"The answer is written by {instead}, not by {failure['given_up']}"
    )
    _give_up(context, failure["code"], failure["given_up"], instead, f"{consequence}: {failure['message']}")
    return following


def _give_up(context: Context, code: str, given_up: str, instead: str, message: str) -> None:
    # What was given up was generate's, whichever step says so.
    context.ledger.degrade(Degradation(node="generate", code=code, given_up=given_up, instead=instead, message=message))
