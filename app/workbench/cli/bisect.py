import asyncio
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.support.options import JsonOption, WorkspaceOption, new_cli
from app.cli.support.running import print_json, run
from app.cli.support.terminal import err, out
from app.workbench.cli.reading_runs import escape, is_file, open_file, read_here, shorten

if TYPE_CHECKING:
    from app.workbench.compare.bisection import Repetition

cli = new_cli()

_COLOURS = {"good": "green", "bad": "red", "skip": "yellow"}


@cli.command()
def bisect(
    run_id: Annotated[
        str, typer.Argument(help="The run's id, or a file that `askgraph export` wrote.", metavar="RUN|FILE")
    ],
    good: Annotated[str, typer.Option(metavar="COMMIT", help="A commit that answers as recorded.")],
    bad: Annotated[str, typer.Option(metavar="COMMIT", help="A later one that answers otherwise.")] = "HEAD",
    repository: Annotated[Path, typer.Option(help="The working tree of askgraph's own code.")] = Path(),
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Find the first commit of askgraph's code that changes the answer of a run.

    The run is repeated strictly under each commit that git chooses, with that commit's code and this environment's
    packages. Commits that cannot repeat it are passed over.
    """

    def show_progress(done: "Repetition") -> None:
        colour = _COLOURS[done.verdict]
        err.print(
            f"[{colour}]{done.verdict}[/{colour}] {done.commit[:12]} {escape(shorten(done.subject, 60))} "
            f"[dim]{escape(shorten(done.reason, 100))}[/dim]"
        )

    async def work() -> int:
        from app.workbench.compare.bisection import bisect as find_first
        from app.workbench.replay.bundle import write_bundle

        with tempfile.TemporaryDirectory(prefix="askgraph-bisect-") as folder:
            file = Path(run_id)
            if is_file(run_id):
                open_file(file)
            else:
                file = Path(folder) / "run.askgraph"
                file.write_bytes(write_bundle(await read_here(run_id, workspace)))
            found = await asyncio.to_thread(find_first, repository, file, good, bad, show_progress)
        if as_json:
            print_json(asdict(found))
        elif len(found.first) == 1:
            out.print(f"{found.first[0]} is the first commit that changes the answer.")
        else:
            out.print(f"One of these is the first commit that changes the answer: {' '.join(found.first)}")
        return 0

    run(work())
