"""Threads and the workspaces that own them."""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString

from app.adapters.postgres.patterns import escape
from app.adapters.postgres.pool import Pool
from app.adapters.postgres.queue.leases import UNFINISHED
from domain.runs import Conversation
from domain.scope import Scope

LONGEST_TITLE = 200
"""Characters of a title. A longer first question is cut."""

MOST_ASKED = 10_000
"""Characters of a thread's questions that are kept together, for its title and to search in."""

_RUNS: LiteralString = """
    accepted_runs AS run WHERE run.workspace_id = thread.workspace_id AND run.thread_id = thread.thread_id
"""

MAY_READ: LiteralString = """
    (%(groups)s::text[] IS NULL OR may_read_run(run.workspace_id, run.run_id, %(groups)s))
"""
"""True for a row `run` that an asker of these groups may read."""

OPEN: LiteralString = f"""
    (
        %(groups)s::text[] IS NULL
        OR EXISTS (SELECT FROM {_RUNS} AND {MAY_READ})
        OR thread.groups <@ %(groups)s AND NOT EXISTS (SELECT FROM {_RUNS})
    )
"""
"""True for a row `thread` of which an asker of these groups may read a turn, or which has none."""

# What an upsert of a thread that is there already makes of its callers.
MERGED_CALLERS: LiteralString = "ARRAY(SELECT DISTINCT unnest(threads.asked_by || excluded.asked_by) ORDER BY 1)"

_CLAIM_THREAD: LiteralString = """
    INSERT INTO threads (thread_id, workspace_id, groups, asked_by, copied_from)
    VALUES (%(thread_id)s, %(workspace_id)s, %(groups)s::text[], '{}', coalesce(
        (
            SELECT array_prepend(thread_id, copied_from) FROM threads
            WHERE workspace_id = %(workspace_id)s AND thread_id = %(copy_of)s
        ),
        '{}'
    ))
    ON CONFLICT DO NOTHING
"""

_THREAD_EXISTS: LiteralString = """
    SELECT FROM threads WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s
"""

_IS_OPEN: LiteralString = f"""
    SELECT {OPEN} IS TRUE AS is_open FROM threads AS thread
    WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s
"""

_CONVERSATION: LiteralString = f"""
    thread.thread_id,
    coalesce(
        title,
        CASE WHEN %(groups)s::text[] IS NULL THEN left(split_part(asked, E'\\n', 1), {LONGEST_TITLE})
            ELSE (
                SELECT left(request #>> '{{{{turn,question}}}}', {LONGEST_TITLE})
                FROM {_RUNS} AND {MAY_READ} ORDER BY place LIMIT 1
            )
        END,
        ''
    ) AS title, created_at,
        updated_at,
        (SELECT count(*) FROM {_RUNS}) AS turns,
        (SELECT run_id FROM {_RUNS} AND {UNFINISHED} ORDER BY place LIMIT 1) AS running,
        EXISTS (
            SELECT FROM runs AS run, jsonb_array_elements(citations) AS cited
            WHERE run.workspace_id = thread.workspace_id AND run.thread_id = thread.thread_id
                AND cited ? 'content_hash' AND {MAY_READ}
                AND NOT EXISTS (
                    SELECT FROM documents
                    WHERE documents.workspace_id = run.workspace_id
                        AND document_id = CASE WHEN cited ? 'content_hash' THEN (cited ->> 'document_id')::uuid END
                        AND content_hash = cited ->> 'content_hash'
                )
        ) AS outdated
"""


# What is counted is counted for the rows of the page alone. The answers are read from the log, where they are plain
# text: taking them out of `ended` takes ten times as long.
_LIST: LiteralString = f"""
    SELECT {_CONVERSATION}
    FROM (
        SELECT * FROM threads_of_workspace AS thread
        WHERE workspace_id = %(workspace_id)s AND asked <> ''
            AND (
                %(pattern)s::text IS NULL
                OR (coalesce(title, '') || E'\\n' || asked) ILIKE %(pattern)s
                AND (
                    %(groups)s::text[] IS NULL OR title ILIKE %(pattern)s OR EXISTS (
                        SELECT FROM {_RUNS} AND request #>> '{{{{turn,question}}}}' ILIKE %(pattern)s AND {MAY_READ}
                    )
                )
                OR EXISTS (
                    SELECT FROM runs AS run
                    WHERE run.workspace_id = thread.workspace_id AND run.thread_id = thread.thread_id
                        AND answer ILIKE %(pattern)s AND {MAY_READ}
                )
            )
            AND (%(at)s::timestamptz IS NULL OR (updated_at, thread_id) < (%(at)s, %(thread_id)s))
            AND {OPEN}
            AND (%(caller)s::text IS NULL OR %(caller)s = ANY(asked_by))
        ORDER BY updated_at DESC, thread_id DESC LIMIT %(limit)s
    ) AS thread
    ORDER BY updated_at DESC, thread_id DESC
"""

_GET: LiteralString = f"""
    SELECT {_CONVERSATION} FROM threads AS thread WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s
"""

_FIND_BEGINNER: LiteralString = """
    SELECT request ->> 'caller' AS caller FROM accepted_runs
    WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s ORDER BY place LIMIT 1
"""

_RENAME: LiteralString = f"""
    WITH thread AS (
        UPDATE threads SET title = %(title)s WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s
        RETURNING *
    )
    SELECT {_CONVERSATION} FROM thread
"""


def list_groups(asker: Scope) -> list[str] | None:
    """Return the parameter `groups` of the statements."""
    return None if asker.groups is None else sorted(asker.groups)


class PostgresThreadStore:
    """Implements `ThreadStore` in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def claim(
        self, workspace_id: str, thread_id: str, groups: Sequence[str] | None = (), *, copy_of: str | None = None
    ) -> None:
        named = None if groups is None else sorted(groups)
        await self._pool.execute(workspace_id, _CLAIM_THREAD, thread_id=thread_id, groups=named, copy_of=copy_of)

    async def exists(self, workspace_id: str, thread_id: str) -> bool:
        return await self._pool.fetch_one(workspace_id, _THREAD_EXISTS, thread_id=thread_id) is not None

    async def is_open_to(self, asker: Scope, thread_id: str) -> bool:
        row = await self._pool.fetch_one(asker.workspace_id, _IS_OPEN, thread_id=thread_id, groups=list_groups(asker))
        return row is None or bool(row["is_open"])

    async def get(self, asker: Scope, thread_id: str) -> Conversation | None:
        row = await self._pool.fetch_one(asker.workspace_id, _GET, thread_id=thread_id, groups=list_groups(asker))
        return None if row is None else Conversation(**row)

    async def find_beginner(self, workspace_id: str, thread_id: str) -> str | None:
        row = await self._pool.fetch_one(workspace_id, _FIND_BEGINNER, thread_id=thread_id)
        return row["caller"] if row else None

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
        rows = await self._pool.fetch(
            asker.workspace_id,
            _LIST,
            prepare=False,
            at=at,
            thread_id=thread_id,
            groups=list_groups(asker),
            caller=caller,
            pattern=f"%{escape(words)}%" if words else None,
            limit=limit,
        )
        return [Conversation(**row) for row in rows]

    async def rename(self, asker: Scope, thread_id: str, title: str) -> Conversation | None:
        row = await self._pool.fetch_one(
            asker.workspace_id, _RENAME, thread_id=thread_id, title=title, groups=list_groups(asker)
        )
        return None if row is None else Conversation(**row)
