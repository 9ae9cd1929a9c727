"""The queue of files to ingest, and the job that ingests one."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from typing import LiteralString
from uuid import uuid4

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, open_session
from app.adapters.postgres.queue.jobs import Job, Task
from app.adapters.postgres.queue.leases import UNFINISHED
from app.support.cancelling import end_tasks
from domain.documents import Arrival, DocumentReport
from domain.errors import AskgraphError, CostlyDocument, Unavailable
from domain.library.ingestions import IngestionProgress, IngestionStatus
from domain.library.metadata import Metadata
from domain.ports.ingestions import Ingest

logger = logging.getLogger("askgraph.ingestions")

QUEUE = "ingestion"
TASK = "ingest"

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

# The job's lock keeps two files of one name in order; those of callers with other groups do not wait for each other, as
# that would tell that a name is taken. Jobs are taken by falling priority: a file comes after
# those of its own workspace that wait, and a workspace that has none in line begins where the line is now. So whoever
# sends a thousand files takes turns with whoever sends one.
_ACCEPT: LiteralString = f"""
    WITH waiting AS (
        SELECT
            (
                SELECT max(priority) FROM procrastinate_jobs WHERE queue_name = 'ingestion' AND status = 'todo'
            ) AS next,
            (
                SELECT min(priority) FROM procrastinate_jobs
                WHERE queue_name = 'ingestion' AND status = 'todo' AND args ->> 'workspace_id' = %(workspace_id)s
            ) AS last
    ),
    job AS (
        INSERT INTO procrastinate_jobs (queue_name, task_name, lock, args, priority)
        SELECT %(queue)s, %(task)s, %(lock)s,
            jsonb_build_object('workspace_id', %(workspace_id)s::text, 'ingestion_id', %(ingestion_id)s::text),
            coalesce(last - 1, next, 0)
        FROM waiting
    )
    INSERT INTO ingestions (workspace_id, ingestion_id, source, media_type, state, content, metadata, groups,
        asking)
    VALUES (%(workspace_id)s, %(ingestion_id)s, %(source)s, %(media_type)s, 'queued', %(content)s, %(metadata)s,
        %(groups)s, %(asking)s)
    RETURNING {_COLUMNS}
"""

_HAS_LEASE: LiteralString = "EXISTS (SELECT FROM procrastinate_jobs WHERE id = %(lease)s AND status = 'doing')"

_BEGIN: LiteralString = f"""
    UPDATE ingestions SET state = 'running', begun = begun + 1
    WHERE workspace_id = %(workspace_id)s AND ingestion_id = %(ingestion_id)s AND {UNFINISHED}
        AND {_HAS_LEASE}
    RETURNING source, media_type, content, metadata, groups, asking, arrival, begun
"""

# Its process lives, so the file is not what ended it.
_LEAVE: LiteralString = """
    UPDATE ingestions SET begun = begun - 1 WHERE workspace_id = %(workspace_id)s AND ingestion_id = %(ingestion_id)s
"""

# Without its job, what a worker reads is not stored.
_CANCEL: LiteralString = f"""
    WITH job AS (
        DELETE FROM procrastinate_jobs
        WHERE queue_name = %(queue)s AND args ->> 'workspace_id' = %(workspace_id)s
            AND args ->> 'ingestion_id' = %(ingestion_id)s
    )
    UPDATE ingestions SET state = 'cancelled', ended_at = now(), content = NULL,
        report = %(report)s || jsonb_build_object('source', source)
    WHERE workspace_id = %(workspace_id)s AND ingestion_id = %(ingestion_id)s AND {UNFINISHED}
"""

# A document that was stored just before its ingestion was cancelled is reported as it is.
_END: LiteralString = f"""
    UPDATE ingestions SET state = %(state)s, report = %(report)s, ended_at = now(), content = NULL
    WHERE workspace_id = %(workspace_id)s AND ingestion_id = %(ingestion_id)s
        AND (state = 'running' AND {_HAS_LEASE} OR state = 'cancelled' AND %(state)s = 'done')
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

_COUNT_LEFT: LiteralString = f"""
    SELECT (SELECT count(*) FROM ingestions WHERE {UNFINISHED}) AS files,
        (SELECT count(*) FROM chunks_to_embed) AS passages
"""

_NOTE_PROGRESS: LiteralString = """
    UPDATE ingestions SET progress = %(progress)s
    WHERE workspace_id = %(workspace_id)s AND ingestion_id = %(ingestion_id)s
"""


