"""Chunk vectors for an index of another model than the one that ships."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from domain.ports.documents import ChunkVectors, PassageEncoder
from domain.ports.embedding import Embedder
from domain.ports.models import FailedAttempt, ModelUsage

logger = logging.getLogger("askgraph.ingest")


class TwoModelEncoder:
    """A `PassageEncoder` with embeddings from one model and token vectors from the local one: reranking by late
    interaction is local, whatever model filled the index."""

    def __init__(self, embedder: Embedder, tokens: PassageEncoder) -> None:
        self._embedder = embedder
        self._tokens = tokens

    async def encode(self, texts: Sequence[str]) -> list[ChunkVectors]:
        """Return both vectors of each text, in order. The cost of the embeddings is logged.

        Raises `EmbedderUnavailable`.
        """
        encoding = asyncio.create_task(self._tokens.encode(texts))
        try:
            embeddings = await self._embedder.embed_passages(texts, _Log(len(texts)))
        except BaseException:
            encoding.cancel()
            raise
        return [
            replace(vectors, embedding=embedding) for vectors, embedding in zip(await encoding, embeddings, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class _Log:
    texts: int

    def record(self, usage: ModelUsage) -> None:
        cost = "at an unknown price" if usage.cost is None else f"for ${usage.cost:.6f}"
        logger.info("Embedded %d passages with %s: %d tokens %s", self.texts, usage.model, usage.input_tokens, cost)

    def record_failure(self, failure: FailedAttempt) -> None:
        """Ignore what was repeated."""

    def record_thoughts(self, thoughts: str) -> None:
        """Embedding models have none."""
