"""rerank: read the candidates' texts, score each against the question, keep the best as numbered sources."""

from typing import Any

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.documents import Candidate, Passage, Source, TextLine
from domain.errors import EmbedderUnavailable, ModelUnavailable
from nodes.context import Context
from nodes.fusion import blend
from nodes.scope import profile_of, scope_of


class RerankInput(TypedDict):
    """What rerank reads."""

    standalone_question: str
    candidates: list[Candidate]
    workspace_id: str
    document_ids: list[str] | None
    profile: dict[str, Any]


class RerankUpdate(TypedDict):
    """What rerank writes."""

    candidates: list[Candidate]
    """Most relevant first, so that a saved state says how close each came to being a source."""
    sources: list[Source]


async def rerank(state: RerankInput, runtime: Runtime[Context]) -> RerankUpdate:
    """Turn candidates into sources. Where the reranker fails, the fused order stands, with a warning."""
    context = runtime.context
    knobs = profile_of(state).rerank
    candidates = {c["chunk_id"]: c for c in state["candidates"]}
    scope = scope_of(state)
    passages = await context.library.read_passages(scope, list(candidates))
    if not passages:
        return RerankUpdate(candidates=state["candidates"], sources=[])

    scores: list[float] | None = None
    if knobs.method != "none" and context.reranker is not None:
        try:
            scores = await context.reranker.score(scope, state["standalone_question"], passages)
        except (EmbedderUnavailable, ModelUnavailable) as error:
            context.ledger.warn(f"Kept the order of the search: {error.message}")
    relevance = blend([candidates[p.chunk_id] for p in passages], scores)
    for passage, score in zip(passages, relevance, strict=True):
        candidates[passage.chunk_id] = {**candidates[passage.chunk_id], "relevance": round(score, 4)}
    ranked = sorted(zip(passages, relevance, strict=True), key=lambda pair: -pair[1])
    best = ranked[: knobs.keep]
    return RerankUpdate(
        candidates=[candidates[passage.chunk_id] for passage, _ in ranked],
        sources=[
            _make_source(number, passage, candidates[passage.chunk_id], score)
            for number, (passage, score) in enumerate(best, 1)
        ]
    )


def _make_source(number: int, passage: Passage, candidate: Candidate, score: float) -> Source:
    return Source(
        number=number,
        chunk_id=passage.chunk_id,
        chunk_index=passage.chunk_index,
        document_id=passage.document_id,
        title=passage.title,
        heading_path=list(passage.heading_path),
        text=passage.text,
        start=passage.start,
        end=passage.end,
        page=passage.page,
        lines=[TextLine(start=x.start, end=x.end, page=x.page, box=x.box) for x in passage.lines],
        score=round(score, 4),
        dense=candidate["dense"],
        lexical=candidate["lexical"],
    )
