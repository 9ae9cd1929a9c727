from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.support.options import JsonOption, WorkspaceOption, new_cli
from app.cli.support.terminal import count, out
from app.workbench.cli.reading_runs import choose_output, escape, run_there_or_here, shorten

if TYPE_CHECKING:
    from app.cli.support.server_client import ServerClient

cli = new_cli()


@cli.command()
def failures(
    since: Annotated[str, typer.Option(help="A span such as 24h, 7d or 2w, or a date.")] = "7d",
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Group the runs that did not go well by cause, with examples."""

    show = choose_output(print_failures, as_json=as_json)

    async def group_here() -> int:
        from app.settings import read_settings
        from app.wiring.stores import open_run_log
        from app.workbench.explain.failures import group_failures
        from domain.scope import Scope

        async with open_run_log(read_settings()) as log:
            return show(await group_failures(log, Scope(workspace), since))

    def group_there(server: "ServerClient") -> int:
        return show(server.get("failures", workspace=workspace, since=since))

    run_there_or_here(group_there, group_here)


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
