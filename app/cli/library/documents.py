import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import TypeAdapter

from app.cli.support.options import JsonOption, WhereOption, WorkspaceOption, new_cli
from app.cli.support.running import print_json, print_result, show_there_or_here
from app.settings import read_settings
from app.support.terminal import count, escape, new_table, out, print_table
from app.wiring.stores import open_catalog, open_stores
from domain.documents import Document, name_unread
from domain.errors import UnknownDocument, UnknownIngestion
from domain.library.ingestions import IngestionStatus
from domain.library.metadata import Metadata
from domain.library.where import Scalar, Where

if TYPE_CHECKING:
    from app.cli.support.server_client import ServerClient
    from domain.ports.documents import DocumentCatalog

_MOST_WAITING = 100
"""Files that were handed over and are listed, the latest first."""

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

    if document_id is not None:
        show_there_or_here(
            lambda found: _show_document(found, as_json),
            lambda server: server.get("documents", document_id, workspace=workspace),
            lambda: _find_document(workspace, document_id),
            only_named=True,
        )
    if unseen is not None:
        show_there_or_here(
            lambda found: print_result(_print_unseen, found, as_json=as_json),
            lambda server: server.get("documents", unseen, "unseen", workspace=workspace),
            lambda: _find_unseen(workspace, unseen),
            only_named=True,
        )
    if waiting or cancel:
        show_there_or_here(
            lambda found: _show_waiting(found, as_json),
            lambda server: _ask_for_waiting(server, workspace, cancel or ()),
            lambda: _find_waiting(workspace, cancel or ()),
            only_named=True,
        )

    async def list_here() -> Sequence[Document]:
        async with open_catalog(read_settings()) as catalog:
            return await catalog.list(workspace, Where.parse_option(where))

    def list_there(server: "ServerClient") -> Sequence[Document]:
        listed = server.get("documents", workspace=workspace, where=where)["documents"]
        return TypeAdapter(list[Document]).validate_python(listed)

    def show(found: Sequence[Document]) -> int:
        if as_json:
            # Only this form needs it, and it imports what describes runs too.
            from app.api.schema.descriptions import describe

            print_json([describe(d) for d in found])
        else:
            print_documents(found)
        return 0

    show_there_or_here(show, list_there, list_here, only_named=True)


async def _find_unseen(workspace_id: str, document_id: str) -> dict[str, Any]:
    from app.ingest.parser_workers import ParserWorkers
    from app.ingest.unseen import describe_unseen

    async with open_stores(read_settings()) as stores, ParserWorkers() as workers:
        document = await _get(stores.catalog, workspace_id, document_id)
        return await describe_unseen(document, stores.originals, workers)


async def _find_document(workspace_id: str, document_id: str) -> dict[str, Any]:
    from app.api.schema.descriptions import describe

    async with open_catalog(read_settings()) as catalog:
        return describe(await _get(catalog, workspace_id, document_id))


async def _get(catalog: "DocumentCatalog", workspace_id: str, document_id: str) -> Document:
    document = await catalog.get(workspace_id, document_id)
    if document is None:
        raise UnknownDocument(f"There is no document {document_id!r} in this workspace.")
    return document


def _show_document(found: dict[str, Any], as_json: bool) -> int:
    document = TypeAdapter(Document).validate_python(found)
    if as_json:
        print_json(found)
    else:
        print_documents([document])
        out.print(f"Not read: {escape(name_unread(document.unread)) or 'nothing that is known'}")
    return 0


def _print_unseen(found: dict[str, Any]) -> None:
    out.print(f"{count(found['words'], 'word')} that cannot be seen")
    for each in found["unseen"]:
        out.print(f"{escape(each['why'])}: {escape(each['text'])}")


def _ask_for_waiting(server: "ServerClient", workspace_id: str, cancel: Sequence[str]) -> list[IngestionStatus]:
    cancelled = [server.cancel_ingestion(workspace_id, each) for each in cancel]
    return cancelled or server.list_ingestions(workspace_id, _MOST_WAITING)


async def _find_waiting(workspace_id: str, cancel: Sequence[str]) -> Sequence[IngestionStatus]:
    async with open_stores(read_settings()) as stores:
        cancelled = []
        for ingestion_id in cancel:
            status = await stores.ingestions.cancel(workspace_id, ingestion_id)
            if status is None:
                raise UnknownIngestion(f"There is no ingestion {ingestion_id!r} in this workspace.")
            cancelled.append(status)
        return cancelled or await stores.ingestions.list(workspace_id, _MOST_WAITING)


def _show_waiting(found: Sequence[IngestionStatus], as_json: bool) -> int:
    if as_json:
        from app.api.schema.descriptions import describe_ingestion

        print_json([describe_ingestion(status) for status in found])
    else:
        print_waiting(found)
    return 0


def print_waiting(statuses: Sequence[IngestionStatus]) -> None:
    """Print a row per file that was handed over: its state, and its result or error."""
    table = new_table()
    # An id that is broken over two lines cannot be copied.
    table.add_column("id", min_width=max((len(status.ingestion_id) for status in statuses), default=0))
    for column in ("state", "accepted", "source", ""):
        table.add_column(column, overflow="fold")
    for status in statuses:
        report = status.report
        said = report and (report.error or report.note or f"{report.status}, {count(report.chunks, 'chunk')}")
        accepted = f"{status.accepted_at:%Y-%m-%d %H:%M:%S}"
        table.add_row(status.ingestion_id, status.state, accepted, escape(status.source), escape(said or ""))
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
