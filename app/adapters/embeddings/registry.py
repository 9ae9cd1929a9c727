"""The embedding models besides the one that ships, a line for each: how `ASKGRAPH_EMBEDDINGS` begins, and the module.

The module has `open_embedder`, an asynchronous context manager that takes the value of `ASKGRAPH_EMBEDDINGS`, the
settings and the prices, and yields a `ServedEmbedder`. It is imported where the model is named.
"""

from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import Protocol

from app.adapters.prices import PriceTable
from app.settings import Settings
from domain.errors import ConfigurationError
from domain.library.similarity import Scale
from domain.ports.embedding import Embedder

EMBEDDERS = {
    "multilingual": "app.adapters.embeddings.multilingual",
    "folder": "app.adapters.embeddings.folder",
    "package": "app.adapters.embeddings.folder",
    "openai": "app.adapters.embeddings.openai",
}


class ServedEmbedder(Embedder, Protocol):
    """An embedder that a service searches with."""

    is_local: bool
    """True if it runs on this machine."""
    problem: str | None
    """Problem of the most recent call; None if it was answered."""
    scale: Scale | None
    """The scale of its similarities, where the model itself tells it."""


def open_embedder(
    embeddings: str, settings: Settings, prices: PriceTable
) -> AbstractAsyncContextManager[ServedEmbedder]:
    """Open the model that `embeddings` names. A model that does not answer is opened all the same: searches do without.

    Raises `ConfigurationError` for a name that no model can have, and where no server of it is known.
    """
    module = EMBEDDERS.get(embeddings.partition(":")[0])
    if module is None:
        raise ConfigurationError(
            f"{embeddings!r} names no embedding model: it is 'local', or begins with {', '.join(EMBEDDERS)}."
        )
    opened: AbstractAsyncContextManager[ServedEmbedder] = import_module(module).open_embedder(
        embeddings, settings, prices
    )
    return opened
