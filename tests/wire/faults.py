"""What the servers of models have in common: faults on demand, and a note of what they were asked."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import Request

from tests.wire.serving import serve_app

Json = dict[str, Any]


@dataclass(kw_only=True)
class Behaviour:
    """Behaviour of a server; tests change it between requests. Times are in seconds."""

    models: tuple[str, ...] = ()
    """Models that the server has; empty: it serves any name."""
    api_key: str | None = None
    """The valid key; any other is refused."""
    retry_after: float = 0.01
    stall: float = 30.0
    faults: list[Any] = field(default_factory=list)
    """Faults of the next requests, one each; afterwards `fault` applies."""
    fault: Any = None
    """Fault of every request."""

    def take_fault(self) -> Any:
        """Return the fault of the request that has come."""
        return self.faults.pop(0) if self.faults else self.fault

    def accepts(self, request: Request, header: str = "authorization", scheme: str = "Bearer ") -> bool:
        """Return True where the request has the valid key, or any will do."""
        return self.api_key is None or request.headers.get(header) == f"{scheme}{self.api_key}"


class ModelServer:
    """A running server."""

    app: Starlette

    def __init__(self) -> None:
        self.requests: list[Json] = []
        """Bodies of the requests, in order."""
        self.headers: list[dict[str, str]] = []
        self.abandoned = asyncio.Event()
        """Set when a client has closed a stream before its end."""
        self.base_url = ""


Server = TypeVar("Server", bound=ModelServer)


@asynccontextmanager
async def serve(server: Server, path: str = "") -> AsyncIterator[Server]:
    """Run the server for one test. `path` is what clients put behind the address."""
    async with serve_app(server.app) as address:
        server.base_url = f"{address}{path}"
        yield server
