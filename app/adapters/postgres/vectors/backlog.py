"""The chunks that are stored with their text and terms, and are still to be embedded.

Such a chunk has a row in `chunks_to_embed` and no embedding: it is found by its words only. A worker claims some
chunks, embeds them outside any transaction, and stores their vectors in a short one. A claim whose worker has died runs
out. Every stored batch advances the corpus generation, because from then on questions find more.
"""

from collections.abc import Callable
from typing import LiteralString

from app.adapters.postgres.library.ids import parse_ids
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, Session, open_session
from app.adapters.postgres.queue.leases import CHANNEL
from app.adapters.postgres.vectors.embedding_model import hold_index
from domain.documents import embedding_text
from domain.ports.documents import PassageEncoder
from domain.ports.embedding import Embedder

BATCH = 32
"""Chunks that are claimed at once: about half a second of two cores."""

CLAIM_SECONDS = 120
"""Time after which a claim runs out; an embedding server that is slow needs some of it."""

TASK: LiteralString = "embedding"

ASK_FOR_WORKER: LiteralString = f"SELECT pg_notify('{CHANNEL}', '{TASK}')"

# The batch is of one workspace: the one whose turn it is, or that of the document.
_CLAIM: LiteralString = """
    WITH taken AS (
        SELECT chunk_id FROM chunks_to_embed
        WHERE claimed_until < now() AND workspace_id = %(workspace_id)s
            AND (%(document_ids)s::uuid[] IS NULL OR document_id = ANY(%(document_ids)s::uuid[]))
        ORDER BY round, number
        LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
    ), claimed AS (
        UPDATE chunks_to_embed SET claimed_until = now() + make_interval(secs => %(seconds)s)
        WHERE chunk_id IN (SELECT chunk_id FROM taken)
        RETURNING chunk_id
    )
    SELECT id, document_id, heading_path, content, metadata FROM chunks JOIN claimed ON id = chunk_id
"""

_FIND_TURN: LiteralString = """
    SELECT workspace_id FROM chunks_to_embed WHERE claimed_until < now() ORDER BY round, number LIMIT 1
"""

_GIVE_BACK: LiteralString = """
    UPDATE chunks_to_embed SET claimed_until = '-infinity'
    WHERE workspace_id = %(workspace_id)s AND chunk_id = ANY(%(chunk_ids)s::uuid[])
"""

# Changes of one document wait for each other at its row.
_LOCK_DOCUMENTS: LiteralString = """
    SELECT FROM documents WHERE workspace_id = %(workspace_id)s AND document_id = ANY(%(document_ids)s::uuid[])
    ORDER BY document_id
    FOR SHARE
"""

# Chunks may have been deleted meanwhile. Binary (%b), because written as text the vectors take as long as a tenth of
# their embedding.
_STORE: LiteralString = """
    WITH stored AS (
        UPDATE chunks SET embedding = new.embedding
        FROM unnest(%(chunk_ids)b::uuid[], %(embeddings)b::vector[], %(tokens)b::bytea[], %(places)b::bytea[])
            AS new (id, embedding, tokens, places)
        WHERE workspace_id = %(workspace_id)s AND chunks.id = new.id
        RETURNING new.*
    )
    INSERT INTO chunk_tokens (chunk_id, workspace_id, tokens, places)
    SELECT id, %(workspace_id)s, tokens, places FROM stored WHERE tokens <> ''::bytea
    ON CONFLICT (chunk_id, workspace_id) DO UPDATE SET tokens = excluded.tokens, places = excluded.places
"""

_FORGET: LiteralString = """
    DELETE FROM chunks_to_embed WHERE workspace_id = %(workspace_id)s AND chunk_id = ANY(%(chunk_ids)s::uuid[])
"""

_ADVANCE: LiteralString = """
    UPDATE workspaces SET generation = generation + 1, corpus = gen_random_uuid()
    WHERE workspace_id = %(workspace_id)s
"""

_COUNT: LiteralString = """
    SELECT count(*) AS chunks FROM chunks_to_embed
    WHERE workspace_id = %(workspace_id)s
        AND (%(document_ids)s::uuid[] IS NULL OR document_id = ANY(%(document_ids)s::uuid[]))
"""

_COUNT_ALL: LiteralString = "SELECT count(*) AS chunks FROM chunks_to_embed"
_IS_EMPTY: LiteralString = "SELECT NOT EXISTS (SELECT FROM chunks_to_embed) AS is_empty"


class PostgresEmbeddingBacklog:
    """Implements `EmbeddingBacklog` in PostgreSQL."""

    def __init__(
        self,
        pool: Pool,
        embedder: Embedder | None = None,
        tend_indexes: Callable[[], None] = lambda: None,
    ) -> None:
        """`tend_indexes` is called once a workspace is embedded."""
        self._pool = pool
        self._embedder = None if embedder is None else embedder.name
        self._tend_indexes = tend_indexes

    async def embed_some(self, encoder: PassageEncoder) -> int:
        turn = await self._pool.fetch_one(ALL_WORKSPACES, _FIND_TURN)
        return 0 if turn is None else await self._embed(turn["workspace_id"], None, encoder)

    async def embed_some_of(self, workspace_id: str, document_id: str, encoder: PassageEncoder) -> int:
        return await self._embed(workspace_id, document_id, encoder)

    async def count(self, workspace_id: str, document_id: str | None = None) -> int:
        async with open_session(self._pool, workspace_id) as session:
            return await self._count(session, document_id)

    async def count_all(self) -> int:
        row = await self._pool.fetch_one(ALL_WORKSPACES, _COUNT_ALL)
        return 0 if row is None else int(row["chunks"])

    async def is_empty(self) -> bool:
        row = await self._pool.fetch_one(ALL_WORKSPACES, _IS_EMPTY)
        return row is None or bool(row["is_empty"])

    async def _embed(self, workspace_id: str, document_id: str | None, encoder: PassageEncoder) -> int:
        async with open_session(self._pool, workspace_id, transaction=True) as session:
            await hold_index(session, self._embedder)
            rows = await session.fetch(_CLAIM, document_ids=_list_ids(document_id), limit=BATCH, seconds=CLAIM_SECONDS)
        if not rows:
            return 0
        chunk_ids = [row["id"] for row in rows]
        try:
            vectors = await encoder.encode(
                [
                    embedding_text(
                        row["metadata"]["title"],
                        tuple(row["heading_path"]),
                        row["content"],
                        row["metadata"].get("lead", ""),
                    )
                    for row in rows
                ]
            )
            async with open_session(self._pool, workspace_id, transaction=True) as session:
                await hold_index(session, self._embedder)
                await session.execute(_LOCK_DOCUMENTS, document_ids=list({row["document_id"] for row in rows}))
                await session.execute(
                    _STORE,
                    chunk_ids=chunk_ids,
                    embeddings=[each.embedding for each in vectors],
                    tokens=[each.tokens for each in vectors],
                    places=[each.places for each in vectors],
                )
                await session.execute(_FORGET, chunk_ids=chunk_ids)
                await session.execute(_ADVANCE)
        except BaseException:
            # Also where the task is cancelled, so that the next worker need not wait.
            await self._pool.execute(workspace_id, _GIVE_BACK, chunk_ids=chunk_ids)
            raise
        if not await self.count(workspace_id):
            self._tend_indexes()
        return len(rows)

    async def _count(self, session: Session, document_id: str | None) -> int:
        row = await session.fetch_one(_COUNT, document_ids=_list_ids(document_id))
        return 0 if row is None else int(row["chunks"])


def _list_ids(document_id: str | None) -> object:
    return None if document_id is None else parse_ids([document_id])
