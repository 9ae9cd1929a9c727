"""Files that wait to be read, and the job that reads one."""

import logging
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Protocol
from uuid import uuid4

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from app.adapters.postgres import sql
from app.adapters.postgres.jobs import Job, Task
from app.adapters.postgres.pool import Pool, open_session
from domain.documents import Arrival, DocumentReport
from domain.errors import AskgraphError, Unavailable
from domain.ingestions import IngestionStatus

logger = logging.getLogger("askgraph.ingestions")

QUEUE = "ingestion"
TASK = "ingest"

CONCURRENCY = 2
"""Files that one process reads at once: while one is read or stored, the other is embedded."""

MAX_ATTEMPTS = 20
"""How often a file is tried while the database or the embedding model does not answer, or its worker dies: for a
quarter of an hour."""

MAX_DELAY = 60.0
"""Seconds between two attempts, at most; at first it is one, and doubles."""


class Ingest(Protocol):
    """Brings a file into the library, or says in its report why it is no document. Raises `Unavailable`."""

    async def __call__(
        self, workspace_id: str, source: str, data: bytes, *, media_type: str | None, arrival: Arrival
    ) -> DocumentReport: ...


class PostgresIngestionQueue:
    """Files and what becomes of them in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def accept(
        self, workspace_id: str, source: str, content: bytes, media_type: str | None = None
    ) -> IngestionStatus:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(
                sql.ACCEPT_INGESTION,
                ingestion_id=str(uuid4()),
                source=source,
                media_type=media_type,
                content=content,
                queue=QUEUE,
                task=TASK,
                lock=f"source {workspace_id} {source}",
            )
        assert row is not None
        return _read_status(row)

    async def get(self, workspace_id: str, ingestion_id: str) -> IngestionStatus | None:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(sql.GET_INGESTION, ingestion_id=ingestion_id)
        return None if row is None else _read_status(row)

    async def list(self, workspace_id: str, limit: int) -> Sequence[IngestionStatus]:
        async with open_session(self._pool, workspace_id) as session:
            rows = await session.fetch(sql.LIST_INGESTIONS, limit=limit)
        return [_read_status(row) for row in rows]

    def task(self, ingest: Ingest) -> Task:
        """What a worker is to do with the files."""
        return Task(QUEUE, TASK, CONCURRENCY, lambda job: self._perform(job, ingest, **job.args))

    async def _perform(self, job: Job, ingest: Ingest, workspace_id: str, ingestion_id: str) -> float | None:
        async with open_session(self._pool, workspace_id) as session:
            row = await session.fetch_one(sql.BEGIN_INGESTION, ingestion_id=ingestion_id, lease=job.id)
        if row is None:
            # The worker before has died between the end of the ingestion and that of the job; or this one was away
            # for so long that the job is another's.
            return None
        source, arrival = row["source"], Arrival(row["arrival"], lease=job.id)
        try:
            if job.attempts >= MAX_ATTEMPTS:
                raise AskgraphError(f"The file was tried {MAX_ATTEMPTS} times. See the log, and send it again.")
            report = await ingest(workspace_id, source, row["content"], media_type=row["media_type"], arrival=arrival)
        except Unavailable as error:
            delay = min(2.0**job.attempts, MAX_DELAY)
            logger.warning("The ingestion of %s waits %.0f s: %s", source, delay, error.message)
            return delay
        except AskgraphError as error:
            report = DocumentReport(source, "failed", error=error.message, code=error.code)
        except Exception:
            logger.exception("The ingestion of %s failed.", source)
            message = "Something went wrong inside askgraph; its log says what."
            report = DocumentReport(source, "failed", error=message, code="internal_error")
        async with open_session(self._pool, workspace_id) as session:
            ended = await session.fetch_one(
                sql.END_INGESTION,
                ingestion_id=ingestion_id,
                lease=job.id,
                state=report.status if report.status in ("failed", "superseded") else "done",
                report=Jsonb(asdict(report)),
            )
        if ended is None:
            logger.warning("The ingestion of %s is another worker's by now.", source)
        return None


def _read_status(row: DictRow) -> IngestionStatus:
    report: dict[str, Any] | None = row["report"]
    return IngestionStatus(**row | {"report": None if report is None else DocumentReport(**report)})
