"""rerank: read the candidates' texts, score each against the question, keep the best as numbered sources."""

import asyncio
from typing import Any

import numpy as np
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.documents import Candidate, FoundSpan, Passage, Source
from domain.errors import EmbedderUnavailable, ModelError, ModelUnavailable
from domain.profile import RerankKnobs
from domain.scope import Scope, ScopeJson
from nodes.context import Context, profile_of, scope_of
from nodes.rerank.diversity import diversify
from nodes.rerank.links import find_linked, place_linked
from nodes.rerank.model_ranking import PROMPT, rank
from nodes.sources.fusion import blend, choose_examples, favour, reorder
from nodes.sources.neighbours import SPARE, widen_sources
from nodes.sources.optional import query_or_default
from nodes.sources.search import search
from nodes.sources.sourcing import make_source
from nodes.step import Step


class RerankInput(TypedDict):
    """The part of the state that rerank reads."""

    standalone_question: str
    candidates: list[Candidate]
    queries_tried: list[str]
    focus: list[str]
    scope: ScopeJson
    profile: dict[str, Any]


class RerankUpdate(TypedDict):
    """The part of the state that rerank writes."""

    candidates: list[Candidate]
    """Most relevant first, apart from those found by title. So a saved state shows how close each came to being a
    source."""
    sources: list[Source]
    queries_tried: list[str]
    """The queries so far, and the titles that were followed."""


async def rerank(state: RerankInput, runtime: Runtime[Context]) -> RerankUpdate:
    """Turn candidates into sources. Where the reranker fails, keep the fused order, with a warning."""
    context = runtime.context
    profile = profile_of(state)
    knobs = profile.rerank
    candidates = {c["chunk_id"]: c for c in state["candidates"]}
    scope = scope_of(state)
    passages = await context.library.read_passages(scope, list(candidates))
    if candidates and not passages:
        # The documents have been read anew since the state was saved.
        found = await search(state["standalone_question"], "", scope, profile.retrieval, context)
        candidates = {c["chunk_id"]: c for c in found}
        passages = await context.library.read_passages(scope, list(candidates))
    if not passages:
        return RerankUpdate(candidates=state["candidates"], sources=[], queries_tried=state["queries_tried"])

    question = state["standalone_question"]
    linked, scores = await _look_and_score(knobs, scope, question, passages, candidates, context)
    passages += _leave_out(passages, linked)
    # The local reranker's scores are weighed with the search's; others are probabilities already.
    if scores is not None and knobs.method != "local":
        relevance = scores
    else:
        relevance = blend(context.read_cosines([candidates[p.chunk_id] for p in passages]), scores)
        if scores is not None:
            relevance = await query_or_default(
                _learn(question, scope, passages, relevance, context),
                relevance,
                context.ledger,
                "Ranked by the question's own words",
            )
    for passage, score in zip(passages, relevance, strict=True):
        candidates[passage.chunk_id] = {**candidates[passage.chunk_id], "relevance": round(score, 4)}
    order = favour(relevance, [passage.document_id for passage in passages], state["focus"])
    by_order = sorted(range(len(passages)), key=lambda place: -order[place])
    ranked = _leave_out_copies([(passages[place], relevance[place]) for place in by_order])
    ranked = place_linked(ranked, {passage.chunk_id for passage in linked}, knobs.keep)
    best = await _choose(knobs, scope, ranked, context)
    spare = [pair for pair in ranked if pair not in best][:SPARE]
    by_similarity = scores is None and profile.retrieval.fusion == "dense"
    sources = [
        _show(number, passage, candidates[passage.chunk_id], score, by_similarity=by_similarity)
        for number, (passage, score) in enumerate([*best, *spare], 1)
    ]
    return RerankUpdate(
        candidates=[candidates[passage.chunk_id] for passage, _ in ranked],
        sources=await query_or_default(
            widen_sources(sources, len(best), scope, context.library),
            sources[: len(best)],
            context.ledger,
            "Sources were left as they are cut",
        ),
        queries_tried=list(dict.fromkeys([*state["queries_tried"], *(passage.title for passage in linked)])),
    )


