from dataclasses import asdict
from typing import Annotated, Any

import typer

from app.cli.support.options import JsonOption, new_cli
from app.cli.support.running import print_json, run
from app.history.costs import parse_since
from app.history.statistics import compare
from app.settings import read_settings
from app.support.terminal import count, new_table, out, print_table
from app.wiring.stores import open_stores
from domain.runs import RunStatistics

cli = new_cli()

_COLOURS = {"ok": "green", "missed": "yellow", "alert": "red", "unknown": "dim"}


@cli.command()
def stats(
    since: Annotated[str, typer.Option(help="A span such as 24h, 7d or 2w, or a date.")] = "7d",
    as_json: JsonOption = False,
) -> None:
    """Show how the service did, each target beside what was measured, and what would alert."""

    async def work() -> int:
        start = parse_since(since)
        async with open_stores(read_settings()) as stores:
            found = await stores.read_statistics(start)
        compared = compare(found)
        if as_json:
            print_json({"since": start.isoformat(timespec="seconds"), "runs": asdict(found), "targets": compared})
        else:
            print_statistics(start.isoformat(timespec="seconds"), found, compared)
        return 0

    run(work())


def print_statistics(since: str, found: RunStatistics, compared: list[dict[str, Any]]) -> None:
    """Print the counts, and a row per target."""
    out.print(
        f"Since {since}: {count(found.runs, 'run')}, of which {found.cached:,} from the cache, "
        f"{found.failed:,} failed, {found.stopped:,} stopped. "
        f"Readers gave {count(found.liked, 'thumb')} up and {found.disliked:,} down."
    )
    table = new_table()
    table.add_column("target")
    for heading in ("measured", "at most", "alert above"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for row in compared:
        value = "-" if row["value"] is None else _show(row["value"], row["unit"])
        limits = (_show(row[key], row["unit"]) for key in ("target", "alert"))
        table.add_row(row["name"], value, *limits, f"[{_COLOURS[row['verdict']]}]{row['verdict']}[/]")
    print_table(table)
    if found.unpriced:
        out.print(f"The cost leaves out calls without a known price in {count(found.unpriced, 'run')}.")


def _show(value: float, unit: str) -> str:
    return f"${value:.4f}" if unit == "$" else f"{value:,.1f} %" if unit == "%" else f"{value:,.0f} ms"
