"""The edges that depend on something. Each takes the state and names the outcome; `answer.py` says where it leads.

The Literals are what makes the drawing true: LangGraph draws the outcomes that a router can return.
"""

from typing import Literal

from domain.state import AnswerState, Route
from nodes.scope import profile_of


def decide_route(state: AnswerState) -> Route:
    """What kind of question it is."""
    return state["route"]


def decide_sufficiency(state: AnswerState) -> Literal["sufficient", "poor, retries left", "poor, none left"]:
    """Whether what was found can answer.

    Between `caveat` and `sufficient` a retry comes first; when none is left, what there is is answered, with a
    caveat.
    """
    knobs = profile_of(state).grade
    if state["confidence"] >= knobs.sufficient:
        return "sufficient"
    if state["retries"] < knobs.max_retries:
        return "poor, retries left"
    return "sufficient" if state["confidence"] >= knobs.caveat else "poor, none left"


def decide_retry(state: AnswerState) -> Literal["new query", "nothing new, partly answerable", "nothing new"]:
    """Whether reformulate found a query that was not tried yet."""
    if state["query"] not in state["queries_tried"]:
        return "new query"
    if state["confidence"] >= profile_of(state).grade.caveat:
        return "nothing new, partly answerable"
    return "nothing new"


def decide_verification(state: AnswerState) -> Literal["mode verifies", "mode does not"]:
    """Whether the answer is checked. One that cites nothing has nothing to check."""
    return "mode verifies" if profile_of(state).verify and state["citations"] else "mode does not"


def decide_support(state: AnswerState) -> Literal["supported", "unsupported claims"]:
    """Whether every claim held."""
    return "unsupported claims" if state["verification"]["status"] == "unsupported" else "supported"
