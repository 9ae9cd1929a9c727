"""The documents of the table, for lists; the table cannot be changed from here."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from app.adapters.pgvectorstore.table import Table
from domain.documents import Document, Place, Revision
from domain.errors import InputError, UnknownDocument
from domain.library.browsing import Browsed, View
from domain.library.where import EVERYTHING, Where
from domain.scope import Scope

_UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)

_Documents = list[Document]
"""An alias, because within the store `list` is a method."""


class PgVectorStoreDocuments:
    """A `DocumentStore` that lists the table's documents and refuses to change them."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def _refuse(self, *given: Any, **named: Any) -> Any:
        raise InputError(
            "The documents are in a table that another application fills; askgraph only reads it. Change them there."
        )

    # The first call of every ingestion: it fails before anything is read or embedded.
    number_arrival = measure = _refuse
    confirm = set_metadata = set_groups = find = find_deleted = find_groups = keep_original = replace = load = (
        delete
    ) = clear = _refuse

    async def get(self, workspace_id: str, document_id: str) -> Document | None:
        return next(iter(await self._list(Scope(workspace_id, (document_id,)))), None)

    async def read_hashes(self, asker: Scope) -> Mapping[str, str]:
        return {document.id: document.content_hash for document in await self._list(asker)}

    async def list_revisions(self, asker: Scope, document_id: str) -> Sequence[Revision]:
        """Return nothing: the table keeps no earlier contents."""
        return []

    async def get_text(self, workspace_id: str, document_id: str, revision: int | None = None) -> str | None:
        """Return the document's chunks joined by empty lines, in the table's order if their places are unknown."""
        if revision is not None:
            return None
        rows = await self._table.fetch(
            """
            SELECT {content} AS content FROM {table} WHERE {in_scope}
            ORDER BY {position}, CASE WHEN {start} ~ '^[0-9]{{1,9}}$' THEN {start}::bigint END
            """,
            Scope(workspace_id, (document_id,)),
        )
        return "\n\n".join(row["content"] for row in rows) if rows else None

    async def get_places(self, workspace_id: str, document_id: str) -> Sequence[Place]:
        """Return nothing: not every table says where its chunks stand."""
        return ()

    async def list(self, workspace_id: str, where: Where = EVERYTHING) -> Sequence[Document]:
        return await self._list(Scope(workspace_id, where=where))

    async def browse(self, asker: Scope, view: View) -> Browsed:
        """Return documents without folders and choices: not every table says where they come from, or when."""
        if not asker.admits(None):
            return Browsed(0, 0, view.folder, (), (), ())
        words = view.words.lower().split()
        known = await self._list(Scope(asker.workspace_id))
        passing = await self._list(asker) if asker.where else known
        found = [
            each
            for each in passing
            if each.source.startswith(view.folder)
            and all(word in f"{each.title}\n{each.source}".lower() for word in words)
        ]
        found.sort(key=lambda each: (-each.characters if view.order == "largest" else 0, each.title.lower(), each.id))
        page = found[view.offset : view.offset + view.limit]
        return Browsed(len(known), len(found), view.folder, (), (), page)

    async def stored_hashes(self, workspace_id: str, document_id: str) -> frozenset[str]:
        return frozenset()

    async def is_untouched(self, workspace_id: str) -> bool:
        return False

    async def corpus_fingerprint(self, scope: Scope) -> str:
        """Return a new value every time: the table changes without notice, so no answer from it may be cached."""
        if scope.document_ids:
            rows = await self._table.fetch("SELECT DISTINCT {document} AS id FROM {table} WHERE {in_scope}", scope)
            if missing := set(scope.document_ids) - {row["id"] for row in rows}:
                raise UnknownDocument(f"There is no document {min(missing)!r} in this workspace.")
        return uuid4().hex

    async def _list(self, scope: Scope) -> _Documents:
        rows = await self._table.fetch(
            """
            SELECT {document} AS id, min({title}) AS title, count(*) AS chunks, sum(length({content})) AS characters
            FROM {table} WHERE {in_scope} GROUP BY 1 ORDER BY 1
            """,
            scope,
        )
        return [
            Document(
                id=row["id"],
                workspace_id=scope.workspace_id,
                source=row["id"],
                title=row["title"],
                media_type="text/plain",
                content_hash="",
                pages=None,
                characters=row["characters"],
                chunks=row["chunks"],
                created_at=_UNKNOWN_TIME,
                updated_at=_UNKNOWN_TIME,
                groups=None,
            )
            for row in rows
        ]
