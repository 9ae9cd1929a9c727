"""Runs an ASGI application on loopback for as long as a test needs it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn


class _Server(uvicorn.Server):
    """Ends at once: uvicorn's own sleeps three times before it does, and nobody reads what is still being answered."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ending = asyncio.Event()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self.ending.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        answering = list(self.server_state.tasks)
        for task in answering:
            task.cancel()
        await asyncio.gather(*answering, return_exceptions=True)


@asynccontextmanager
async def serve_app(app: Any, **options: Any) -> AsyncIterator[str]:
    """Serve in this event loop, with options of uvicorn; gives the address, for example ``http://127.0.0.1:51234``. A
    client that blocks the loop blocks the server."""
    config = uvicorn.Config(
        app, host="127.0.0.1", port=0, log_config=None, log_level="critical", ws="none", lifespan="off", **options
    )
    server = _Server(config)
    sock = config.bind_socket()
    # Clients that connect before uvicorn is up wait instead of being refused.
    sock.listen(100)
    # uvicorn's own `serve` would take over the process's signal handlers.
    task = asyncio.create_task(server._serve(sockets=[sock]))
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.ending.set()
        await task
        sock.close()
