"""Opens one store of the database alone, for commands that need nothing else and should start quickly.

Each function imports its own adapter, so that a command does not pay for the others.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from app.settings import Settings
from app.wiring.database import open_database
from domain.runs import RunStatistics

if TYPE_CHECKING:
    # The ports import NumPy for their types.
    from domain.library.synced import SyncedFiles
    from domain.people.audit import AuditLog
    from domain.ports.documents import DocumentCatalog, EmbeddingBacklog
    from domain.ports.feedback import FeedbackStore
    from domain.ports.ingestions import IngestionQueue
    from domain.ports.keys import KeyStore
    from domain.ports.originals import ObjectStorage, OriginalStore
    from domain.ports.retention import Retention
    from domain.ports.runs import RunLog

# Each raises `ConfigurationError` and `DatabaseUnavailable`.


@asynccontextmanager
async def open_catalog(settings: Settings) -> AsyncIterator["DocumentCatalog"]:
    """Open the list of documents."""
    if settings.pgvectorstore is not None:
        # The table of another application is mapped by far more code.
        from app.wiring.services import open_services

        async with open_services(settings) as services:
            yield services.library.documents
        return
    from app.adapters.postgres.documents.catalog import PostgresDocumentCatalog

    async with open_database(settings) as database:
        yield PostgresDocumentCatalog(database.pool)


@asynccontextmanager
async def open_run_log(settings: Settings) -> AsyncIterator["RunLog"]:
    """Open the log of runs."""
    from app.adapters.postgres.conversations.run_log import PostgresRunLog

    async with open_database(settings) as database:
        yield PostgresRunLog(database.pool)


@asynccontextmanager
async def open_feedback(settings: Settings) -> AsyncIterator["FeedbackStore"]:
    """Open the store of feedback."""
    from app.adapters.postgres.conversations.feedback import PostgresFeedbackStore

    async with open_database(settings) as database:
        yield PostgresFeedbackStore(database.pool)


@asynccontextmanager
async def open_files(settings: Settings) -> AsyncIterator[tuple["DocumentCatalog", "OriginalStore"]]:
    """Open the list of documents, and their files."""
    from app.adapters.postgres.documents.originals import PostgresOriginals

    async with open_database(settings) as database, open_catalog(settings) as catalog:
        yield catalog, PostgresOriginals(database.pool, open_object_storage(settings))


@asynccontextmanager
async def open_keys(settings: Settings) -> AsyncIterator[tuple["KeyStore", "AuditLog"]]:
    """Open the store of API keys, and the log of changes to it."""
    from app.adapters.postgres.audit import PostgresAuditLog
    from app.adapters.postgres.keys import PostgresKeyStore

    async with open_database(settings) as database:
        yield PostgresKeyStore(database.pool), PostgresAuditLog(database.pool)


@asynccontextmanager
async def open_audit_log(settings: Settings) -> AsyncIterator["AuditLog"]:
    """Open the log of changes."""
    from app.adapters.postgres.audit import PostgresAuditLog

    async with open_database(settings) as database:
        yield PostgresAuditLog(database.pool)


@asynccontextmanager
async def open_ingestions(settings: Settings) -> AsyncIterator["IngestionQueue"]:
    """Open the queue of files to be read."""
    from app.adapters.postgres.queue.ingestions import PostgresIngestionQueue

    async with open_database(settings) as database:
        yield PostgresIngestionQueue(database.pool)


@asynccontextmanager
async def open_backlog(settings: Settings) -> AsyncIterator["EmbeddingBacklog"]:
    """Open the list of chunks that are still to be embedded, to count them."""
    from app.adapters.postgres.vectors.backlog import PostgresEmbeddingBacklog

    async with open_database(settings) as database:
        yield PostgresEmbeddingBacklog(database.pool)


@asynccontextmanager
async def open_synced_files(settings: Settings) -> AsyncIterator[tuple["SyncedFiles", "DocumentCatalog"]]:
    """Open the files of synced folders, and the list of documents."""
    from app.adapters.postgres.documents.catalog import PostgresDocumentCatalog
    from app.adapters.postgres.documents.synced import PostgresSyncedFiles

    async with open_database(settings) as database:
        yield PostgresSyncedFiles(database.pool), PostgresDocumentCatalog(database.pool)


@asynccontextmanager
async def open_retention(settings: Settings) -> AsyncIterator["Retention"]:
    """Open the store that deletes old conversations."""
    from app.adapters.postgres.checkpoints.saver import open_saver
    from app.adapters.postgres.documents.originals import PostgresOriginals
    from app.adapters.postgres.retention.store import PostgresRetention

    # The saver creates the tables of saved states.
    async with open_database(settings) as database, open_saver(database.pool):
        yield PostgresRetention(database.pool, PostgresOriginals(database.pool, open_object_storage(settings)))


async def read_run_statistics(settings: Settings, since: datetime) -> RunStatistics:
    """Sum up the runs of all workspaces since then. Raises `ConfigurationError` and `DatabaseUnavailable`."""
    from app.adapters.postgres.monitoring import read_statistics

    async with open_database(settings) as database:
        return await read_statistics(database.url, since)


def open_object_storage(settings: Settings) -> "ObjectStorage | None":
    """Open the storage of original files outside of the database, where the settings name one. It is not asked for
    anything yet. Raises `ConfigurationError`."""
    if settings.originals == "database":
        return None
    from app.adapters.s3 import S3Storage

    return S3Storage(settings.originals)
