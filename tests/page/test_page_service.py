"""The page on the real service: `askgraph serve`, its documents, its answers."""

import json
import re
from collections.abc import Awaitable
from contextlib import closing
from pathlib import Path

import httpx
import pypdfium2
import pytest
from playwright.async_api import FilePayload, Page, expect

from tests.page.scripted import ask

pytestmark = pytest.mark.asyncio(loop_scope="session")

MANUAL = Path("app/samples/ws-400-manual.pdf").resolve()
MOEWE = """# Moewe tide gauge

The Moewe tide gauge has a warranty of 84 months.

## Prices of the parts of the Moewe

| Part | Price |
|---|---|
| mast | 120 euros |
| float | 35 euros |

## Mounting

Mount the Moewe tide gauge like this:

1. Drive in the anchor.
2. Hang up the float.
3. Close the lid.
"""
QUESTION = "How long is the warranty of the Falke weather station?"


async def test_an_answer_with_markers_and_sources(page: Page, site: str) -> None:
    elsewhere: list[str] = []
    page.on("request", lambda request: elsewhere.append(request.url) if not request.url.startswith(site) else None)
    await page.goto(site)
    await page.locator(".starters button").get_by_text("warranty").click()
    await expect(page.locator(".answer")).to_contain_text("36 months")
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator(".turn")).to_have_count(0)
    await ask(page, QUESTION)
    await expect(page.locator(".answer")).to_contain_text("36 months")
    marker = page.locator(".answer .marker").first
    await marker.focus()
    await expect(page.locator("#tip")).to_contain_text("36 months")
    await page.keyboard.press("Enter")
    await expect(page.locator(".evidence h2")).to_be_focused()
    await expect(page.locator(".evidence h2")).to_contain_text("Falke weather station")
    await expect(page.locator(".evidence mark").first).to_contain_text("36 months")
    await expect(page.locator(".evidence mark").first).to_be_in_viewport()
    await page.keyboard.press("Escape")
    await expect(page.locator(".evidence")).to_have_count(0)
    await expect(marker).to_be_focused()
    # The browser's Back closes the evidence too, and only then leaves the conversation.
    await marker.click()
    await expect(page.locator(".evidence")).to_have_count(1)
    await page.go_back()
    await expect(page.locator(".evidence")).to_have_count(0)
    await expect(page.locator(".answer")).to_contain_text("36 months")
    await expect(page.get_by_role("link", name="Why this answer?")).to_be_visible()
    await page.locator(".facts summary").click()
    await expect(page.locator(".facts summary")).to_contain_text("sure")
    assert [url for url in elsewhere if not url.startswith("data:")] == []
    await page.get_by_role("button", name="Mode").click()
    await expect(page.locator("#modes b")).to_have_text(["fast", "standard", "thorough", "research"])
    # No language model is asked, so nothing is said of money.
    await expect(page.locator("#modes")).not_to_contain_text("$")
    await page.locator("#modes").get_by_role("button", name="thorough").click()
    await expect(page.get_by_role("button", name="Mode")).to_have_text("thorough ▾")


async def test_conversations_are_listed_renamed_found_and_deleted(page: Page, site: str) -> None:
    await page.goto(site)
    await ask(page, QUESTION)
    address = page.url
    assert "/t/" in address
    await ask(page, "How long does its battery last?")
    await expect(page.locator(".answer").last).to_contain_text("14 months")
    assert page.url == address
    await page.get_by_role("button", name="Helpful", exact=True).last.click()
    await expect(page.locator("[aria-pressed=true]")).to_have_attribute("aria-label", "Helpful")
    # Whatever the answers showed is there again.
    await page.locator(".facts summary").first.click()
    before = await page.locator(".turn").all_text_contents()
    await page.reload()
    await expect(page.locator(".turn")).to_have_count(2)
    assert await page.locator(".turn").all_text_contents() == before
    await expect(page.locator("[aria-pressed=true]")).to_have_attribute("aria-label", "Helpful")

    entry = page.locator(".entry.current")
    await expect(entry).to_contain_text(QUESTION)
    await entry.hover()
    await entry.get_by_role("button", name="More").click()
    await entry.get_by_role("button", name="Rename").click()
    await expect(page.get_by_label("Title")).to_be_focused()
    await page.keyboard.type("About the Falke")
    await page.keyboard.press("Enter")
    await expect(entry).to_contain_text("About the Falke")
    await expect(entry.get_by_role("link")).to_be_focused()
    await entry.get_by_role("button", name="More").click()
    await entry.get_by_role("button", name="Rename").click()
    await page.get_by_role("button", name="Cancel").click()
    await expect(entry.get_by_role("link")).to_be_focused()
    for words, found in {"battery last": 1, "lasts 14 months": 1, "tide": 0}.items():
        await page.get_by_label("Search conversations").fill(words)
        await expect(page.locator(".entry")).to_have_count(found)
    await page.get_by_label("Search conversations").fill("battery last")
    await expect(page.locator(".entry")).to_have_count(1)
    await entry.hover()
    await entry.get_by_role("button", name="More").click()
    await entry.get_by_role("button", name="Delete").click()
    await entry.get_by_role("button", name="Really delete").click()
    await expect(page.locator(".turn")).to_have_count(0)
    await expect(page.locator(".left-panel")).to_contain_text("No conversation has these words.")


