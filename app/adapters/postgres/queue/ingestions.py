"""The queue of files to ingest, and what ingests one. A file that waits or is read is a row with a lease (`leases`)."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import LiteralString
from uuid import uuid4

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, open_session
from app.adapters.postgres.queue import leases
from app.adapters.postgres.queue.leases import CHANNEL, MAY_BE_TAKEN, UNFINISHED
from app.adapters.postgres.queue.worker import Connection, Perform, Task
from app.support.cancelling import end_tasks
from domain.documents import Arrival, DocumentReport
from domain.errors import AskgraphError, CostlyDocument, Unavailable
from domain.library.ingestions import IngestionProgress, IngestionStatus
from domain.library.metadata import Metadata
from domain.ports.ingestions import Ingest

logger = logging.getLogger("askgraph.ingestions")

TASK: LiteralString = "ingestions"

CONCURRENCY = 2
"""Number of files that one process ingests at once: while one is read or stored, the other is embedded."""

MAX_ATTEMPTS = 20
"""Number of times a file is tried while the database or the embedding model does not answer, or its worker dies. With
`MAX_DELAY` this takes a quarter of an hour."""

MAX_DELAY = 60.0
"""Longest wait between two attempts, in seconds. The first wait is one second; each following one is twice as long."""

MAX_DEATHS = 2
"""Number of processes that may die while they read a file. Then it is given up: it may be what they died of."""

WATCH_SECONDS = 1.0
"""Interval of looks at the state of a file that is being ingested, which may have been cancelled."""

_COLUMNS: LiteralString = """
    ingestion_id, workspace_id, source, state, accepted_at, ended_at, report, groups, asking, progress, (
        SELECT count(*) FROM chunks_to_embed AS chunk
        WHERE chunk.workspace_id = ingestions.workspace_id AND chunk.document_id =
            CASE WHEN report ->> 'document_id' ~ '^[0-9a-f-]{36}$' THEN (report ->> 'document_id')::uuid END
    ) AS to_embed
"""

# Files are taken by rising `turn`: a file comes after those of its own workspace that wait, and a workspace that has
# none in line begins where the line is now. So whoever sends a thousand files takes turns with whoever sends one. The
# statement sees all workspaces, whose line it is.
_ACCEPT: LiteralString = f"""
    WITH file AS (
        INSERT INTO ingestions (workspace_id, ingestion_id, source, media_type, state, content, metadata, sidecar,
            groups, asking, moved_from, brought_by, turn)
        SELECT %(within)s, %(ingestion_id)s, %(source)s, %(media_type)s, 'queued', %(content)s, %(metadata)s,
            %(sidecar)s, %(groups)s, %(asking)s, %(moved_from)s, %(brought_by)s, coalesce(
                (SELECT max(turn) + 1 FROM ingestions WHERE workspace_id = %(within)s AND state = 'queued'),
                (SELECT min(turn) FROM ingestions WHERE state = 'queued'),
                0
            )
        RETURNING *
    )
    SELECT {_COLUMNS}, pg_notify('{CHANNEL}', '{TASK}')::text AS announced FROM file AS ingestions
"""

# Two files of one name are read in their order; those of callers with other groups do not wait for each other, as that
# would tell that a name is taken.
_TAKE: LiteralString = f"""
    WITH next AS (
        SELECT workspace_id, ingestion_id FROM ingestions AS file
        WHERE {MAY_BE_TAKEN} AND NOT EXISTS (
            SELECT FROM ingestions AS earlier
            WHERE earlier.workspace_id = file.workspace_id AND earlier.source = file.source
                AND earlier.asking IS NOT DISTINCT FROM file.asking
                AND earlier.arrival < file.arrival AND {UNFINISHED}
        )
        ORDER BY turn, arrival LIMIT 1
        FOR UPDATE SKIP LOCKED
    )
    UPDATE ingestions AS file
    SET state = 'running', attempt = attempt + 1, begun = begun + 1, claimed_until = now() + %(lease)s
    FROM next WHERE file.workspace_id = next.workspace_id AND file.ingestion_id = next.ingestion_id
    RETURNING file.workspace_id, file.ingestion_id, source, media_type, content, metadata, sidecar, groups, asking,
        moved_from, brought_by, arrival, begun, attempt
"""

# What is being stored is locked, and nobody else can take it.
_EXTEND: LiteralString = """
    WITH free AS (
        SELECT workspace_id, ingestion_id FROM ingestions AS file
        JOIN unnest(%(workspace_ids)s::text[], %(ingestion_ids)s::text[], %(attempts)s::integer[])
            AS held (workspace_id, ingestion_id, attempt) USING (workspace_id, ingestion_id, attempt)
        WHERE state = 'running'
        FOR UPDATE OF file SKIP LOCKED
    )
    UPDATE ingestions AS file SET claimed_until = now() + %(lease)s
    FROM free WHERE file.workspace_id = free.workspace_id AND file.ingestion_id = free.ingestion_id
