from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from app.cli.asking.answers import show_events
from app.cli.support.options import JsonOption, WorkspaceOption, check_thread, new_cli, parse_changes
from app.cli.support.running import fail, print_json, run
from app.settings import read_settings
from app.support.terminal import count, err, escape, out
from app.wiring.offline import open_offline
from app.wiring.services import open_services
from app.workbench.cli.targets import is_file, read_file
from app.workbench.replay.replay import Replay
from app.workbench.replay.strict_replay import list_differences
from app.workbench.tapes.tape import TapeUse
from domain.errors import AskgraphError, InputError

cli = new_cli()


@cli.command()
def replay(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN|THREAD|FILE",
            help="The id of a run or a thread; or, with --tape strict, files that `askgraph export` wrote, and folders "
            "of them.",
        ),
    ],
    beginning: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="NODE|CHECKPOINT",
            help="The step to run again with its saved input, such as rerank (rerank@2: the second one); or the "
            "checkpoint to continue from (see `askgraph show`). A thread needs a checkpoint; a run is replayed from "
            "its start by default.",
        ),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="NODE", help="Continue after this step of the run: its edge decides again what follows."),
    ] = None,
    tape: Annotated[
        TapeUse,
        typer.Option(
            help="off: make every call again. strict: answer every call from the run's tape, store nothing, and "
            "compare with the recording. fill: make only the calls that are not on the tape."
        ),
    ] = "off",
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change the state first: key=value, for example profile.rerank.keep=3."),
    ] = None,
    mode: Annotated[str | None, typer.Option("--mode", "-m", help="Continue in another mode.")] = None,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Run a run again, or continue from a saved state, in a new thread.

    With --tape strict nothing is called, and the exit code says whether events and final state equal the recording: 0
    if they do, else 1. Files are repeated without a service, a document or a language model.
    """
    try:
        parsed = parse_changes(changes or [])
        checkpoint, node = _read_beginning(beginning)
        if any(is_file(target) or Path(target).is_dir() for target in targets):
            if tape != "strict" or parsed or mode or beginning or after:
                raise InputError("A file can be repeated as it was recorded alone: askgraph replay --tape strict FILE")
            run(_repeat_files(_list_files(targets), as_json), needs_data=False)
        if len(targets) > 1:
            raise InputError("Replay one run or thread at a time.")
    except AskgraphError as error:
        fail(error)
    [target] = targets
    check_thread(target)

    async def work() -> int:
        async with open_services(read_settings()) as services:
            is_run = checkpoint is None or await services.runs.log.get(workspace, target) is not None
            wanted = Replay(
                workspace,
                thread_id=None if is_run else target,
                checkpoint_id=checkpoint,
                run_id=target if is_run else None,
                node=node,
                after=after,
                changes=parsed,
                mode=mode,
                tape=tape,
            )
            async with services.make_run_manager() as turns:
                replayer = services.make_replayer(turns)
                plan = await replayer.plan(wanted)
                if beginning or after or parsed or mode:
                    err.print(f"[dim]{escape(plan.describe())}[/dim]")
                opened = await replayer.execute(plan)
                return await show_events(replayer.follow(opened), as_json=as_json)

    run(work())


def _list_files(targets: list[str]) -> list[Path]:
    """Return the files that are named, and those in folders. Raises `InputError` where there is none."""
    paths = [Path(target) for target in targets]
    files = [file for path in paths for file in (sorted(path.rglob("*.askgraph")) if path.is_dir() else [path])]
    if not files:
        raise InputError(f"There is no file *.askgraph in {', '.join(targets)}.")
    return files


async def _repeat_files(files: list[Path], as_json: bool) -> int:
    """Repeat the runs in files strictly, and compare. Returns the exit code."""
    found: dict[str, list[str]] = {}
    async with open_offline(read_settings()) as (graph, ports):
        for file in files:
            saved = read_file(file)
            found[str(file)] = differences = list(await list_differences(saved, graph, ports))
            if not as_json:
                mark = "[red]differs[/red]" if differences else "[green]identical[/green]"
                out.print(f"{mark} {escape(str(file))} [dim]{saved.record.run_id}[/dim]")
                for line in differences:
                    out.print(f"  {escape(line)}")
    differing = sum(map(bool, found.values()))
    if as_json:
        print_json(found)
    else:
        out.print(f"{count(len(found), 'run')}, {differing} of them differ.")
    return 1 if differing else 0


def _read_beginning(text: str | None) -> tuple[str | None, str | None]:
    """Return the checkpoint or the node that the text names."""
    try:
        return (None if text is None else str(UUID(text))), None
    except ValueError:
        return None, text