async def test_where_an_answer_may_stand_opens_at_its_place(page: Page, site: str) -> None:
    await page.goto(site)
    await ask(page, "Who invented the lithium cells and the weather?")
    await expect(page.locator(".answer")).to_contain_text("This may be it")
    await expect(page.locator(".answer li strong").first).to_be_visible()
    await expect(page.locator(".facts summary")).to_have_text("Nothing sure in the documents")
    await page.locator(".answer .marker").first.click()
    await expect(page.locator("mark").first).to_contain_text("lithium cells")


async def test_closing_a_document_leaves_the_answer_that_was_asked_for_beside_it(page: Page, site: str) -> None:
    await page.goto(site)
    await page.get_by_role("button", name="Library").click()
    await page.locator(".entry .plain-button").first.click()
    await expect(page.locator(".evidence")).to_have_count(1)
    await ask(page, QUESTION)
    await expect(page.locator(".answer")).to_contain_text("36 months")
    await page.locator(".evidence").get_by_role("button", name="Close").click()
    await expect(page.locator(".evidence")).to_have_count(0)
    await page.evaluate("() => new Promise((done) => setTimeout(done, 100))")
    await expect(page.locator(".answer")).to_contain_text("36 months")


async def test_dropped_files_are_added_and_can_be_chosen(page: Page, site: str) -> None:
    await page.goto(site)
    text = json.dumps("The Drossel barograph weighs 740 grams and stands in room B204.")
    drop = f"""() => {{
        const data = new DataTransfer();
        data.items.add(new File([{text}], "drossel.txt", {{ type: "text/plain" }}));
        for (const type of ["dragover", "drop"])
            document.body.dispatchEvent(new DragEvent(type, {{ dataTransfer: data, bubbles: true, cancelable: true }}));
    }}"""
    await page.get_by_role("heading", name="Ask your documents.").wait_for()
    # What takes the files is set up once the page has been painted.
    await page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
    await page.evaluate(drop)
    await expect(page.get_by_role("checkbox", name="drossel")).to_be_visible()
    await page.get_by_role("checkbox", name="Falke").check()
    await expect(page.locator(".left-panel")).to_contain_text("Answers come from 1 of")
    await ask(page, "How much does the Drossel barograph weigh?")
    await expect(page.locator(".answer")).not_to_contain_text("740")
    # The conversation keeps what it is limited to, says so, and lets it go by a click; a new one begins without.
    limit = page.get_by_role("button", name="No longer only from Falke weather station")
    await page.reload()
    await expect(page.locator(".limited")).to_have_text("Only from Falke weather station")
    await expect(limit).to_be_visible()
    await page.get_by_role("button", name="New conversation").click()
    await expect(limit).to_have_count(0)
    await page.go_back()
    await limit.click()
    await expect(limit).to_have_count(0)
    await ask(page, "How much does the Drossel barograph weigh?")
    await expect(page.locator(".answer").last).to_contain_text("740 grams")


