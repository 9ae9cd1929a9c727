"""A library that somebody else fills: a table of langchain-postgres' `PGVectorStore`, read and never written.

The table is read with psycopg, not through `PGVectorStore`: that has no way to score given chunks, searches both legs
one after the other, takes words for ANDed terms, and returns too few rows to a tenant with few
(docs/decisions/17-embeddings-and-libraries.md, with what such a table cannot do).
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, LiteralString
from uuid import uuid4
from zlib import crc32

import numpy as np
import psycopg
from pgvector.psycopg import register_vector_async  # type: ignore[import-untyped]
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row
from psycopg.sql import SQL, Composable, Composed, Identifier, Literal
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from app.adapters.postgres.library.ids import parse_ids
from app.adapters.postgres.pool import QUERY_SECONDS, WAIT_SECONDS, Pool, translated_errors
from app.support.toml_files import list_problems, read_toml
from domain.documents import Arrival, Box, Document, Line, Match, Passage
from domain.errors import ConfigurationError, DatabaseUnavailable, InputError, LibraryChanged, UnknownDocument
from domain.ports.documents import DocumentContent
from domain.ports.embedding import Vector
from domain.scope import Scope

logger = logging.getLogger("askgraph.pgvectorstore")

WHOLE = "default"
"""The workspace that a table belongs to where nothing in it says which."""

LOOKED_AT = 2_000
"""Rows among which titles are looked for: no index leads to them."""

_APART = 1_000_000
"""Characters between the supposed beginnings of chunks whose place in their document is not known, so that no two are
taken for neighbours."""

_UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)

_SETTINGS = {
    # Without iterative scans, a filtered search of an HNSW index returns too few rows.
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.ef_search": "200",
    "jit": "off",
}

_Documents = list[Document]
"""Spelt out here, because within the store `list` is a method."""


Name = Annotated[str, StringConstraints(min_length=1, pattern=r"^[^%\x00]+$")]


class TableMapping(BaseModel):
    """Where a table keeps what. The defaults are those of `PGVectorStore` and of LangChain's loaders and splitters.

    The last group are names of columns, or of keys of the metadata where there is no such column. What a row does not
    have is done without.
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    table: Name
    schema_name: Name = Field("public", alias="schema")
    id: Name = "langchain_id"
    content: Name = "content"
    embedding: Name = "embedding"
    metadata: Name = "langchain_metadata"
    words: Name | None = None
    """The `tsvector` column of its hybrid search; without one, only meanings are searched."""
    language: Name = "english"
    """The text search configuration that filled it."""

    workspace: Name | None = None
    """Whose a row is. Without it, all rows belong to the workspace `default`."""
    document: Name = "source"
    title: Name = "title"
    headings: tuple[Name, ...] = ()
    """From the outermost, for example `["Header 1", "Header 2"]`."""
    page: Name = "page"
    first_page: int = Field(1, ge=0, le=1)
    """What the first page is called: LangChain's PDF loaders call it 0."""
    start: Name = "start_index"
    position: Name | None = None
    """The chunk's number in its document; with it, cut sentences are completed from the chunks beside it."""


def read_mapping(path: Path) -> TableMapping:
    """Read the TOML file that `ASKGRAPH_PGVECTORSTORE` names.

    Raises `ConfigurationError`.
    """
    try:
        return TableMapping.model_validate(read_toml(path, "file"))
    except ValidationError as error:
        raise ConfigurationError(f"The file {path} cannot be used: {list_problems(error)}.") from error


