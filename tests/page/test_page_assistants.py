"""Assistants on the page: made of what is chosen in the library, asked, changed and deleted."""

import pytest
from playwright.async_api import Page, expect

from tests.page.scripted import ask

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = "How long is the warranty of the Falke weather station?"


async def open_modes(page: Page) -> None:
    await page.get_by_role("button", name="Mode").click()
    await expect(page.locator("#modes")).to_be_visible()


async def test_an_assistant_is_made_asked_changed_and_deleted(page: Page, site: str) -> None:
    await page.goto(site)
    await page.get_by_role("button", name="Library").click()
    name = "Answer from Falke weather station"
    await page.get_by_label(name).check()
    await page.locator("#question").fill("Not asked yet")
    await open_modes(page)
    await page.locator("#modes").get_by_role("button", name="Make an assistant").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("textbox", name="Name", exact=True)).to_be_focused()
    await expect(dialog).to_contain_text("Until one is, instructions do nothing.")
    await dialog.get_by_role("textbox", name="Name", exact=True).fill("fast")
    await dialog.get_by_label("What it is for").fill("For <b>weather</b> stations.")
    await dialog.get_by_label("Works as").select_option("thorough")
    await dialog.get_by_label("Instructions").fill("Name the station.")
    await expect(dialog.get_by_label("Answers from").locator("option:checked")).to_have_text(
        "What is chosen in the library: 1 document"
    )
    await dialog.get_by_label("Length").select_option("detailed")
    await dialog.get_by_label("Language of notices").select_option("de")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert")).to_have_text("'fast' is the name of a mode.")
    await dialog.get_by_role("textbox", name="Name", exact=True).fill("Station desk")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_be_hidden()
    # It is the mode now, and has taken over what was chosen.
    await expect(page.get_by_role("button", name="Mode")).to_have_text("Station desk ▾")
    await expect(page.get_by_label(name)).not_to_be_checked()
    await expect(page.locator("#question")).to_have_value("Not asked yet")
    await ask(page, QUESTION)
    await expect(page.locator(".answer")).to_contain_text("36 months")
    await page.locator(".facts summary").click()
    await expect(page.locator(".facts")).to_contain_text("Station desk@1")

    await page.reload()
    await open_modes(page)
    row = page.locator("#modes .assistant")
    await expect(row).to_contain_text("For <b>weather</b> stations. Checks every statement of the answer.")
    await row.get_by_role("button", name="Change the assistant: Station desk").click()
    await expect(dialog.get_by_label("Answers from").locator("option:checked")).to_have_text("As before: 1 document")
    await expect(dialog.get_by_label("Language of notices")).to_have_value("de")
    await dialog.get_by_role("textbox", name="Name", exact=True).fill("Counter")
    await dialog.get_by_label("Groups").fill("desk, shop")
    await dialog.get_by_label("Length").select_option("")
    await dialog.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("button", name="Mode")).to_have_text("Counter ▾")
    saved = (await (await page.request.get(f"{site}/api/assistants")).json())["assistants"]
    [counter] = saved
    assert (counter["version"], counter["length"], counter["language"]) == (2, None, "de")
    assert (len(counter["document_ids"]), counter["groups"]) == (1, ["desk", "shop"])
    await page.locator(".turn").get_by_role("button", name="More").click()
    for mode in ("research", "Counter"):
        await expect(page.get_by_role("button", name=f"Ask again in mode {mode}")).to_be_visible()
    await page.keyboard.press("Escape")
    # The debugger can run on in it.
    await page.get_by_role("link", name="Why this answer?").click()
    await expect(page.locator("select[name=mode] option").last).to_have_text("Counter")
    await page.go_back()
    await open_modes(page)
    await row.get_by_role("button", name="Change the assistant: Counter").click()
    await dialog.get_by_role("button", name="Delete Counter").click()
    await dialog.get_by_role("button", name="Really delete Counter").click()
    await expect(dialog).to_be_hidden()
    await expect(page.get_by_role("button", name="Mode")).to_have_text("standard ▾")
    await open_modes(page)
    await expect(row).to_have_count(0)
