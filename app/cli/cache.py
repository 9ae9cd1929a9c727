from typing import Annotated

import typer

from app.cli.options import DocumentsOption, ThreadOption, WorkspaceOption, new_cli
from app.cli.running import print_json, run
from app.cli.terminal import count
from app.runs.cache_explanation import explain
from app.runs.requests import Ask
from app.settings import read_settings
from app.wiring.services import open_services

cli = new_cli(no_args_is_help=True, help="Inspect the answer cache.")


@cli.command("explain")
def explain_lookup(
    question: Annotated[str, typer.Argument(help="The question, as it would be asked.")],
    mode: Annotated[str, typer.Option("--mode", "-m", help="The mode it would be asked in.")] = "standard",
    document: DocumentsOption = None,
    thread: ThreadOption = None,
    workspace: WorkspaceOption = "default",
) -> None:
    """Say whether a question would get a cached answer and, if not, how it differs from the nearest one."""

    async def work() -> int:
        async with open_services(read_settings()) as services:
            asked = Ask(question, workspace, thread, tuple(document) if document else None, mode)
            print_json(await explain(services.make_run_parts(), asked), indent=2, default=str)
            return 0

    run(work())


@cli.command("stats")
def print_statistics(workspace: WorkspaceOption = "default") -> None:
    """Count the workspace's cache hits, cache misses, and questions that shared another one's run."""

    async def work() -> int:
        async with open_services(read_settings()) as services:
            counts = await services.runs.answers.count(workspace)
            hits, misses = count(counts.hits, "hit"), count(counts.misses, "miss", "misses")
            print(f"{hits}, {misses}, of which {counts.shared} shared a run")
            return 0

    run(work())
