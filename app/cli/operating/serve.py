import logging
from typing import Annotated

import typer

from app.cli.support.options import new_cli
from app.cli.support.running import run

cli = new_cli()


@cli.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = 8000,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen on an address that others reach although there is no key.")
    ] = False,
    embedded: Annotated[bool, typer.Option("--embedded", hidden=True)] = False,
) -> None:
    """Serve the pages and the API."""
    if embedded:
        from app.serving.embedded import run_embedded

        run(run_embedded())
    from app.serving.server import run_server

    run(run_server(host, port, insecure=insecure), log_level=logging.INFO)