async def test_files_are_asked_as_soon_as_they_have_arrived_and_replace_older_ones(page: Page, site: str) -> None:
    await page.goto(f"{site}/?workspace=shelf")
    heron = "# Heron anemometer\n\nThe Heron anemometer weighs 3 kilograms."
    texts = {"heron.md": heron, "crane.md": "# Crane barometer\n\nThe Crane barometer weighs 5 kilograms."}

    def send(files: dict[str, str]) -> Awaitable[None]:
        sent = [FilePayload(name=name, mimeType="text/markdown", buffer=text.encode()) for name, text in files.items()]
        return page.locator("#files").set_input_files(sent)

    await send(texts)
    await page.get_by_role("button", name="Ask these 2 files").click()
    await ask(page, "How much does the Heron anemometer weigh?")
    await expect(page.locator(".answer")).to_contain_text("3 kilograms")
    await expect(page.locator(".limited")).to_contain_text("Heron anemometer")
    await send({"heron-2.md": heron.replace("3", "4")})
    await expect(page.get_by_role("alert").filter(has_text="was in the library already")).to_be_visible()
    # The question stays open until somebody answers it.
    await page.reload()
    await page.get_by_role("button", name="Replace it").click()
    await expect(page.get_by_label("Documents", exact=True).locator(".entry")).to_have_count(2)
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator(".turn")).to_have_count(0)
    await ask(page, "How much does the Heron anemometer weigh?")
    await expect(page.locator(".answer")).to_contain_text("4 kilograms")
    await expect(page.locator(".limited")).to_have_count(0)
    await page.reload()
    await expect(page.locator(".answer")).to_contain_text("4 kilograms")
    await expect(page.get_by_role("button", name="Replace it")).to_have_count(0)
    await send({"crane.md": texts["crane.md"].replace("5", "6")})
    await expect(page.locator(".arrival")).to_contain_text("has replaced the file of this name")


async def test_the_lines_that_an_answer_quotes_are_boxed_on_their_page(page: Page, site: str) -> None:
    await page.goto(site)
    await page.get_by_role("button", name="Library").click()
    await page.locator("#files").set_input_files(MANUAL)
    await expect(page.get_by_role("checkbox", name="Operating Manual")).to_be_visible(timeout=30_000)
    await ask(page, "How far must the station stand from an obstacle?")
    marker = page.locator(".marker").first
    await marker.focus()
    await marker.click()
    await page.locator(".sheet:not(.loading)").wait_for()
    await expect(page.locator(".picture rect").first).to_be_in_viewport()
    quote = await page.locator(".quote").text_content() or ""
    number = int((await page.locator("figcaption").first.text_content() or "").removeprefix("Page "))
    shown: list[list[float]] = await page.evaluate("""() => {
        const picture = document.querySelector(".picture img").getBoundingClientRect();
        return [...document.querySelectorAll(".picture rect")].map((each) => {
            const box = each.getBoundingClientRect();
            const across = (x) => (x - picture.left) / picture.width, down = (y) => (y - picture.top) / picture.height;
            return [across(box.left), down(box.top), across(box.right), down(box.bottom)];
        });
    }""")
    with closing(pypdfium2.PdfDocument(MANUAL)) as pdf:
        sheet = pdf[number - 1]
        width, height = sheet.get_size()
        text = sheet.get_textpage()
        boxed = [
            text.get_text_bounded(
                left * width - 1, (1 - bottom) * height - 1, right * width + 1, (1 - top) * height + 1
            )
            for left, top, right, bottom in shown
        ]
    assert " ".join(" ".join(boxed).split()) == " ".join(quote.split())
    # Words are found on all pages; without them the quoted lines are shown again.
    search = page.get_by_label("Search in the document")
    lines = await page.locator(".picture rect").count()
    await search.fill("Station")
    await expect(page.locator(".find-words [role=status]")).to_contain_text(re.compile(r"\d+ of \d+"))
    await expect(page.locator(".picture rect")).to_have_count(1)
    await page.locator(".find-words summary").click()
    await page.locator(".find-words li button").last.click()
    await expect(page.locator("figcaption")).not_to_have_text(f"Page {number}")
    await expect(page.locator(".picture rect")).to_be_in_viewport()
    await page.get_by_role("button", name="Next place").press("Enter")  # where it is may still change
    await expect(page.locator(".find-words [role=status]")).to_have_text(re.compile(r"^1 of"))
    await search.fill("zyzzyva")
    await expect(page.locator(".find-words [role=status]")).to_have_text("not found")
    await search.press("Escape")
    await expect(page.locator("figcaption").first).to_have_text(f"Page {number}")
    await expect(page.locator(".picture rect")).to_have_count(lines)
    # In a document of the library, its pages are turned.
    await page.locator(".left").get_by_role("button", name="Operating Manual").click()
    await expect(page.get_by_role("spinbutton")).to_have_value("1")
    await search.fill("station")
    await page.locator(".find-words summary").click()
    await page.locator(".find-words li button").last.click()
    await expect(page.get_by_role("spinbutton")).not_to_have_value("1")
    await expect(page.locator(".picture rect")).to_have_count(1)
    await page.get_by_role("button", name="Previous page").click()
    await expect(page.locator(".picture rect")).to_have_count(0)


