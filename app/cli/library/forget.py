from typing import Annotated, Any

import typer
from rich.markup import escape

from app.api.schema.descriptions import describe_erasure
from app.cli.support.options import JsonOption, WorkspaceOption, new_cli
from app.cli.support.running import print_json, run, run_on_server
from app.cli.support.server_client import ServerClient
from app.support.terminal import count, err, out
from domain.errors import NotFound, UnknownDocument

cli = new_cli()


@cli.command()
def forget(
    target: Annotated[str, typer.Argument(metavar="DOCUMENT|THREAD", help="The id of a document or a thread.")],
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Erase a document or a thread everywhere, and prove it.

    A document goes with its file, its revisions, the tapes of runs that read it and the cached answers; conversations
    that quoted it keep their steps, with a marker in its place. A thread goes with its branches. What the runs cost
    stays known. Afterwards every table and the cache are searched for its id and its sentences. The exit code is 1 if
    something is left.
    """

    def forget_on_server(server: ServerClient) -> int:
        try:
            erased = server.delete("documents", target, workspace=workspace, everywhere="true")
        except NotFound:
            erased = server.delete("threads", target, workspace=workspace)
        return _report(erased, as_json)

    async def forget_here() -> int:
        from app.settings import read_settings
        from app.wiring.services import open_services

        async with open_services(read_settings()) as services:
            forgetting = services.make_forgetting()
            try:
                erasure = await forgetting.forget_document(workspace, target)
            except UnknownDocument:
                erasure = await forgetting.forget_thread(workspace, target)
        return _report(describe_erasure(erasure), as_json)

    run_on_server(forget_on_server)
    run(forget_here())


def _report(erased: dict[str, Any], as_json: bool) -> int:
    if as_json:
        print_json(erased)
    else:
        print_erasure(erased)
    return 1 if erased["found"] else 0


def print_erasure(erased: dict[str, Any]) -> None:
    """Print what was erased, and what the search for it found."""
    for table, rows in erased["erased"].items():
        out.print(f"{rows:>8,} {escape(table)}")
    wanted = f"{count(len(erased['ids']), 'id')} and {count(erased['sentences'], 'sentence')}"
    out.print(f"Searched {erased['searched'] - 1} tables and the cache for {wanted}:", end=" ")
    if not erased["found"]:
        out.print("nothing is left.")
        return
    out.print("something is left.")
    for table, rows in erased["found"].items():
        err.print(f"[red]{rows:>8,} in {escape(table)}[/red]")