class Table:
    """The table, found and understood."""

    def __init__(self, mapping: TableMapping, pool: Pool, types: Mapping[str, str]) -> None:
        """`types` are those of the table's columns, as SQL has them."""
        self.mapping = mapping
        self._pool = pool
        self._types = types
        document = SQL("coalesce({}, t.{}::text)").format(self._read(mapping.document), Identifier(mapping.id))
        self._parts: dict[str, Composable] = {
            "table": SQL("{} AS t").format(Identifier(mapping.schema_name, mapping.table)),
            "id": SQL("t.{}").format(Identifier(mapping.id)),
            "content": SQL("t.{}").format(Identifier(mapping.content)),
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
        }
        # Any of the words: hardly a row has them all.
        self._parts["asked"] = self._compose(
            "CAST(replace(plainto_tsquery({language}, %(query)s)::text, ' & ', ' | ') AS tsquery)"
        )
        self._parts["in_scope"] = self._compose(
            # Others' tables may have rows that are not filled yet.
            "({workspace} = %(workspace_id)s AND {content} IS NOT NULL AND {embedding} IS NOT NULL"
            " AND (%(document_ids)s::text[] IS NULL OR {document} = ANY (%(document_ids)s::text[])))"
        )
        # By the primary key.
        self._parts["chosen"] = self._compose("{id} = ANY (%(chunk_ids)s::text[]::{id_type}[]) AND {in_scope}")

    def _compose(self, query: LiteralString) -> Composed:
        return SQL(query).format(**self._parts)

    def _read(self, name: str) -> Composable:
        """What a row has by this name, as text."""
        if name in self._types:
            return SQL("t.{}::text").format(Identifier(name))
        if self.mapping.metadata in self._types:
            return SQL("(t.{} ->> {})").format(Identifier(self.mapping.metadata), Literal(name))
        return SQL("NULL::text")

    def _read_number(self, name: str | None) -> Composable:
        if name is None:
            return SQL("NULL::bigint")
        value = self._read(name)
        return SQL("CASE WHEN {0} ~ '^[0-9]{{1,9}}$' THEN {0}::bigint END").format(value)

    async def fetch(self, query: LiteralString, scope: Scope, /, **params: Any) -> list[DictRow]:
        """All rows of a statement, in which names in braces stand for parts of the table.

        Raises `DatabaseUnavailable`, and `LibraryChanged` where the table's owner has dropped or changed it.
        """
        if "chunk_ids" in params:
            params["chunk_ids"] = self._keep_possible(params["chunk_ids"])
        documents = None if scope.document_ids is None else _drop_nul(scope.document_ids)
        params |= {"workspace_id": scope.workspace_id, "document_ids": documents}
        try:
            with translated_errors():
                async with asyncio.timeout(QUERY_SECONDS), self._pool.connection() as connection:
                    return await (await connection.execute(self._compose(query), params)).fetchall()
        except psycopg.ProgrammingError as error:
            logger.exception("The table %s.%s is not what it was", self.mapping.schema_name, self.mapping.table)
            raise LibraryChanged(
                "The table that holds the documents was dropped or changed by the application that fills it. Tell "
                "whoever runs this service; its log says what is missing."
            ) from error

    def _keep_possible(self, chunk_ids: Sequence[str]) -> list[str]:
        """Those of the ids that can be one: all others name nothing that is stored."""
        match self._types[self.mapping.id]:
            case "uuid":
                return [str(chunk_id) for chunk_id in parse_ids(chunk_ids)]
            case "smallint" | "integer" | "bigint":
                return [chunk_id for chunk_id in chunk_ids if re.fullmatch(r"\d{1,18}", chunk_id)]
        return _drop_nul(chunk_ids)


@asynccontextmanager
async def open_table(url: str, mapping: TableMapping, dimension: int) -> AsyncIterator[Table]:
    """The table, over connections that cannot write. `dimension` is the embedder's.

    `url` may be written as LangChain writes it, with the driver's name (`postgresql+psycopg://`).

    Raises `ConfigurationError` where there is no such table, where it lacks a column, or where its vectors are of
    another dimension; `DatabaseUnavailable`.
    """
    address = re.sub(r"^postgres(?:ql)?\+\w+://", "postgresql://", url)
    options: dict[str, Any] = {
        "autocommit": True,
        "row_factory": dict_row,
        "connect_timeout": int(WAIT_SECONDS),
        "application_name": "askgraph",
        "options": "-c default_transaction_read_only=on",
    }
    name = f"{mapping.schema_name}.{mapping.table}"
    try:
        # A pool retries in silence whatever is wrong; a first connection of our own says what it is.
        async with await AsyncConnection.connect(address, **options) as connection:
            types = await _find_columns(connection, mapping)
            held = await _find_dimension(connection, mapping)
            await _configure(connection)
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(f"The database of the table {name} does not answer: {error}") from error
    except psycopg.Error as error:
        raise ConfigurationError(f"The table {name} cannot be read: {error}") from error
    if held is not None and held != dimension:
        raise ConfigurationError(
            f"The vectors of the table {name} have {held} dimensions, and the embedding model makes vectors of "
            f"{dimension}. Questions must be embedded by the model that filled the table: set "
            "ASKGRAPH_EMBEDDINGS to it."
        )
    pool = Pool(
        address,
        kwargs=options,
        min_size=1,
        max_size=8,
        timeout=WAIT_SECONDS,
        reconnect_timeout=WAIT_SECONDS,
        check=Pool.check_connection,
        configure=_configure,
        open=False,
    )
    async with pool:
        yield Table(mapping, pool, types)


