"""Chromium, the real service to look at, and a stand-in that streams what a test tells it to."""

import asyncio
import os
import re
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.page.scripted import Script, serve_script
from tests.wire.openai import OpenAIServer, serve_openai

CHROMIUM = shutil.which("chromium")
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


class Service:
    """`askgraph serve` in a process of its own, on embedded servers of its own."""

    def __init__(self, home: Path, **environment: str) -> None:
        self._environment = {
            **os.environ,
            "ASKGRAPH_HOME": str(home),
            "ASKGRAPH_LOAD_SAMPLES": "false",
            "NO_COLOR": "1",
            **environment,
        }
        self._process: asyncio.subprocess.Process | None = None
        self._draining: asyncio.Task[bytes] | None = None
        self.model: OpenAIServer | None = None
        """The language model that it asks, where it has one."""
        self.address = "http://127.0.0.1:0"

    async def start(self) -> None:
        """At the same address as before."""
        port = self.address.rpartition(":")[2]
        self._process = process = await asyncio.create_subprocess_exec(
            Path(sys.executable).with_name("askgraph"),
            *("serve", "--port", port),
            env=self._environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        assert process.stdout is not None
        output = ""
        async with asyncio.timeout(60):
            while (address := re.search(r"http://127\.0\.0\.1:\d+", output)) is None:
                line = await process.stdout.readline()
                assert line, f"askgraph serve ended:\n{output}"
                output += line.decode()
        self.address = address[0]
        # Nobody reads the log from here on, and a full pipe would stop the server.
        self._draining = asyncio.create_task(process.stdout.read())

    async def add_document(self) -> None:
        async with httpx.AsyncClient(base_url=self.address, timeout=60) as client:
            added = await client.post("/api/documents", files={"files": ("station.md", STATION.encode())})
            assert added.is_success, added.text

    async def end(self, number: signal.Signals) -> None:
        """Send the process a signal, and wait until it has ended."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(number)
        await self._process.wait()
        if self._draining is not None:
            await self._draining


@asynccontextmanager
async def open_service(home: Path, **environment: str) -> AsyncIterator[Service]:
    """With one document."""
    service = Service(home, **environment)
    try:
        await service.start()
        await service.add_document()
        yield service
        await service.end(signal.SIGTERM)
    finally:
        await service.end(signal.SIGKILL)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """The address of a service without a language model."""
    async with open_service(tmp_path_factory.mktemp("home")) as service:
        yield service.address


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def slow_service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """A service whose answers take four seconds: a page on a busy machine needs one or two to show what goes on."""
    async with serve_openai(rate=40, length=160) as model:
        home = tmp_path_factory.mktemp("slow")
        async with open_service(home, OPENAI_API_KEY="sk-test", OPENAI_BASE_URL=model.base_url) as service:
            service.model = model
            yield service


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stand_in() -> AsyncIterator[Script]:
    async with serve_script() as running:
        yield running


@pytest.fixture
def script(stand_in: Script) -> Script:
    """A stand-in for the service; call it with what it is to reply."""
    stand_in.reset()
    return stand_in