"""

# Its process lives, so the file is not what ended it.
_HAND_BACK: LiteralString = """
    UPDATE ingestions SET state = 'queued', begun = begun - 1, claimed_until = now() + %(pause)s
    WHERE workspace_id = %(workspace_id)s AND ingestion_id = %(ingestion_id)s AND attempt = %(attempt)s
        AND state = 'running'
"""

# A worker stores nothing of a file that is no longer `running`.
_CANCEL: LiteralString = f"""
    UPDATE ingestions SET state = 'cancelled', ended_at = now(), content = NULL,
        report = %(report)s || jsonb_build_object('source', source)
    WHERE workspace_id = %(workspace_id)s AND ingestion_id = %(ingestion_id)s AND {UNFINISHED}
"""

# A document that was stored just before its ingestion was cancelled is reported as it is.
_END: LiteralString = """
    UPDATE ingestions SET state = %(state)s, report = %(report)s, ended_at = now(), content = NULL
    WHERE workspace_id = %(workspace_id)s AND ingestion_id = %(ingestion_id)s AND attempt = %(attempt)s
        AND (state = 'running' OR state = 'cancelled' AND %(state)s = 'done')
    RETURNING ingestion_id
"""

_GET: LiteralString = f"""
    SELECT {_COLUMNS} FROM ingestions
    WHERE workspace_id = %(workspace_id)s AND ingestion_id = %(ingestion_id)s
"""

_LIST: LiteralString = f"""
    SELECT {_COLUMNS} FROM ingestions
    WHERE workspace_id = %(workspace_id)s AND (ended_at IS NULL OR ended_at >= %(since)s)
    ORDER BY arrival DESC LIMIT %(limit)s
"""

_NOTE_PROGRESS: LiteralString = """
    UPDATE ingestions SET progress = %(progress)s
    WHERE workspace_id = %(workspace_id)s AND ingestion_id = %(ingestion_id)s
