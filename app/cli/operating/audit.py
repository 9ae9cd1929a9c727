from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape

from app.cli.support.options import JsonOption, new_cli
from app.cli.support.running import print_json, run
from app.history.costs import parse_since
from app.settings import read_settings
from app.support.terminal import new_table, print_table
from app.wiring.stores import open_stores
from domain.people.audit import AuditEntry

cli = new_cli()


@cli.command()
def audit(
    since: Annotated[str, typer.Option(help="A span such as 7d, or a date.")] = "7d",
    limit: Annotated[int, typer.Option(help="Show only this many of the latest.", min=1)] = 200,
    as_json: JsonOption = False,
) -> None:
    """Show who changed what: documents, conversations, keys."""

    async def work() -> int:
        async with open_stores(read_settings()) as stores:
            entries = await stores.audit.list(parse_since(since), limit)
        if as_json:
            print_json([asdict(entry) for entry in entries], default=str)
        else:
            _print_entries(entries)
        return 0

    run(work())


def _print_entries(entries: Sequence[AuditEntry]) -> None:
    table = new_table()
    for column in ("time", "who", "from", "workspace", "what", "", "status"):
        table.add_column(column, overflow="fold")
    for entry in entries:
        table.add_row(
            f"{entry.at:%Y-%m-%d %H:%M:%S}",
            entry.caller,
            entry.address or "this machine",
            escape(entry.workspace_id or ""),
            escape(entry.action),
            escape(entry.target),
            str(entry.status),
        )
    print_table(table)
