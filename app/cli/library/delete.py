from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, cast

import typer

from app.api.schema.descriptions import describe_erasure
from app.cli.support.auditing import record_command
from app.cli.support.options import JsonOption, WorkspaceOption, new_cli
from app.cli.support.running import print_json, run, run_on_server
from app.cli.support.server_client import ServerClient
from app.support.terminal import confirm, count, err, escape, is_asked, out
from domain.errors import NotFound, UnknownDocument, UnknownThread

cli = new_cli()

Erase = Callable[[str, bool], Awaitable[dict[str, Any]]]
"""Erases what has this id, or only says what would go: an erasure as the API describes it."""


@cli.command()
def delete(
    ids: Annotated[list[str], typer.Argument(help="Ids of documents, as `askgraph documents` lists them.")],
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Erase documents or threads everywhere, and prove it.")
    ] = False,
    workspace: WorkspaceOption = "default",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete documents, or erase documents and threads everywhere.

    A document goes with its chunks and the answers cached from it. If one of the ids is unknown, nothing is deleted.

    With --everywhere a document goes with its file, its revisions, the tapes and states of runs that read it and the
    cached answers. Turns that may repeat it stay, with a notice in place of what they said. A thread goes with its
    branches. What the runs cost stays known. Afterwards tables, cache and files are searched for the ids and their
    sentences. The exit code is 1 if something is left; the command may be repeated.
    """

    async def work(erase: Erase) -> int:
        # All of them, so that nothing goes where one id is unknown.
        previews = [await erase(each, True) for each in ids]
        if dry_run or is_asked(yes) or not everywhere:
            _show(previews, as_json=as_json and dry_run, everywhere=everywhere)
        if dry_run:
            return 0
        confirm("Delete this?", yes)
        erased = [await erase(each, False) for each in ids]
        if not everywhere:
            return 0
        if as_json:
            print_json(erased)
        else:
            for each in erased:
                print_erasure(each)
        return int(any(each["found"] for each in erased))

    def ask_server(server: ServerClient) -> int:
        import asyncio

        async def erase(target: str, dry: bool) -> dict[str, Any]:
            query = {"workspace": workspace} | ({"dry_run": "true"} if dry else {})
            if not everywhere:
                return cast(dict[str, Any], server.delete("documents", target, **query))
            try:
                return cast(dict[str, Any], server.delete("documents", target, everywhere="true", **query))
            except NotFound as no_document:
                try:
                    return cast(dict[str, Any], server.delete("threads", target, **query))
                except NotFound as no_thread:
                    raise _join(no_document, no_thread) from None

        return asyncio.run(work(erase))

    async def delete_here() -> int:
        from app.history.forgetting import count_deletion, find_deletable
        from app.settings import read_settings
        from app.wiring.services import open_services
        from domain.scope import Scope

        async with open_services(read_settings()) as services:
            forgetting = services.make_forgetting()
            await forgetting.resume()

            async def erase(target: str, dry: bool) -> dict[str, Any]:
                if not everywhere:
                    document = await find_deletable(services.library.documents, Scope(workspace), target)
                    if not dry:
                        await services.library.ingestion.delete(workspace, target)
                        await record_command(services.audit, "delete", workspace, [target])
                    return describe_erasure(count_deletion(document))
                try:
                    erasure = await forgetting.forget_document(workspace, target, dry_run=dry)
                except UnknownDocument as no_document:
                    try:
                        erasure = await forgetting.forget_thread(workspace, target, dry_run=dry)
                    except UnknownThread as no_thread:
                        raise _join(no_document, no_thread) from None
                if not dry:
                    await record_command(services.audit, "delete --everywhere", workspace, [target])
                return describe_erasure(erasure)

            return await work(erase)

    run_on_server(ask_server)
    run(delete_here())


def _join(no_document: NotFound, no_thread: NotFound) -> NotFound:
    return NotFound(f"{no_document.message} {no_thread.message}")


def _show(erasures: list[dict[str, Any]], *, as_json: bool, everywhere: bool) -> None:
    """Say what would go."""
    if as_json:
        print_json(erasures)
        return
    for each in erasures:
        if everywhere:
            out.print("This would be deleted or changed:")
            _print_rows(each)
        else:
            document_id, source = each["ids"]
            err.print(f"{document_id}  {escape(source)}, {count(each['erased'].get('chunks', 0), 'chunk')}")


def _print_rows(erased: Mapping[str, Any]) -> None:
    for table, rows in erased["erased"].items():
        out.print(f"{rows:>8,} {escape(table)}")


def print_erasure(erased: Mapping[str, Any]) -> None:
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
