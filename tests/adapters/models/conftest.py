"""The server and the model of a file's `provider`."""

from collections.abc import AsyncIterator

import pytest_asyncio

from domain.ports.models import ChatModel
from tests.contracts.provider import Provider, Server, connect


@pytest_asyncio.fixture
async def server(provider: Provider) -> AsyncIterator[Server]:
    async with provider.serve() as server:
        yield server


@pytest_asyncio.fixture
async def model(server: Server, provider: Provider) -> AsyncIterator[ChatModel]:
    async with connect(server, provider.model) as (_, model):
        yield model