async def test_each_workspace_has_a_library_and_conversations_of_its_own(page: Page, site: str) -> None:
    async with httpx.AsyncClient(base_url=site, timeout=60) as client:
        files = {"files": ("moewe.md", MOEWE.encode())}
        added = await client.post("/api/documents", files=files, params={"workspace": "harbour"})
        assert added.is_success
    await page.goto(site)
    await ask(page, QUESTION)
    before = page.url
    await page.get_by_label("Workspace").select_option("harbour")
    await page.wait_for_url("**/?workspace=harbour")
    await expect(page.locator(".left-panel")).to_contain_text("No conversations yet.")
    await ask(page, "How long is the warranty of the Moewe?")
    await expect(page.locator(".answer")).to_contain_text("84 months")
    await expect(page.locator(".entry")).to_have_count(1)
    assert page.url.endswith("?workspace=harbour")
    await page.locator(".marker").first.click()
    await expect(page.locator(".evidence mark").first).to_contain_text("84 months")
    # Quoted tables and lists are tables and lists, with one marker a row at most.
    await ask(page, "What are the prices of the parts of the Moewe?")
    await expect(page.locator(".answer").last.locator("td")).to_have_text(["mast", "120 euros", "float", "35 euros"])
    await page.locator(".answer").last.locator(".marker").first.click()
    await expect(page.locator(".evidence :is(th, td) mark")).to_have_text(
        ["Part", "Price", "mast", "120 euros", "float", "35 euros"]
    )
    await ask(page, "How is the Moewe mounted?")
    await expect(page.locator(".answer").last.locator("ol > li")).to_have_count(3)
    assert not re.search(r"\||---|\d\. ", " ".join(await page.locator(".answer").all_inner_texts()))
    await page.reload()
    await expect(page.locator(".answer").first).to_contain_text("84 months")
    await page.goto(before)
    await expect(page.locator(".answer")).to_contain_text("36 months")


async def test_a_source_that_has_changed_or_is_gone_says_so(page: Page, site: str) -> None:
    async with httpx.AsyncClient(base_url=site, timeout=60, params={"workspace": "quay"}) as client:
        added = await client.post("/api/documents", files={"files": ("moewe.md", MOEWE.encode())})
        document_id = added.json()["documents"][0]["document_id"]
        await page.goto(f"{site}/?workspace=quay")
        await ask(page, "How long is the warranty of the Moewe?")
        await expect(page.locator(".caveat")).to_have_count(0)
        await expect(page.locator(".entry.current")).not_to_contain_text("changed")
        file = FilePayload(name="moewe.md", mimeType="text/markdown", buffer=MOEWE.replace("84", "12").encode())
        await page.get_by_role("button", name="Library").click()
        await page.locator("input[type=file]").set_input_files(file)
        await expect(page.locator(".caveat")).to_have_count(1)
        await page.get_by_role("button", name="Library").click()
        await expect(page.locator(".entry.current")).to_contain_text("a source has changed")
        await page.locator(".marker").first.click()
        await expect(page.locator(".evidence .where").last).to_contain_text("changed")
        await expect(page.locator(".evidence mark").first).to_contain_text("84 months")
        await page.get_by_role("button", name="Library").click()
        await page.get_by_label("Documents").get_by_role("button", name="Moewe").click()
        delete = page.get_by_role("button", name=re.compile("elete Moewe"))
        await delete.click()
        await delete.click()
        await expect(page.locator(".evidence")).to_have_count(0)
        await page.locator(".marker").first.click()
        await expect(page.locator(".evidence .where").last).to_contain_text("deleted")
        assert (await client.get(f"/api/documents/{document_id}")).status_code == 404
        await expect(page.locator(".evidence .quote")).to_contain_text("84 months")
        run_id = (await client.get("/api/runs")).json()["runs"][0]["run_id"]
        await page.goto(f"{site}/debug/runs/{run_id}?workspace=quay")
        await expect(page.locator(".summary")).to_contain_text("was deleted")


async def test_the_reference_of_the_api_sends_a_request(page: Page, site: str) -> None:
    await page.goto(f"{site}/docs")
    route = page.locator("details", has=page.locator("summary", has_text="GET /api/search"))
    await route.locator("summary").click()
    await route.get_by_label("question").fill("Who handles claims of the Falke?")
    await route.get_by_label("limit").fill("1")
    await route.get_by_role("button", name="Send").click()
    await expect(route.locator("output")).to_contain_text("200 OK")
    await expect(route.locator("output")).to_contain_text("Petra Lindqvist")
    chat = page.locator("details", has=page.locator("summary", has_text="POST /api/chat"))
    await chat.locator("summary").click()
    await chat.get_by_label("Body").fill(json.dumps({"question": QUESTION}))
    await chat.get_by_role("button", name="Send").click()
    await expect(chat.locator("output")).to_contain_text("event: done")
