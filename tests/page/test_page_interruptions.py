"""The page and the real service, with a language model that takes its time, when something comes between them."""

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Page, expect

from app.adapters.embedded import Servers
from app.answering import following
from tests.conftest import create_database, find_programs
from tests.page.conftest import STATION
from tests.page.scripted import send
from tests.wire.openai import OpenAIServer, serve_openai

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def start_service(servers: Servers, database: str, model: OpenAIServer, port: str) -> tuple[Any, str]:
    """`askgraph serve` in a process of its own, and its address."""
    environment = {"DATABASE_URL": database, "REDIS_URL": str(servers.redis_url), "ASKGRAPH_LOAD_SAMPLES": "false"}
    keys = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": model.base_url}
    process = await asyncio.create_subprocess_exec(
        *(Path(sys.executable).with_name("askgraph"), "serve", "--port", port),
        env={**find_programs(), **environment, **keys},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout
    address = None
    while address is None:
        line = await process.stdout.readline()
        assert line, "askgraph serve ended"
        address = re.search(r"http://127\.0\.0\.1:\d+", line.decode())
    return process, address[0]


@pytest.mark.field
async def test_an_answer_outlives_the_process_that_gives_it(page: Page, servers: Servers, template: str) -> None:
    async with create_database(servers, template) as database, serve_openai(rate=40, length=160) as model:
        process, site = await start_service(servers, database, model, "0")
        try:
            async with httpx.AsyncClient(base_url=site, timeout=60) as client:
                added = await client.post("/api/documents", files={"files": ("station.md", STATION.encode())})
                assert added.is_success, added.text
                await page.goto(site)
                await send(page, "Which cells does the battery of the Falke take?")
                answer = page.locator(".answer")
                await expect(answer).not_to_have_text("")
                process.kill()
                await process.wait()
                await expect(page.locator(".step")).to_contain_text("Reconnecting…")
                process, _ = await start_service(servers, database, model, site.rpartition(":")[2])
                await expect(page.locator(".restarted")).to_be_visible()
                await expect(page.locator(".facts")).to_be_visible()
                (turn,) = (await client.get(f"/api/threads/{page.url.partition('/t/')[2]}")).json()["turns"]
            # White space and brackets apart, it is the answer that the service has.
            stored = turn["ended"]["answer"].replace("[", "").replace("]", "")
            assert (await answer.inner_text()).split() == stored.split()
            await expect(page.locator(".turn .note")).to_have_count(0)
        finally:
            process.kill()
            await process.wait()


async def test_a_model_that_says_nothing_is_waited_for_with_a_word(
    page: Page, model_site: str, model: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "QUIET_SECONDS", 0.3)
    hanging = asyncio.Event()

    async def hold(_: Any) -> None:
        await hanging.wait()

    model.hold = hold
    await page.goto(model_site)
    await send(page, "How many months is the warranty of the Falke valid, and why?")
    await expect(page.locator(".step")).to_contain_text("no answer has come yet")
    # The model is back, and answers nothing usable.
    model.hold, model.behaviour.fault = None, "server_error"
    hanging.set()
    await expect(page.locator(".facts")).to_be_visible()
    note = page.locator(".turn .note")
    await expect(note).to_have_count(1)
    for said in (
        "The language model's server reported an error",
        "routed without the language model.",
        "quoted from the documents",
    ):
        await expect(note).to_contain_text(said)
    model.behaviour.fault = None
    await page.get_by_role("link", name="Why this answer?").click()
    await page.locator("[data-step=route]").click()
    await expect(page.locator(".calls")).to_contain_text("Attempt 3 failed: 500")
