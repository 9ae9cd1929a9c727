"""Replace the embedding model while documents are searched and changed as before.

A second table, `chunks_next`, is filled with the rows of `chunks` and the new model's vectors. Its content is the
progress, so a run that was interrupted is continued by the next. At the end it replaces `chunks` in one transaction. No
change can overlap with that, because every change holds a shared lock on the row that names the index's model
(`embedding_model.hold_index`).
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext, suppress
from typing import LiteralString
from uuid import UUID

from psycopg import AsyncConnection, Error, Rollback, errors
from psycopg.rows import DictRow
from psycopg.sql import SQL, Identifier

from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, borrow, translated_errors
from app.adapters.postgres.row_security import protect
from app.adapters.postgres.vectors import vector_index
from app.adapters.postgres.vectors.embedding_model import describe_column, fetch_value, list_graphs, read_model
from domain.documents import embedding_text
from domain.errors import ConfigurationError, DatabaseUnavailable
from domain.ports.embedding import Embedder, Vector

_LOCK = 0x61736B68
"""Advisory lock of the only run that may be active."""

LOCK_TIMEOUT = "3s"
"""Longest wait of the exchange for readers. Other readers wait behind it."""
TRIES = 12
"""Number of attempts at the exchange, a second apart, while something slow such as a backup reads the table."""

_STAGED: LiteralString = "SELECT next FROM embedding_model WHERE to_regclass('chunks_next') IS NOT NULL"
_SET_NEXT: LiteralString = "UPDATE embedding_model SET next = %s"

_STAGE: tuple[LiteralString, ...] = (
    "CREATE TABLE chunks_next (LIKE chunks INCLUDING DEFAULTS INCLUDING STORAGE)",
    "ALTER TABLE chunks_next ADD CONSTRAINT chunks_next_pkey PRIMARY KEY (id, workspace_id)",
    "CREATE INDEX chunks_next_by_document ON chunks_next (workspace_id, document_id)",
)
_GRANTS: LiteralString = """
    SELECT format('GRANT %s ON chunks_next TO %s', privilege_type,
                  CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END)
           AS statement
    FROM pg_class, aclexplode(relacl) WHERE pg_class.oid = 'chunks'::regclass AND grantee <> relowner
"""

_WORKSPACES: LiteralString = "SELECT workspace_id, chunks FROM workspaces WHERE chunks > 0 ORDER BY workspace_id"
_COUNT: LiteralString = "SELECT count(*) FROM chunks_next"
_MISSING: LiteralString = """
    SELECT id, document_id, metadata, heading_path, content
    FROM chunks AS c
    WHERE workspace_id = %(workspace_id)s AND (document_id, id) > (%(document_id)s, %(chunk_id)s)
      AND NOT EXISTS (SELECT FROM chunks_next AS n WHERE n.id = c.id)
    ORDER BY document_id, id
    LIMIT %(limit)s
"""
_KEEP: LiteralString = """
    INSERT INTO chunks_next (id, workspace_id, document_id, content_hash, heading_path, content, metadata, embedding)
    SELECT id, workspace_id, document_id, content_hash, heading_path, content, metadata, %(embedding)s
    FROM chunks WHERE id = %(chunk_id)s
    ON CONFLICT DO NOTHING
"""

_IS_INCOMPLETE: LiteralString = """
    SELECT EXISTS (SELECT FROM chunks AS c WHERE NOT EXISTS (SELECT FROM chunks_next AS n WHERE n.id = c.id))
"""
_FORGET_DELETED: LiteralString = """
    DELETE FROM chunks_next AS n WHERE NOT EXISTS (SELECT FROM chunks AS c WHERE c.id = n.id)
"""
_ADOPT: LiteralString = "UPDATE embedding_model SET name = %s, dimension = %s, next = NULL"
# Foreign keys from other tables to `chunks`, and from `chunks` to others. They are added without a check, which takes
# long: the rows are the same as before, and those deleted in the meantime have just been deleted here too.
_KEYS: LiteralString = """
    SELECT conrelid::regclass::text AS owner, conname AS name, pg_get_constraintdef(oid) AS definition
    FROM pg_constraint
    WHERE contype = 'f' AND ('chunks'::regclass IN (conrelid, confrelid))
    ORDER BY 1, 2
