import sys
from typing import Annotated

import typer

from app.cli.options import WorkspaceOption, new_cli
from app.cli.running import run
from app.settings import read_settings
from app.wiring.services import open_services

cli = new_cli()


@cli.command()
def delete(
    document_ids: Annotated[list[str], typer.Argument(help="Ids, as `askgraph documents` lists them.")],
    workspace: WorkspaceOption = "default",
) -> None:
    """Delete documents, their chunks and the answers cached from them."""

    async def work() -> int:
        async with open_services(read_settings()) as services:
            missing = [d for d in document_ids if not await services.library.ingestion.delete(workspace, d)]
            for document_id in missing:
                print(f"askgraph: there is no document {document_id!r} in this workspace.", file=sys.stderr)
            return 1 if missing else 0

    run(work())
