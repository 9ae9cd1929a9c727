import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter

from app.cli.support.options import JsonOption, WhereOption, WorkspaceOption, new_cli
from app.cli.support.running import ask_server, print_result
from app.cli.support.server_client import ServerClient
from app.support.terminal import count, escape, new_table, out, print_table
from domain.documents import Document, tell_unread
from domain.library.metadata import Metadata
from domain.library.where import Scalar

_MOST_WAITING = 100
"""Files that were handed over and are listed, the latest first."""
_DOCUMENTS = TypeAdapter(list[Document])

cli = new_cli()


@cli.command()
def documents(
    document_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Show this document, and what of its file was not read.")
    ] = None,
    where: WhereOption = None,
    unseen: Annotated[
        str | None, typer.Option(metavar="ID", help="Show which words of this document's file nobody sees, instead.")
    ] = None,
    waiting: Annotated[
        bool,
        typer.Option("--waiting", help="List the latest files that were handed over to be read later, instead."),
    ] = False,
    cancel: Annotated[
        list[str] | None, typer.Option("--cancel", metavar="ID", help="Give up a file that waits; repeatable.")
    ] = None,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """List the documents, or the files that wait to be read."""

    def work(server: ServerClient) -> int:
        if document_id is not None:
            found = server.get("documents", document_id, workspace=workspace)
            return print_result(_print_document, found, as_json=as_json)
        if unseen is not None:
            found = server.get("documents", unseen, "unseen", workspace=workspace)
            return print_result(_print_unseen, found, as_json=as_json)
        if waiting or cancel:
            found = [server.delete("ingestions", each, workspace=workspace) for each in cancel or ()]
            found = found or server.get("ingestions", workspace=workspace, limit=_MOST_WAITING)["ingestions"]
            return print_result(print_waiting, found, as_json=as_json)
        found = server.get("documents", workspace=workspace, where=where)["documents"]
        return print_result(lambda found: print_documents(_DOCUMENTS.validate_python(found)), found, as_json=as_json)

    ask_server(work)


def _print_document(found: dict[str, Any]) -> None:
    [document] = _DOCUMENTS.validate_python([found])
    print_documents([document])
    out.print(escape(tell_unread(document.unread)) or "Not read: nothing that is known")


def _print_unseen(found: dict[str, Any]) -> None:
    out.print(f"{count(found['words'], 'word')} that cannot be seen")
    for each in found["unseen"]:
        out.print(f"{escape(each['why'])}: {escape(each['text'])}")


def print_waiting(found: Sequence[dict[str, Any]]) -> None:
    """Print a row per file that was handed over: its state, and its result or error."""
    table = new_table()
    # An id that is broken over two lines cannot be copied.
    table.add_column("id", min_width=max((len(each["ingestion_id"]) for each in found), default=0))
    for column in ("state", "accepted", "source", ""):
        table.add_column(column, overflow="fold")
    for each in found:
        report = each["report"]
        said = report and (
            report["error"] or report["note"] or f"{report['status']}, {count(report['chunks'], 'chunk')}"
        )
        accepted = each["accepted_at"][:19].replace("T", " ")
        table.add_row(each["ingestion_id"], each["state"], accepted, escape(each["source"]), escape(said or ""))
    print_table(table)


def print_documents(documents: Sequence[Document]) -> None:
    """Print a row per document."""
    table = new_table()
    # An id that is broken over two lines cannot be copied.
    table.add_column("id", min_width=max((len(d.id) for d in documents), default=0))
    has_metadata = any(d.metadata for d in documents)
    for column in ("title", "pages", "chunks", "source", *(["metadata"] if has_metadata else [])):
        table.add_column(column, justify="right" if column in ("pages", "chunks") else "left", overflow="fold")
    for d in documents:
        shown = [_show_metadata(d.metadata)] if has_metadata else []
        table.add_row(d.id, escape(d.title), str(d.pages or ""), _show_chunks(d), escape(d.source), *shown)
    print_table(table)


def _show_chunks(document: Document) -> str:
    """Write the number of chunks, and before it how many are embedded while some are not."""
    return f"{document.chunks - document.to_embed} of {document.chunks}" if document.to_embed else str(document.chunks)


def _show_metadata(metadata: Metadata) -> str:
    """Write metadata as `--meta` takes it, each key on a line with its values."""
    return "\n".join(
        escape(f"{key}={', '.join(map(_show_value, value if isinstance(value, list) else [value]))}")
        for key, value in metadata.items()
    )


def _show_value(value: Scalar) -> str:
    return value if isinstance(value, str) else json.dumps(value)