async def _look_and_score(
    knobs: RerankKnobs,
    scope: Scope,
    question: str,
    found: list[Passage],
    candidates: dict[str, Candidate],
    context: Context,
) -> tuple[list[Passage], list[float] | None]:
    """Return the passages whose titles the found ones mention, and the scores of the found ones and the new ones, in
    order."""

    async def look() -> list[Passage]:
        finding = find_linked(question, scope, found, candidates, context)
        return await query_or_default(finding, [], context.ledger, "What the sources mention was not looked up")

    async def score(passages: list[Passage]) -> list[float] | None:
        return await _score(knobs, scope, question, passages, candidates, context)

    if knobs.method == "none":
        return [], None
    if knobs.method != "local":
        linked = await look()
        return linked, await score([*found, *_leave_out(found, linked)])
    # Locally each passage is scored by itself, so what was found does not wait for what it mentions.
    linked, scores = await asyncio.gather(look(), score(found))
    new = _leave_out(found, linked)
    added = await score(new) if new and scores is not None else []
    return linked, None if scores is None or added is None else [*scores, *added]


def _leave_out(known: list[Passage], passages: list[Passage]) -> list[Passage]:
    """Return the passages that are not among the known ones."""
    return [passage for passage in passages if passage not in known]


def _leave_out_copies(ranked: list[tuple[Passage, float]]) -> list[tuple[Passage, float]]:
    """Return the passages without those that stand at the same place of the same file, under another name."""
    first: dict[tuple[str, int], tuple[Passage, float]] = {}
    for pair in ranked:
        first.setdefault((pair[0].content_hash or pair[0].chunk_id, pair[0].chunk_index), pair)
    return list(first.values())


async def _score(
    knobs: RerankKnobs,
    scope: Scope,
    question: str,
    passages: list[Passage],
    candidates: dict[str, Candidate],
    context: Context,
) -> list[float] | None:
    """Return the reranker's scores; None to keep the order of the search."""
    if not knobs.applies_to(question):
        return None
    if knobs.method == "model":
        shown = [_show(n, passage, candidates[passage.chunk_id], 0.0) for n, passage in enumerate(passages, 1)]
        return await rank(question, shown, context)
    reranker = context.rerankers.get(knobs.method)
    if reranker is None:
        context.ledger.warn(f"Kept the order of the search: there is no reranker {knobs.method!r} here.")
        return None
    try:
        return await reranker.score(scope, question, passages, context.ledger)
    except (EmbedderUnavailable, ModelError, ModelUnavailable) as error:
        context.ledger.warn(f"Kept the order of the search: {error.message}")
        return None


async def _learn(
    question: str, scope: Scope, passages: list[Passage], relevance: list[float], context: Context
) -> list[float]:
    """Return the relevance of the passages after relevance feedback: words of the best ones count besides the
    question's."""
    chunk_ids = [passage.chunk_id for passage in passages]
    examples = choose_examples(chunk_ids, relevance)
    related = {
        match.chunk_id: match.score
        for match in await context.library.score_related(scope, question, examples, chunk_ids)
    }
    return reorder(relevance, [related.get(chunk_id, 0.0) for chunk_id in chunk_ids])


async def _choose(
    knobs: RerankKnobs, scope: Scope, ranked: list[tuple[Passage, float]], context: Context
) -> list[tuple[Passage, float]]:
    """Return the passages that become sources, most relevant first."""
    if knobs.mmr_lambda is None or len(ranked) <= knobs.keep:
        return ranked[: knobs.keep]
    embeddings = await query_or_default(
        context.library.read_embeddings(scope, [passage.chunk_id for passage, _ in ranked]),
        {},
        context.ledger,
        "The most relevant sources were kept, however alike",
    )
    if len(embeddings) < len(ranked):
        # Somebody removed a document just now.
        return ranked[: knobs.keep]
    rows = np.stack([embeddings[passage.chunk_id] for passage, _ in ranked])
    chosen = diversify([score for _, score in ranked], rows, knobs.keep, knobs.mmr_lambda)
    return [ranked[index] for index in sorted(chosen)]


def _show(number: int, passage: Passage, candidate: Candidate, score: float, *, by_similarity: bool = False) -> Source:
    """Make a source of a candidate. With `by_similarity` it shows the similarity that it was found by, if known."""
    if by_similarity and candidate["dense"] is not None:
        score = max(0.0, candidate["dense"])
    source = make_source(number, passage, score=score, dense=candidate["dense"], lexical=candidate["lexical"])
    source["found"] = [FoundSpan(start=passage.start, end=passage.end, score=source["score"])]
    if passage.lead:
        source["lead"] = passage.lead
    return source


STEP = Step(
    run=rerank,
    label="Ranking what was found",
    knobs=frozenset({"rerank", "retrieval"}),
    prompts=[PROMPT],
    asks="small",
    retry=True,
)