"""


class PostgresIngestionQueue:
    """Implements `IngestionQueue` in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._held: dict[tuple[str, str], int] = {}
        """The attempts of the files that this process reads."""

    async def accept(
        self,
        workspace_id: str,
        source: str,
        content: bytes,
        media_type: str | None = None,
        metadata: Metadata | None = None,
        groups: Sequence[str] | None = None,
        asking: frozenset[str] | None = None,
        sidecar: Metadata | None = None,
        moved_from: str | None = None,
        brought_by: str | None = None,
    ) -> IngestionStatus:
        row = await self._pool.fetch_one(
            ALL_WORKSPACES,
            _ACCEPT,
            within=workspace_id,
            ingestion_id=str(uuid4()),
            source=source,
            media_type=media_type,
            content=content,
            metadata=None if metadata is None else Jsonb(metadata),
            sidecar=Jsonb(sidecar or {}),
            moved_from=moved_from,
            brought_by=brought_by,
            groups=None if groups is None else list(groups),
            asking=None if asking is None else sorted(asking),
        )
        assert row is not None
        del row["announced"]
        return _read_status(row)

    async def get(self, workspace_id: str, ingestion_id: str) -> IngestionStatus | None:
        row = await self._pool.fetch_one(workspace_id, _GET, ingestion_id=ingestion_id)
        return None if row is None else _read_status(row)

    async def cancel(self, workspace_id: str, ingestion_id: str) -> IngestionStatus | None:
        async with open_session(self._pool, workspace_id) as session:
            report = Jsonb(asdict(DocumentReport("", "cancelled", note="It was cancelled.")))
            await session.execute(_CANCEL, ingestion_id=ingestion_id, report=report)
            row = await session.fetch_one(_GET, ingestion_id=ingestion_id)
        return None if row is None else _read_status(row)

    async def list(self, workspace_id: str, limit: int, *, since: datetime | None = None) -> Sequence[IngestionStatus]:
        rows = await self._pool.fetch(workspace_id, _LIST, limit=limit, since=since or datetime.min.replace(tzinfo=UTC))
        return [_read_status(row) for row in rows]

    def task(self, ingest: Ingest) -> Task:
        """Return the task with which a worker ingests the files."""
        return Task(TASK, CONCURRENCY, lambda rescue: self._take(ingest, rescue), self._extend)

    async def _take(self, ingest: Ingest, rescue: bool) -> Perform | None:
        file = await self._pool.fetch_one(ALL_WORKSPACES, _TAKE, rescue=rescue, lease=leases.LEASE)
        if file is None:
            return None
        key = file["workspace_id"], file["ingestion_id"]
        self._held[key] = file["attempt"]

        async def perform() -> None:
            try:
                await self._perform(file, ingest)
            finally:
                if self._held.get(key) == file["attempt"]:
                    del self._held[key]

        return perform

    async def _extend(self, connection: Connection) -> None:
        if held := dict(self._held):
            await connection.execute(
                _EXTEND,
                {
                    "workspace_ids": [workspace_id for workspace_id, _ in held],
                    "ingestion_ids": [ingestion_id for _, ingestion_id in held],
                    "attempts": list(held.values()),
                    "lease": leases.LEASE,
                },
            )

    async def _perform(self, file: DictRow, ingest: Ingest) -> None:
        workspace_id, source, attempt = file["workspace_id"], file["source"], file["attempt"]
        stages = deque[IngestionProgress](maxlen=1)
        try:
            if attempt > MAX_ATTEMPTS:
                raise AskgraphError(f"The file was tried {MAX_ATTEMPTS} times. See the log, then send it again.")
            if file["begun"] > MAX_DEATHS:
                raise CostlyDocument(f"{MAX_DEATHS} processes ended while they read the file. It is not tried again.")
            reading = asyncio.create_task(
                ingest(
                    workspace_id,
                    source,
                    file["content"],
                    media_type=file["media_type"],
                    metadata=file["metadata"],
                    sidecar=file["sidecar"],
                    groups=file["groups"],
                    asking=_read_asking(file),
                    moved_from=file["moved_from"],
                    brought_by=file["brought_by"],
                    arrival=Arrival(file["arrival"], attempt),
                    on_stage=stages.append,
                )
            )
            try:
                await self._watch(reading, stages, workspace_id, file["ingestion_id"])
            finally:
                await end_tasks(reading)
            if reading.cancelled():
                return
            report = reading.result()
        except asyncio.CancelledError:
            await self._hand_back(file, 0)
            raise
        except Unavailable as error:
            pause = min(2.0 ** (attempt - 1), MAX_DELAY)
            logger.warning("The ingestion of %s waits %.0f s: %s", source, pause, error.message)
            await self._hand_back(file, pause)
            return
        except AskgraphError as error:
            report = DocumentReport(source, "failed", error=error.message, code=error.code)
        except Exception:
            logger.exception("The ingestion of %s failed.", source)
            message = "An internal error occurred. See the log of askgraph."
            report = DocumentReport(source, "failed", error=message, code="internal_error")
        await self._end(file, report)

    async def _end(self, file: DictRow, report: DocumentReport) -> None:
        try:
            ended = await self._pool.fetch_one(
                file["workspace_id"],
                _END,
                ingestion_id=file["ingestion_id"],
                attempt=file["attempt"],
                state=report.status if report.status in ("failed", "superseded") else "done",
                report=Jsonb(asdict(report)),
            )
        except BaseException:
            # It is read again, and found to be unchanged.
            await self._hand_back(file, leases.RETRY_SECONDS)
            raise
        if ended is None:
            logger.warning("Another worker has taken over the ingestion of %s.", report.source)

    async def _watch(
        self,
        reading: asyncio.Task[DocumentReport],
        stages: deque[IngestionProgress],
        workspace_id: str,
        ingestion_id: str,
    ) -> None:
        """Return once the file is read, or its ingestion cancelled. Meanwhile, store the last of the stages."""
        while not (await asyncio.wait([reading], timeout=WATCH_SECONDS))[0]:
            with suppress(Unavailable):
                if stages:
                    progress = Jsonb(asdict(stages.pop()))
                    await self._pool.execute(workspace_id, _NOTE_PROGRESS, ingestion_id=ingestion_id, progress=progress)
                status = await self.get(workspace_id, ingestion_id)
                if status is None or status.state == "cancelled":
                    return

    async def _hand_back(self, file: DictRow, pause: float) -> None:
        with suppress(Unavailable):
            await self._pool.execute(
                file["workspace_id"],
                _HAND_BACK,
                ingestion_id=file["ingestion_id"],
                attempt=file["attempt"],
                pause=timedelta(seconds=pause),
            )


def _read_asking(row: DictRow) -> frozenset[str] | None:
    return None if row["asking"] is None else frozenset(row["asking"])


def _read_status(row: DictRow) -> IngestionStatus:
    stored, noted, to_embed = row["report"], row["progress"], row.pop("to_embed")
    report = None if stored is None else DocumentReport(**stored | {"unread": tuple(stored.get("unread", ()))})
    match row["state"]:
        case "queued":
            progress = IngestionProgress("waiting")
        case "running":
            progress = IngestionProgress("reading") if noted is None else IngestionProgress(**noted)
        case _:
            chunks = 0 if report is None else report.chunks
            progress = IngestionProgress("embedding" if to_embed else "done", max(0, chunks - to_embed), chunks)
    return IngestionStatus(**row | {"report": report, "progress": progress, "asking": _read_asking(row)})
