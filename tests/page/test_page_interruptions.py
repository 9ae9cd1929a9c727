"""The page and the real service, with a language model that takes its time, when something comes between them."""

import asyncio
import signal
from typing import Any

import httpx
import pytest
from playwright.async_api import Page, expect

from tests.page.conftest import Service
from tests.page.scripted import send

pytestmark = pytest.mark.asyncio(loop_scope="session")

PATIENCE_MS = 60_000
"""For a process that starts while three other tests run."""


async def begin_answer(page: Page, question: str) -> str:
    """Ask, and wait until some of the answer stands there."""
    await send(page, question)
    answer = page.locator(".answer").last
    await expect(answer).not_to_have_text("", timeout=PATIENCE_MS)
    return await answer.inner_text()


async def read_answer(page: Page, service: Service) -> tuple[str, str]:
    """The answer when it is finished, and how the service has it; white space apart."""
    await expect(page.locator(".facts").last).to_be_visible(timeout=PATIENCE_MS)
    shown = await page.locator(".answer").last.inner_text()
    async with httpx.AsyncClient(base_url=service.address, timeout=60) as client:
        thread = page.url.partition("/t/")[2]
        turns = (await client.get(f"/api/threads/{thread}")).json()["turns"]
    assert len(turns) == await page.locator(".turn").count()
    stored = turns[-1]["ended"]["answer"].replace("[", "").replace("]", "")
    return " ".join(shown.split()), " ".join(stored.split())


@pytest.mark.parametrize(
    ("number", "question"),
    [
        (signal.SIGKILL, "Which cells does the battery of the Falke take?"),
        (signal.SIGTERM, "How long does the battery of the Falke last?"),
    ],
)
async def test_an_answer_outlives_the_process_that_gives_it(
    page: Page, slow_service: Service, number: signal.Signals, question: str
) -> None:
    assert slow_service.model is not None
    behaviour = slow_service.model.behaviour
    await page.goto(slow_service.address)
    await begin_answer(page, question)
    # A process that ends as planned waits some seconds for its answers.
    behaviour.rate, rate = 5, behaviour.rate
    await slow_service.end(number)
    behaviour.rate = rate
    await expect(page.locator(".step")).to_contain_text("Reconnecting…")
    await asyncio.gather(slow_service.start(), expect(page.locator(".restarted")).to_be_visible(timeout=PATIENCE_MS))
    shown, stored = await read_answer(page, slow_service)
    assert shown == stored
    await expect(page.locator(".turn .note")).to_have_count(0)


async def test_a_model_that_says_nothing_is_waited_for_with_a_word(page: Page, slow_service: Service) -> None:
    assert slow_service.model is not None
    hanging, behaviour = asyncio.Event(), slow_service.model.behaviour

    async def hold(_: Any) -> None:
        await hanging.wait()

    slow_service.model.hold = hold
    await page.goto(slow_service.address)
    await send(page, "How many months is the warranty of the Falke valid?")
    await expect(page.locator(".step")).to_contain_text("no answer has come yet")
    # The model is back, and answers nothing usable.
    slow_service.model.hold, behaviour.fault = None, "server_error"
    hanging.set()
    await expect(page.locator(".facts")).to_be_visible(timeout=PATIENCE_MS)
    note = page.locator(".turn .note")
    await expect(note).to_have_count(1)
    await expect(note).to_contain_text("The language model did not answer")
    for done in (
        "routed without the language model.",
        "graded without the language model.",
        "quoted from the documents",
    ):
        await expect(note).to_contain_text(done)
    behaviour.fault = None
    async with httpx.AsyncClient(base_url=slow_service.address, timeout=60) as client:
        (turn,) = (await client.get(f"/api/threads/{page.url.partition('/t/')[2]}")).json()["turns"]
    await page.goto(f"{slow_service.address}/debug/runs/{turn['run_id']}#route")
    await expect(page.locator(".calls")).to_contain_text("Attempt 3 failed: 500")
