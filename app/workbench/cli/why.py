from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import typer

from app.cli.support.options import JsonOption, WorkspaceOption, new_cli
from app.cli.support.running import print_result, show_there_or_here
from app.support.terminal import escape, out
from app.workbench.cli.targets import is_file, read_run

cli = new_cli()


@cli.command()
def why(
    run_id: Annotated[
        str, typer.Argument(help="The run's id, or a file that `askgraph export` wrote.", metavar="RUN|FILE")
    ],
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Say why a run ended as it did: searches, thresholds, sources, claims and doubts."""

    async def explain_here() -> Mapping[str, Any]:
        from app.workbench.explain.why import explain_run

        return explain_run(await read_run(run_id, workspace))

    show_there_or_here(
        partial(print_result, print_facts, as_json=as_json),
        lambda server: server.get("runs", run_id, "why", workspace=workspace),
        explain_here,
        of_files=is_file(run_id),
    )


def print_facts(explained: Mapping[str, Any]) -> None:
    """Print a line per fact."""
    for fact in explained["facts"]:
        out.print(f"[bold cyan]{fact['about']:<9}[/bold cyan] {escape(fact['text'])}")
