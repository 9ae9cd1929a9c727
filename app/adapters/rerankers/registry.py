"""The rerankers, a line for each: the name that `rerank.method` has for it, and its module.

The module has `open_reranker`, an asynchronous context manager that takes an `Opening` and yields a `Reranker`. It is
imported where a mode names the reranker, or where the setting of the same name is set. A reranker on another server may
have `find_problem`, a check of health.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # Imports NumPy and ONNX Runtime; the names are wanted without.
    from app.adapters.embeddings.onnx import OnnxEmbedder
    from app.adapters.prices import PriceTable
    from app.settings import Settings
    from domain.ports.library import TokenVectors
    from domain.ports.reranking import Reranker

RERANKERS = {
    "local": "app.adapters.rerankers.late_interaction",
    "cross_encoder": "app.adapters.rerankers.cross_encoder",
    "cohere": "app.adapters.rerankers.cohere",
}

METHODS = frozenset({*RERANKERS, "model", "none"})
"""The values of `rerank.method`: `model` and `none` are the step's own."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What a reranker may be made of."""

    settings: "Settings"
    prices: "PriceTable"
    embedder: "OnnxEmbedder"
    """The model that ships."""
    token_vectors: "TokenVectors"
    wanted_by: Sequence[str]
    """The modes that name the reranker."""


def open_reranker(name: str, opening: Opening) -> "AbstractAsyncContextManager[Reranker]":
    """Open the reranker of this name. Raises `ConfigurationError` where it cannot be used."""
    opened: AbstractAsyncContextManager[Reranker] = import_module(RERANKERS[name]).open_reranker(opening)
    return opened