"""
_UNCHECKED: LiteralString = """
    SELECT conrelid::regclass::text AS owner, conname AS name FROM pg_constraint
    WHERE contype = 'f' AND NOT convalidated AND ('chunks'::regclass IN (conrelid, confrelid))
"""
_EXCHANGE: tuple[LiteralString, ...] = (
    "LOCK TABLE chunks IN ACCESS EXCLUSIVE MODE",
    "ALTER TABLE chunks RENAME TO chunks_before",
    "ALTER TABLE chunks_next RENAME TO chunks",
)
_RENAME: tuple[LiteralString, ...] = (
    "DROP TABLE chunks_before",
    "ALTER TABLE chunks RENAME CONSTRAINT chunks_next_pkey TO chunks_pkey",
    "ALTER INDEX chunks_next_by_document RENAME TO chunks_by_document",
)
# Invalidates the cached answers.
_ADVANCE: LiteralString = "UPDATE workspaces SET generation = generation + 1, corpus = gen_random_uuid()"

_NOBODY = UUID(int=0)

Changing = Callable[[None], AbstractAsyncContextManager[None]]


class Reembedding:
    """The new index, while the old one is still searched."""

    def __init__(self, connection: AsyncConnection[DictRow], embedder: Embedder, changing: Changing) -> None:
        self._connection = connection
        self._embedder = embedder
        self._changing = changing

    async def prepare(self) -> bool:
        """Create the new table, or continue that of an earlier run. One made for another model is dropped.
        Returns False if the index already has this model.

        Raises `DatabaseUnavailable`, as all methods do.
        """
        connection, model = self._connection, self._embedder.name
        with translated_errors():
            is_current = await read_model(connection) == model
            if is_current or await fetch_value(connection, _STAGED) != model:
                async with connection.transaction():
                    await connection.execute("DROP TABLE IF EXISTS chunks_next")
                    await connection.execute(_SET_NEXT, [None if is_current else model])
                    if not is_current:
                        await self._stage()
        return not is_current

    async def _stage(self) -> None:
        for statement in _STAGE:
            await self._connection.execute(statement)
        await self._connection.execute(describe_column("chunks_next", self._embedder.dimension))
        for row in await (await self._connection.execute(_GRANTS)).fetchall():
            await self._connection.execute(row["statement"])
        await protect(self._connection, "chunks_next")

    async def count(self) -> tuple[int, int]:
        """Return the number of chunks that have their new vector, and the number of all chunks."""
        with translated_errors():
            sizes = await self._connection.execute(_WORKSPACES)
            total = sum([row["chunks"] for row in await sizes.fetchall()])
            return min(await fetch_value(self._connection, _COUNT), total), total

    async def read_missing(self, limit: int) -> AsyncIterator[dict[UUID, str]]:
        """Yield the texts of chunks without a new vector by chunk id, at most `limit` at a time. Chunks that are added
        in the meantime may be missed, and are found by the next call."""
        with translated_errors():
            workspaces = await (await self._connection.execute(_WORKSPACES)).fetchall()
        for workspace in workspaces:
            place = {"workspace_id": workspace["workspace_id"], "document_id": _NOBODY, "chunk_id": _NOBODY}
            while True:
                with translated_errors():
                    rows = await (await self._connection.execute(_MISSING, place | {"limit": limit})).fetchall()
                if not rows:
                    break
                yield {row["id"]: _read_text(row) for row in rows}
                place |= {"document_id": rows[-1]["document_id"], "chunk_id": rows[-1]["id"]}

    async def keep(self, vectors: dict[UUID, Vector]) -> None:
        """Store vectors by chunk id, all or none. Chunks that have been deleted are skipped."""
        rows = [{"chunk_id": chunk_id, "embedding": vector} for chunk_id, vector in vectors.items()]
        with translated_errors():
            async with self._connection.transaction(), self._connection.cursor() as cursor:
                await cursor.executemany(_KEEP, rows)

    async def build_indexes(self) -> None:
        """Build the vector indexes of large workspaces. From then on they are updated with every row."""
        with translated_errors():
            workspaces = await (await self._connection.execute(_WORKSPACES)).fetchall()
            for workspace in workspaces:
                if workspace["chunks"] > vector_index.EXACT_ROWS:
                    await vector_index.renew(
                        self._connection, workspace["workspace_id"], workspace["chunks"], "chunks_next"
                    )
            await self._connection.execute("ANALYZE chunks_next")

    async def switch(self) -> bool:
        """Replace the old index with the new one. Returns False, and changes nothing, if chunks have been added that
        the new one lacks.

        Raises `DatabaseUnavailable` if others read the table for too long, and `ConfigurationError` if another object
        of the database depends on it. The new index stays in both cases.
        """
        for _ in range(TRIES):
            try:
                with translated_errors():
                    async with self._changing(None), self._connection.transaction() as transaction:
                        if not (exchanged := await self._exchange()):
                            raise Rollback(transaction)
                    return exchanged
            except DatabaseUnavailable as error:
                if not isinstance(error.__cause__, errors.LockNotAvailable | errors.DeadlockDetected):
                    raise
                await asyncio.sleep(1)
            except errors.DependentObjectsStillExist as error:
                raise ConfigurationError(
                    f"The new index is complete, but an object depends on the old one: {error.diag.message_detail} "
                    "Drop that object, run the same command again, then create the object again."
                ) from error
        raise DatabaseUnavailable(
            "The new index is complete, but could not replace the old one, because something reads the table for a "
            "long time, such as a backup. Run the same command again afterwards; nothing is embedded twice."
        )

    async def _exchange(self) -> bool:
        connection = self._connection
        await connection.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
        # Waits for changes in progress. Later changes wait for this transaction.
        await connection.execute(_ADOPT, [self._embedder.name, self._embedder.dimension])
        if await fetch_value(connection, _IS_INCOMPLETE):
            return False
        await connection.execute(_FORGET_DELETED)
        keys = await (await connection.execute(_KEYS)).fetchall()
        graphs = await list_graphs(connection, "chunks_next")
        # From here on searches wait as well.
        for statement in _EXCHANGE:
            await connection.execute(statement)
        for key in keys:
            owner, name = Identifier(key["owner"]), Identifier(key["name"])
            if key["owner"] != "chunks":
                await connection.execute(SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(owner, name))
            add = SQL("ALTER TABLE {} ADD CONSTRAINT {} {} NOT VALID")
            definition = key["definition"].removesuffix(" NOT VALID")
            await connection.execute(add.format(owner, name, SQL(definition)))
        for statement in _RENAME:
            await connection.execute(statement)
        for graph in graphs:
            rename = SQL("ALTER INDEX {} RENAME TO {}")
            new = graph.replace("chunks_next", "chunks", 1)
            await connection.execute(rename.format(Identifier(graph), Identifier(new)))
        await connection.execute(_ADVANCE)
        return True

    async def check_keys(self) -> None:
        """Validate the foreign keys that the exchange added without a check. Searches and changes go on meanwhile."""
        with translated_errors():
            for key in await (await self._connection.execute(_UNCHECKED)).fetchall():
                validate = SQL("ALTER TABLE {} VALIDATE CONSTRAINT {}")
                await self._connection.execute(validate.format(Identifier(key["owner"]), Identifier(key["name"])))


def _read_text(row: DictRow) -> str:
    described = row["metadata"]
    return embedding_text(described["title"], tuple(row["heading_path"]), row["content"], described.get("lead", ""))


@asynccontextmanager
async def open_reembedding(
    pool: Pool, embedder: Embedder, changing: Changing = lambda _: nullcontext()
) -> AsyncIterator[Reembedding]:
    """Start replacing the index's model with this one; one process at a time. `changing` is entered around the exchange
    and its commit, with None for all workspaces.

    Raises `ConfigurationError` if another process is doing it, and `DatabaseUnavailable`.
    """
    async with AsyncExitStack() as stack:
        with translated_errors():
            connection = await stack.enter_async_context(borrow(pool, ALL_WORKSPACES))
            if not await fetch_value(connection, "SELECT pg_try_advisory_lock(%s)", [_LOCK]):
                raise ConfigurationError("Another process is re-embedding the documents. Wait for it, or stop it.")
        try:
            yield Reembedding(connection, embedder, changing)
        finally:
            with suppress(Error):
                await connection.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
                await connection.execute("RESET maintenance_work_mem")
                await connection.execute("RESET max_parallel_maintenance_workers")
