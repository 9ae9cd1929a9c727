import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from app.cli.support.options import WorkspaceOption, new_cli
from app.cli.support.running import run, run_on_server
from app.cli.support.server_client import ServerClient
from domain.errors import NotFound

cli = new_cli()


@cli.command()
def delete(
    document_ids: Annotated[list[str], typer.Argument(help="Ids, as `askgraph documents` lists them.")],
    workspace: WorkspaceOption = "default",
) -> None:
    """Delete documents, their chunks and the answers cached from them."""

    def report(missing: Sequence[str]) -> int:
        for document_id in missing:
            print(f"askgraph: there is no document {document_id!r} in this workspace.", file=sys.stderr)
        return 1 if missing else 0

    def delete_on_server(server: ServerClient) -> int:
        missing = []
        for document_id in document_ids:
            try:
                server.delete("documents", document_id, workspace=workspace)
            except NotFound:
                missing.append(document_id)
        return report(missing)

    async def delete_here() -> int:
        from app.settings import read_settings
        from app.wiring.services import open_services

        async with open_services(read_settings()) as services:
            return report([d for d in document_ids if not await services.library.ingestion.delete(workspace, d)])

    run_on_server(delete_on_server)
    run(delete_here())
