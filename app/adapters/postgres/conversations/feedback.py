"""What readers say of answers. A row goes with its run."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, LiteralString

from psycopg.errors import ForeignKeyViolation

from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, open_session
from domain.errors import Forbidden, UnknownRun
from domain.history.feedback import Complaint, Feedback, RatedRun, Rating
from domain.people.access import Caller

_COLUMNS: LiteralString = "rating, reason, comment, given_by, given_at"

_PUT: LiteralString = f"""
    INSERT INTO feedback (workspace_id, run_id, rating, reason, comment, given_by)
    VALUES (%(workspace_id)s, %(run_id)s, %(rating)s, %(reason)s, %(comment)s, %(given_by)s)
    ON CONFLICT (workspace_id, run_id) DO UPDATE SET rating = excluded.rating, reason = excluded.reason,
        comment = excluded.comment, given_by = excluded.given_by, given_at = excluded.given_at
        WHERE feedback.given_by = excluded.given_by OR %(may_change_all)s
    RETURNING {_COLUMNS}
"""

_DELETE: LiteralString = """
    WITH gone AS (
        DELETE FROM feedback
        WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
            AND (given_by = %(given_by)s OR %(may_change_all)s)
        RETURNING given_by
    )
    SELECT FROM feedback WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s
        AND NOT EXISTS (SELECT FROM gone)
"""

_READ: LiteralString = f"""
    SELECT run_id, {_COLUMNS} FROM feedback
    WHERE workspace_id = %(workspace_id)s AND run_id = ANY(%(run_ids)s)
"""


def _list(condition: LiteralString) -> LiteralString:
    return f"""
        SELECT f.workspace_id, f.run_id, r.thread_id, r.mode, r.question, r.answer, r.outcome, r.citations, {_COLUMNS},
            ARRAY(
                SELECT earlier.request -> 'turn' ->> 'question' FROM accepted_runs AS earlier
                WHERE earlier.workspace_id = a.workspace_id AND earlier.thread_id = a.thread_id
                    AND earlier.place < a.place
                ORDER BY earlier.place
            ) AS before
        FROM (
            SELECT * FROM feedback
            WHERE {condition} AND given_at >= %(since)s
            ORDER BY given_at DESC LIMIT %(limit)s
        ) AS f
        JOIN runs AS r USING (workspace_id, run_id)
        JOIN accepted_runs AS a USING (workspace_id, run_id)
        ORDER BY given_at DESC
    """


_LIST: LiteralString = _list("workspace_id = %(workspace_id)s")
_LIST_EVERYWHERE: LiteralString = _list("%(workspace_id)s::text = ''")


_OF_ANOTHER = "Somebody else has rated this answer. Changing that needs the right 'admin'."


def _name(caller: Caller) -> dict[str, Any]:
    return {"given_by": caller.name, "may_change_all": "admin" in caller.rights}


class PostgresFeedbackStore:
    """Implements `FeedbackStore` in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def put(
        self, workspace_id: str, run_id: str, rating: Rating, reason: Complaint | None, comment: str, caller: Caller
    ) -> Feedback:
        async with open_session(self._pool, workspace_id) as session:
            try:
                row = await session.fetch_one(
                    _PUT, run_id=run_id, rating=rating, reason=reason, comment=comment, **_name(caller)
                )
            except ForeignKeyViolation:
                raise UnknownRun(f"There is no run {run_id!r} in this workspace.") from None
        if row is None:
            raise Forbidden(_OF_ANOTHER)
        return Feedback(**row)

    async def delete(self, workspace_id: str, run_id: str, caller: Caller) -> None:
        async with open_session(self._pool, workspace_id) as session:
            if await session.fetch_one(_DELETE, run_id=run_id, **_name(caller)) is not None:
                raise Forbidden(_OF_ANOTHER)

    async def read(self, workspace_id: str, run_ids: Sequence[str]) -> dict[str, Feedback]:
        rows = await self._pool.fetch(workspace_id, _READ, run_ids=list(run_ids))
        return {row.pop("run_id"): Feedback(**row) for row in rows}

    async def list(self, workspace_id: str | None, since: datetime, limit: int) -> Sequence[RatedRun]:
        query = _LIST if workspace_id else _LIST_EVERYWHERE
        rows = await self._pool.fetch(workspace_id or ALL_WORKSPACES, query, since=since, limit=limit)
        return [
            RatedRun(feedback=Feedback(**{name: row.pop(name) for name in _COLUMNS.split(", ")}), **row) for row in rows
        ]
