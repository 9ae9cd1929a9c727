"""How runs ended, and how two endings differ: the one comparison for what-if tables, diffs and many runs."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from typing_extensions import TypedDict

from domain.documents import Citation, name_cited
from domain.state import ExecutedStep, add_costs, count_tokens, sum_timings

Aspect = Literal["outcome", "answer", "citations", "verdict"]
"""What may flip."""


class CitedPlace(TypedDict):
    """A place in a document that an answer cites."""

    document_id: str
    name: str
    """The document's title."""
    start: int
    end: int


class Ending(TypedDict):
    """How a run ended."""

    outcome: str | None
    error: str | None
    """Why it failed; None where it did not."""
    route: str
    answer: str
    citations: list[CitedPlace]
    verdict: str
    """The status of the verification, and how many claims are unsupported."""
    confidence: float
    answered_by: str
    retries: int
    path: list[str]
    """Its steps, in order."""


class Compared(TypedDict):
    """How an ending differs from another one."""

    flipped: list[Aspect]
    """What is otherwise."""
    gained: list[CitedPlace]
    """Places that only the second one cites."""
    lost: list[CitedPlace]


class Costs(TypedDict):
    """The time and the money that a run took."""

    ms: float
    """Sum over the steps."""
    by_node: dict[str, float]
    """Milliseconds by step."""
    calls: int
    tokens: int
    """Tokens that were read and written."""
    cost: float | None


def read_ending(state: Mapping[str, Any], *, error: str | None = None, path: Sequence[str] | None = None) -> Ending:
    """Read how a run ended from its final state."""
    claims = state["verification"]["claims"]
    unsupported = sum(claim["verdict"] == "unsupported" for claim in claims)
    verdict = state["verification"]["status"]
    return Ending(
        outcome=None if error else state["outcome"],
        error=error,
        route=state["route"],
        answer=state["answer"],
        citations=_list_places(state["citations"]),
        verdict=f"{verdict}, {unsupported} of {len(claims)} claims unsupported" if unsupported else verdict,
        confidence=state["confidence"],
        answered_by=state["answered_by"],
        retries=state["retries"],
        path=[step["node"] for step in state["steps"]] if path is None else list(path),
    )


def compare(one: Ending, other: Ending) -> Compared:
    """Compare two endings."""
    mine, theirs = ({_key(place): place for place in ending["citations"]} for ending in (one, other))
    gained = [place for key, place in theirs.items() if key not in mine]
    lost = [place for key, place in mine.items() if key not in theirs]
    flipped: list[Aspect] = []
    if (one["outcome"], one["error"]) != (other["outcome"], other["error"]):
        flipped.append("outcome")
    if one["answer"].split() != other["answer"].split():
        flipped.append("answer")
    if gained or lost:
        flipped.append("citations")
    if one["verdict"] != other["verdict"]:
        flipped.append("verdict")
    return Compared(flipped=flipped, gained=gained, lost=lost)


def sum_costs(steps: Sequence[ExecutedStep]) -> Costs:
    """Sum up what a run's steps took."""
    by_node = sum_timings(steps)
    usage = [used for step in steps for used in step["usage"]]
    return Costs(
        ms=round(sum(by_node.values()), 2),
        by_node=by_node,
        calls=sum(used["calls"] for used in usage),
        tokens=count_tokens(usage),
        cost=add_costs(used["cost"] for used in usage),
    )


def _list_places(citations: Sequence[Citation]) -> list[CitedPlace]:
    return [
        CitedPlace(
            # What came from outside is told apart by its call.
            document_id=citation["document_id"] or citation["chunk_id"],
            name=name_cited(citation),
            start=citation["start"],
            end=citation["end"],
        )
        for citation in citations
    ]


def _key(place: CitedPlace) -> tuple[str, int, int]:
    return place["document_id"], place["start"], place["end"]
