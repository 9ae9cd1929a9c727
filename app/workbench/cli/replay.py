from typing import Annotated
from uuid import UUID

import typer
from rich.markup import escape

from app.answering.requests import AcceptedRun
from app.cli.asking.answers import show_events
from app.cli.support.options import JsonOption, WorkspaceOption, check_thread, new_cli, parse_changes
from app.cli.support.running import run
from app.history.costs import parse_since
from app.settings import read_settings
from app.support.terminal import err
from app.wiring.services import open_services
from app.workbench.cli.replay_many import replay_many
from app.workbench.cli.show import print_trace
from app.workbench.explain.trace import trace
from app.workbench.fleet.fleet import MOST_REPLAYED, make_variant
from app.workbench.replay.replay import Replay
from domain.errors import StateError
from domain.execution.tapes import TapeUse
from domain.history.run_lists import RunFilter, parse_run_filter
from domain.scope import Scope

cli = new_cli()


@cli.command()
def replay(
    target: Annotated[
        str | None,
        typer.Argument(metavar="[RUN|THREAD]", help="The id of a run or a thread.", callback=check_thread),
    ] = None,
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
    until: Annotated[str | None, typer.Option(metavar="NODE", help="Stop once this node has run.")] = None,
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
    since: Annotated[
        str | None,
        typer.Option(help="Instead of one run, replay all since then (7d, or a date) in memory, and report."),
    ] = None,
    where: Annotated[str | None, typer.Option(help="With --since: only runs that fit, as in `askgraph runs`.")] = None,
    search_anew: Annotated[
        bool,
        typer.Option("--search-anew", help="With --since: change nothing but the documents, which are those of today."),
    ] = False,
    budget: Annotated[
        float | None,
        typer.Option(help="With --since: US dollars that language models may cost; unset: they are not asked.", min=0),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With --since: only say what would be replayed.")] = False,
    most_changed: Annotated[
        float | None,
        typer.Option(help="With --since: exit with 1 if a greater share of the runs changes.", min=0, max=1),
    ] = None,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Run a run again, or continue from a saved state, in a new thread. With --since: many runs, and a report.

    With --tape strict nothing is called, and the exit code says whether events and final state equal the recording: 0
    if they do, else 1.
    """

    async def work() -> int:
        parsed = parse_changes(changes or [])
        if since is not None:
            if target or beginning or after or until:
                raise StateError("--since replays many runs, each from the first step that the change affects.")
            return await replay_many(
                workspace,
                RunFilter(parse_since(since), parse_run_filter(where), MOST_REPLAYED),
                make_variant(parsed, mode, search_anew=search_anew),
                budget=budget,
                dry_run=dry_run,
                most_changed=most_changed,
                as_json=as_json,
            )
        if target is None:
            raise StateError("Name a run or a thread, or replay many with --since.")
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
                until=until,
                changes=parsed,
                mode=mode,
                tape=tape,
            )
            async with services.make_run_manager() as turns:
                replayer = services.make_replayer(turns)
                plan = await replayer.plan(wanted)
                if beginning or after or until or parsed or mode:
                    err.print(f"[dim]{escape(plan.describe())}[/dim]")
                opened = await replayer.execute(plan)
                code = await show_events(replayer.follow(opened), as_json=as_json)
            if until and not as_json and isinstance(opened, AcceptedRun):
                # There is no answer yet: what the steps came to is what was asked for.
                print_trace(trace(await services.make_debugger().read(Scope(workspace), opened.run_id)))
            return code

    run(work())


def _read_beginning(text: str | None) -> tuple[str | None, str | None]:
    """Return the checkpoint or the node that the text names."""
    try:
        return (None if text is None else str(UUID(text))), None
    except ValueError:
        return None, text
