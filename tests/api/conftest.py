"""A client of the API in process, on real storage with two documents."""

from collections.abc import AsyncIterator

import httpx
import pytest

from app.serving.application import make_app
from app.wiring.services import Services
from tests.http_client import open_client


@pytest.fixture
async def client(services: Services, library: dict[str, str]) -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(make_app(services)) as opened:
        yield opened
