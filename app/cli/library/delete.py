from collections.abc import Sequence
from typing import Annotated, Any

import typer

from app.api.schema.descriptions import describe_erasure
from app.cli.support.options import DryRunOption, WorkspaceOption, YesOption, new_cli
from app.cli.support.running import run, run_on_server
from app.cli.support.server_client import ServerClient
from app.support.terminal import confirm, count, err, escape

cli = new_cli()


@cli.command()
def delete(
    document_ids: Annotated[list[str], typer.Argument(help="Ids, as `askgraph documents` lists them.")],
    workspace: WorkspaceOption = "default",
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Delete documents, their chunks and the answers cached from them. If one of the ids is unknown, nothing is
    deleted."""

    def delete_on_server(server: ServerClient) -> int:
        _show([server.delete("documents", each, workspace=workspace, dry_run="true") for each in document_ids])
        if not dry_run:
            confirm("Delete this?", yes)
            for document_id in document_ids:
                server.delete("documents", document_id, workspace=workspace)
        return 0

    async def delete_here() -> int:
        from app.cli.support.auditing import record_command
        from app.history.forgetting import count_deletion, find_deletable
        from app.settings import read_settings
        from app.wiring.services import open_services
        from domain.scope import Scope

        async with open_services(read_settings()) as services:
            library = services.library
            found = [await find_deletable(library.documents, Scope(workspace), each) for each in document_ids]
            _show([describe_erasure(count_deletion(document)) for document in found])
            if not dry_run:
                confirm("Delete this?", yes)
                for document_id in document_ids:
                    await library.ingestion.delete(workspace, document_id)
                await record_command(services.audit, "delete", workspace, document_ids)
        return 0

    run_on_server(delete_on_server)
    run(delete_here())


def _show(deletions: Sequence[dict[str, Any]]) -> None:
    for deletion in deletions:
        document_id, source = deletion["ids"]
        err.print(f"{document_id}  {escape(source)}, {count(deletion['erased'].get('chunks', 0), 'chunk')}")
