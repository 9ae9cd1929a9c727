"""Threads and the workspaces that own them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import LiteralString

from psycopg.errors import InsufficientPrivilege

from app.adapters.postgres.pool import Pool, open_session
from domain.errors import UnknownThread

# Returns no row if another workspace owns the id, and fails with `InsufficientPrivilege` where row-level security hides
# that workspace's thread. `queue.runs` accepts a run with it.
CLAIM_THREAD: LiteralString = """
    INSERT INTO threads (thread_id, workspace_id) VALUES (%(thread_id)s, %(workspace_id)s)
    ON CONFLICT (thread_id) DO UPDATE SET thread_id = excluded.thread_id
        WHERE threads.workspace_id = excluded.workspace_id
    RETURNING thread_id
"""

_THREAD_EXISTS: LiteralString = """
    SELECT FROM threads WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s
"""

# An advisory lock, because a lock on the thread's row would block foreign key checks of other transactions.
_HOLD_THREAD: LiteralString = """
    SELECT pg_advisory_xact_lock(hashtextextended(%(workspace_id)s || '/' || %(thread_id)s, 0))
"""


class PostgresThreadStore:
    """Implements `ThreadStore` in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._holding = asyncio.Lock()

    async def claim(self, workspace_id: str, thread_id: str) -> None:
        async with open_session(self._pool, workspace_id) as session:
            try:
                claimed = await session.fetch_one(CLAIM_THREAD, thread_id=thread_id)
            except InsufficientPrivilege:
                claimed = None
            if claimed is None:
                raise UnknownThread

    async def exists(self, workspace_id: str, thread_id: str) -> bool:
        async with open_session(self._pool, workspace_id) as session:
            return await session.fetch_one(_THREAD_EXISTS, thread_id=thread_id) is not None

    @asynccontextmanager
    async def hold(self, workspace_id: str, thread_id: str) -> AsyncIterator[None]:
        # One holder per process at a time, because each keeps a connection while its work needs others.
        async with self._holding, open_session(self._pool, workspace_id, transaction=True) as session:
            await session.execute(_HOLD_THREAD, thread_id=thread_id)
            yield
