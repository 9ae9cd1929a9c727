from pathlib import Path
from typing import Annotated

import typer

from app.cli.support.options import WorkspaceOption, new_cli
from app.cli.support.running import ask_server
from app.cli.support.server_client import ServerClient
from app.support.terminal import err
from domain.errors import InputError

cli = new_cli()


@cli.command()
def export(
    run_id: Annotated[str, typer.Argument(help="The run's id.", metavar="RUN")],
    file: Annotated[Path, typer.Argument(help="Where to write it, such as bug.askgraph.")],
    workspace: WorkspaceOption = "default",
) -> None:
    """Write a run to a file that opens on any machine: states, tape, and what it cited."""

    def work(server: ServerClient) -> int:
        data = server.download("runs", run_id, "bundle", workspace=workspace)
        try:
            file.write_bytes(data)
        except OSError as error:
            raise InputError(f"{str(file)!r} cannot be written: {error.strerror}.") from error
        err.print(f"{file}: {len(data):,} bytes. It holds what question, answer and documents say.", markup=False)
        return 0

    ask_server(work)
