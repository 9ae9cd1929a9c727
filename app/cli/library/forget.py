from typing import Annotated, Any, cast

import typer
from rich.markup import escape

from app.api.schema.descriptions import describe_erasure
from app.cli.support.options import DryRunOption, JsonOption, WorkspaceOption, YesOption, new_cli
from app.cli.support.running import print_json, print_result, run, run_on_server
from app.cli.support.server_client import ServerClient
from app.support.terminal import confirm, count, err, is_asked, out
from domain.errors import NotFound, UnknownDocument, UnknownThread

cli = new_cli()


@cli.command()
def forget(
    target: Annotated[str, typer.Argument(metavar="DOCUMENT|THREAD", help="The id of a document or a thread.")],
    workspace: WorkspaceOption = "default",
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Erase a document or a thread everywhere, and prove it.

    A document goes with its file, its revisions, the tapes of runs that read it, the states of conversations that
    repeat it and the cached answers; turns that may repeat it stay, with a marker in place of what they said. A thread
    goes with its branches. What the runs cost stays known. Afterwards tables, cache and files are searched for its id
    and its sentences. The exit code is 1 if something is left.
    """

    def forget_on_server(server: ServerClient) -> int:
        def forget(*, dry_run: bool) -> dict[str, Any]:
            query = {"workspace": workspace} | ({"dry_run": "true"} if dry_run else {})
            try:
                return cast(dict[str, Any], server.delete("documents", target, everywhere="true", **query))
            except NotFound as no_document:
                try:
                    return cast(dict[str, Any], server.delete("threads", target, **query))
                except NotFound as no_thread:
                    raise _join(no_document, no_thread) from None

        if dry_run or is_asked(yes):
            _preview(forget(dry_run=True), as_json)
        if dry_run:
            return 0
        confirm("Erase this?", yes)
        return _report(forget(dry_run=False), as_json)

    async def forget_here() -> int:
        from app.cli.support.auditing import record_command
        from app.settings import read_settings
        from app.wiring.services import open_services

        async with open_services(read_settings()) as services:
            forgetting = services.make_forgetting()
            await forgetting.resume()

            async def forget(*, dry_run: bool) -> dict[str, Any]:
                try:
                    erasure = await forgetting.forget_document(workspace, target, dry_run=dry_run)
                except UnknownDocument as no_document:
                    try:
                        erasure = await forgetting.forget_thread(workspace, target, dry_run=dry_run)
                    except UnknownThread as no_thread:
                        raise _join(no_document, no_thread) from None
                return describe_erasure(erasure)

            if dry_run or is_asked(yes):
                _preview(await forget(dry_run=True), as_json)
            if dry_run:
                return 0
            confirm("Erase this?", yes)
            erased = await forget(dry_run=False)
            await record_command(services.audit, "forget", workspace, [target])
            return _report(erased, as_json)

    run_on_server(forget_on_server)
    run(forget_here())


def _join(no_document: NotFound, no_thread: NotFound) -> NotFound:
    return NotFound(f"{no_document.message} {no_thread.message}")


def _preview(erased: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(erased)
        return
    out.print("This would be deleted or changed:")
    _print_rows(erased)


def _report(erased: dict[str, Any], as_json: bool) -> int:
    print_result(print_erasure, erased, as_json=as_json)
    return 1 if erased["found"] else 0


def _print_rows(erased: dict[str, Any]) -> None:
    for table, rows in erased["erased"].items():
        out.print(f"{rows:>8,} {escape(table)}")


def print_erasure(erased: dict[str, Any]) -> None:
    """Print what was erased, and what the search for it found."""
    _print_rows(erased)
    wanted = f"{count(len(erased['ids']), 'id')} and {count(erased['sentences'], 'sentence')}"
    out.print(f"Searched {erased['searched'] - 1} tables and the cache for {wanted}:", end=" ")
    for remark in erased["remarks"]:
        err.print(escape(remark))
    if not erased["found"]:
        out.print("nothing is left.")
        return
    out.print("something is left.")
    for table, rows in erased["found"].items():
        err.print(f"[red]{rows:>8,} in {escape(table)}[/red]")
