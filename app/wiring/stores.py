"""The stores that need the database alone. Commands that need nothing else open these, without models, graph or cache,
in a fifth of the time; all other parts are built on them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.adapters.postgres.audit import PostgresAuditLog
from app.adapters.postgres.conversations.feedback import PostgresFeedbackStore
from app.adapters.postgres.conversations.run_log import PostgresRunLog
from app.adapters.postgres.documents.catalog import PostgresDocumentCatalog
from app.adapters.postgres.documents.originals import PostgresOriginals
from app.adapters.postgres.documents.synced import PostgresSyncedFiles
from app.adapters.postgres.keys import PostgresKeyStore
from app.adapters.postgres.queue.ingestions import PostgresIngestionQueue
from app.adapters.postgres.retention import PostgresRetention
from app.settings import Settings
from app.wiring.database import Database, open_database
from app.wiring.object_storage import open_object_storage


class Stores:
    """The stores of an open database. None is asked for anything before it is used."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings, self._database = settings, database
        self.audit = PostgresAuditLog(database.pool)
        self.catalog = PostgresDocumentCatalog(database.pool)
        self.feedback = PostgresFeedbackStore(database.pool)
        self.ingestions = PostgresIngestionQueue(database.pool)
        self.keys = PostgresKeyStore(database.pool)
        self.runs = PostgresRunLog(database.pool)
        self.synced = PostgresSyncedFiles(database.pool)

    @property
    def originals(self) -> PostgresOriginals:
        """The files of documents. Raises `ConfigurationError`."""
        return PostgresOriginals(self._database.pool, open_object_storage(self._settings))

    @property
    def retention(self) -> PostgresRetention:
        """The store that deletes old conversations. Raises `ConfigurationError`."""
        return PostgresRetention(self._database.pool, self.originals)


@asynccontextmanager
async def open_stores(settings: Settings) -> AsyncIterator[Stores]:
    """Open the database. Raises `ConfigurationError` and `DatabaseUnavailable`."""
    async with open_database(settings) as database:
        yield Stores(settings, database)
