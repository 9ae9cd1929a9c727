from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.support.options import WorkspaceOption, new_cli
from app.cli.support.running import fail, run, write_file
from app.cli.support.terminal import err
from app.workbench.cli.reading_runs import read_here, run_there_or_here
from domain.errors import InputError

if TYPE_CHECKING:
    from app.cli.support.server_client import ServerClient

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
        run(_add_case(run_id, workspace, case, [fact.split("|") for fact in must or []]))
    if file is None or must:
        fail(InputError("Name the file to write, or a set with --case DIR; --must goes with --case."))

    def keep(data: bytes) -> int:
        _write(file, data)
        if not redact:
            err.print("It holds what question, answer and documents say; --redact hides that.")
        return 0

    async def export_here() -> int:
        from app.workbench.replay.bundle import write_bundle

        return keep(write_bundle(await read_here(run_id, workspace), redact=redact))

    def export_there(server: "ServerClient") -> int:
        redacted = "true" if redact else None
        return keep(server.download("runs", run_id, "bundle", workspace=workspace, redact=redacted))

    run_there_or_here(export_there, export_here)


def _write(file: Path, data: bytes) -> None:
    write_file(file, data)
    err.print(f"{file}: {len(data):,} bytes", markup=False)


async def _add_case(run_id: str, workspace: str, folder: Path, must: list[list[str]]) -> int:
    from app.cli.asking.feedback import print_export
    from app.evaluation.feedback_set import FeedbackSet, describe_run
    from app.settings import read_settings
    from app.wiring.services import open_services
    from app.workbench.replay.bundle import SUFFIX, write_bundle
    from domain.scope import Scope

    async with open_services(read_settings()) as services:
        saved = await services.make_debugger().read(Scope(workspace), run_id)
        written = FeedbackSet(folder, services.library.originals.read)
        await written.add_library(workspace, await services.library.documents.list(workspace))
        said = await services.runs.feedback.read(workspace, [run_id])
        written.add_questions([describe_run(saved, said.get(run_id))], must)
    runs = folder / "runs"
    runs.mkdir(exist_ok=True)
    _write(runs / f"{run_id}{SUFFIX}", write_bundle(saved))
    print_export(folder, written.exported)
    return 0
