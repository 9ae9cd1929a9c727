"""Who owns which thread, and the log of every run."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

import orjson
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from app.adapters.postgres import sql
from app.adapters.postgres.pool import Pool, open_session
from domain.errors import UnknownThread
from domain.runs import CostKey, RunRecord, ServedRun, Spending


class PostgresThreadStore:
    """Threads and their workspaces in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._holding = asyncio.Lock()

    async def claim(self, workspace_id: str, thread_id: str) -> None:
        async with open_session(self._pool, workspace_id) as session:
            if await session.fetch_one(sql.CLAIM_THREAD, thread_id=thread_id) is None:
                raise UnknownThread

    async def exists(self, workspace_id: str, thread_id: str) -> bool:
        async with open_session(self._pool, workspace_id) as session:
            return await session.fetch_one(sql.THREAD_EXISTS, thread_id=thread_id) is not None

    @asynccontextmanager
    async def hold(self, workspace_id: str, thread_id: str) -> AsyncIterator[None]:
        # One at a time, because each keeps a connection while it needs others.
        async with self._holding, open_session(self._pool, workspace_id, transaction=True) as session:
            await session.execute(sql.HOLD_THREAD, thread_id=thread_id)
            yield


class PostgresRunLog:
    """The record of every run in PostgreSQL, one column per field."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def record_served(self, runs: Sequence[ServedRun]) -> None:
        async with open_session(self._pool, "") as session:
            await session.execute(sql.RECORD_SERVED_RUNS, runs=Jsonb(runs, orjson.dumps))

    async def get(self, workspace_id: str, run_id: str) -> RunRecord | None:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(sql.GET_RUN, run_id=run_id)
        return _read_run(row) if row else None

    async def get_tape(self, workspace_id: str, run_id: str) -> bytes | None:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(sql.GET_TAPE, run_id=run_id)
        return row["tape"] if row else None

    async def list_thread(self, workspace_id: str, thread_id: str) -> list[RunRecord]:
        async with open_session(self._pool, workspace_id) as session:
            return [_read_run(row) for row in await session.fetch(sql.LIST_THREAD_RUNS, thread_id=thread_id)]

    async def sum_costs(
        self, workspace_id: str | None, since: datetime, by: CostKey
    ) -> tuple[list[Spending], Spending]:
        async with open_session(self._pool, workspace_id or "") as session:
            rows = await session.fetch(sql.SUM_COSTS[by], since=since, everywhere=workspace_id is None)
        *spent, together = [Spending(**row) for row in rows]
        return spent, together


def _read_run(row: DictRow) -> RunRecord:
    return RunRecord(**row)
