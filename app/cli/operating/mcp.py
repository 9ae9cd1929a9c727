from app.cli.support.options import new_cli
from app.cli.support.running import run

cli = new_cli()


@cli.command()
def mcp() -> None:
    """Speak the Model Context Protocol on standard input and output.

    For programs that start it, such as desktop assistants. Asks the server that is named, or runs in this home, or is
    started for it.
    """
    from app.cli.support.server_client import find_address
    from app.settings import read_settings

    async def bridge() -> int:
        from mcp.client import Client
        from mcp.client.streamable_http import streamable_http_client
        from mcp.server.stdio import stdio_server
        from mcp.shared._httpx_utils import create_mcp_http_client

        from app.api.protocols.mcp_protocol import make_bridge

        with find_address(read_settings()) as (url, key, _):
            async with (
                create_mcp_http_client({"Authorization": f"Bearer {key}"} if key else None) as http,
                Client(streamable_http_client(f"{url.rstrip('/')}/mcp", http_client=http)) as client,
                stdio_server() as (reading, writing),
            ):
                server = make_bridge(client)
                await server.run(reading, writing, server.create_initialization_options())
        return 0

    run(bridge(), needs_data=False)
