from collections.abc import Iterable
from typing import Annotated

import typer

from app.cli.asking.answers import show_events
from app.cli.support.options import (
    DocumentsOption,
    JsonOption,
    ModeOption,
    ThreadOption,
    WhereOption,
    WorkspaceOption,
    new_cli,
    read_scope,
)
from app.cli.support.running import ask_server
from app.cli.support.server_client import ServerClient
from app.support.terminal import err
from domain.errors import UnknownWorkspace
from domain.people.names import find_nearest
from domain.ports.workspaces import MOST
from domain.profile import MOST_SOURCES
from domain.scope import DEFAULT_SCOPE

cli = new_cli()


@cli.command()
def ask(
    question: Annotated[str, typer.Argument(help="The question.")],
    mode: ModeOption = "standard",
    document: DocumentsOption = None,
    where: WhereOption = None,
    thread: ThreadOption = None,
    threshold: Annotated[
        float | None, typer.Option(min=0, max=1, help="Answer only from passages that are at least this similar.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, max=MOST_SOURCES, help="Answer from this many sources.")] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Begin the thread, or the workspace, where there is none of this name.")
    ] = False,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Ask a question and stream the answer with its sources."""

    def work(server: ServerClient) -> int:
        # The API begins a thread or a workspace at its first question; here, a new name is more likely a typo.
        if not create and workspace != DEFAULT_SCOPE.workspace_id:
            _require_workspace(workspace, (each["id"] for each in server.get("workspaces")["workspaces"]))
        if thread is not None and not create:
            server.get("threads", thread, workspace=workspace, limit=1)
        if server.is_started and not server.get("library", workspace=workspace, limit=1)["all"]:
            err.print(
                "[yellow]There are no documents here.[/yellow] `askgraph ingest FOLDER` adds yours; "
                "`askgraph serve` begins with a sample library."
            )
        body = {
            "question": question,
            "workspace": workspace,
            "thread_id": thread,
            "document_ids": document or None,
            "filter": read_scope(workspace, document, where).where.to_json() or None,
            "mode": mode,
            "threshold": threshold,
            "limit": limit,
            # Ctrl-C stops the run.
            "on_disconnect": "cancel",
        }
        return show_events(server.stream("chat", body=body), as_json=as_json)

    ask_server(work)


def _require_workspace(wanted: str, listed: Iterable[str]) -> None:
    names = list(listed)
    if wanted in names or len(names) >= MOST:
        return
    nearest = find_nearest(wanted, names)
    meant = f" Did you mean {nearest!r}?" if nearest else ""
    raise UnknownWorkspace(f"There is no workspace {wanted!r}.{meant} With --create, it begins with this question.")