class PostgresIngestionQueue:
    """Implements `IngestionQueue` in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def accept(
        self,
        workspace_id: str,
        source: str,
        content: bytes,
        media_type: str | None = None,
        metadata: Metadata | None = None,
        groups: Sequence[str] | None = None,
        asking: frozenset[str] | None = None,
    ) -> IngestionStatus:
        whose = None if asking is None else sorted(asking)
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(
                _ACCEPT,
                ingestion_id=str(uuid4()),
                source=source,
                media_type=media_type,
                content=content,
                metadata=Jsonb(metadata or {}),
                groups=None if groups is None else list(groups),
                asking=whose,
                queue=QUEUE,
                task=TASK,
                lock=f"{workspace_id} {sha256(repr((source, whose)).encode()).hexdigest()}",
            )
        assert row is not None
        return _read_status(row)

    async def get(self, workspace_id: str, ingestion_id: str) -> IngestionStatus | None:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(_GET, ingestion_id=ingestion_id)
        return None if row is None else _read_status(row)

    async def cancel(self, workspace_id: str, ingestion_id: str) -> IngestionStatus | None:
        async with open_session(self._pool, workspace_id) as session:
            report = Jsonb(asdict(DocumentReport("", "cancelled", note="It was cancelled.")))
            await session.execute(_CANCEL, ingestion_id=ingestion_id, queue=QUEUE, report=report)
            row = await session.fetch_one(_GET, ingestion_id=ingestion_id)
        return None if row is None else _read_status(row)

    async def list(self, workspace_id: str, limit: int, *, since: datetime | None = None) -> Sequence[IngestionStatus]:
        async with open_session(self._pool, workspace_id) as session:
            rows = await session.fetch(_LIST, limit=limit, since=since or datetime.min.replace(tzinfo=UTC))
        return [_read_status(row) for row in rows]

    async def count_left(self) -> tuple[int, int]:
        """Return the number of files of all workspaces that are not read, and of passages that are not embedded.

        Raises `DatabaseUnavailable`.
        """
        async with open_session(self._pool, ALL_WORKSPACES) as session:
            row = await session.fetch_one(_COUNT_LEFT)
        assert row is not None
        return row["files"], row["passages"]

    def task(self, ingest: Ingest) -> Task:
        """Return the task with which a worker ingests the files."""
        return Task(QUEUE, TASK, CONCURRENCY, lambda job: self._perform(job, ingest, **job.args))

    async def _perform(self, job: Job, ingest: Ingest, workspace_id: str, ingestion_id: str) -> float | None:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(_BEGIN, ingestion_id=ingestion_id, lease=job.id)
        if row is None:
            # An earlier worker died between ending the ingestion and ending the job; or this worker was away for so
            # long that another one has the job.
            return None
        source, arrival = row["source"], Arrival(row["arrival"], lease=job.id)
        stages = deque[IngestionProgress](maxlen=1)
        try:
            if job.attempts >= MAX_ATTEMPTS:
                raise AskgraphError(f"The file was tried {MAX_ATTEMPTS} times. See the log, then send it again.")
            if row["begun"] > MAX_DEATHS:
                raise CostlyDocument(f"{MAX_DEATHS} processes ended while they read the file. It is not tried again.")
            reading = asyncio.create_task(
                ingest(
                    workspace_id,
                    source,
                    row["content"],
                    media_type=row["media_type"],
                    metadata=row["metadata"],
                    groups=row["groups"],
                    asking=_read_asking(row),
                    arrival=arrival,
                    on_stage=stages.append,
                )
            )
            try:
                await self._watch(reading, stages, workspace_id, ingestion_id)
            finally:
                await end_tasks(reading)
            if reading.cancelled():
                return None
            report = reading.result()
        except asyncio.CancelledError:
            await self._leave(workspace_id, ingestion_id)
            raise
        except Unavailable as error:
            await self._leave(workspace_id, ingestion_id)
            delay = min(2.0**job.attempts, MAX_DELAY)
            logger.warning("The ingestion of %s waits %.0f s: %s", source, delay, error.message)
            return delay
        except AskgraphError as error:
            report = DocumentReport(source, "failed", error=error.message, code=error.code)
        except Exception:
            logger.exception("The ingestion of %s failed.", source)
            message = "An internal error occurred. See the log of askgraph."
            report = DocumentReport(source, "failed", error=message, code="internal_error")
        async with open_session(self._pool, workspace_id) as session:
            ended = await session.fetch_one(
                _END,
                ingestion_id=ingestion_id,
                lease=job.id,
                state=report.status if report.status in ("failed", "superseded") else "done",
                report=Jsonb(asdict(report)),
            )
        if ended is None:
            logger.warning("Another worker has taken over the ingestion of %s.", source)
        return None

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
                    async with open_session(self._pool, workspace_id) as session:
                        await session.execute(_NOTE_PROGRESS, ingestion_id=ingestion_id, progress=progress)
                status = await self.get(workspace_id, ingestion_id)
                if status is None or status.state == "cancelled":
                    return

    async def _leave(self, workspace_id: str, ingestion_id: str) -> None:
        with suppress(Unavailable):
            async with open_session(self._pool, workspace_id) as session:
                await session.execute(_LEAVE, ingestion_id=ingestion_id)


def _read_asking(row: DictRow) -> frozenset[str] | None:
    return None if row["asking"] is None else frozenset(row["asking"])


def _read_status(row: DictRow) -> IngestionStatus:
    stored, noted, to_embed = row["report"], row["progress"], row.pop("to_embed")
    report = None if stored is None else DocumentReport(**stored)
    match row["state"]:
        case "queued":
            progress = IngestionProgress("waiting")
        case "running":
            progress = IngestionProgress("reading") if noted is None else IngestionProgress(**noted)
        case _:
            chunks = 0 if report is None else report.chunks
            progress = IngestionProgress("embedding" if to_embed else "done", max(0, chunks - to_embed), chunks)
    return IngestionStatus(**row | {"report": report, "progress": progress, "asking": _read_asking(row)})
