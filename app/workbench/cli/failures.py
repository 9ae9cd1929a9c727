from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import typer

from app.cli.support.options import JsonOption, WorkspaceOption, new_cli
from app.cli.support.running import print_result
from app.support.terminal import count, escape, out, shorten
from app.workbench.cli.reading_runs import show_there_or_here

cli = new_cli()


@cli.command()
def failures(
    since: Annotated[str, typer.Option(help="A span such as 24h, 7d or 2w, or a date.")] = "7d",
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Group the runs that did not go well by cause, with examples."""

    show_there_or_here(
        partial(print_result, print_failures, as_json=as_json),
        lambda server: server.get("failures", workspace=workspace, since=since),
        lambda here: here.group_failures(workspace, since),
    )


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
