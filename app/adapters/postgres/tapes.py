"""The tapes of runs."""

from app.adapters.postgres import sql
from app.adapters.postgres.pool import Pool, open_session


class PostgresTapeStore:
    """Encoded tapes in PostgreSQL, deleted with their run or their thread."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def put(self, workspace_id: str, thread_id: str, run_id: str, tape: bytes) -> None:
        async with open_session(self._pool, workspace_id) as session:
            await session.execute(sql.PUT_TAPE, thread_id=thread_id, run_id=run_id, tape=tape)

    async def get(self, workspace_id: str, run_id: str) -> bytes | None:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(sql.GET_TAPE, run_id=run_id)
        return row["tape"] if row else None
