"""The edges that depend on something. Each takes the state and names the outcome; `answer.py` says where it leads.

The Literals are what makes the drawing true: LangGraph draws the outcomes that a router can return.
"""

from typing import Literal

from domain.state import AnswerState, Route
from nodes.answerers import LOCAL
from nodes.degrade import can_answer
from nodes.scope import profile_of


def decide_route(state: AnswerState) -> Route:
    """What kind of question it is."""
    return state["route"]


def decide_sufficiency(
    state: AnswerState,
) -> Literal["sufficient", "poor, retries left", "poor, none left", "over budget"]:
    """Whether what was found can answer.

    Between `caveat` and `sufficient` a retry comes first; when none is left, what there is is answered, with a
    caveat.
    """
    knobs = profile_of(state).grade
    retries = state["confidence"] < knobs.sufficient and state["retries"] < knobs.max_retries
    if not retries and state["confidence"] < min(knobs.caveat, knobs.sufficient):
        return "poor, none left"
    if _is_over_budget(state, needs_models=not retries):
        return "over budget"
    return "poor, retries left" if retries else "sufficient"


def decide_retry(
    state: AnswerState,
) -> Literal["new query", "nothing new, partly answerable", "nothing new", "over budget"]:
    """Whether reformulate found a query that was not tried yet."""
    new = state["query"] not in state["queries_tried"]
    if not new and state["confidence"] < profile_of(state).grade.caveat:
        return "nothing new"
    if _is_over_budget(state, needs_models=not new):
        return "over budget"
    return "new query" if new else "nothing new, partly answerable"


def decide_answer(state: AnswerState) -> Literal["answerer failed", "mode verifies", "mode does not"]:
    """Whether there is an answer, and whether it is checked. An abstention claims nothing."""
    if state["failure"] is not None:
        return "answerer failed"
    profile = profile_of(state)
    abstains = not state["citations"] and state["answer"].startswith(profile.generate.fallback)
    return "mode verifies" if profile.verify and not abstains else "mode does not"


def decide_remedy(state: AnswerState) -> Literal["answer otherwise", "nothing to answer from"]:
    """Whether there is something to answer from with what is left."""
    return "answer otherwise" if can_answer(state) else "nothing to answer from"


def decide_support(state: AnswerState) -> Literal["supported", "unsupported claims"]:
    """Whether every claim held."""
    return "unsupported claims" if state["verification"]["status"] == "unsupported" else "supported"


def decide_repair(state: AnswerState) -> Literal["reconciled", "nothing is left"]:
    """Whether there is an answer, if only that there is none; a draft that all was withdrawn of is a failure."""
    return "reconciled" if state["failure"] is None else "nothing is left"


def _is_over_budget(state: AnswerState, *, needs_models: bool) -> bool:
    """Whether the way that would be taken is one that the run can no longer afford. To quote costs nothing."""
    if needs_models and state["answerer"] == LOCAL:
        return False
    return profile_of(state).budget.find_breach(state["steps"]) is not None
