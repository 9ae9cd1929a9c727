"""Embeds, in the background, the chunks that were stored first."""

import logging
from time import monotonic

from domain.errors import Unavailable
from domain.ports.documents import EmbeddingBacklog, PassageEncoder

logger = logging.getLogger("askgraph.ingest")

SLICE_SECONDS = 4.0
"""Longest time at a stretch, so that a service that stops need not wait long."""

DELAY_SECONDS = 10.0
"""Wait before the next attempt while the embedding model does not answer."""

CLAIMED_SECONDS = 5.0
"""Wait before the next look where other workers are embedding all that is left; one of them may die."""


async def embed_backlog(backlog: EmbeddingBacklog, encoder: PassageEncoder) -> float | None:
    """Embed until nothing is left, or for `SLICE_SECONDS`. Returns the number of seconds after which to go on; None
    where nothing is left."""
    started = monotonic()
    try:
        while await backlog.embed_some(encoder):
            if monotonic() - started > SLICE_SECONDS:
                return 0.0
        return None if await backlog.is_empty() else CLAIMED_SECONDS
    except Unavailable as error:
        logger.warning("Embedding waits %.0f s: %s", DELAY_SECONDS, error.message)
        return DELAY_SECONDS
