"""Threads and the workspaces that own them."""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString

from app.adapters.postgres.pool import Pool, open_session
from app.adapters.postgres.queue.leases import UNFINISHED
from domain.runs import Conversation
from domain.scope import Scope

LONGEST_TITLE = 200
"""Characters of a title. A longer first question is cut."""

MOST_ASKED = 10_000
"""Characters of a thread's questions that are kept together, for its title and to search in."""

OPEN: LiteralString = "(%(groups)s::text[] IS NULL OR groups <@ %(groups)s)"
"""True for a thread whose runs were shown nothing that an asker of these groups may not read; see `Scope.covers`."""

# What an upsert of a thread that is there already makes of its columns.
MERGED_GROUPS: LiteralString = """
    CASE WHEN threads.groups IS NOT NULL AND excluded.groups IS NOT NULL
        THEN ARRAY(SELECT DISTINCT unnest(threads.groups || excluded.groups) ORDER BY 1)
    END
"""
MERGED_CALLERS: LiteralString = "ARRAY(SELECT DISTINCT unnest(threads.asked_by || excluded.asked_by) ORDER BY 1)"

_CLAIM_THREAD: LiteralString = """
    INSERT INTO threads (thread_id, workspace_id, groups, asked_by)
    VALUES (%(thread_id)s, %(workspace_id)s, %(groups)s::text[], '{}')
    ON CONFLICT DO NOTHING
"""

_THREAD_EXISTS: LiteralString = """
    SELECT FROM threads WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s
"""

_IS_OPEN: LiteralString = f"""
    SELECT {OPEN} IS TRUE AS is_open FROM threads
    WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s
"""

_CONVERSATION: LiteralString = f"""
    thread.thread_id, coalesce(title, left(split_part(asked, E'\\n', 1), {LONGEST_TITLE})) AS title, created_at,
        updated_at, (
            SELECT count(*) FROM accepted_runs AS run
            WHERE run.workspace_id = thread.workspace_id AND run.thread_id = thread.thread_id
        ) AS turns,
        (
            SELECT run_id FROM accepted_runs AS run
            WHERE run.workspace_id = thread.workspace_id AND run.thread_id = thread.thread_id AND {UNFINISHED}
            ORDER BY state = 'running' DESC, job_id LIMIT 1
        ) AS running
"""


def _list(condition: LiteralString) -> LiteralString:
    # What is counted is counted for the rows of the page alone.
    return f"""
        SELECT {_CONVERSATION}
        FROM (
            SELECT * FROM threads_of_workspace
            WHERE workspace_id = %(workspace_id)s AND asked <> '' AND {condition}
                AND (%(at)s::timestamptz IS NULL OR (updated_at, thread_id) < (%(at)s, %(thread_id)s))
                AND {OPEN}
                AND (%(caller)s::text IS NULL OR %(caller)s = ANY(asked_by))
            ORDER BY updated_at DESC, thread_id DESC LIMIT %(limit)s
        ) AS thread
        ORDER BY updated_at DESC, thread_id DESC
    """


_LIST: LiteralString = _list("true")
_LIST_WITH_WORDS: LiteralString = _list("(coalesce(title, '') || E'\\n' || asked) ILIKE %(pattern)s")

_GET: LiteralString = f"""
    SELECT {_CONVERSATION} FROM threads AS thread WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s
"""

_LIST_CALLERS: LiteralString = """
    SELECT asked_by FROM threads WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s
"""

_RENAME: LiteralString = f"""
    WITH thread AS (
        UPDATE threads SET title = %(title)s WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s
        RETURNING *
    )
    SELECT {_CONVERSATION} FROM thread
"""


class PostgresThreadStore:
    """Implements `ThreadStore` in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def claim(self, workspace_id: str, thread_id: str, groups: Sequence[str] | None = ()) -> None:
        async with open_session(self._pool, workspace_id) as session:
            await session.execute(_CLAIM_THREAD, thread_id=thread_id, groups=None if groups is None else sorted(groups))

    async def exists(self, workspace_id: str, thread_id: str) -> bool:
        async with open_session(self._pool, workspace_id) as session:
            return await session.fetch_one(_THREAD_EXISTS, thread_id=thread_id) is not None

    async def is_open_to(self, asker: Scope, thread_id: str) -> bool:
        groups = None if asker.groups is None else sorted(asker.groups)
        async with open_session(self._pool, asker) as session:
            row = await session.fetch_one(_IS_OPEN, thread_id=thread_id, groups=groups)
        return row is None or bool(row["is_open"])

    async def get(self, workspace_id: str, thread_id: str) -> Conversation | None:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(_GET, thread_id=thread_id)
        return None if row is None else Conversation(**row)

    async def list_callers(self, workspace_id: str, thread_id: str) -> frozenset[str]:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(_LIST_CALLERS, thread_id=thread_id)
        return frozenset(row["asked_by"] if row else ())

    async def list(
        self,
        asker: Scope,
        limit: int,
        *,
        words: str = "",
        caller: str | None = None,
        after: tuple[datetime, str] | None = None,
    ) -> list[Conversation]:
        at, thread_id = after or (None, None)
        groups = None if asker.groups is None else sorted(asker.groups)
        literal = words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        async with open_session(self._pool, asker) as session:
            rows = await session.fetch(
                _LIST_WITH_WORDS if words else _LIST,
                prepare=False,
                at=at,
                thread_id=thread_id,
                groups=groups,
                caller=caller,
                pattern=f"%{literal}%",
                limit=limit,
            )
        return [Conversation(**row) for row in rows]

    async def rename(self, workspace_id: str, thread_id: str, title: str) -> Conversation | None:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(_RENAME, thread_id=thread_id, title=title)
        return None if row is None else Conversation(**row)
