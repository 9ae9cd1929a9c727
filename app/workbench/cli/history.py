from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.markup import escape

from app.cli.support.options import JsonOption, WorkspaceOption, check_thread, new_cli
from app.cli.support.running import print_json, run, run_on_server
from app.cli.support.terminal import out

MAX_SHOWN = 110
"""Characters shown of a changed value."""

cli = new_cli()


@cli.command()
def history(
    thread: Annotated[str, typer.Argument(help="The thread's id.", callback=check_thread)],
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Show every saved step of a thread. A step has a node, the values it changed, its time and its checkpoint."""

    def show(steps: Sequence[Mapping[str, Any]]) -> int:
        if as_json:
            print_json({"thread_id": thread, "steps": steps})
        else:
            print_history(steps)
        return 0

    async def read_here() -> int:
        from app.settings import read_settings
        from app.wiring.services import open_services

        async with open_services(read_settings()) as services:
            return show(await services.make_history_reader().read(workspace, thread))

    run_on_server(lambda server: show(server.get("threads", thread, "history", workspace=workspace)["steps"]))
    run(read_here())


def print_history(steps: Sequence[Mapping[str, Any]]) -> None:
    """Print the steps, which are `app.workbench.explain.history.HistoryStep`, grouped by run."""
    run_id = None
    for step in steps:
        if step["run_id"] != run_id:
            run_id = step["run_id"]
            out.print(f"\n[bold]run {run_id}[/bold]")
        ms = f"{step['ms']:.1f} ms" if step["ms"] is not None else ""
        following = ", ".join(step["next"]) or ("" if step["node"] == "damaged" else "end")
        out.print(
            f"[bold cyan]{step['node']:<12}[/bold cyan] {ms:>10}  → {following:<12} [dim]{step['checkpoint_id']}[/dim]"
        )
        for key, value in step["changed"].items():
            out.print(f"    {key} = {escape(_shorten(value))}")


def _shorten(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        named = [v.get("title") or v.get("chunk_id") or v.get("question") or v.get("text") for v in value]
        value = f"{len(value)}: {named}"
    text = " ".join(str(value).split())
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"
