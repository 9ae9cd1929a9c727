from typing import Annotated, Any

import typer
from rich.markup import escape

from app.cli.options import AnyWorkspaceOption, JsonOption, new_cli
from app.cli.running import print_json, run
from app.cli.terminal import count, new_table, out, print_table
from app.runs.costs import parse_since, read_costs
from app.settings import read_settings
from app.wiring.stores import open_run_log
from domain.runs import CostKey

cli = new_cli()


@cli.command()
def costs(
    since: Annotated[str, typer.Option(help="A span such as 24h, 7d or 2w, or a date.")] = "7d",
    by: Annotated[CostKey, typer.Option(help="Group by this.")] = "mode",
    workspace: AnyWorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what answering has cost: runs, calls, tokens, dollars. Cached answers cost nothing."""

    async def work() -> int:
        start = parse_since(since)
        async with open_run_log(read_settings()) as log:
            report = await read_costs(log, workspace, start, by)
        if as_json:
            print_json(report)
        else:
            print_costs(report)
        return 0

    run(work())


def print_costs(report: dict[str, Any]) -> None:
    """Print a row per group and one for the total."""
    total = report["total"]
    table = new_table()
    table.add_column(report["by"])
    for heading in ("runs", "cached", "calls", "tokens in", "tokens out", "US dollars"):
        table.add_column(heading, justify="right")
    for spent in [*report["costs"], total]:
        name = "all" if spent is total else spent["name"] or "no model"
        counts = [f"{spent[key]:,}" for key in ("runs", "cached", "calls", "input_tokens", "output_tokens")]
        unknown = " + ?" if spent["unpriced"] else ""
        table.add_row(escape(name), *counts, f"{spent['cost']:.4f}{unknown}", style="bold" if spent is total else None)
    out.print(f"Since {report['since']}:")
    print_table(table)
    if total["unpriced"]:
        out.print(f"The dollars leave out {count(total['unpriced'], 'call')} of models without a known price.")
