from pathlib import Path
from typing import Annotated

import typer

from app.cli.support.options import WorkspaceOption, new_cli
from app.cli.support.running import show_there_or_here, write_file
from app.support.terminal import err
from app.workbench.cli.targets import read_run

cli = new_cli()


@cli.command()
def export(
    run_id: Annotated[str, typer.Argument(help="The run's id.", metavar="RUN")],
    file: Annotated[Path, typer.Argument(help="Where to write it, such as bug.askgraph.")],
    workspace: WorkspaceOption = "default",
) -> None:
    """Write a run to a file that opens on any machine: states, tape, and what it cited."""

    def keep(data: bytes) -> int:
        write_file(file, data)
        err.print(f"{file}: {len(data):,} bytes. It holds what question, answer and documents say.", markup=False)
        return 0

    async def export_here() -> bytes:
        from app.workbench.replay.bundle import write_bundle

        return write_bundle(await read_run(run_id, workspace))

    show_there_or_here(
        keep,
        lambda server: server.download("runs", run_id, "bundle", workspace=workspace),
        export_here,
    )
