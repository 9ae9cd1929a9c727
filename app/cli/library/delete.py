from collections.abc import Mapping
from typing import Annotated, Any

import typer

from app.cli.support.options import JsonOption, WorkspaceOption, new_cli
from app.cli.support.running import ask_server, print_json
from app.cli.support.server_client import ServerClient
from app.support.terminal import confirm, count, err, escape, is_asked, out
from askgraph import NotFound

cli = new_cli()


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

    def work(server: ServerClient) -> int:
        def erase(target: str, *, dry: bool) -> Any:
            query = {"workspace": workspace} | ({"dry_run": "true"} if dry else {})
            if not everywhere:
                return server.delete("documents", target, **query)
            try:
                return server.delete("documents", target, everywhere="true", **query)
            except NotFound as no_document:
                try:
                    return server.delete("threads", target, **query)
                except NotFound as no_thread:
                    raise NotFound(f"{no_document.message} {no_thread.message}") from None

        # All of them, so that nothing goes where one id is unknown.
        previews = [erase(each, dry=True) for each in ids]
        if dry_run or is_asked(yes) or not everywhere:
            _show(previews, as_json=as_json and dry_run, everywhere=everywhere)
        if dry_run:
            return 0
        confirm("Delete this?", yes)
        erased = [erase(each, dry=False) for each in ids]
        if not everywhere:
            return 0
        if as_json:
            print_json(erased)
        else:
            for each in erased:
                print_erasure(each)
        return int(any(each["found"] for each in erased))

    ask_server(work)


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
