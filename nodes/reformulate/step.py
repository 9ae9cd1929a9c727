"""reformulate: choose what to search for next: what the model that was to write asked for, and was not tried already.

Without a model there is nothing new to try: no rewrite by rules has won an answer
(docs/decisions/08-queries-and-retries.md).
"""

from typing import Any

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.text.question import choose_untried
from nodes.context import Context, profile_of
from nodes.step import Step


class ReformulateInput(TypedDict):
    """The part of the state that reformulate reads."""

    profile: dict[str, Any]
    query: str
    queries_tried: list[str]
    retries: int
    missing: list[str]


class ReformulateUpdate(TypedDict):
    """The part of the state that reformulate writes. `query` stays as it was where there is nothing new to try."""

    query: str
    queries: list[str]
    retries: int


async def reformulate(state: ReformulateInput, runtime: Runtime[Context]) -> ReformulateUpdate:
    """Choose the queries of the next search, and count it."""
    most = max(1, profile_of(state).retrieval.queries)
    queries = choose_untried(state["missing"], state["queries_tried"])[:most]
    return ReformulateUpdate(
        query=queries[0] if queries else state["query"], queries=queries[1:], retries=state["retries"] + bool(queries)
    )


STEP = Step(run=reformulate, label="Searching for what is missing", knobs=frozenset({"retrieval.queries"}))