async def _configure(connection: AsyncConnection[DictRow]) -> None:
    await register_vector_async(connection)
    for name, value in _SETTINGS.items():
        await connection.execute("SELECT set_config(%s, %s, false)", (name, value))


async def _find_columns(connection: AsyncConnection[DictRow], mapping: TableMapping) -> dict[str, str]:
    """The types of the table's columns by name."""
    cursor = await connection.execute(
        """
        SELECT attname, format_type(atttypid, NULL) AS kind FROM pg_attribute
        WHERE attrelid = to_regclass(format('%%I.%%I', %s::text, %s::text)) AND attnum > 0 AND NOT attisdropped
        """,
        (mapping.schema_name, mapping.table),
    )
    types = {row["attname"]: row["kind"] for row in await cursor.fetchall()}
    name = f"{mapping.schema_name}.{mapping.table}"
    if not types:
        raise ConfigurationError(f"There is no table {name} in the database that ASKGRAPH_PGVECTORSTORE_URL names.")
    wanted: dict[str, tuple[str, ...] | None] = {
        mapping.id: None,
        mapping.content: None,
        mapping.embedding: ("vector", "halfvec"),
    }
    if mapping.words is not None:
        wanted[mapping.words] = ("tsvector",)
    for column, kinds in wanted.items():
        if column not in types:
            raise ConfigurationError(f"The table {name} has no column {column!r}; it has {', '.join(types)}.")
        if kinds and types[column] not in kinds:
            raise ConfigurationError(
                f"The column {column!r} of the table {name} is of type {types[column]}, not {kinds[0]}."
            )
    if mapping.workspace is not None and not {mapping.workspace, mapping.metadata} & types.keys():
        raise ConfigurationError(f"The table {name} has neither a column {mapping.workspace!r} nor metadata.")
    return types


async def _find_dimension(connection: AsyncConnection[DictRow], mapping: TableMapping) -> int | None:
    """That of the first row's vector; None where there is no row."""
    query = SQL("SELECT vector_dims({}) AS held FROM {} LIMIT 1").format(
        Identifier(mapping.embedding), Identifier(mapping.schema_name, mapping.table)
    )
    row = await (await connection.execute(query)).fetchone()
    return row["held"] if row else None


