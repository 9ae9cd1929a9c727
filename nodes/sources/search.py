"""Search dense and lexical side by side, and fuse the results."""

import asyncio
from collections.abc import Sequence

import numpy as np

from domain.documents import Candidate, Match
from domain.errors import EmbedderUnavailable
from domain.ports.embedding import Vector
from domain.ports.library import Library
from domain.profile import RetrievalKnobs
from domain.scope import Scope
from nodes.context import Context
from nodes.sources.fusion import fuse
from nodes.sources.optional import query_or_default

Leg = Sequence[Match]


async def search(core: str, background: str, scope: Scope, knobs: RetrievalKnobs, context: Context) -> list[Candidate]:
    """Return what the query finds. `background`, the words appended to the question, counts half: a mean of two
    embeddings, and of two BM25 sums (docs/decisions/08-queries-and-retries.md)."""
    texts = [core, core + background] if background else [core]
    words = " ".join(texts)

    async def search_dense() -> tuple[Vector | None, Sequence[Match]]:
        try:
            embeddings = [await context.embedder.embed_query(text, context.ledger) for text in texts]
            mean = np.mean(embeddings, axis=0)
            embedding = mean / np.linalg.norm(mean)
            return embedding, await context.library.search_dense(scope, embedding, knobs.leg_limit)
        except EmbedderUnavailable as error:
            context.ledger.warn(f"Searched by words only: {error.message}")
            return None, []

    async def search_lexical() -> Sequence[Match]:
        if knobs.fusion == "dense":
            return []
        return await context.library.search_lexical(scope, words, knobs.leg_limit)

    (embedding, dense), lexical = await asyncio.gather(search_dense(), search_lexical())
    if embedding is None:
        if knobs.fusion == "dense":
            lexical = await context.library.search_lexical(scope, words, knobs.leg_limit)
    elif lexical and knobs.fusion != "rrf":  # which looks at ranks, not at scores
        dense, lexical = await query_or_default(
            score_across_legs(dense, lexical, scope, embedding, words, context.library),
            (dense, lexical),
            context.ledger,
            "What only one search found was not scored by the other",
        )
    return fuse(dense, lexical, knobs)


async def score_across_legs(
    dense: Leg, lexical: Leg, scope: Scope, embedding: Vector, text: str, library: Library
) -> tuple[Leg, Leg]:
    """Return both legs with a score for every chunk that either found.

    Fusion would otherwise have to guess the score of what a leg did not return, and the best passages are often found
    by one leg only. Measured: docs/decisions/06-retrieval-and-fusion.md.
    """
    by_dense = {match.chunk_id for match in dense}
    by_lexical = {match.chunk_id for match in lexical}
    more_dense, more_lexical = await asyncio.gather(
        library.score_dense(scope, embedding, [match.chunk_id for match in lexical if match.chunk_id not in by_dense]),
        library.score_lexical(scope, text, [match.chunk_id for match in dense if match.chunk_id not in by_lexical]),
    )
    return [*dense, *more_dense], [*lexical, *more_lexical]
