"""Score what one leg of a search found by the other leg, too."""

import asyncio
from collections.abc import Sequence

from domain.documents import Match
from domain.ports.embedding import Vector
from domain.ports.library import Library
from domain.scope import Scope

Leg = Sequence[Match]


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
