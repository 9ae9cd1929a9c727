"""retrieve: dense and lexical search side by side, fused."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.documents import Candidate, Match, Scope
from domain.errors import EmbedderUnavailable
from domain.profile import RetrievalKnobs
from nodes.context import Context
from nodes.expansion import expand, merge
from nodes.fusion import fuse
from nodes.local.spelling import correct
from nodes.scope import profile_of, scope_of


class RetrieveInput(TypedDict):
    """What retrieve reads."""

    question: str
    query: str
    queries_tried: list[str]
    retries: int
    workspace_id: str
    document_ids: list[str] | None
    profile: dict[str, Any]


class RetrieveUpdate(TypedDict):
    """What retrieve writes."""

    query: str
    """As it was searched for: with its misspelt words corrected."""
    candidates: list[Candidate]
    queries_tried: list[str]
    """With every query that was searched for besides, and a made-up answer that was."""


async def retrieve(state: RetrieveInput, runtime: Runtime[Context]) -> RetrieveUpdate:
    """Search both legs and fuse them. Where the embedder fails, the lexical leg answers alone, with a warning."""
    context = runtime.context
    knobs = profile_of(state).retrieval
    scope = scope_of(state)
    query = state["query"]
    background = query.removeprefix(state["question"]) if query.startswith(state["question"]) else ""
    # Side by side, because a question whose words are all known is the rule, and then has lost no time.
    candidates, spelt = await asyncio.gather(
        _search(query, scope, knobs, context, background), _correct(query, scope, knobs, context)
    )
    if spelt != query:
        candidates = await _search(spelt, scope, knobs, context, background)
    # A retry is another wording already.
    added = [] if state["retries"] else await expand(spelt, knobs, context)
    # Of an answer that is made up, the meaning counts and not the words.
    likewise = knobs if knobs.expansion == "multi_query" else knobs.model_copy(update={"fusion": "dense"})
    rankings = await asyncio.gather(*(_search(text, scope, likewise, context) for text in added))
    return RetrieveUpdate(
        query=spelt,
        candidates=merge([candidates, *rankings], knobs.rrf_k)[: knobs.candidates],
        queries_tried=[*state["queries_tried"], spelt, *added],
    )


async def _search(
    query: str, scope: Scope, knobs: RetrievalKnobs, context: Context, background: str = ""
) -> list[Candidate]:
    """What the query finds. `background`, with which it may end, was added to the question as asked and counts half:
    a mean of two embeddings, and of two BM25 sums."""
    core = query.removesuffix(background)
    texts = [query] if core == query else [core, query]

    async def search_dense() -> list[Match] | None:
        try:
            embeddings = [await context.embedder.embed_query(text) for text in texts]
        except EmbedderUnavailable as error:
            context.ledger.warn(f"Searched by words only: {error.message}")
            return None
        mean = np.mean(embeddings, axis=0)
        return await context.library.search_dense(scope, mean / np.linalg.norm(mean), knobs.leg_limit)

    async def search_lexical() -> list[Match]:
        if knobs.fusion == "dense":
            return []
        return await context.library.search_lexical(scope, " ".join(texts), knobs.leg_limit)

    dense, lexical = await asyncio.gather(search_dense(), search_lexical())
    if dense is None and knobs.fusion == "dense":
        lexical = await context.library.search_lexical(scope, " ".join(texts), knobs.leg_limit)
    return fuse(dense or [], lexical, knobs)


async def _correct(query: str, scope: Scope, knobs: RetrievalKnobs, context: Context) -> str:
    async def suggest(words: Sequence[str], unfinished: str | None) -> Mapping[str, str]:
        return await context.library.suggest_words(scope, words, unfinished)

    return await correct(query, suggest) if knobs.correct_spelling else query
