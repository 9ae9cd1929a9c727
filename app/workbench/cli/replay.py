from typing import Annotated
from uuid import UUID

import typer
from rich.markup import escape

from app.cli.asking.answers import show_events
from app.cli.support.options import JsonOption, WorkspaceOption, check_thread, new_cli, parse_changes
from app.cli.support.running import as_command
from app.settings import read_settings
from app.support.terminal import err
from app.wiring.services import open_services
from app.workbench.replay.replay import Replay
from domain.execution.tapes import TapeUse

cli = new_cli()


@cli.command()
@as_command
async def replay(
    target: Annotated[
        str, typer.Argument(metavar="RUN|THREAD", help="The id of a run or a thread.", callback=check_thread)
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
) -> int:
    """Run a run again, or continue from a saved state, in a new thread.

    With --tape strict nothing is called, and the exit code says whether events and final state equal the recording: 0
    if they do, else 1.
    """
    parsed = parse_changes(changes or [])
    async with open_services(read_settings()) as services:
        checkpoint, node = _read_beginning(beginning)
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


def _read_beginning(text: str | None) -> tuple[str | None, str | None]:
    """Return the checkpoint or the node that the text names."""
    try:
        return (None if text is None else str(UUID(text))), None
    except ValueError:
        return None, text
