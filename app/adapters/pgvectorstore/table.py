"""The table as parts of SQL statements, and running them."""

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

import psycopg
from psycopg.rows import DictRow
from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

from app.adapters.pgvectorstore.mapping import WHOLE, TableMapping
from app.adapters.postgres.library.filters import write_paths
from app.adapters.postgres.library.ids import parse_ids
from app.adapters.postgres.pool import QUERY_SECONDS, Pool, translated_errors
from domain.errors import Forbidden, LibraryChanged
from domain.scope import Scope

MAX_COLUMNS = 40
"""Number of the table's own columns that can be filtered by: a function of SQL takes at most 100 arguments."""

logger = logging.getLogger("askgraph.pgvectorstore")


class Table:
    """The open table."""

    def __init__(self, mapping: TableMapping, pool: Pool, types: Mapping[str, str]) -> None:
        """`types` are the SQL types of the table's columns by name."""
        self.mapping = mapping
        self._pool = pool
        self._types = types
        self._metadata = mapping.metadata if mapping.metadata in types else None
        document = SQL("coalesce({}, t.{}::text)").format(self._read(mapping.document), Identifier(mapping.id))
        self._parts: dict[str, Composable] = {
            "table": SQL("{} AS t").format(Identifier(mapping.schema_name, mapping.table)),
            "id": SQL("t.{}").format(Identifier(mapping.id)),
            "content": SQL("t.{}").format(Identifier(mapping.content)),
            "distance": SQL("<=>"),
            "embedding": SQL("t.{}").format(Identifier(mapping.embedding)),
            "words": SQL("t.{}").format(Identifier(mapping.words or "")),
            "language": Literal(mapping.language),
            "document": document,
            "title": SQL("coalesce({}, {})").format(self._read(mapping.title), document),
            "headings": SQL("ARRAY[{}]::text[]").format(SQL(", ").join(map(self._read, mapping.headings))),
            "page": self._read(mapping.page),
            "start": self._read(mapping.start),
            "position": self._read_number(mapping.position),
            "workspace": Literal(WHOLE) if mapping.workspace is None else self._read(mapping.workspace),
            "id_type": SQL(types[mapping.id]),
            "attributes": self._read_attributes(),
        }
        self._parts["match"] = self._compose("{id}::text AS chunk_id, {document} AS document_id")
        self._parts["likeness"] = self._compose("1 - ({embedding} {distance} %(query)s) AS score")
        # OR instead of AND: hardly any row has all words of a question.
        self._parts["asked"] = self._compose(
            "CAST(replace(plainto_tsquery({language}, %(query)s)::text, ' & ', ' | ') AS tsquery)"
        )
        self._parts["in_scope"] = self._compose(
            # The application that fills the table may not have filled all columns of a row yet.
            "({workspace} = %(workspace_id)s AND {content} IS NOT NULL AND {embedding} IS NOT NULL"
            " AND (%(document_ids)s::text[] IS NULL OR {document} = ANY (%(document_ids)s::text[]))"
            " AND (%(metadata)s::jsonpath IS NULL OR {attributes} @@ %(metadata)s::jsonpath)"
            " AND (%(path)s::jsonpath IS NULL OR jsonb_build_object('path', {document}) @@ %(path)s::jsonpath))"
        )
        # By the primary key.
        self._parts["chosen"] = self._compose("{id} = ANY (%(chunk_ids)s::text[]::{id_type}[]) AND {in_scope}")

    def _compose(self, query: LiteralString) -> Composed:
        return SQL(query).format(**self._parts)

    def _read(self, name: str) -> Composable:
        """Return the expression of a column or metadata key of this name, as text; NULL if the table has neither."""
        if name in self._types:
            return SQL("t.{}::text").format(Identifier(name))
        if self._metadata is not None:
            return SQL("(t.{} ->> {})").format(Identifier(self._metadata), Literal(name))
        return SQL("NULL::text")

    def _read_attributes(self) -> Composable:
        """Return the expression of what a row can be filtered by: its metadata and the columns of the table's own, as
        one JSON object."""
        mapping = self.mapping
        known = (mapping.id, mapping.content, mapping.embedding, mapping.words, mapping.metadata)
        own = [name for name in self._types if name not in known][:MAX_COLUMNS]
        columns = SQL(", ").join(SQL("{}, t.{}").format(Literal(name), Identifier(name)) for name in own)
        attributes = SQL("jsonb_strip_nulls(jsonb_build_object({}))").format(columns)
        if self._metadata is None:
            return attributes
        metadata = SQL("coalesce(t.{}::jsonb, '{{}}'::jsonb)").format(Identifier(self._metadata))
        return SQL("({} || {})").format(metadata, attributes)

    def _read_number(self, name: str | None) -> Composable:
        if name is None:
            return SQL("NULL::bigint")
        value = self._read(name)
        return SQL("CASE WHEN {0} ~ '^[0-9]{{1,9}}$' THEN {0}::bigint END").format(value)

    async def fetch(self, query: LiteralString, scope: Scope, /, **params: Any) -> list[DictRow]:
        """Return all rows of a statement in which names in braces stand for parts of the table.

        Raises `DatabaseUnavailable`, `LibraryChanged` if the table's owner has dropped or changed it, and `Forbidden`
        where the asker may read the documents of some groups only.
        """
        if scope.groups is not None:
            raise Forbidden(
                "The documents are in a table that another application fills, and it does not say which groups may "
                "read them. Use a key that is not limited to groups."
            )
        if "chunk_ids" in params:
            params["chunk_ids"] = self._keep_possible(params["chunk_ids"])
        documents = None if scope.document_ids is None else _drop_nul(scope.document_ids)
        metadata, path = write_paths(scope.where)
        params |= {"workspace_id": scope.workspace_id, "document_ids": documents, "metadata": metadata, "path": path}
        try:
            with translated_errors():
                async with self._pool.connection() as connection, asyncio.timeout(QUERY_SECONDS):
                    return await (await connection.execute(self._compose(query), params)).fetchall()
        except psycopg.ProgrammingError as error:
            logger.exception("The table %s.%s was dropped or changed", self.mapping.schema_name, self.mapping.table)
            raise LibraryChanged(
                "The table that holds the documents was dropped or changed by the application that fills it. Tell "
                "whoever runs this service; its log says what is missing."
            ) from error

    def _keep_possible(self, chunk_ids: Sequence[str]) -> list[str]:
        """Drop ids that the id column's type cannot hold, which name no row."""
        match self._types[self.mapping.id]:
            case "uuid":
                return [str(chunk_id) for chunk_id in parse_ids(chunk_ids)]
            case "smallint" | "integer" | "bigint":
                return [chunk_id for chunk_id in chunk_ids if re.fullmatch(r"\d{1,18}", chunk_id)]
        return _drop_nul(chunk_ids)


def _drop_nul(texts: Sequence[str]) -> list[str]:
    """Drop texts that PostgreSQL cannot hold."""
    return [text for text in texts if "\0" not in text]
