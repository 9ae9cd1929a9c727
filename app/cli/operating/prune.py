from dataclasses import asdict
from functools import partial
from typing import Annotated

import typer

from app.cli.support.options import AnyWorkspaceOption, JsonOption, new_cli
from app.cli.support.running import as_command, print_result
from app.history.retention import override_policy, read_policy
from app.history.retention import prune as delete_old
from app.settings import read_settings
from app.support.terminal import count, out
from app.wiring.stores import open_stores
from domain.history.retention import Pruned

cli = new_cli()


@cli.command()
@as_command
async def prune(
    older_than: Annotated[
        str | None,
        typer.Option(
            help="Delete threads whose last run began longer ago than this: 30d, 12h, 8w. [default: the policy]"
        ),
    ] = None,
    workspace: AnyWorkspaceOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Delete nothing; report what would be deleted.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Delete old conversations: their states, runs and tapes. Of those that stay, delete the steps and tapes of runs
    older than ASKGRAPH_KEEP_STEPS. Old finished ingestions are deleted too.

    Costs stay recorded, and documents stay. Without --workspace, workspaces with a span of their own in
    ASKGRAPH_RETENTION keep at least that. Threads with an unfinished run stay. Questions can be asked meanwhile.
    """
    settings = read_settings()
    async with open_stores(settings) as stores:
        policy = override_policy(await read_policy(settings, stores.retention), older_than, workspace)
        pruned = await delete_old(stores.retention, policy, workspace_id=workspace, dry_run=dry_run)
        printer = partial(print_pruned, dry_run=dry_run)
        return print_result(printer, pruned, as_json=as_json, describe=lambda it: asdict(it) | {"dry_run": dry_run})


def print_pruned(pruned: Pruned, *, dry_run: bool) -> None:
    """Print how much was deleted, or would have been."""
    for number, noun, rest in (
        (pruned.threads, "thread", ""),
        (pruned.runs, "run", "; costs stay recorded"),
        (pruned.tapes, "tape", ""),
        (pruned.states, "state", ""),
        (pruned.revisions, "revision", " of documents that no answer cites"),
        (pruned.ingestions, "ingestion", " that ended; the documents stay"),
    ):
        figure, _, named = count(number, noun).partition(" ")
        out.print(f"{figure:>10} {named}{rest}")
    freed = f"{pruned.bytes / 1e6:,.1f} MB"
    out.print(f"Dry run: nothing was deleted; this would free {freed}." if dry_run else f"{freed} were freed.")
