from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import typer

from app.cli.support.options import JsonOption, WorkspaceOption, new_cli
from app.cli.support.running import print_result, run, run_on_server
from app.support.terminal import count, escape, new_table, out, print_table, shorten
from domain.scope import Scope

_LONGEST = 60
"""Characters shown of a question."""

cli = new_cli()


@cli.command()
def runs(
    since: Annotated[str, typer.Option(help="A span such as 24h, 7d or 2w, a date, or `yesterday`.")] = "7d",
    where: Annotated[
        str | None,
        typer.Option("--where", help='Only runs that fit, such as "outcome == abstained or retries > 0".'),
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only runs that began before it: a span or a date.")] = None,
    text: Annotated[str, typer.Option(help="Only runs with all these words in question or answer.")] = "",
    limit: Annotated[int, typer.Option(help="List this many.", min=1, max=200)] = 50,
    after: Annotated[str | None, typer.Option(help="Continue a list: its `next`.")] = None,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """List runs that have ended, newest first: question, outcome, time, cost."""

    show = partial(print_result, print_runs, as_json=as_json)
    filters: dict[str, Any] = {
        "since": since,
        "until": until,
        "text": text,
        "where": where,
        "limit": limit,
        "after": after,
    }

    async def list_here() -> int:
        # Opening the log takes a driver, and a filter a parser, which a command that asks a server does without.
        from app.history.run_list import list_runs, read_filter
        from app.settings import read_settings
        from app.wiring.stores import open_stores

        async with open_stores(read_settings()) as stores:
            found = await list_runs(stores.runs, Scope(workspace), read_filter(**filters))
        return show(found)

    run_on_server(lambda server: show(server.get("runs", workspace=workspace, **filters)))
    run(list_here())


def print_runs(found: Mapping[str, Any]) -> None:
    """Print a row per run."""
    figures = ("confidence", "retries", "ms", "US dollars")
    table = new_table("run", "started", "mode", "outcome", *figures, "question", right=figures)
    for each in found["runs"]:
        outcome = each["error"] or each["outcome"] or "-"
        marks = [name for name in ("cached", "replay") if each[name]]
        if each["rating"]:
            marks.append(f"thumbs {each['rating']}")
        table.add_row(
            each["run_id"],
            each["started_at"][:19].replace("T", " "),
            escape(each["mode"]),
            escape(", ".join([outcome, *marks])),
            f"{each['confidence']:.2f}",
            str(each["retries"]),
            "-" if each["ms"] is None else f"{each['ms']:.0f}",
            "-" if each["cost"] is None else f"{each['cost']:.4f}",
            escape(shorten(each["question"], _LONGEST)),
        )
    print_table(table)
    more = f"; more with --after '{found['next']}'" if found["next"] else ""
    out.print(f"{count(len(found['runs']), 'run')} since {found['since']}{more}.")
