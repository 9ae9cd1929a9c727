"""rerank: read the candidates' texts, score each against the question, keep the best as numbered sources."""

import asyncio
from collections.abc import Collection
from itertools import chain
from typing import Any

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.documents import Candidate, Source
from domain.scope import ScopeJson
from domain.state import Task
from nodes.context import Context, profile_of, scope_of
from nodes.ranking.model_ranking import PROMPT
from nodes.ranking.ranking import rank_candidates
from nodes.sources.looking_up import look_up
from nodes.sources.neighbours import SPARE, number_sources, widen_sources
from nodes.sources.optional import query_or_default
from nodes.step import Step

_BROAD: Collection[Task] = ("compare", "list", "summarise")


class RerankInput(TypedDict):
    """The part of the state that rerank reads."""

    corrected_question: str
    task: Task
    query: str
    retries: int
    candidates: list[Candidate]
    sources: list[Source]
    """Those of the searches before: they stay, and keep their places."""
    focus: list[str]
    scope: ScopeJson
    profile: dict[str, Any]


class RerankUpdate(TypedDict):
    """The part of the state that rerank writes."""

    candidates: list[Candidate]
    """Most relevant first, apart from those found by title. So a saved state shows how close each came to being a
    source."""
    sources: list[Source]


async def rerank(state: RerankInput, runtime: Runtime[Context]) -> RerankUpdate:
    """Turn candidates into sources: the best for the question, and those of each further query besides. Without a
    model that writes, the rows of tables that the question names come before them. Where the reranker fails, keep the
    fused order, with a warning."""
    context = runtime.context
    profile = profile_of(state)
    knobs = profile.rerank
    scope = scope_of(state)
    # A retry asks for what is missing, which its sources are judged by.
    asked = state["query"] if state["retries"] else state["corrected_question"]
    groups: dict[str, list[Candidate]] = {}
    for candidate in state["candidates"]:
        groups.setdefault(candidate.get("query", asked), []).append(candidate)
    rankings = await asyncio.gather(
        *(
            rank_candidates(question, candidates, state["focus"] if question == asked else [], profile, scope, context)
            for question, candidates in groups.items()
        )
    )
    sources = list(state["sources"])
    for question, ranking in zip(groups, rankings, strict=True):
        first = max(knobs.keep, knobs.keep_broad) if state["task"] in _BROAD else knobs.keep
        keep = knobs.keep_further if state["retries"] or question != asked else first
        found = [make_source() for _, make_source in ranking[: keep + SPARE]]
        best = min(keep, len(found))
        sources = await query_or_default(
            widen_sources(found, best, scope, context.library, sources),
            number_sources([*sources, *found[:best]]),
            context.ledger,
            "Sources were left as they are cut",
        )
    if context.models.large is None and not state["retries"]:
        parts = await asyncio.gather(*(look_up(part, sources, scope, context) for part in groups if part != asked))
        looked_up = list(chain(*parts)) or await look_up(asked, sources, scope, context)
        sources = number_sources([*looked_up, *sources])
    candidates = [candidate for ranking in rankings for candidate, _ in ranking] or state["candidates"]
    return RerankUpdate(candidates=candidates, sources=sources)


STEP = Step(
    run=rerank,
    label="Ranking what was found",
    kind="reranker",
    knobs=frozenset({"rerank", "retrieval"}),
    prompts=[PROMPT],
    asks="small",
    retry=True,
)
