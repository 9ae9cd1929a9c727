from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from app.cli.support.options import AnyWorkspaceOption, JsonOption, new_cli
from app.cli.support.running import print_result, run, run_on_server
from app.history.costs import parse_since, read_costs
from app.settings import read_settings
from app.support.terminal import count, new_table, out, print_table
from app.wiring.stores import open_stores
from domain.runs import CostKey

if TYPE_CHECKING:
    from app.cli.support.server_client import ServerClient

cli = new_cli()


@cli.command()
def costs(
    since: Annotated[str, typer.Option(help="A span such as 24h, 7d or 2w, or a date.")] = "7d",
    by: Annotated[CostKey, typer.Option(help="Group by this.")] = "mode",
    workspace: AnyWorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what answering has cost: runs, calls, tokens, dollars. Cached answers cost nothing."""

    show = partial(print_result, print_costs, as_json=as_json)

    async def read_here() -> int:
        start = parse_since(since)
        async with open_stores(read_settings()) as stores:
            return show(await read_costs(stores.runs, workspace, start, by))

    def read_there(server: "ServerClient") -> int:
        return show(server.get("costs", workspace=workspace, since=since, by=by))

    run_on_server(read_there, only_named=True)
    run(read_here())


def print_costs(report: Mapping[str, Any]) -> None:
    """Print a row per group and one for the total."""
    total = report["total"]
    figures = ("runs", "cached", "calls", "tokens in", "tokens out", "US dollars")
    table = new_table(report["by"], *figures, right=figures)
    for spent in [*report["costs"], total]:
        name = "all" if spent is total else spent["name"] or "no model"
        counts = [f"{spent[key]:,}" for key in ("runs", "cached", "calls", "input_tokens", "output_tokens")]
        unknown = " + ?" if spent["unpriced"] else ""
        table.add_row(escape(name), *counts, f"{spent['cost']:.4f}{unknown}", style="bold" if spent is total else None)
    out.print(f"Since {report['since']}:")
    print_table(table)
    if total["estimated"]:
        out.print(f"Tokens and dollars of {count(total['estimated'], 'abandoned call')} are estimated.")
    if total["unpriced"]:
        out.print(f"The dollars leave out {count(total['unpriced'], 'call')} of models without a known price.")
