from typing import Annotated

import typer

from app.cli.answers import show_events
from app.cli.options import DocumentsOption, JsonOption, ModeOption, ThreadOption, WorkspaceOption, new_cli
from app.cli.running import run
from app.runs.requests import Ask
from app.settings import read_settings
from app.wiring.services import open_services

cli = new_cli()


@cli.command()
def ask(
    question: Annotated[str, typer.Argument(help="The question.")],
    mode: ModeOption = "standard",
    document: DocumentsOption = None,
    thread: ThreadOption = None,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Ask a question and stream the answer with its sources."""

    async def work() -> int:
        async with open_services(read_settings()) as services:
            asked = Ask(question, workspace, thread, tuple(document) if document else None, mode)
            async with services.make_run_manager() as turns:
                return await show_events(await turns.ask(asked), as_json=as_json)

    run(work())
