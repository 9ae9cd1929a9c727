from collections.abc import Mapping
from typing import Annotated, Any

import typer

from app.cli.support.options import DocumentsOption, ThreadOption, WhereOption, WorkspaceOption, new_cli, read_scope
from app.cli.support.running import print_json, run, run_on_server
from app.cli.support.server_client import ServerClient
from app.support.terminal import count

cli = new_cli(no_args_is_help=True, help="Inspect the answer cache.")


@cli.command("explain")
def explain_lookup(
    question: Annotated[str, typer.Argument(help="The question, as it would be asked.")],
    mode: Annotated[str, typer.Option("--mode", "-m", help="The mode it would be asked in.")] = "standard",
    document: DocumentsOption = None,
    where: WhereOption = None,
    thread: ThreadOption = None,
    workspace: WorkspaceOption = "default",
) -> None:
    """Say whether a question would get a cached answer and, if not, how it differs from the nearest one."""

    def show(explanation: Mapping[str, Any]) -> int:
        print_json(explanation, indent=2, default=str)
        return 0

    async def explain_here() -> int:
        from app.answering.cache_explanation import explain
        from app.answering.requests import Ask
        from app.settings import read_settings
        from app.wiring.services import open_services

        async with open_services(read_settings()) as services:
            asked = Ask(question, read_scope(workspace, document, where), thread, mode)
            return show(await explain(services.make_run_parts(), asked))

    query = {
        "question": question,
        "workspace": workspace,
        "mode": mode,
        "thread_id": thread,
        "document": document,
        "where": where,
    }
    run_on_server(lambda server: show(server.get("cache", "explain", **query)))
    run(explain_here())


@cli.command("stats")
def print_statistics(workspace: WorkspaceOption = "default") -> None:
    """Count the workspace's cache hits, cache misses, and questions that shared another one's run."""

    def show(hits: int, misses: int, shared: int) -> int:
        print(f"{count(hits, 'hit')}, {count(misses, 'miss', 'misses')}, of which {shared} shared a run")
        return 0

    def ask_server(server: ServerClient) -> int:
        counts = server.get("cache", workspace=workspace)
        return show(counts["hits"], counts["misses"], counts["shared"])

    async def count_here() -> int:
        from app.settings import read_settings
        from app.wiring.services import open_services

        async with open_services(read_settings()) as services:
            counts = await services.runs.answers.count(workspace)
            return show(counts.hits, counts.misses, counts.shared)

    run_on_server(ask_server)
    run(count_here())
