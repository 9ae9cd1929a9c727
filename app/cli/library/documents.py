import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import TypeAdapter
from rich.markup import escape

from app.cli.support.options import JsonOption, WhereOption, WorkspaceOption, new_cli
from app.cli.support.running import print_json, run, run_on_server
from app.settings import read_settings
from app.support.terminal import count, new_table, out, print_table
from app.wiring.stores import open_catalog, open_stores
from domain.documents import Document
from domain.errors import UnknownDocument
from domain.library.metadata import Metadata
from domain.library.where import Scalar, Where

if TYPE_CHECKING:
    from app.cli.support.server_client import ServerClient

cli = new_cli()


@cli.command()
def documents(
    where: WhereOption = None,
    unseen: Annotated[
        str | None, typer.Option(metavar="ID", help="Show which words of this document's file nobody sees, instead.")
    ] = None,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """List the documents."""

    def show_unseen_there(server: "ServerClient") -> int:
        return _print_unseen(server.get("documents", str(unseen), "unseen", workspace=workspace), as_json)

    if unseen is not None:
        run_on_server(show_unseen_there, only_named=True)
        run(_show_unseen(workspace, unseen, as_json))

    async def work() -> int:
        async with open_catalog(read_settings()) as catalog:
            found = await catalog.list(workspace, Where.parse_option(where))
            if as_json:
                # Only this form needs it, and it imports what describes runs too.
                from app.api.schema.descriptions import describe

                print_json([describe(d) for d in found])
            else:
                print_documents(found)
            return 0

    def list_there(server: "ServerClient") -> int:
        found = server.get("documents", workspace=workspace, where=where)["documents"]
        if as_json:
            print_json(found)
        else:
            print_documents(TypeAdapter(list[Document]).validate_python(found))
        return 0

    run_on_server(list_there, only_named=True)
    run(work())


async def _show_unseen(workspace_id: str, document_id: str, as_json: bool) -> int:
    from app.ingest.parser_workers import ParserWorkers
    from app.ingest.unseen import describe_unseen

    async with open_stores(read_settings()) as stores, ParserWorkers() as workers:
        document = await stores.catalog.get(workspace_id, document_id)
        if document is None:
            raise UnknownDocument(f"There is no document {document_id!r} in this workspace.")
        return _print_unseen(await describe_unseen(document, stores.originals, workers), as_json)


def _print_unseen(found: dict[str, Any], as_json: bool) -> int:
    if as_json:
        print_json(found)
        return 0
    out.print(f"{count(found['words'], 'word')} that cannot be seen")
    for each in found["unseen"]:
        out.print(f"{escape(each['why'])}: {escape(each['text'])}")
    return 0


def print_documents(documents: Sequence[Document]) -> None:
    """Print a row per document."""
    table = new_table()
    # An id that is broken over two lines cannot be copied.
    table.add_column("id", min_width=max((len(d.id) for d in documents), default=0))
    has_metadata = any(d.metadata for d in documents)
    for column in ("title", "pages", "chunks", "source", *(["metadata"] if has_metadata else [])):
        table.add_column(column, justify="right" if column in ("pages", "chunks") else "left", overflow="fold")
    for d in documents:
        shown = [escape(_show_metadata(d.metadata))] if has_metadata else []
        table.add_row(d.id, escape(d.title), str(d.pages or ""), _show_chunks(d), escape(d.source), *shown)
    print_table(table)


def _show_chunks(document: Document) -> str:
    """Write the number of chunks, and before it how many are embedded while some are not."""
    return f"{document.chunks - document.to_embed} of {document.chunks}" if document.to_embed else str(document.chunks)


def _show_metadata(metadata: Metadata) -> str:
    """Write metadata as `--meta` takes it, each key on a line with its values."""
    return "\n".join(
        f"{key}={', '.join(map(_show_value, value if isinstance(value, list) else [value]))}"
        for key, value in metadata.items()
    )


def _show_value(value: Scalar) -> str:
    return value if isinstance(value, str) else json.dumps(value)
