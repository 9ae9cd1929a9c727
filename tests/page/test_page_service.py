"""The page on the real service: `askgraph serve`, its documents, its answers."""

import json

import pytest
from playwright.async_api import FilePayload, Page, expect

from tests.page.scripted import ask

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = "How long is the warranty of the Falke weather station?"


async def test_an_answer_with_markers_and_sources(page: Page, site: str) -> None:
    elsewhere: list[str] = []
    page.on("request", lambda request: elsewhere.append(request.url) if not request.url.startswith(site) else None)
    await page.goto(site)
    await expect(page.locator("#mode option")).to_have_text(["fast", "standard", "thorough"])
    await ask(page, QUESTION)
    await expect(page.locator(".answer")).to_contain_text("36 months")
    await expect(page.locator(".answer .marker").first).to_be_visible()
    card = page.locator(".turn > .sources .source").first
    await expect(card.locator(".title")).to_have_text("Falke weather station")
    await expect(card.locator(".where")).to_contain_text("Warranty")
    await expect(card.locator(".score")).to_contain_text("%")
    await expect(page.locator(".badge.confidence")).to_contain_text("confidence")
    await expect(page.get_by_role("button", name="Ask", exact=True)).to_be_visible()
    assert [url for url in elsewhere if not url.startswith("data:")] == []


async def test_a_marker_leads_to_its_source(page: Page, site: str) -> None:
    await page.goto(site)
    await ask(page, QUESTION)
    marker = page.locator(".answer .marker").first
    number = await marker.text_content()
    await marker.focus()
    await expect(page.locator("#tip")).to_contain_text("36 months")
    await page.keyboard.press("Escape")
    await expect(page.locator("#tip")).to_be_hidden()
    await page.keyboard.press("Enter")
    lit = page.locator(".source.lit")
    await expect(lit).to_have_count(1)
    await expect(lit).to_have_attribute("data-marker", number or "")
    await expect(lit).to_be_focused()
    await expect(lit).to_be_in_viewport(ratio=1)
    await expect(lit.locator(".snippet")).to_contain_text("36 months")


async def test_a_follow_up_stays_in_the_thread_and_survives_a_reload(page: Page, site: str) -> None:
    await page.goto(site)
    await ask(page, QUESTION)
    address = page.url
    assert "#thread=" in address
    await ask(page, "How long does its battery last?")
    await expect(page.locator(".answer").last).to_contain_text("14 months")
    assert page.url == address
    await page.reload()
    await expect(page.locator(".question")).to_have_text([QUESTION, "How long does its battery last?"])
    await expect(page.locator(".answer").first).to_contain_text("36 months")
    await expect(page.locator(".turn").last.locator(".source").first).to_contain_text("14 months")
    await expect(page.locator("#turns .note")).to_have_count(0)
    async with page.expect_request("**/api/chat") as sent:
        await ask(page, "hello")
    body = (await sent.value).post_data_json
    assert body
    assert address.endswith(body["thread_id"])


async def test_what_the_documents_do_not_say_is_not_answered(page: Page, site: str) -> None:
    await page.goto(site)
    await ask(page, "Which composer wrote the opera Fidelio?")
    await expect(page.locator(".answer")).to_contain_text("The documents do not answer this.")
    await expect(page.locator(".badge.confidence")).to_have_text("Not in the documents")
    assert await page.locator(".marker").count() == 0
    assert await page.locator(".turn > .sources .source").count() == 0


async def test_the_same_question_comes_from_the_cache(page: Page, site: str) -> None:
    await page.goto(site)
    question = "How long does the battery of the Falke last?"
    await ask(page, question)
    await page.get_by_role("button", name="New conversation").click()
    await ask(page, question)
    await expect(page.locator(".badge.cached")).to_be_visible()
    await expect(page.locator(".answer")).to_contain_text("14 months")
    await expect(page.locator(".turn > .sources .source").first).to_be_visible()


async def test_files_are_added_and_stay_harmless(page: Page, site: str) -> None:
    hostile = '<img src="x" onerror="window.hurt = true">'
    name = "<img src=x onerror=window.hurt=true>.txt"
    text = f"The Zeisig anemometer {hostile} is painted bright orange by the workshop in Lund."
    files: list[FilePayload] = [
        {"name": name, "mimeType": "text/plain", "buffer": text.encode()},
        {"name": "picture.png", "mimeType": "image/png", "buffer": b"\x89PNG\r\n\x1a\n\0\0"},
    ]
    await page.goto(site)
    await page.locator("#files").set_input_files(files)
    await expect(page.locator("#uploads li").first).to_contain_text("added")
    await expect(page.locator("#uploads li").last).to_contain_text("✗ picture.png")
    await expect(page.locator("#library summary")).to_contain_text("documents")
    await ask(page, "What colour is the Zeisig anemometer painted?")
    await expect(page.locator(".answer")).to_contain_text("bright orange")
    await expect(page.locator(".answer")).to_contain_text("onerror")
    assert await page.locator("main img, form img").count() == 0
    assert await page.evaluate("() => window.hurt") is None


async def test_dropped_files_are_added_and_can_be_chosen(page: Page, site: str) -> None:
    await page.goto(site)
    text = json.dumps("The Drossel barograph weighs 740 grams and stands in room B204.")
    drop = f"""() => {{
        const data = new DataTransfer();
        data.items.add(new File([{text}], "drossel.txt", {{ type: "text/plain" }}));
        for (const type of ["dragover", "drop"])
            document.body.dispatchEvent(new DragEvent(type, {{ dataTransfer: data, bubbles: true, cancelable: true }}));
    }}"""
    await page.evaluate(drop)
    await expect(page.locator("#uploads li")).to_contain_text("added")
    await page.locator("#library summary").click()
    await page.get_by_role("checkbox", name="Falke").check()
    await expect(page.locator("#library summary")).to_contain_text("Answer from 1 of")
    await ask(page, "How much does the Drossel barograph weigh?")
    await expect(page.locator(".answer")).not_to_contain_text("740")
    await page.get_by_role("checkbox", name="Falke").uncheck()
    await ask(page, "How much does the Drossel barograph weigh?")
    await expect(page.locator(".answer").last).to_contain_text("740 grams")


async def test_an_answer_fits_a_telephone(page: Page, site: str) -> None:
    await page.set_viewport_size({"width": 360, "height": 740})
    await page.goto(site)
    await ask(page, QUESTION)
    await expect(page.locator(".answer")).to_contain_text("36 months")
    assert await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
