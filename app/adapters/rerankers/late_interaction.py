"""Reranks by late interaction (ColBERT: Khattab & Zaharia, SIGIR 2020) over vectors that ingestion stored.

Each passage keeps one short vector per token: the model's token vector, projected to `DIMENSIONS` and quantised to 4
bits per value, 48 bytes per token. A question's score against a passage is the mean, over the question's tokens, of the
highest dot product with any token of the passage. The sizes were chosen by measuring: docs/decisions/07-reranking.md.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.rerankers.registry import Opening
from domain.documents import Passage, embedding_text
from domain.ports.documents import ChunkVectors
from domain.ports.embedding import Vector
from domain.ports.library import TokenVectors
from domain.ports.models import UsageSink
from domain.scope import Scope

DIMENSIONS = 96
PROJECTION_PATH = Path(__file__).parents[1] / "data" / "token_projection.npy"

LEVELS = 16
STEP = 2 * 2.6 / LEVELS / DIMENSIONS**0.5
"""Width of a quantisation level: the 16 levels span 2.6 standard deviations either side. The projection ends in a
rotation, so that all values of a unit vector share the standard deviation 1 / sqrt(DIMENSIONS)."""


ENCODED = 4
"""Limit of passages that a question embeds because ingestion has not done so yet, about 15 ms each."""


class LateInteractionEncoder:
    """A `PassageEncoder`: embedding and token vectors from one run of the model."""

    def __init__(self, embedder: OnnxEmbedder) -> None:
        self._embedder = embedder
        self._projection = read_projection()

    async def encode(self, texts: Sequence[str]) -> list[ChunkVectors]:
        """Return the embedding and the stored form of the token vectors of each text, in order.

        Raises `EmbedderUnavailable`.
        """
        vectors: dict[int, ChunkVectors] = {}
        async for position, embedding, tokens, places in self._embedder.stream_passages(texts):
            vectors[position] = ChunkVectors(
                embedding, compress(project(tokens, self._projection)), compress_places(places)
            )
        return [vectors[position] for position in range(len(texts))]


@asynccontextmanager
async def open_reranker(opening: Opening) -> AsyncIterator["LateInteractionReranker"]:
    """Open the reranker that ships."""
    yield LateInteractionReranker(opening.embedder, opening.token_vectors)


class LateInteractionReranker:
    """A `Reranker` that runs the model on the question only, and on passages without stored token vectors: on all where
    none has any, as in another application's table, else on the first `ENCODED`. The others, which wait to be embedded,
    get the average score, so that the search decides about them."""

    name = "late-interaction/all-MiniLM-L6-v2-onnx-int8"

    def __init__(self, embedder: OnnxEmbedder, token_vectors: TokenVectors) -> None:
        self._embedder = embedder
        self._token_vectors = token_vectors
        self._encoder = LateInteractionEncoder(embedder)
        self._projection = read_projection()

    async def score(self, scope: Scope, question: str, passages: Sequence[Passage], sink: UsageSink) -> list[float]:
        """Return the mean of the highest similarities, 0-1. Unrelated text scores about 0.3, an answer 0.6 and more."""
        if not passages:
            return []
        tokens, stored = await asyncio.gather(
            self._embedder.embed_query_tokens(question),
            self._token_vectors.read_tokens(scope, [passage.chunk_id for passage in passages]),
        )
        missing = [passage for passage in passages if not stored.get(passage.chunk_id)]
        left_out = {passage.chunk_id for passage in missing[ENCODED:]} if stored else set()
        missing = [passage for passage in missing if passage.chunk_id not in left_out]
        encoded = await self._encoder.encode([embedding_text(p.title, p.heading_path, p.text) for p in missing])
        stored |= {passage.chunk_id: vectors.tokens for passage, vectors in zip(missing, encoded, strict=True)}
        compared = [passage.chunk_id for passage in passages if passage.chunk_id not in left_out]
        scores = compare(project(tokens, self._projection), [stored[chunk_id] for chunk_id in compared])
        known = dict(zip(compared, scores, strict=True))
        average = sum(scores) / len(scores)
        return [known.get(passage.chunk_id, average) for passage in passages]


def compress(vectors: Vector) -> bytes:
    """Quantise unit rows of `DIMENSIONS` values to 4 bits per value, two values per byte, row after row."""
    levels = np.clip(np.floor(vectors / STEP) + LEVELS // 2, 0, LEVELS - 1).astype(np.uint8)
    pairs: NDArray[np.uint8] = levels[:, 0::2] << 4 | levels[:, 1::2]
    return pairs.tobytes()


def compress_places(places: NDArray[np.int32]) -> bytes:
    """Return the places in two bytes each; nothing where one does not fit."""
    return places.astype("<u2").tobytes() if places.max(initial=0) < 2**16 else b""


def compare(question: Vector, stored: Sequence[bytes]) -> list[float]:
    """Return MaxSim of the question's token vectors (tokens, DIMENSIONS) with each passage, clipped to 0-1. Text
    without a single word scores 0."""
    scores = np.zeros(len(stored), dtype=np.float32)
    filled = [index for index, passage in enumerate(stored) if passage]
    if len(question) and filled:
        pairs = np.frombuffer(b"".join(stored), dtype=np.uint8).reshape(-1, DIMENSIONS // 2)
        # Multiply the raw levels: their width and offset are then applied once per dot product instead of once per
        # value.
        products = (pairs >> 4).astype(np.float32) @ question[:, 0::2].T
        products += (pairs & 0x0F).astype(np.float32) @ question[:, 1::2].T
        similarities = (products + (0.5 - LEVELS // 2) * question.sum(axis=1)) * STEP
        lengths = [len(stored[index]) // (DIMENSIONS // 2) for index in filled]
        starts = np.cumsum([0, *lengths[:-1]])
        scores[filled] = np.maximum.reduceat(similarities, starts, axis=0).mean(axis=1)
    clipped: list[float] = scores.clip(0, 1).tolist()
    return clipped


def decompress(stored: bytes) -> Vector:
    """Return the vectors that `compress` made the bytes of, shape (tokens, DIMENSIONS), about as long as they were."""
    pairs = np.frombuffer(stored, dtype=np.uint8).reshape(-1, DIMENSIONS // 2)
    levels = np.empty((len(pairs), DIMENSIONS), dtype=np.float32)
    levels[:, 0::2], levels[:, 1::2] = pairs >> 4, pairs & 0x0F
    levels += 0.5 - LEVELS // 2
    levels *= STEP
    return levels


def read_projection() -> Vector:
    """Read the projection, shape (model dimension, DIMENSIONS), made by a88e208a:benchmarks/fit_projection.py."""
    return cast(NDArray[np.float16], np.load(PROJECTION_PATH)).astype(np.float32)


def project(tokens: Vector, projection: Vector) -> Vector:
    """Return the token vectors in the form that is stored, before it is quantised: unit rows of `DIMENSIONS`."""
    projected = tokens @ projection
    return cast(Vector, projected / np.linalg.norm(projected, axis=1, keepdims=True))