class PgVectorStoreLibrary:
    """A `Library` over the table. What needs an index that such a table does not have finds nothing: titles, misspelt
    words, related words."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def search_dense(self, scope: Scope, embedding: Vector, limit: int) -> list[Match]:
        rows = await self._table.fetch(
            """
            SELECT {id}::text AS chunk_id, {document} AS document_id, 1 - ({embedding} <=> %(query)s) AS score
            FROM {table} WHERE {in_scope} ORDER BY {embedding} <=> %(query)s LIMIT %(limit)s
            """,
            scope,
            query=embedding,
            limit=limit,
        )
        if len(rows) < limit:
            # A scan of the index gives up before it has found all of a workspace with few rows.
            rows = await self._table.fetch(
                """
                WITH held AS MATERIALIZED (
                    SELECT {id}::text AS chunk_id, {document} AS document_id, {embedding} AS embedding
                    FROM {table} WHERE {in_scope}
                )
                SELECT chunk_id, document_id, 1 - (embedding <=> %(query)s) AS score
                FROM held ORDER BY embedding <=> %(query)s LIMIT %(limit)s
                """,
                scope,
                query=embedding,
                limit=limit,
            )
        return sorted(_read_matches(rows), key=lambda match: -match.score)

    async def search_lexical(self, scope: Scope, query: str, limit: int) -> list[Match]:
        if self._table.mapping.words is None:
            return []
        rows = await self._table.fetch(
            """
            SELECT {id}::text AS chunk_id, {document} AS document_id, ts_rank_cd({words}, terms) AS score
            FROM {table}, {asked} AS terms
            WHERE {words} @@ terms AND {in_scope} ORDER BY score DESC, {id} LIMIT %(limit)s
            """,
            scope,
            query=query.replace("\0", " "),
            limit=limit,
        )
        return _read_matches(rows)

    async def search_titled(self, scope: Scope, names: Sequence[str], embedding: Vector) -> list[Match]:
        return []

    async def suggest_words(self, scope: Scope, words: Sequence[str], unfinished: str | None) -> dict[str, str]:
        return {}

    async def score_dense(self, scope: Scope, embedding: Vector, chunk_ids: Sequence[str]) -> list[Match]:
        rows = await self._table.fetch(
            """
            SELECT {id}::text AS chunk_id, {document} AS document_id, 1 - ({embedding} <=> %(query)s) AS score
            FROM {table} WHERE {chosen}
            """,
            scope,
            query=embedding,
            chunk_ids=chunk_ids,
        )
        return _read_matches(rows)

    async def score_lexical(self, scope: Scope, query: str, chunk_ids: Sequence[str]) -> list[Match]:
        if self._table.mapping.words is None:
            return []
        rows = await self._table.fetch(
            """
            SELECT {id}::text AS chunk_id, {document} AS document_id, ts_rank_cd({words}, terms) AS score
            FROM {table}, {asked} AS terms
            WHERE {chosen}
            """,
            scope,
            query=query.replace("\0", " "),
            chunk_ids=chunk_ids,
        )
        return _read_matches(rows)

    async def score_related(
        self, scope: Scope, query: str, examples: Mapping[str, float], chunk_ids: Sequence[str]
    ) -> list[Match]:
        return []

    async def read_passages(self, scope: Scope, chunk_ids: Sequence[str]) -> list[Passage]:
        rows = await self._table.fetch(f"{_PASSAGES} WHERE {{chosen}}", scope, chunk_ids=chunk_ids)
        found = {row["chunk_id"]: self._read_passage(row) for row in rows}
        return [found[chunk_id] for chunk_id in chunk_ids if chunk_id in found]

    async def read_around(self, scope: Scope, chunk_ids: Sequence[str], before: int, after: int) -> list[Passage]:
        if self._table.mapping.position is None:
            return await self.read_passages(scope, chunk_ids)
        rows = await self._table.fetch(
            f"""
            WITH chosen AS MATERIALIZED (SELECT {{document}} AS document, {{position}} AS place
                                         FROM {{table}} WHERE {{chosen}})
            {_PASSAGES} WHERE {{in_scope}} AND {{document}} = ANY (SELECT document FROM chosen)
                AND EXISTS (SELECT FROM chosen WHERE document = {{document}}
                            AND {{position}} BETWEEN place - %(before)s AND place + %(after)s)
            """,
            scope,
            chunk_ids=chunk_ids,
            before=before,
            after=after,
        )
        return [self._read_passage(row) for row in rows]

    async def read_embeddings(self, scope: Scope, chunk_ids: Sequence[str]) -> dict[str, Vector]:
        rows = await self._table.fetch(
            "SELECT {id}::text AS chunk_id, {embedding}::vector AS embedding FROM {table} WHERE {chosen}",
            scope,
            chunk_ids=chunk_ids,
        )
        return {row["chunk_id"]: row["embedding"] / (np.linalg.norm(row["embedding"]) or 1) for row in rows}

    async def read_titles(self, scope: Scope, limit: int) -> list[str]:
        rows = await self._table.fetch(
            """
            SELECT DISTINCT title FROM (
                SELECT {title} AS title FROM {table} WHERE {in_scope} LIMIT %(looked_at)s
            ) AS first_rows LIMIT %(limit)s
            """,
            scope,
            looked_at=LOOKED_AT,
            limit=limit,
        )
        return [row["title"] for row in rows]

    async def read_tokens(self, scope: Scope, chunk_ids: Sequence[str]) -> dict[str, bytes]:
        """None: the table has no token vectors, so late interaction runs the model on every passage."""
        return {}

    def _read_passage(self, row: DictRow) -> Passage:
        position = row["position"] or 0
        start = _read_whole(row["start"])
        if start is None:
            # Not known. Any two that are no neighbours must not look like it.
            start = _APART * (position if row["position"] is not None else crc32(row["chunk_id"].encode()))
        page = _read_whole(row["page"])
        # A line without extent says the page and nothing of the place on it.
        nowhere = Box(x=0.0, y=0.0, width=0.0, height=0.0)
        number = None if page is None else page + 1 - self._table.mapping.first_page
        return Passage(
            chunk_id=row["chunk_id"],
            chunk_index=position,
            document_id=row["document_id"],
            title=row["title"],
            text=row["content"],
            start=start,
            end=start + len(row["content"]),
            heading_path=tuple(heading for heading in row["headings"] if heading),
            lines=() if number is None else (Line(start, start, number, nowhere),),
        )


_PASSAGES: LiteralString = """
    SELECT {id}::text AS chunk_id, {document} AS document_id, {title} AS title, {content} AS content,
        {headings} AS headings, {page} AS page, {start} AS start, {position} AS position
    FROM {table}
