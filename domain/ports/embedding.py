"""Embedding models: text to vectors."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from domain.library.similarity import Scale
from domain.ports.models import UsageSink

Vector = NDArray[np.float32]


class Embedder(Protocol):
    """Text to vectors of unit length. What a call costs, if anything, goes to `sink`.

    Raises `EmbedderUnavailable`.
    """

    name: str
    """Identifies the model; stored with the index, because vectors of two models cannot be compared."""
    dimension: int
    scale: Scale | None
    """The scale of its similarities, where the model itself tells it."""

    async def embed_query(self, text: str, sink: UsageSink | None = None) -> Vector:
        """Shape (dimension,). Repeats are cheap."""

    async def embed_passages(self, texts: Sequence[str], sink: UsageSink | None = None) -> Vector:
        """Shape (len(texts), dimension), in order. Text past the model's window is cut."""


class ServedEmbedder(Embedder, Protocol):
    """An embedder that a service searches with."""

    is_local: bool
    """True if it runs on this machine."""
    problem: str | None
    """Problem of the most recent call; None if it was answered."""
