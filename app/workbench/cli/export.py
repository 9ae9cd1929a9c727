from pathlib import Path
from typing import Annotated

import typer

from app.cli.support.options import WorkspaceOption, new_cli
from app.cli.support.running import fail, run, write_file
from app.support.terminal import err
from app.workbench.cli.reading_runs import show_there_or_here
from domain.errors import InputError

cli = new_cli()


@cli.command()
def export(
    run_id: Annotated[str, typer.Argument(help="The run's id.", metavar="RUN")],
    file: Annotated[Path | None, typer.Argument(help="Where to write it, such as bug.askgraph.")] = None,
    redact: Annotated[bool, typer.Option("--redact", help="Hide all text, and keep structure and figures.")] = False,
    case: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Add the run to this evaluation set: its question, what its reader said, the library's files of "
            "today, and the run as DIR/runs/RUN.askgraph.",
        ),
    ] = None,
    must: Annotated[
        list[str] | None,
        typer.Option(help="With --case: a fact that the answer has to hold, its spellings parted by |; repeatable."),
    ] = None,
    workspace: WorkspaceOption = "default",
) -> None:
    """Write a run to a file that opens on any machine: states, tape, and what it cited. Or make a case of it that
    `askgraph eval` asks again."""
    if case is not None:
        if file is not None or redact:
            fail(InputError("--case names its files itself, and holds text: leave out FILE and --redact."))
        # It needs LangGraph and every adapter, which asking a server to export does without.
        from app.workbench.cli import here

        run(here.add_case(run_id, workspace, case, [fact.split("|") for fact in must or []]))
    if file is None or must:
        fail(InputError("Name the file to write, or a set with --case DIR; --must goes with --case."))

    def keep(data: bytes) -> int:
        write_file(file, data)
        err.print(f"{file}: {len(data):,} bytes", markup=False)
        if not redact:
            err.print("It holds what question, answer and documents say; --redact hides that.")
        return 0

    redacted = "true" if redact else None
    show_there_or_here(
        keep,
        lambda server: server.download("runs", run_id, "bundle", workspace=workspace, redact=redacted),
        lambda here: here.export(run_id, workspace, redact=redact),
    )
