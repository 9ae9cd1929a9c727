"""Ranks what a search found by its relevance to a question."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from domain.documents import Candidate, FoundSpan, Passage, Source
from domain.errors import EmbedderUnavailable, ModelError, ModelUnavailable
from domain.profile import Profile, RerankKnobs
from domain.scope import Scope
from nodes.context import Context
from nodes.ranking.links import find_linked, place_linked
from nodes.ranking.model_ranking import rank
from nodes.sources.fusion import blend, choose_examples, favour, reorder
from nodes.sources.neighbours import number_sources
from nodes.sources.optional import query_or_default
from nodes.sources.search import search
from nodes.sources.sourcing import make_source


async def rank_candidates(
    question: str,
    found: Sequence[Candidate],
    focus: Sequence[str],
    profile: Profile,
    scope: Scope,
    context: Context,
) -> list[tuple[Candidate, Callable[[], Source]]]:
    """Return the candidates with their relevance to the question, most relevant first, each with what makes a source of
    it."""
    knobs = profile.rerank
    candidates = {candidate["chunk_id"]: candidate for candidate in found}
    passages = await context.library.read_passages(scope, list(candidates))
    if candidates and not passages:
        # The documents have been read anew since the state was saved.
        candidates = {c["chunk_id"]: c for c in await search(question, "", scope, profile.retrieval, context)}
        passages = await context.library.read_passages(scope, list(candidates))
    if not passages:
        return []
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
    order = favour(relevance, [passage.document_id for passage in passages], focus)
    by_order = sorted(range(len(passages)), key=lambda place: -order[place])
    ranked = _leave_out_copies([(passages[place], relevance[place]) for place in by_order])
    ranked = place_linked(ranked, {passage.chunk_id for passage in linked}, knobs.keep)
    by_similarity = scores is None and profile.retrieval.fusion == "dense"
    return [
        (
            {**candidates[passage.chunk_id], "relevance": round(score, 4)},
            partial(_show, passage, candidates[passage.chunk_id], score, by_similarity=by_similarity),
        )
        for passage, score in ranked
    ]


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
        shown = [_show(passage, candidates[passage.chunk_id], 0.0) for passage in passages]
        return await rank(question, number_sources(shown), context)
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


def _show(passage: Passage, candidate: Candidate, score: float, *, by_similarity: bool = False) -> Source:
    """Make a source, not numbered yet, of a candidate. With `by_similarity` it shows the similarity that it was found
    by, if known."""
    if by_similarity and candidate["dense"] is not None:
        score = max(0.0, candidate["dense"])
    source = make_source(0, passage, score=score, dense=candidate["dense"], lexical=candidate["lexical"])
    span = FoundSpan(start=passage.start, end=passage.end, score=source["score"])
    source["found"] = [span if "query" not in candidate else {**span, "query": candidate["query"]}]
    return source