"""


class PgVectorStoreDocuments:
    """A `DocumentStore` that shows what the table holds and refuses to change it."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def number_arrival(self, workspace_id: str) -> Arrival:
        # Asked by whoever is about to add a document, so that nothing is read or embedded first.
        raise InputError(_READ_ONLY)

    async def confirm(self, workspace_id: str, document: Document, arrival: Arrival) -> bool:
        raise InputError(_READ_ONLY)

    async def find(self, workspace_id: str, source: str) -> Document | None:
        raise InputError(_READ_ONLY)

    async def find_by_hash(self, workspace_id: str, content_hash: str) -> Document | None:
        raise InputError(_READ_ONLY)

    async def get(self, workspace_id: str, document_id: str) -> Document | None:
        return next(iter(await self._list(Scope(workspace_id, (document_id,)))), None)

    async def get_text(self, workspace_id: str, document_id: str) -> str | None:
        """Its chunks one after the other, in the table's order where their place is not known."""
        rows = await self._table.fetch(
            """
            SELECT {content} AS content FROM {table} WHERE {in_scope}
            ORDER BY {position}, CASE WHEN {start} ~ '^[0-9]{{1,9}}$' THEN {start}::bigint END
            """,
            Scope(workspace_id, (document_id,)),
        )
        return "\n\n".join(row["content"] for row in rows) if rows else None

    async def list(self, workspace_id: str) -> Sequence[Document]:
        return await self._list(Scope(workspace_id))

    async def stored_hashes(self, workspace_id: str, document_id: str) -> frozenset[str]:
        return frozenset()

    async def replace(self, workspace_id: str, content: DocumentContent) -> Document:
        raise InputError(_READ_ONLY)

    async def load(self, workspace_id: str, contents: Iterable[DocumentContent]) -> Sequence[Document]:
        raise InputError(_READ_ONLY)

    async def delete(self, workspace_id: str, document_id: str) -> bool:
        raise InputError(_READ_ONLY)

    async def clear(self, workspace_id: str) -> None:
        raise InputError(_READ_ONLY)

    async def is_untouched(self, workspace_id: str) -> bool:
        return False

    async def corpus_fingerprint(self, scope: Scope) -> str:
        """Never the same twice: the table changes without our knowing, so no answer from it may be kept."""
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
            )
            for row in rows
        ]


_READ_ONLY = "The documents are in a table that another application fills; askgraph only reads it. Change them there."


def _read_matches(rows: Sequence[DictRow]) -> list[Match]:
    """A vector of zeros is at no angle to any other: what has one is not found."""
    matches = [Match(row["chunk_id"], row["document_id"], float(row["score"])) for row in rows]
    return [match for match in matches if isfinite(match.score)]


def _read_whole(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,9}", text) else None


def _drop_nul(texts: Sequence[str]) -> list[str]:
    """Those that PostgreSQL can be asked for."""
    return [text for text in texts if "\0" not in text]
