"""Runs an ASGI application on loopback for as long as a test needs it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn


@asynccontextmanager
async def serve_app(app: Any) -> AsyncIterator[str]:
    """Serve in this event loop; gives the address, for example ``http://127.0.0.1:51234``. A client that blocks
    the loop blocks the server."""
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=0,
        log_config=None,
        log_level="critical",
        ws="none",
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    sock = config.bind_socket()
    # Whoever connects before uvicorn is up waits instead of being refused.
    sock.listen(100)
    # uvicorn's own `serve` would take over the process's signal handlers.
    task = asyncio.create_task(server._serve(sockets=[sock]))
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        sock.close()
