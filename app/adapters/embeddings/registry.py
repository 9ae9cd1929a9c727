"""The embedding models besides the one that ships, a line for each: how `ASKGRAPH_EMBEDDINGS` begins, and the module.

The module has `open_embedder`, an asynchronous context manager that takes the value of `ASKGRAPH_EMBEDDINGS`, the
settings and the prices, and yields a `ServedEmbedder`. It is imported where the model is named.
"""

from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # Imports NumPy; the settings want the names without.
    from app.adapters.prices import PriceTable
    from app.settings import Settings
    from domain.ports.embedding import ServedEmbedder

EMBEDDERS = {
    "multilingual": "app.adapters.embeddings.multilingual",
    "folder": "app.adapters.embeddings.folder",
    "package": "app.adapters.embeddings.folder",
    "openai": "app.adapters.embeddings.openai",
}


def open_embedder(settings: "Settings", prices: "PriceTable") -> "AbstractAsyncContextManager[ServedEmbedder]":
    """Open the model that the settings name. A model that does not answer is opened all the same: searches do without.

    Raises `ConfigurationError` for a name that no model can have, and where no server of it is known.
    """
    module = import_module(EMBEDDERS[settings.embeddings.partition(":")[0]])
    opened: AbstractAsyncContextManager[ServedEmbedder] = module.open_embedder(settings.embeddings, settings, prices)
    return opened
