from collections.abc import Mapping
from typing import Annotated, Any

import typer

from app.cli.support.options import AnyWorkspaceOption, JsonOption, new_cli
from app.cli.support.running import as_command, print_result
from app.history.costs import parse_since, read_costs
from app.settings import read_settings
from app.support.terminal import count, escape, new_table, out, print_table
from app.wiring.stores import open_stores
from domain.runs import CostKey

cli = new_cli()


@cli.command()
@as_command
async def costs(
    since: Annotated[str, typer.Option(help="A span such as 24h, 7d or 2w, or a date.")] = "7d",
    by: Annotated[CostKey, typer.Option(help="Group by this.")] = "mode",
    workspace: AnyWorkspaceOption = None,
    as_json: JsonOption = False,
) -> int:
    """Show what answering has cost: runs, calls, tokens, dollars. Cached answers cost nothing."""
    start = parse_since(since)
    async with open_stores(read_settings()) as stores:
        report = await read_costs(stores.runs, workspace, start, by)
    return print_result(print_costs, report, as_json=as_json)


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
    if total["cached_tokens"]:
        share = total["cached_tokens"] / max(1, total["input_tokens"])
        out.print(f"Of the tokens in, providers knew {share:.0%} from an earlier request.")
    if total["estimated"]:
        out.print(f"Tokens and dollars of {count(total['estimated'], 'abandoned call')} are estimated.")
    if total["unpriced"]:
        out.print(f"The dollars leave out {count(total['unpriced'], 'call')} of models without a known price.")
