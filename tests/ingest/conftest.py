from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from app.adapters.postgres.documents.store import PostgresDocumentStore
from app.adapters.postgres.pool import Pool, open_pool


@pytest_asyncio.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    async with open_pool(database_url, max_size=4) as pool:
        yield pool


@pytest.fixture
def store(pool: Pool) -> PostgresDocumentStore:
    return PostgresDocumentStore(pool)
