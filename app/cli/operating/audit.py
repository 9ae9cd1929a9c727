from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated

import typer

from app.cli.support.options import JsonOption, new_cli
from app.cli.support.running import as_command, print_result
from app.history.costs import parse_since
from app.settings import read_settings
from app.support.terminal import escape, new_table, print_table
from app.wiring.stores import open_stores
from domain.people.audit import AuditEntry

cli = new_cli()


@cli.command()
@as_command
async def audit(
    since: Annotated[str, typer.Option(help="A span such as 7d, or a date.")] = "7d",
    limit: Annotated[int, typer.Option(help="Show only this many of the latest.", min=1)] = 200,
    as_json: JsonOption = False,
) -> int:
    """Show who changed what: documents, conversations, keys."""
    async with open_stores(read_settings()) as stores:
        entries = await stores.audit.list(parse_since(since), limit)
        names = {key.as_caller().name: f"{key.name} ({key.key_id})" for key in await stores.keys.list()}
    return print_result(partial(_print_entries, names), entries, as_json=as_json)


def _print_entries(names: Mapping[str, str], entries: Sequence[AuditEntry]) -> None:
    table = new_table("time", "who", "from", "workspace", "what", "", "status", overflow="fold")
    for entry in entries:
        table.add_row(
            f"{entry.at:%Y-%m-%d %H:%M:%S}",
            escape(names.get(entry.caller, entry.caller)),
            entry.address or "this machine",
            escape(entry.workspace_id or ""),
            escape(entry.action),
            escape(", ".join(entry.targets)),
            str(entry.status),
        )
    print_table(table)
