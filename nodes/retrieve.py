"""retrieve: dense and lexical search side by side, fused."""

import asyncio
from typing import Any

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.documents import Candidate, Match
from domain.errors import EmbedderUnavailable
from nodes.context import Context
from nodes.fusion import fuse
from nodes.scope import profile_of, scope_of


class RetrieveInput(TypedDict):
    """What retrieve reads."""

    query: str
    queries_tried: list[str]
    workspace_id: str
    document_ids: list[str] | None
    profile: dict[str, Any]


class RetrieveUpdate(TypedDict):
    """What retrieve writes."""

    candidates: list[Candidate]
    queries_tried: list[str]


async def retrieve(state: RetrieveInput, runtime: Runtime[Context]) -> RetrieveUpdate:
    """Search both legs and fuse them. Where the embedder fails, the lexical leg answers alone, with a warning."""
    context = runtime.context
    knobs = profile_of(state).retrieval
    scope = scope_of(state)
    query = state["query"]

    async def search_dense() -> list[Match] | None:
        try:
            embedding = await context.embedder.embed_query(query)
        except EmbedderUnavailable as error:
            context.ledger.warn(f"Searched by words only: {error.message}")
            return None
        return await context.library.search_dense(scope, embedding, knobs.leg_limit)

    async def search_lexical() -> list[Match]:
        if knobs.fusion == "dense":
            return []
        return await context.library.search_lexical(scope, query, knobs.leg_limit)

    dense, lexical = await asyncio.gather(search_dense(), search_lexical())
    if dense is None and knobs.fusion == "dense":
        lexical = await context.library.search_lexical(scope, query, knobs.leg_limit)
    return RetrieveUpdate(
        candidates=fuse(dense or [], lexical, knobs)[: knobs.candidates],
        queries_tried=[*state["queries_tried"], query],
    )
