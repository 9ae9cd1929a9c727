from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.support.options import JsonOption, WorkspaceOption, new_cli
from app.cli.support.running import print_result
from app.support.terminal import escape, out
from app.workbench.cli.targets import show_run

if TYPE_CHECKING:
    from app.workbench.replay.saved_run import SavedRun

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

    def explain(run: "SavedRun") -> Mapping[str, Any]:
        from app.workbench.explain.why import explain_run

        return explain_run(run)

    show_run(
        run_id,
        lambda server: server.get("runs", run_id, "why", workspace=workspace),
        explain,
        partial(print_result, print_facts, as_json=as_json),
    )


def print_facts(explained: Mapping[str, Any]) -> None:
    """Print a line per fact."""
    for fact in explained["facts"]:
        out.print(f"[bold cyan]{fact['about']:<9}[/bold cyan] {escape(fact['text'])}")
