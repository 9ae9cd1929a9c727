from collections.abc import Mapping
from typing import Annotated, Any

import typer

from app.cli.support.options import JsonOption, WorkspaceOption, new_cli
from app.cli.support.running import ask_server, print_result
from app.cli.support.server_client import ServerClient
from app.support.terminal import count, escape, new_table, out, print_table, shorten

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
    failed: Annotated[
        bool, typer.Option("--failed", help="Group those that did not go well by cause, with examples, instead.")
    ] = False,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """List runs that have ended, newest first: question, outcome, time, cost."""

    filters: dict[str, Any] = {"since": since, "until": until, "text": text, "where": where}
    page: dict[str, Any] = {} if failed else {"limit": limit, "after": after}

    def work(server: ServerClient) -> int:
        found = server.get("failures" if failed else "runs", workspace=workspace, **filters, **page)
        return print_result(print_failures if failed else print_runs, found, as_json=as_json)

    ask_server(work)


def print_failures(found: Mapping[str, Any]) -> None:
    """Print the groups, each with its examples."""
    out.print(f"{found['failures']} of {count(found['runs'], 'run')} since {found['since']} did not go well.")
    for group in found["groups"]:
        modes = ", ".join(f"{number} {mode}" for mode, number in group["by_mode"].items())
        out.print(f"\n[bold]{group['runs']} × {escape(group['cause'])}[/bold] ({escape(modes)})")
        for example in group["examples"]:
            detail = f" ({example['detail']})" if example["detail"] else ""
            out.print(f"  {example['run_id']} {escape(shorten(example['question'], 80))}[dim]{escape(detail)}[/dim]")
    if found["groups"]:
        out.print("\n[dim]askgraph why RUN explains one, askgraph whatif RUN says what would have changed it.[/dim]")


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
