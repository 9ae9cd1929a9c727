from collections.abc import Sequence
from typing import Annotated

import typer
from rich.markup import escape

from app.api.descriptions import describe_ingestion
from app.cli.options import JsonOption, WorkspaceOption, new_cli
from app.cli.running import print_json, run
from app.cli.terminal import count, new_table, print_table
from app.settings import read_settings
from app.wiring.stores import open_ingestions
from domain.ingestions import IngestionStatus

cli = new_cli()


@cli.command()
def ingestions(
    limit: Annotated[int, typer.Option(help="Show only this many of the latest.", min=1)] = 100,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """List files that were handed over to be read in the background. Those that are done show their result."""

    async def work() -> int:
        async with open_ingestions(read_settings()) as queue:
            found = await queue.list(workspace, limit)
            if as_json:
                print_json([describe_ingestion(status) for status in found])
            else:
                print_ingestions(found)
            return 0

    run(work())


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
