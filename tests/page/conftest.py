"""Chromium, the service to look at, and a stand-in that streams what a test tells it to."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import redis.asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

from app.access import authentication
from app.adapters.embedded import Servers
from app.serving.application import make_app
from app.settings import read_settings
from app.wiring.services import Services, open_services
from domain.library.metadata import Metadata
from tests.conftest import create_database
from tests.http_client import run_app
from tests.page.scripted import Script, serve_script
from tests.wire.openai import OpenAIServer, serve_openai
from tests.wire.serving import serve_app

# The one without windows takes little more than half of the other's computing for the same page.
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

STATION = """# Falke weather station

## Warranty
The Falke weather station has a warranty of 36 months from the date of purchase.
Claims are handled by Petra Lindqvist in Malmo.

## Battery
The battery of the Falke lasts 14 months. Replace it with two AA lithium cells.
"""


# What a busy machine delays is not a fault.
expect.set_options(timeout=30_000)

_valkeys = count()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Debian's Chromium. Without one the tests are skipped, except in CI."""
    if CHROMIUM is None:
        reason = "There is no chromium on the PATH; `make test` installs it."
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield running
        await running.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser) -> AsyncIterator[Page]:
    """An empty window. An uncaught error or a breach of the page's policy in it fails the test."""
    context = await browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(60_000)
    window = await context.new_page()
    problems: list[str] = []
    window.on("pageerror", lambda error: problems.append(str(error)))
    window.on("console", lambda m: problems.append(m.text) if "Content Security Policy" in m.text else None)
    yield window
    await context.close()
    assert problems == []


@dataclass
class Site:
    """A service in this process, with a database and cache of its own."""

    address: str
    services: Services

    async def add(self, source: str, text: str, workspace: str = "default", metadata: Metadata | None = None) -> None:
        await self.services.library.ingestion.add(workspace, source, text.encode(), metadata=metadata)


@asynccontextmanager
async def open_site(servers: Servers, template: str, **settings: Any) -> AsyncIterator[Site]:
    assert servers.redis_url
    # One of the sixteen that Valkey has: what one service remembers is nothing to another that is open.
    redis_url = servers.redis_url.replace("db=0", f"db={next(_valkeys) % 15 + 1}")
    async with redis.asyncio.Redis.from_url(redis_url) as client:
        await client.flushdb()
    async with create_database(servers, template) as url:
        read = read_settings(DATABASE_URL=url, REDIS_URL=redis_url, **{"load_samples": False, **settings})
        async with open_services(read) as services, run_app(make_app(services)) as app, serve_app(app) as address:
            yield Site(address, services)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def site(servers: Servers, template: str) -> AsyncIterator[str]:
    """The address of a service with one document and without a language model."""
    async with open_site(servers, template) as opened:
        await opened.add("station.md", STATION)
        yield opened.address


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def model() -> AsyncIterator[OpenAIServer]:
    """The language model of `model_site`."""
    async with serve_openai() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def model_site(servers: Servers, template: str, model: OpenAIServer) -> AsyncIterator[str]:
    """The address of a service with one document and a language model."""
    async with open_site(servers, template, OPENAI_API_KEY="sk-test", OPENAI_BASE_URL=model.base_url) as opened:
        await opened.add("station.md", STATION)
        yield opened.address


PAPERS: dict[str, tuple[Metadata, str]] = {
    "/docs/hr/leave/annual.md": ({"team": "hr"}, "# Annual leave\n\nEverybody has 31 days of annual leave."),
    "/docs/hr/travel.md": ({"team": "hr"}, "# Travel\n\nTrains are booked in second class."),
    "/docs/legal/notice.md": ({"team": "legal"}, "# Notice\n\nThe notice period is 3 months."),
    "/docs/welcome.md": (
        {"team": "legal"},
        "# A welcome to everybody who has come here since the year began\n\nHello.",
    ),
}


@pytest_asyncio.fixture(loop_scope="session")
async def house(
    servers: Servers, template: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[Site]:
    """A service of one test alone, whose library has folders."""
    monkeypatch.setattr(authentication, "TRUSTED_SECONDS", 0)
    async with open_site(servers, template, home=tmp_path) as opened:
        for source, (metadata, text) in PAPERS.items():
            await opened.add(source, text, metadata=metadata)
        yield opened


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stand_in() -> AsyncIterator[Script]:
    async with serve_script() as running:
        yield running


@pytest.fixture
def script(stand_in: Script) -> Script:
    """A stand-in for the service; call it with what it is to reply."""
    stand_in.reset()
    return stand_in
