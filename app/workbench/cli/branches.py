from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.support.options import JsonOption, WorkspaceOption, new_cli
from app.cli.support.terminal import new_table, out, print_table
from app.workbench.cli.reading_runs import choose_output, escape, run_there_or_here, shorten
from domain.errors import UnknownRun

if TYPE_CHECKING:
    from app.cli.support.server_client import ServerClient

cli = new_cli()


@cli.command()
def branches(
    run_id: Annotated[
        str, typer.Argument(help="The id of a run, of a branch or of what it began from.", metavar="RUN")
    ],
    name: Annotated[str | None, typer.Option(help="First name the branch that the run is in.")] = None,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """List the tree of branches that a run is in, or name one.

    A branch is what `askgraph replay` makes: a thread that continues from a saved state of a run.
    """

    show = choose_output(lambda tree: print_branches(tree, run_id), as_json=as_json)

    async def list_here() -> int:
        from app.settings import read_settings
        from app.wiring.services import open_services
        from domain.scope import Scope

        asker = Scope(workspace)
        async with open_services(read_settings()) as services:
            debugger = services.make_debugger()
            if name is not None:
                thread_id = _find_thread(await debugger.list_branches(asker, run_id), run_id)
                await services.runs.threads.rename(asker, thread_id, name)
            return show(await debugger.list_branches(asker, run_id))

    def list_there(server: "ServerClient") -> int:
        def read() -> Any:
            return server.get("runs", run_id, "branches", workspace=workspace)

        if name is not None:
            server.patch("threads", _find_thread(read(), run_id), body={"title": name}, workspace=workspace)
        return show(read())

    run_there_or_here(list_there, list_here)


def _find_thread(tree: Mapping[str, Any], run_id: str) -> str:
    found = next((str(run["thread_id"]) for run in tree["runs"] if run["run_id"] == run_id), None)
    if found is None:
        raise UnknownRun(f"The tree has more branches than are listed, and {run_id!r} is not among them.")
    return found


def print_branches(tree: Mapping[str, Any], run_id: str) -> None:
    """Print a row per run, each below the one that it continues."""
    table = new_table()
    for heading in ("run", "name", "changed", "mode", "outcome", "confidence", "thread", "answer"):
        table.add_column(heading, justify="right" if heading == "confidence" else "left")
    children: dict[str | None, list[Mapping[str, Any]]] = {}
    for run in tree["runs"]:
        children.setdefault(run["parent"], []).append(run)
    waiting = [(0, run) for run in reversed(children.get(None, []))]
    while waiting:
        depth, run = waiting.pop()
        waiting += [(depth + 1, child) for child in reversed(children.get(run["run_id"], []))]
        label = f"{'  ' * depth}{run['run_id']}"
        table.add_row(
            f"[bold]{label}[/bold]" if run["run_id"] == run_id else label,
            escape(run["name"] or ""),
            escape(_describe_change(run["forked_from"])),
            escape(run["mode"]),
            escape(run["error"] or run["outcome"] or "-"),
            f"{run['confidence']:.2f}",
            f"[dim]{escape(run['thread_id'])}[/dim]",
            escape(shorten(run["answer"], 50)),
        )
    print_table(table)
    if tree["more"]:
        out.print("[yellow]There are more than are listed.[/yellow]")
    if len(tree["runs"]) > 1:
        out.print("[dim]askgraph diff RUN RUN compares two; askgraph forget THREAD deletes a branch.[/dim]")


def _describe_change(forked_from: Mapping[str, Any] | None) -> str:
    if forked_from is None:
        return ""
    parts = [f"from {forked_from['node']}"] if forked_from.get("node") else []
    return ", ".join([*parts, *forked_from["changed"]]) or "nothing"
