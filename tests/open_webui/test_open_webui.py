"""Open WebUI, as it comes from PyPI, asks the service and shows what it cites (`make test-open-webui`)."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser, expect

PROGRAM = Path(__file__).parents[2] / ".venv-open-webui" / "bin" / "open-webui"

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(300),
    pytest.mark.skipif(not PROGRAM.exists(), reason="Open WebUI is not installed: make test-open-webui"),
]


@asynccontextmanager
async def start_open_webui(folder: Path, service: str) -> AsyncIterator[str]:
    """Start it without accounts, with the service as its only connection."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "DATA_DIR": str(folder),
        "WEBUI_SECRET_KEY": "none",
        "WEBUI_AUTH": "False",
        "OPENAI_API_BASE_URL": f"{service}/v1",
        "OPENAI_API_KEY": "none",
        "ENABLE_OLLAMA_API": "False",
        # It would otherwise load models from elsewhere, and ask ours for titles, tags and further questions.
        "OFFLINE_MODE": "True",
        "RAG_EMBEDDING_ENGINE": "openai",
        "ENABLE_TITLE_GENERATION": "False",
        "ENABLE_TAGS_GENERATION": "False",
        "ENABLE_FOLLOW_UP_GENERATION": "False",
    }
    log = (folder / "log").open("wb")
    command = [str(PROGRAM), "serve", "--host", "127.0.0.1", "--port", str(port)]
    process = await asyncio.create_subprocess_exec(*command, env=environment, cwd=folder, stdout=log, stderr=log)
    try:
        address = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient() as client, asyncio.timeout(200):
            while True:
                assert process.returncode is None, (folder / "log").read_text()[-3000:]
                try:
                    if (await client.get(f"{address}/health")).is_success:
                        break
                except httpx.TransportError:
                    pass
                await asyncio.sleep(0.5)
        yield address
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
        log.close()


async def test_it_asks_and_shows_the_citation(browser: Browser, site: str, tmp_path: Path) -> None:
    async with start_open_webui(tmp_path, site) as address:
        page = await browser.new_page()
        page.set_default_timeout(60_000)
        await page.goto(f"{address}/?models=standard")
        await page.get_by_role("button", name="Okay, Let's Go!").click()  # what is new, shown once
        await page.locator("#chat-input").click()
        await page.keyboard.type("How long is the warranty of the Falke?")
        await page.keyboard.press("Enter")
        answer = page.locator("#response-content-container")
        await expect(answer).to_contain_text("36 months", timeout=60_000)
        await answer.get_by_role("button", name="View source: Falke").click()
        link = page.locator(f"a[href^='{site}/api/documents/']").first
        await expect(link).to_be_visible()
        passage = await page.request.get(str(await link.get_attribute("href")))
        assert "36 months" in await passage.text()
        await page.close()
