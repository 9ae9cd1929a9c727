from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.options import WorkspaceOption, new_cli
from app.cli.reading_runs import read_here, run_there_or_here
from app.cli.running import write_file
from app.cli.terminal import err

if TYPE_CHECKING:
    from app.cli.server_client import ServerClient

cli = new_cli()


@cli.command()
def export(
    run_id: Annotated[str, typer.Argument(help="The run's id.", metavar="RUN")],
    file: Annotated[Path, typer.Argument(help="Where to write it, such as bug.askgraph.")],
    redact: Annotated[bool, typer.Option("--redact", help="Hide all text, and keep structure and figures.")] = False,
    workspace: WorkspaceOption = "default",
) -> None:
    """Write a run to a file that opens on any machine: states, tape, and what it cited."""

    def keep(data: bytes) -> int:
        write_file(file, data)
        err.print(f"{file}: {len(data):,} bytes", markup=False)
        if not redact:
            err.print("It holds what question, answer and documents say; --redact hides that.")
        return 0

    async def export_here() -> int:
        from app.runs.bundle import write_bundle

        return keep(write_bundle(await read_here(run_id, workspace), redact=redact))

    def export_there(server: "ServerClient") -> int:
        redacted = "true" if redact else None
        return keep(server.download("runs", run_id, "bundle", workspace=workspace, redact=redacted))

    run_there_or_here(export_there, export_here)
