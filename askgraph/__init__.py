"""The client of askgraph, for programs: `Client`, and `AsyncClient` for asyncio.

It knows the service by HTTP alone and imports nothing of it. `askgraph.events` and `askgraph.models` hold the types of
what it returns.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from askgraph.errors import (
    AskgraphError,
    DamagedState,
    Forbidden,
    InputError,
    ModelError,
    NotFound,
    OverLimit,
    ThreadBusy,
    Unauthenticated,
    Unavailable,
)

if TYPE_CHECKING:
    from askgraph.async_client import AsyncClient
    from askgraph.client import Client

__all__ = [
    "AskgraphError",
    "AsyncClient",
    "Client",
    "DamagedState",
    "Forbidden",
    "InputError",
    "ModelError",
    "NotFound",
    "OverLimit",
    "ThreadBusy",
    "Unauthenticated",
    "Unavailable",
]

_MODULES = {"Client": "askgraph.client", "AsyncClient": "askgraph.async_client"}
"""Imported when used: the command `askgraph` imports this package, and needs no HTTP for most of what it does."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
