"""The library on the page: files on their way, however long they take, and what becomes of them."""

import re
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.page.scripted import Script, ask, citation, document, done, ingestion, turn

pytestmark = pytest.mark.asyncio(loop_scope="session")

FILE: Any = {"name": "report.pdf", "mimeType": "application/pdf", "buffer": b"%PDF"}


def reading(done: int, stage: str = "reading") -> dict[str, Any]:
    return ingestion("i", source="report.pdf", progress={"stage": stage, "done": done, "total": 83})


async def test_progress_is_shown_and_survives_a_reload(page: Page, script: Script) -> None:
    await page.clock.install()
    await page.goto(await script())
    await page.get_by_role("button", name="Library").click()
    await expect(page.locator(".left-panel")).to_contain_text("No documents yet.")
    script.ingestions = [reading(3)]
    await page.locator("#files").set_input_files(FILE)
    arrival = page.locator(".arrival")
    await expect(arrival).to_contain_text("report.pdf")
    await expect(arrival).to_contain_text("reading 3 of 83")
    await expect(arrival).not_to_contain_text("left")
    await page.clock.fast_forward(60_000)
    script.ingestions = [reading(40)]
    await expect(arrival).to_contain_text("reading 40 of 83")
    await expect(arrival).to_have_text(re.compile(r"about \d minutes left"))
    await page.reload()
    await expect(page.get_by_role("button", name="Library")).to_contain_text("1 arriving")
    await page.get_by_role("button", name="Library").click()
    await expect(arrival).to_contain_text("reading 40 of 83")
    script.ingestions = [reading(50, "embedding")]
    await expect(arrival).to_contain_text("indexing passages 50 of 83")
    script.documents = [document("d", title="The report", source="report.pdf", pages=83)]
    script.ingestions = [ingestion("i", source="report.pdf", state="done")]
    await expect(page.locator(".entry")).to_contain_text("The report")
    await expect(page.locator(".entry")).to_contain_text("PDF · 83 pages")
    await expect(arrival).to_have_count(0)
    await expect(page.get_by_role("button", name="Library")).to_contain_text("1")
    # What is open follows its file, though the list does not go as far as it.
    await page.locator(".entry .plain-button").click()
    script.documents = [document("other")]
    script.ingestions = [ingestion("n", source="report.pdf", state="done", report={"document_id": "d"})]
    await page.locator("#files").set_input_files(FILE)
    await expect(page.locator(".evidence")).to_contain_text("Further down")
    await page.get_by_role("button", name="Close").click()
    # Of many files, those that are being read are shown, and how many wait.
    queued = [ingestion(f"q{number}", source=f"{number}.md", state="queued") for number in range(40)]
    script.ingestions = [*queued, reading(7)]
    await page.locator("#files").set_input_files(FILE)
    await expect(page.locator(".arriving")).to_contain_text("41 files left")
    await expect(arrival.first).to_contain_text("reading 7 of 83")
    await expect(page.locator(".arriving")).to_contain_text("and 36 more")


async def test_what_cannot_be_added_says_why_and_the_rest_goes_on(page: Page, script: Script) -> None:
    script.refused = "This file is empty."
    await page.goto(await script())
    await page.get_by_role("button", name="Library").click()
    files: list[Any] = [{**FILE, "name": f"{number}.pdf"} for number in range(3)]
    await page.locator("#files").set_input_files(files)
    await expect(page.locator(".arrival.failed")).to_have_count(3)
    await expect(page.locator(".arrival.failed").first).to_contain_text("This file is empty.")
    await page.locator(".arrival.failed").first.get_by_role("button", name="Close").click()
    await expect(page.locator(".arrival.failed")).to_have_count(2)
    # What could not be read is dismissed too.
    report = {"error": "This PDF is damaged."}
    script.refused, script.ingestions = "", [ingestion("i", source="d.pdf", state="failed", report=report)]
    await page.locator("#files").set_input_files(FILE)
    await expect(page.get_by_text("This file is empty.")).to_have_count(0)
    await expect(page.locator(".arrival.failed")).to_contain_text("This PDF is damaged.")
    await page.locator(".arrival.failed").get_by_role("button", name="Close").click()
    await expect(page.locator(".arrival")).to_have_count(0)


