"""Whether everybody can use the debugger's page: axe-core, the keyboard alone, small windows, both themes."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, expect

from tests.page.test_debug import Asked, asked
from tests.page.test_page_access import AXE, LOOK, SIZES

__all__ = ["asked"]

pytestmark = pytest.mark.asyncio(loop_scope="session")


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


async def test_nothing_keeps_anybody_out(page: Page, asked: Asked) -> None:
    found: dict[str, list[str]] = {}
    async for state in visit_states(page, asked):
        if not await page.evaluate("() => Boolean(window.axe)"):
            await page.evaluate(AXE.read_text())
        for width, theme in SIZES:
            await page.set_viewport_size({"width": width, "height": 800})
            await page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            violations = await page.evaluate(LOOK, theme)
            if await page.evaluate("() => document.documentElement.scrollWidth > innerWidth"):
                violations.append("wider than the window")
            if violations:
                found[f"{state}, {width}, {theme}"] = violations
        await page.set_viewport_size({"width": 1280, "height": 800})
    assert found == {}


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
