"""Whether everybody can use the debugger's page: axe-core, the keyboard alone, small windows, both themes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from app.evaluation.evaluation import Options
from app.evaluation.report import write_report
from tests.evaluation.test_evaluation import FILES, QUESTIONS, write_set
from tests.evaluation.test_evaluation import run as evaluate_set
from tests.page.conftest import Site
from tests.page.test_debug import Asked, asked, hold_writing
from tests.page.test_page_access import look, look_at
from tests.wire.openai import OpenAIServer

__all__ = ["asked"]

pytestmark = pytest.mark.asyncio(loop_scope="session")


PARTS = {"step": ".middle-pane", "proved, and a test case": ".tools-pane"}
"""What is new in a state beside the one before it."""


async def visit_states(page: Page, asked: Asked) -> AsyncIterator[str]:
    """Go from one state of the page to the next, naming each."""
    await page.goto(asked.at("/debug"))
    await page.locator(".runs a").first.wait_for()
    await page.locator(".failures summary").first.click()
    await page.get_by_text("More filters").click()
    await page.get_by_label("When").select_option("dates")
    await page.locator("[data-period]").first.wait_for()
    yield "figures"
    await page.get_by_label("Where").fill("nonsense")
    await page.get_by_label("Where").press("Enter")
    await page.locator(".note.bad").wait_for()
    yield "list"
    await page.goto(f"{asked.at('/debug')}&mode=fast")
    await page.get_by_text("No run of the last 7 days is like that.").wait_for()
    yield "empty list"
    await page.goto(f"{asked.site}/debug/runs/nothing")
    await page.get_by_role("alert").filter(has_text="There is no run").wait_for()
    yield "unknown run"
    await page.goto(asked.at("/debug"))
    await page.get_by_text("Try a change on these runs").click()
    await page.get_by_label("Knob").fill("profile.grade.sufficient")
    await page.get_by_label("New value").fill("1.0")
    await page.get_by_role("button", name="Show what it would do").click()
    await page.get_by_role("button", name="Replay ").click()
    await page.get_by_role("region", name="Report").wait_for()
    yield "report"
    await page.goto(asked.at(f"/debug/runs/{asked.run_id}"))
    await page.locator(".why").wait_for()
    await page.locator(".graph .node.visited").first.wait_for()
    yield "run"
    await page.locator("[data-step=grade]").click()
    await page.locator(".middle-pane .state summary").click()
    await page.locator(".state dl").wait_for()
    yield "step"
    await page.locator("[data-step=rerank]").click()
    await page.get_by_text("Other documents").click()
    await page.locator(".documents li").first.wait_for()
    await page.get_by_label("New value").fill("1")
    await page.get_by_role("button", name="Run on").click()
    await page.locator(".side").nth(1).wait_for()
    await page.locator(".places").nth(1).wait_for()
    await page.get_by_role("button", name="Try what would change it").click()
    await page.locator(".variants").first.wait_for(timeout=45_000)
    yield "compared"
    await page.get_by_label("A right answer holds").fill("3 years")
    await page.get_by_role("button", name="Replay strictly").click()
    await page.locator(".right").wait_for()
    yield "proved, and a test case"
    await page.route("**/api/**", lambda route: route.fulfill(status=401, json={}))
    await page.goto(asked.at("/debug"))
    await page.get_by_label("Your key").wait_for()
    yield "signing in"


async def test_nothing_keeps_anybody_out(page: Page, asked: Asked) -> None:
    assert await look_at(page, visit_states(page, asked), PARTS) == {}


async def test_nothing_keeps_anybody_out_of_a_run_that_goes_on(
    page: Page, model_site: str, model: OpenAIServer
) -> None:
    async with hold_writing(model_site, model, "How long is the warranty of a Falke?") as run_id:
        await page.goto(f"{model_site}/debug")
        await page.get_by_label("Being answered now").wait_for()
        assert await look(page) == {}
        await page.goto(f"{model_site}/debug/runs/{run_id}")
        await page.locator(".node.now").wait_for()
        assert await look(page) == {}
    await page.locator("[data-step=generate]").click()
    await page.locator(".calls summary").last.click()
    await page.get_by_role("button", name="Edit this prompt").last.click()
    assert await look(page, ".tools-pane") == {}


async def test_nothing_keeps_anybody_out_of_reports_and_the_reference(page: Page, house: Site, tmp_path: Path) -> None:
    for name, text in FILES.items():
        await house.add(name, text, "birds")
    birds = write_set(tmp_path / "birds.jsonl", QUESTIONS)
    evaluated, _ = await evaluate_set(house.services, birds, Options(workspace="birds"))
    # As a file is opened: the report has to do without a service.
    await page.goto(write_report([evaluated], tmp_path, house.services.runs.fingerprint).as_uri())
    assert await look(page) == {}
    await page.goto(f"{house.address}/docs")
    # All its routes and types are made alike: a few of them stand for 14,000 elements, which axe takes half a minute for.
    alike = "main > :is(details, table)"
    await page.evaluate(f"[...document.querySelectorAll('{alike}')].forEach((each, at) => at % 25 && each.remove())")
    await page.locator("details summary").first.click()
    assert await look(page) == {}


async def test_the_keyboard_is_enough(page: Page, asked: Asked) -> None:
    async def tab_to(selector: str) -> None:
        for _ in range(60):
            await page.keyboard.press("Tab")
            if await page.evaluate("(selector) => document.activeElement?.matches(selector)", selector):
                return
        raise AssertionError(f"Tab does not lead to {selector}")

    await page.goto(asked.at("/debug"))
    await tab_to("[data-period]")
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("First day")).to_have_value(
        await page.evaluate("new Date().toLocaleDateString('sv')")
    )
    await page.goto(asked.at("/debug"))
    await page.locator(f".runs a[href*='{asked.run_id}']").wait_for()
    await tab_to(f".runs a[href*='{asked.run_id}']")
    await page.keyboard.press("Enter")
    await page.locator(".why").wait_for()
    await page.locator(".graph .node.visited").first.wait_for()
    await tab_to(".node[data-node=rerank]")
    await page.keyboard.press("Enter")
    await expect(page.locator(".middle-pane h2")).to_have_text("rerank")
    await expect(page.locator(".middle-pane")).to_be_focused()
    await tab_to("[name=place]")
    await tab_to("[aria-label='New value']")
    await page.keyboard.type("2")
    await page.keyboard.press("Enter")
    await expect(page.locator(".side")).to_have_count(2)
    await expect(page.locator("#status")).to_have_text("The branch has ended.")
