from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from app.cli.options import JsonOption, WorkspaceOption, new_cli
from app.cli.running import print_json, run, run_on_server
from app.cli.terminal import out
from app.runs.why import explain
from domain.errors import UnknownRun

if TYPE_CHECKING:
    from app.cli.server_client import ServerClient
    from app.runs.history import HistoryStep

cli = new_cli()


@cli.command()
def why(
    run_id: Annotated[str, typer.Argument(help="The run's id.", metavar="RUN")],
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Say why a run ended as it did: searches, thresholds, sources, claims and doubts."""

    def show(steps: "Sequence[HistoryStep]") -> int:
        facts = explain(steps, run_id)
        if not facts:
            raise UnknownRun(f"Nothing is saved of run {run_id!r} any more.")
        if as_json:
            print_json({"run_id": run_id, "facts": [asdict(fact) for fact in facts]})
            return 0
        for fact in facts:
            out.print(f"[bold cyan]{fact.about:<9}[/bold cyan] {escape(fact.text)}")
        return 0

    async def explain_here() -> int:
        from app.settings import read_settings
        from app.wiring.services import open_services

        async with open_services(read_settings()) as services:
            record = await services.runs.log.get(workspace, run_id)
            if record is None:
                raise UnknownRun(f"There is no run {run_id!r} in this workspace.")
            return show(await services.make_history_reader().read(workspace, record.thread_id))

    def explain_there(server: "ServerClient") -> int:
        thread_id = server.get("runs", run_id, workspace=workspace)["thread_id"]
        return show(server.get("threads", thread_id, "history", workspace=workspace)["steps"])

    run_on_server(explain_there)
    run(explain_here())
