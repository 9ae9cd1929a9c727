from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from app.adapters.postgres.assistants import PostgresAssistantStore
from app.adapters.postgres.conversations.feedback import PostgresFeedbackStore
from app.adapters.postgres.conversations.run_log import PostgresRunLog
from app.adapters.postgres.conversations.threads import PostgresThreadStore
from app.adapters.postgres.documents.store import PostgresDocumentStore
from app.adapters.postgres.library.library import PostgresLibrary
from app.adapters.postgres.pool import Pool
from app.adapters.postgres.queue.runs import PostgresRunQueue
from tests.contracts.assistants import AssistantStoreContract
from tests.contracts.conversations import CostContract, RunLogContract, ThreadStoreContract
from tests.contracts.document_store import DocumentStoreContract
from tests.contracts.feedback import FeedbackStoreContract
from tests.contracts.library import LibraryContract


@pytest_asyncio.fixture
async def documents(pool: Pool) -> PostgresDocumentStore:
    return PostgresDocumentStore(pool)


@pytest_asyncio.fixture
async def library(pool: Pool) -> PostgresLibrary:
    return PostgresLibrary(pool)


@pytest_asyncio.fixture
async def runs(pool: Pool) -> PostgresRunLog:
    return PostgresRunLog(pool)


@pytest_asyncio.fixture
async def queue(pool: Pool, database_url: str) -> AsyncIterator[PostgresRunQueue]:
    queue = PostgresRunQueue(pool, database_url)
    yield queue
    await queue.close()


@pytest_asyncio.fixture
async def threads(pool: Pool) -> PostgresThreadStore:
    return PostgresThreadStore(pool)


class TestPostgresLibrary(LibraryContract):
    pass


class TestPostgresDocumentStore(DocumentStoreContract):
    pass


class TestPostgresRunLog(RunLogContract):
    pass


class TestPostgresRunLogCosts(CostContract):
    pass


class TestPostgresFeedbackStore(FeedbackStoreContract):
    @pytest.fixture
    def feedback(self, pool: Pool) -> PostgresFeedbackStore:
        return PostgresFeedbackStore(pool)


class TestPostgresAssistantStore(AssistantStoreContract):
    @pytest.fixture
    def assistants(self, pool: Pool) -> PostgresAssistantStore:
        return PostgresAssistantStore(pool)


class TestPostgresThreadStore(ThreadStoreContract):
    pass
