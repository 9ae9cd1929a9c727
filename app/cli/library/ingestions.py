from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from app.api.schema.descriptions import describe_ingestion
from app.cli.support.options import JsonOption, WorkspaceOption, new_cli
from app.cli.support.running import print_json, run, run_on_server
from app.settings import read_settings
from app.support.terminal import count, new_table, print_table
from app.wiring.stores import open_stores
from domain.errors import UnknownIngestion
from domain.library.ingestions import IngestionStatus

if TYPE_CHECKING:
    from app.cli.support.server_client import ServerClient
    from domain.ports.ingestions import IngestionQueue

cli = new_cli()


@cli.command()
def ingestions(
    cancel: Annotated[
        list[str] | None, typer.Option("--cancel", metavar="ID", help="Give up this file; repeatable.")
    ] = None,
    limit: Annotated[int, typer.Option(help="Show only this many of the latest.", min=1)] = 100,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """List files that were handed over to be read in the background, or give some up. Those that are done show their
    result."""

    async def work() -> int:
        async with open_stores(read_settings()) as stores:
            queue = stores.ingestions
            cancelled = [await _cancel(queue, workspace, each) for each in cancel or ()]
            return show(cancelled or await queue.list(workspace, limit))

    def work_there(server: "ServerClient") -> int:
        return show(
            [server.cancel_ingestion(workspace, each) for each in cancel or ()]
            or server.list_ingestions(workspace, limit)
        )

    def show(found: Sequence[IngestionStatus]) -> int:
        if as_json:
            print_json([describe_ingestion(status) for status in found])
        else:
            print_ingestions(found)
        return 0

    run_on_server(work_there, only_named=True)
    run(work())


async def _cancel(queue: "IngestionQueue", workspace_id: str, ingestion_id: str) -> IngestionStatus:
    status = await queue.cancel(workspace_id, ingestion_id)
    if status is None:
        raise UnknownIngestion(f"There is no ingestion {ingestion_id!r} in this workspace.")
    return status


def print_ingestions(statuses: Sequence[IngestionStatus]) -> None:
    """Print a row per ingestion: its state, and its result or error."""
    table = new_table()
    # An id that is broken over two lines cannot be copied.
    table.add_column("id", min_width=max((len(status.ingestion_id) for status in statuses), default=0))
    for column in ("state", "accepted", "source", ""):
        table.add_column(column, overflow="fold")
    for status in statuses:
        report = status.report
        said = report and (report.error or report.note or f"{report.status}, {count(report.chunks, 'chunk')}")
        accepted = f"{status.accepted_at:%Y-%m-%d %H:%M:%S}"
        table.add_row(status.ingestion_id, status.state, accepted, escape(status.source), escape(said or ""))
    print_table(table)
