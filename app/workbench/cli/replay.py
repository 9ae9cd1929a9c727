from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from app.cli.asking.answers import show_events
from app.cli.support.options import JsonOption, WorkspaceOption, check_thread, new_cli, parse_changes
from app.cli.support.running import ask_server, fail, print_json, run
from app.cli.support.server_client import ServerClient
from app.settings import read_settings
from app.support.terminal import count, escape, out
from app.workbench.cli.targets import is_file, read_file
from app.workbench.tapes.tape import TapeUse
from askgraph import NotFound
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

    def work(server: ServerClient) -> int:
        run_id, thread_id = None, target
        try:
            run_id, thread_id = target, server.get("runs", target, workspace=workspace)["thread_id"]
        except NotFound as error:
            if checkpoint is None:
                raise NotFound(f"{error.message} To replay a thread, name the checkpoint to run on from.") from None
            run_id = None
        body = {
            "workspace": workspace,
            "checkpoint_id": checkpoint,
            "run_id": run_id,
            "node": node,
            "after": after,
            "set": parsed,
            "mode": mode,
            "tape": tape,
        }
        return show_events(server.stream("threads", thread_id, "replay", body=body), as_json=as_json)

    ask_server(work)


def _list_files(targets: list[str]) -> list[Path]:
    """Return the files that are named, and those in folders. Raises `InputError` where there is none."""
    paths = [Path(target) for target in targets]
    files = [file for path in paths for file in (sorted(path.rglob("*.askgraph")) if path.is_dir() else [path])]
    if not files:
        raise InputError(f"There is no file *.askgraph in {', '.join(targets)}.")
    return files


async def _repeat_files(files: list[Path], as_json: bool) -> int:
    """Repeat the runs in files strictly, and compare. Returns the exit code."""
    # The graph and the local judges.
    from app.wiring.offline import open_offline
    from app.workbench.replay.strict_replay import list_differences

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