async def test_a_document_is_looked_at_chosen_and_deleted(page: Page, script: Script) -> None:
    unread = [{"kind": "chart", "number": 2, "where": "on slide 3"}, {"kind": "comment", "number": 1, "where": ""}]
    script.documents = [
        document("d", source="https://docs.example.org/guide/", unread=unread),
        document("e", title="A manual", source="javascript:alert(1)//m.pdf", media_type="application/pdf", pages=3),
    ]
    columns = 12
    rows = [f"| {' | '.join(words)} |" for words in (["Zustellungstag"] * columns, ["---"] * columns, ["c"] * columns)]
    script.blocks = [
        {"kind": "paragraph", "start": 0, "end": 5, "text": "Words."},
        {"kind": "table", "start": 7, "end": 99, "text": "\n".join(rows)},
    ]
    script.ingestions = [ingestion("i", state="done")]
    await page.goto(await script())
    await page.get_by_role("button", name="Library").click()
    await page.locator(".left").get_by_role("button", name="A document").first.click()
    await expect(page.locator(".evidence .block").first).to_have_text("Words.")
    heads = page.locator(".evidence th")
    await expect(heads).to_have_count(columns)
    heights = await heads.evaluate_all("(cells) => cells.map((cell) => cell.getBoundingClientRect().height)")
    assert max(heights) < 40, "a word takes one line"
    await expect(page.locator(".evidence")).to_contain_text("Not read: chart × 2 (on slide 3), comment × 1")
    origin = page.locator(".evidence .where a[target]")
    await expect(origin).to_have_attribute("href", "https://docs.example.org/guide/")
    await page.locator(".left").get_by_role("button", name="A manual").first.click()
    await page.get_by_role("button", name="Next page").click()
    await expect(page.locator(".evidence img")).to_have_attribute("alt", "Page 2 of A manual")
    await page.get_by_role("spinbutton").fill("9")
    await page.keyboard.press("Enter")
    await expect(page.locator(".evidence img")).to_have_attribute("alt", "Page 3 of A manual")
    before = await page.locator(".picture").evaluate("(picture) => picture.clientWidth")
    await page.get_by_role("button", name="Enlarge").click()
    await expect(page.locator(".evidence img")).to_have_attribute("src", re.compile("dpi=220"))
    assert await page.locator(".picture").evaluate("(picture) => picture.clientWidth") > 1.9 * before
    await expect(origin).to_have_count(0)
    await page.locator(".left").get_by_role("button", name="A document").first.click()
    await page.get_by_role("button", name="Delete A document").click()
    await page.get_by_role("button", name="Really delete A document").click()
    await expect(page.locator(".entry")).to_have_count(1)
    # Its file, which was read within the hour, is not listed as one that arrives.
    await expect(page.locator(".arrival")).to_have_count(0)


async def test_chosen_documents_have_names_however_far_down_they_stand(page: Page, script: Script) -> None:
    script.documents = [document(f"d{number}") for number in range(100)]
    far = [f"far{number}" for number in range(5)]
    script.turns = [turn("r-1", "Old?", done("It is.", []), document_ids=far)]
    address = await script([done("Yes.", [])])

    async def count(route: Route) -> None:
        found = await (await route.fetch()).json()
        await route.fulfill(json={**found, "all": 213, "total": 213, "next": 100})

    await page.route("**/api/library*", count)
    await page.route(
        "**/api/documents/far*",
        lambda route: route.fulfill(json=document(route.request.url[-4:], title=route.request.url[-4:].title())),
    )
    await page.goto(f"{address}/t/t-1")
    await expect(page.locator(".limited")).to_have_text("Only from Far0, Far1, Far2, 2 documents")
    await expect(page.locator(".composer .chip")).to_have_text(
        [*(f"Far{number} ✕" for number in range(3)), "+ 2 documents ✕"]
    )
    await page.get_by_role("button", name="No longer only from + 2 documents").click()
    await ask(page, "New?")
    assert script.bodies[0]["document_ids"] == far[:3]


async def test_what_goes_on_elsewhere_is_listed_until_it_ends(page: Page, script: Script) -> None:
    script.documents, script.turns = [document("d", to_embed=114)], []
    running = {"title": "Asked", "updated_at": "2026-01-01T00:00:00+00:00", "turns": 1, "running": "r-1"}
    listed = [{"thread_id": "t-1", **running}]
    await page.route("**/api/threads?*", lambda route: route.fulfill(json={"threads": listed, "next": None}))
    await page.clock.install()
    await page.goto(await script())
    await expect(page.locator(".entry")).to_contain_text("answering")
    script.documents, listed[0]["running"] = [document("d")], None
    await page.clock.run_for(6000)
    await expect(page.locator(".entry")).not_to_contain_text("answering")
    await page.get_by_role("button", name="Library").click()
    await expect(page.locator(".entry")).not_to_contain_text("still to be indexed")


async def test_a_limit_to_a_document_that_was_deleted_is_said_in_words(page: Page, script: Script) -> None:
    script.documents = [document("kept", title="Rules")]
    cited = citation(1, document_id="gone", title="Old rules")
    script.turns = [turn("r-1", "Old?", done("It is [1].", [cited]), document_ids=["kept", "gone"])]
    missing = {"error": {"code": "unknown_document", "message": "There is no 'gone'.", "retryable": False}}
    await page.route("**/api/documents/gone", lambda route: route.fulfill(status=404, json=missing))
    await page.goto(f"{await script((404, missing), [done('Yes.', [])])}/t/t-1")
    await expect(page.locator(".limited")).to_have_text("Only from Rules, Old rules (deleted)")
    await expect(page.locator(".composer .chip")).to_have_text(["Rules ✕", "Old rules (deleted) ✕"])
    await ask(page, "New?")
    await expect(page.locator(".turn .note")).to_contain_text(
        "A document to which this question is limited was deleted."
    )
    await page.get_by_role("button", name="Ask the others").click()
    await expect(page.locator(".answer").last).to_have_text("Yes.")
    assert [body["document_ids"] for body in script.bodies] == [["kept", "gone"], ["kept"]]
    await expect(page.locator(".composer .chip")).to_have_text(["Rules ✕"])
