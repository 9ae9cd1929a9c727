"""A page of somebody else that asks with `useChat` of the AI SDK, in Chromium."""

import asyncio

import pytest
from playwright.async_api import Page, Route, expect

from tests.protocols.node_clients import FOLDER, needs_node

pytestmark = pytest.mark.asyncio(loop_scope="session")

ESBUILD = FOLDER / "node_modules" / ".bin" / "esbuild"


async def bundle(script: str) -> str:
    """Return the script with all that it imports, as a browser runs it."""
    process = await asyncio.create_subprocess_exec(
        ESBUILD, script, "--bundle", "--jsx=automatic", '--define:process.env.NODE_ENV="production"',
        cwd=FOLDER, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    code, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()
    return code.decode()


@needs_node
async def test_use_chat_shows_answer_and_sources_and_goes_on(page: Page, site: str) -> None:
    script = await bundle("use_chat.jsx")

    async def serve_page(route: Route) -> None:
        code = script.replace("</script", r"<\/script")
        await route.fulfill(
            content_type="text/html; charset=utf-8", body=f"<!doctype html><div id=root></div><script>{code}</script>"
        )

    # Of the same origin, as pages that ask here have to be.
    await page.route("**/somebody-elses-page", serve_page)
    await page.goto(f"{site}/somebody-elses-page")

    async def ask(question: str) -> None:
        await page.get_by_label("Question").fill(question)
        await page.get_by_role("button", name="Ask").click()

    answers = page.locator("article[data-role=assistant]")
    await ask("How long is the warranty of the Falke?")
    await expect(answers.nth(0)).to_contain_text("36 months")
    source = answers.nth(0).get_by_role("link", name="Falke weather station")
    await expect(source).to_be_visible()
    shown = await page.request.get(str(await source.get_attribute("href")))
    assert "36 months" in await shown.text()

    await ask("And who handles claims?")
    await expect(answers.nth(1)).to_contain_text("Petra Lindqvist")

    await ask("x" * 3000)
    await expect(page.get_by_role("alert")).to_contain_text("question")
