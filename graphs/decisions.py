"""The conditional edges. Each router takes the state and names an edge; `answer.py` says where the edge leads.

`depends_on` says which fields and knobs a router decides by; the workbench asks it what a change would affect. A test
compares this with what runs really read.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from domain.state import AnswerState, Route
from nodes.ask_back.step import list_choices
from nodes.context import profile_of
from nodes.degrade.step import can_answer
from nodes.prompting.answerers import LOCAL


@dataclass(frozen=True, slots=True)
class Router:
    """What an edge is chosen by."""

    decide: Callable[[AnswerState], str]
    fields: frozenset[str]
    knobs: frozenset[str]

    def __call__(self, state: AnswerState) -> str:
        """Return the name of the edge."""
        return self.decide(state)


def depends_on(*fields: str, knobs: Collection[str] = ()) -> Callable[[Callable[[AnswerState], str]], Router]:
    """Make a function that chooses an edge by these fields and knobs a router."""
    return lambda decide: Router(decide, frozenset(fields), frozenset(knobs))


@depends_on("route")
def decide_route(state: AnswerState) -> Route:
    """Follow route's classification of the question."""
    return state["route"]


@depends_on(
    "unclear",
    "corrected_question",
    "sources",
    "confidence",
    "answerer",
    knobs=("grade.formula", "grade.sufficient", "grade.caveat", "budget"),
)
def decide_sufficiency(state: AnswerState) -> Literal["sufficient", "poor", "over budget", "ambiguous"]:
    """Decide from the confidence whether to answer or to abstain; ask back where the question does not say what it is
    about and several documents may be meant; where none of several may, nobody knows. A model that writes gets whatever
    was found: it says itself what that does not hold, and what is nearest, which a quote cannot."""
    documents = {source["document_id"] for source in state["sources"] if "outside" not in source}
    is_unclear = state["unclear"] and len(documents) > 1
    meant = list_choices(state["corrected_question"], state["sources"]) if is_unclear else []
    if len(meant) > 1:
        return "ambiguous"
    knobs = profile_of(state).grade
    judges_itself = state["answerer"] not in ("", LOCAL) and knobs.formula == "judged" and bool(state["sources"])
    is_poor = state["confidence"] < min(knobs.caveat, knobs.sufficient) or (is_unclear and not meant)
    if not judges_itself and is_poor:
        return "poor"
    # To quote costs nothing.
    return "over budget" if state["answerer"] != LOCAL and _is_over_budget(state) else "sufficient"


@depends_on("work")
def decide_work(state: AnswerState) -> Literal["uses tools", "has enough"]:
    """Run the tools that the agent's model calls, until it calls none."""
    return "uses tools" if state["work"] and state["work"][-1]["calls"] else "has enough"


@depends_on("work", knobs=("research.rounds",))
def decide_next_round(state: AnswerState) -> Literal["rounds left", "none left"]:
    """Ask the agent's model again until its rounds are used up."""
    return "rounds left" if len(state["work"]) < profile_of(state).research.rounds else "none left"


@depends_on("choices", "outcome")
def decide_description(state: AnswerState) -> Literal["described", "ambiguous", "a model writes"]:
    """Ask back where the name of what to describe may mean several things. Have a model write what is not answered."""
    if state["choices"]:
        return "ambiguous"
    return "described" if state["outcome"] else "a model writes"


@depends_on("query", "queries_tried", knobs=("budget",))
def decide_retry(state: AnswerState) -> Literal["new query", "nothing new", "over budget"]:
    """Search again if a query was asked for that was not tried yet; else answer from what there is."""
    if _is_over_budget(state):
        return "over budget"
    return "nothing new" if state["query"] in state["queries_tried"] else "new query"


@depends_on("failure", "lacks", "outcome", "citations", knobs=("verify",))
def decide_answer(
    state: AnswerState,
) -> Literal["answerer failed", "needs searches", "needs tools", "mode verifies", "mode does not"]:
    """Get the model that writes what it lacks. Verify a finished answer where the mode does. An abstention that names
    nothing near claims nothing."""
    if state["failure"] is not None:
        return "answerer failed"
    if state["lacks"] != "nothing":
        return "needs tools" if state["lacks"] == "tools" else "needs searches"
    verifies = profile_of(state).verify and (state["outcome"] != "abstained" or bool(state["citations"]))
    return "mode verifies" if verifies else "mode does not"


@depends_on("failure", "confidence", "outline", "answerer", knobs=("grade.sufficient", "grade.caveat"))
def decide_remedy(state: AnswerState) -> Literal["answer otherwise", "quote the document", "nothing to answer from"]:
    """Answer by other means where the sources are good enough; else abstain. Without a model, a summary is quoted as
    describe does it."""
    if not can_answer(state):
        return "nothing to answer from"
    return "quote the document" if state["outline"] and state["answerer"] == LOCAL else "answer otherwise"


@depends_on("verification")
def decide_support(state: AnswerState) -> Literal["supported", "unsupported claims"]:
    """Reconcile an answer that verify found unsupported."""
    return "unsupported claims" if state["verification"]["status"] == "unsupported" else "supported"


@depends_on("failure")
def decide_repair(state: AnswerState) -> Literal["reconciled", "nothing is left"]:
    """End with the corrected answer; fall back where reconcile withdrew a model's whole draft."""
    return "reconciled" if state["failure"] is None else "nothing is left"


def _is_over_budget(state: AnswerState) -> bool:
    return profile_of(state).budget.find_breach(state["steps"]) is not None
