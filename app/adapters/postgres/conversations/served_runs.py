"""Stores runs that were answered from the cache, all that come at about the same time in one statement."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import LiteralString

import orjson
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata
from langgraph.checkpoint.base.id import uuid6

from app.adapters.postgres.checkpoints.saver import PackedSaver
from app.adapters.postgres.conversations.run_log import RUN_COLUMNS
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, open_session
from domain.errors import InputError
from domain.runs import ServedRun
from domain.state import AnswerState

GATHER_SECONDS = 0.002
"""Seconds that the first run waits for others. While a statement is under way, further runs wait for the next one."""

BATCH = 200
"""Most runs of one statement."""

_STORE: LiteralString = f"""
    WITH served AS MATERIALIZED (
        SELECT r.*, s.request, s.ended, s.ended_id, s.ended_at, s.shown, s.documents, s.checkpoints
        FROM jsonb_to_recordset(%(runs)s::jsonb) AS s (
                request jsonb, record jsonb, ended jsonb, ended_id text, ended_at timestamptz, shown jsonb,
                documents jsonb, checkpoints text[]
            ),
            jsonb_populate_record(NULL::runs, s.record) AS r
    ),
    thread AS (
        INSERT INTO threads (thread_id, workspace_id, asked, updated_at, asked_by, groups)
        SELECT thread_id, workspace_id, question, started_at, ARRAY[request ->> 'caller'],
            CASE WHEN scope ? 'groups' THEN ARRAY(SELECT jsonb_array_elements_text(scope -> 'groups') ORDER BY 1) END
        FROM served
    ),
    run AS (INSERT INTO runs ({RUN_COLUMNS}) SELECT {RUN_COLUMNS} FROM served),
    document AS (
        INSERT INTO run_documents (workspace_id, run_id, document_id, revision, shown)
        SELECT served.workspace_id, served.run_id, used.*
        FROM served, jsonb_to_recordset(documents) AS used (document_id text, revision integer, shown boolean)
    ),
    accepted AS (
        INSERT INTO accepted_runs
            (workspace_id, run_id, thread_id, request, state, attempt, accepted_at, started_at, ended_at, ended,
             ended_id, shown, place)
        SELECT workspace_id, run_id, thread_id, request, 'done', 1, started_at, started_at, ended_at, ended, ended_id,
            shown, 1
        FROM served
    )
    INSERT INTO state_packs (workspace_id, thread_id, namespace, run_id, checkpoints, written, pack)
    SELECT workspace_id, thread_id, '', run_id, checkpoints, '{{}}', pack
    FROM served JOIN unnest(%(run_ids)s::text[], %(packs)s::bytea[]) AS p (run_id, pack) USING (run_id)
"""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A run that waits to be stored."""

    run_id: str
    row: bytes
    """What goes into columns, as JSON."""
    pack: bytes
    """The thread's state."""
    stored: asyncio.Future[None]


class PostgresServedRuns:
    """Implements `ServedRuns`. Close it with `close`."""

    def __init__(self, pool: Pool, saver: PackedSaver) -> None:
        self._pool = pool
        self._saver = saver
        self._waiting: list[_Entry] = []
        self._storing: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Store what still waits."""
        if self._storing is not None:
            await self._storing

    async def keep(self, run: ServedRun) -> None:
        entry = self._encode(run)
        self._waiting.append(entry)
        if self._storing is None or self._storing.done():
            self._storing = asyncio.create_task(self._store_all())
        await entry.stored

    def _encode(self, run: ServedRun) -> _Entry:
        metadata: CheckpointMetadata = {"source": "update", "step": 0, "parents": {}, **run.metadata}  # type: ignore[typeddict-item]
        pack = self._saver.pack_alone(self._make_checkpoint(run.state), metadata)
        columns = {
            "request": run.request,
            "record": run.record,
            "ended": run.ended,
            "ended_id": run.ended_id,
            "ended_at": run.ended_at,
            "shown": run.shown,
            "documents": run.documents,
            "checkpoints": list(pack.checkpoints),
        }
        stored = asyncio.get_running_loop().create_future()
        return _Entry(run.request.run_id, orjson.dumps(columns), pack.encode(), stored)

    def _make_checkpoint(self, state: AnswerState) -> Checkpoint:
        """Make the checkpoint that LangGraph's `update_state` makes of a state in a new thread, at a tenth of the
        cost."""
        return Checkpoint(
            v=4,
            id=str(uuid6()),
            ts=datetime.now(UTC).isoformat(),
            channel_values=dict(state),
            channel_versions=dict.fromkeys(state, self._saver.get_next_version(None, None)),
            versions_seen={},
            updated_channels=None,
        )

    async def _store_all(self) -> None:
        """Store until no run waits."""
        while self._waiting:
            await asyncio.sleep(GATHER_SECONDS)
            batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
            await self._store(batch)

    async def _store(self, batch: Sequence[_Entry]) -> None:
        try:
            async with open_session(self._pool, ALL_WORKSPACES) as session:
                await session.execute(
                    _STORE,
                    runs=(b"[" + b",".join(entry.row for entry in batch) + b"]").decode(),
                    run_ids=[entry.run_id for entry in batch],
                    packs=[entry.pack for entry in batch],
                )
        except InputError as error:
            if len(batch) > 1:
                # The others must not fail for one that the database cannot hold.
                for entry in batch:
                    await self._store([entry])
            else:
                _end(batch, error)
        except BaseException as error:
            _end(batch, error)
            if not isinstance(error, Exception):
                raise
        else:
            _end(batch, None)


def _end(batch: Sequence[_Entry], error: BaseException | None) -> None:
    for entry in batch:
        if entry.stored.done():
            continue  # its asker has left
        if error is None:
            entry.stored.set_result(None)
        else:
            entry.stored.set_exception(error)
