from typing import Any

from app.cli.support.options import new_cli
from app.cli.support.running import run

cli = new_cli()


@cli.command()
def mcp() -> None:
    """Speak the Model Context Protocol on standard input and output.

    For programs that start it, such as desktop assistants. Asks the server that is named, or runs in this home, or
    opens everything itself.
    """
    from app.api.protocols import mcp_protocol
    from app.serving.address import find_server
    from app.settings import read_settings, reveal

    settings = read_settings()

    async def bridge(url: str, key: str) -> int:
        from mcp.client import Client
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        async with (
            create_mcp_http_client({"Authorization": f"Bearer {key}"} if key else None) as http,
            Client(streamable_http_client(f"{url.rstrip('/')}/mcp", http_client=http)) as client,
        ):
            return await _serve(mcp_protocol.make_bridge(client))

    async def serve_here() -> int:
        from app.api.protocols.mcp_tools import Tools
        from app.wiring.services import open_services
        from domain.people.access import OWNER

        async with (
            open_services(settings) as services,
            services.make_run_manager() as manager,
        ):
            tools = Tools(
                caller=OWNER,
                modes=services.modes,
                documents=services.library.documents,
                explain=services.make_debugger().explain,
                manager=manager,
                make_context=services.make_context,
            )
            return await _serve(mcp_protocol.make_server(tools))

    key = reveal(settings.api_key)
    if settings.server is not None:
        run(bridge(settings.server, key), needs_data=False)
    address = find_server(settings)
    run(serve_here() if address is None else bridge(address.url, key or address.token))


async def _serve(server: Any) -> int:
    """Serve the program that has started this one, until it closes standard input."""
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
    return 0
