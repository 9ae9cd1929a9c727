"""The hour at which old conversations are deleted next, by one of all processes."""

from typing import LiteralString

from app.adapters.postgres.pool import ALL_WORKSPACES, Pool

_TAKE_TURN: LiteralString = """
    UPDATE housekeeping SET due = now() + interval '1 hour' WHERE due <= now() RETURNING due
"""


async def take_turn(pool: Pool) -> bool:
    """Return True once an hour, to one process. Raises `DatabaseUnavailable`."""
    return await pool.fetch_one(ALL_WORKSPACES, _TAKE_TURN) is not None
