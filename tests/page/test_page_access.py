"""Whether everybody can use the page: axe-core, the keyboard alone, small windows, both themes."""

from collections.abc import AsyncIterator, Mapping
from importlib.resources import files
from types import MappingProxyType

import pytest
from playwright.async_api import FilePayload, Page, expect

from app.api.pages import FILES
from tests.page.scripted import WAIT, Script, ask, citation, claim, document, done, event, ingestion, send

pytestmark = pytest.mark.asyncio(loop_scope="session")

AXE = files("axe_playwright_python").joinpath("axe.min.js")
LOOK = """async (part) => {
    const runOnly = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
    const found = await axe.run(part, { runOnly, resultTypes: ["violations"], preload: false, selectors: false });
    // Reports and the reference are documents, and keep to the least.
    const finger = matchMedia("(pointer: coarse)").matches && document.querySelector("#app");
    const least = finger ? 31.9 : 23.9;
    const stands_in_a_sentence = (each) => getComputedStyle(each).display.startsWith("inline")
        && [...each.parentNode.childNodes].some((near) => near.nodeType === Node.TEXT_NODE && near.data.trim());
    const small = [...document.querySelectorAll("button, select, input, summary, textarea" + (finger ? ", a[href]" : ""))]
        .filter((each) => each.checkVisibility({ visibilityProperty: true }) && !stands_in_a_sentence(each))
        .map((each) => [each, (each.closest(".choice, .check") ?? each).getBoundingClientRect()])
        .filter(([each, box]) => box.width > 0 && (box.width < least || box.height < least))
        .map(([each, box]) => `${each.outerHTML.slice(0, 80)}: ${box.width} x ${box.height}`);
    return [...found.violations.flatMap((each) => each.nodes.map((node) => `${each.id}: ${node.html.slice(0, 200)}`)), ...small];
}"""
# What stands in a wide window stands in a narrow one, in the same colours: each is looked at once.
SIZES = [(1280, "light"), (390, "dark")]

CHECKED = {"status": "unsupported", "claims": [claim("It is.", verdict="unsupported", reason="No.", score=0.2)]}
TEXT = (
    "## Result\n\nIt is [1].\n\n| a | b |\n|---|---|\n| c | d [2] |\n\n```python\ncode = 1\n```\n\n$$x^2$$\n\n> quote"
)
BLOCKS = [
    {"kind": "heading", "start": 0, "end": 9, "text": "# Heading"},
    {"kind": "paragraph", "start": 11, "end": 21, "text": "Passage 1."},
    *({"kind": "other", "start": 30 + place, "end": 30, "text": text} for place, text in enumerate(TEXT.split("\n\n"))),
]
CHOICES = [{"label": each, "document_id": each} for each in ("A", "B")]
DOCUMENTS = [document("d"), document("e", title="A manual", source="m.pdf", media_type="application/pdf", pages=3)]


async def visit_states(page: Page, script: Script) -> AsyncIterator[str]:
    """Go from one state of the page to the next, naming each."""
    script.blocks = BLOCKS
    boxes = [{"page": 4, "x": 10, "y": 10, "width": 50, "height": 3, "confidence": 0.87}]
    sources = [citation(1, start=11, end=21), citation(2, page=4, boxes=boxes)]
    begun = [event("thinking", step="retrieve"), event("sources", citations=sources)]
    correction = event("correction", reason="One was withdrawn.", answer=TEXT, citations=sources)
    failed = event("error", "1-1", code="x", message="The database did not answer.", retryable=True)
    address = await script(
        [*begun, event("content", token="It is"), WAIT, done("It is", [], stopped=True)],
        [
            *begun,
            event("content", token="Was."),
            correction,
            done(TEXT, sources, verification=CHECKED, warnings=["So."]),
        ],
        [done("The documents do not answer this.", [], outcome="abstained", abstained=True)],
        [failed],
        [
            *begun,
            event("tool_call", call_id="1", name="search", arguments={"queries": ["notice period"]}),
            WAIT,
            event("tool_result", call_id="1", name="search", text="", sources=[1, 2]),
            done("This may be it:\n\n1. A manual [1]\n\n   **Passage** 1.", sources, outcome="showed_passages"),
        ],
        [
            done(
                "Which?\n1. A\n2. B",
                [],
                outcome="asked_back",
                outcome_reasons=[{"code": "ambiguous", "choices": CHOICES}],
            )
        ],
    )
    await page.goto(address)
    await expect(page.locator(".drop-area")).to_contain_text("The library is empty.")
    yield "empty library"
    script.documents = DOCUMENTS
    script.turns = []
    await page.reload()
    await page.locator(".starters").wait_for()
    yield "first visit"
    await page.get_by_role("button", name="Mode").click()
    await expect(page.locator("#modes button").first).to_contain_text("About $0.0042 a question, as measured.")
    await expect(page.locator("#modes button").nth(2)).to_contain_text("At most $0.05 a question.")
    yield "choosing a mode"
    await page.keyboard.press("Escape")
    await expect(page.locator("#modes")).to_be_hidden()
    await page.get_by_role("button", name="Mode").click()
    await page.get_by_role("button", name="Make an assistant").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    yield "making an assistant"
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_be_hidden()
    await send(page, "q")
    await expect(page.locator(".answer")).to_have_text("It is")
    yield "streaming"
    await page.get_by_role("button", name="Stop").click()
    await page.locator(".turn.over").wait_for()
    await ask(page, "q")
    await page.locator(".turn").last.get_by_role("button", name="More").click()
    await page.get_by_role("link", name="Copy a link").wait_for()
    yield "more to do with an answer"
    await page.keyboard.press("Escape")
    await page.locator(".facts").last.evaluate("(details) => { details.open = true; }")
    await page.locator(".correction summary").click()
    await page.get_by_role("button", name="Not helpful").last.click()
    await page.locator(".reasons").wait_for()
    yield "stopped, corrected, asked for a reason"
    await page.locator(".marker").first.focus()
    await page.locator("#tip").wait_for()
    yield "tip"
    await page.keyboard.press("Enter")
    await page.locator(".evidence mark").wait_for()
    yield "evidence in a text"
    await page.keyboard.press("]")
    await page.locator(".evidence rect").wait_for(state="attached")
    await expect(page.locator(".evidence")).to_contain_text("87 % sure")
    script.found = [
        {"start": at, "text": "So it is.", "page": number, "boxes": boxes} for at, number in ((1, 4), (2, 5))
    ]
    await page.get_by_label("Search in the document").fill("it")
    await page.locator(".find-words summary").click()
    yield "words found on a page"
    await page.get_by_label("Search in the document").press("Escape")
    await page.keyboard.press("Escape")
    await expect(page.locator(".marker").last).to_be_focused()
    await ask(page, "q")
    await ask(page, "q")
    yield "abstained, failed"
    await send(page, "q")
    await page.locator(".work li").wait_for()
    yield "agent at work"
    script.go_on()
    await page.locator(".answer.showed_passages").wait_for()
    await page.locator(".work summary").click()
    await ask(page, "q")
    await page.locator(".answer.asked_back").wait_for()
    await page.context.set_offline(True)
    await page.locator(".note").filter(has_text="You are offline").wait_for()
    yield "passages shown, asked back, offline"
    await page.context.set_offline(False)
    progress = {"stage": "embedding", "done": 3, "total": 9}
    script.ingestions = [ingestion("i", progress=progress), ingestion("j", state="failed", report={"error": "Empty."})]
    await page.reload()
    await page.get_by_role("button", name="Library").click()
    await page.get_by_role("checkbox").first.check()
    await page.locator(".arrival").first.wait_for()
    yield "library"
    await page.set_viewport_size({"width": 390, "height": 800})
    await page.locator(".bar button").click()
    await page.get_by_role("button", name="Library").click()
    await page.locator(".entry").first.wait_for()
    await page.locator(".entry").first.get_by_role("button", name="More").click()
    await page.get_by_role("button", name="Rename").first.click()
    yield "conversations, one renamed"
    await page.route("**/api/library**", lambda route: route.fulfill(status=401, json={}))
    await page.reload()
    await page.get_by_label("Your key").wait_for()
    yield "signing in"


async def look(page: Page, part: str = "html") -> dict[str, list[str]]:
    """What keeps somebody out of what is shown, by width and theme. Of a page that was looked at already, the part that
    is new is enough: looking takes axe a second for 500 elements."""
    found: dict[str, list[str]] = {}
    if not await page.evaluate("() => Boolean(window.axe)"):
        await page.evaluate(AXE.read_text())
    devtools = await page.context.new_cdp_session(page)
    for width, theme in SIZES:
        await page.set_viewport_size({"width": width, "height": 800})
        # A telephone is used by fingers, which need more room.
        await devtools.send("Emulation.setTouchEmulationEnabled", {"enabled": width < 500})
        await page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        violations = await page.evaluate(LOOK, part)
        if await page.evaluate("() => document.documentElement.scrollWidth > innerWidth"):
            violations.append("wider than the window")
        if violations:
            found[f"{width}, {theme}"] = violations
    await page.set_viewport_size({"width": 1280, "height": 900})
    await devtools.send("Emulation.setTouchEmulationEnabled", {"enabled": False})
    await devtools.detach()
    return found


async def look_at(
    page: Page, states: AsyncIterator[str], parts: Mapping[str, str] = MappingProxyType({})
) -> dict[str, dict[str, list[str]]]:
    """What keeps somebody out of which state, or out of the part that is new in it."""
    return {state: found async for state in states if (found := await look(page, parts.get(state, "html")))}


async def test_nothing_keeps_anybody_out(page: Page, script: Script) -> None:
    assert await look_at(page, visit_states(page, script)) == {}


BESIDE = """([opened, opener]) => {
    const [box, by] = [opened, opener].map((selector) => document.querySelector(selector).getBoundingClientRect());
    const inside = box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight;
    const [x, y] = ["left right", "top bottom"].map((names) => {
        const [start, end] = names.split(" ");
        return Math.max(0, box[start] - by[end], by[start] - box[end]);
    });
    return { inside, apart: Math.round(Math.hypot(x, y)), over: Boolean(!x && !y && opener !== "body") };
}"""
"""Whether something lies in the window, how many pixels it is apart from what opened it, and whether it covers that."""


@pytest.mark.parametrize("width", [390, 1280, 1920])
async def test_what_opens_stands_beside_what_opened_it(page: Page, script: Script, width: int) -> None:
    script.documents, script.blocks = DOCUMENTS, BLOCKS
    await page.set_viewport_size({"width": width, "height": 800})
    # Newer browsers take no button for the anchor of what it opens unless the style says so.
    newer = FILES["ask.html"].content.decode().replace("<style>", "<style>:where(*) { position-anchor: none; }\n")
    await page.route("**/", lambda route: route.fulfill(body=newer, content_type="text/html"))
    await page.goto(await script([done(f"One [1].\n\n{'More. ' * 400}\n\nTwo [2].", [citation(1), citation(2)])]))
    near = {"inside": True, "over": False}

    async def check(opened: str, opener: str) -> None:
        await page.locator(opened).wait_for()
        found = await page.evaluate(BESIDE, [opened, opener])
        assert found == {**near, "apart": found["apart"]}, opened
        assert found["apart"] <= 12, opened

    for asked in (False, True):
        if asked:
            await ask(page, "q")
        await page.locator("[popovertarget=modes]").click()
        await expect(page.locator("#modes")).to_be_visible()
        await check("#modes", "[popovertarget=modes]")
        await page.keyboard.press("Escape")
    for marker in ("1", "2"):
        await page.locator(f".marker[data-marker='{marker}']").focus()
        await expect(page.locator("#tip")).to_contain_text(f"Document {marker}")
        await check("#tip", f".marker[data-marker='{marker}']")
    await page.locator("[popovertarget=modes]").click()
    await page.get_by_role("button", name="Make an assistant").click()
    await page.get_by_role("dialog").wait_for()
    assert await page.evaluate(BESIDE, ["dialog", "body"]) == {**near, "apart": 0}


async def test_a_telephone_adds_files_and_begins_anew(page: Page, script: Script) -> None:
    script.documents, script.refused = DOCUMENTS, "This file is empty."
    await page.set_viewport_size({"width": 390, "height": 800})
    await page.goto(await script([done("It is.", [])]))
    async with page.expect_file_chooser() as chooser:
        await page.locator(".composer").get_by_role("button", name="Add files").click()
    await (await chooser.value).set_files(FilePayload(name="a.md", mimeType="text/markdown", buffer=b"a"))
    # What becomes of them comes into sight.
    await expect(page.locator(".arrival")).to_contain_text("This file is empty.")
    await page.locator(".left-top").get_by_role("button", name="Close").click()
    await ask(page, "q")
    await page.locator(".bar").get_by_role("button", name="New conversation").click()
    await expect(page.locator(".welcome")).to_be_visible()


async def test_the_keyboard_is_enough(page: Page, script: Script) -> None:
    sources = [citation(1, start=11, end=21), citation(2, start=11, end=21)]
    script.documents, script.blocks = DOCUMENTS, BLOCKS
    await page.goto(await script([done("One [1], two [2].", sources)]))
    await expect(page.get_by_label("Question", exact=True)).to_be_focused()
    # What a question takes comes into sight with its first letter, or with the focus.
    mode, send = page.locator("[popovertarget=modes]"), page.locator("#send")
    await page.locator(".composer").get_by_role("button", name="Add files").wait_for()
    in_sight = "(each) => each.filter((e) => e.checkVisibility({ opacityProperty: true })).length"
    assert await page.locator("#app :is(a, button, textarea, select, summary)").evaluate_all(in_sight) <= 6
    for key, shown in (("Tab", "1"), ("Shift+Tab", "0"), ("q", "1")):
        await page.keyboard.press(key)
        await expect(mode).to_have_css("opacity", shown)
        await expect(send).to_have_css("opacity", shown)
    await page.keyboard.press("Enter")
    await page.locator(".turn.over").wait_for()
    # A bracket in the question is one; elsewhere it leads to the next citation.
    await page.keyboard.type("[")
    await expect(page.get_by_label("Question", exact=True)).to_have_value("[")
    await page.locator(".marker").first.focus()
    await page.keyboard.press("Enter")
    for key, number in (("]", "2"), ("]", "1"), ("[", "2")):
        await page.keyboard.press(key)
        await expect(page.locator(".evidence .number")).to_have_text(number)
        await expect(page.locator(".evidence h2")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.locator(".marker").last).to_be_focused()
    # Who writes means the question, also from a button.
    await page.keyboard.type("q")
    await expect(page.get_by_label("Question", exact=True)).to_have_value("[q")
    # In a narrow window the left pane is a sheet, and gives the focus back.
    await page.set_viewport_size({"width": 390, "height": 800})
    await page.get_by_role("button", name="Conversations").press("Enter")
    await expect(page.get_by_role("button", name="Close")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("button", name="Conversations")).to_be_focused()
    await page.set_viewport_size({"width": 1280, "height": 800})
    # Every control can be reached, in the order in which it stands.
    controls = "document.querySelectorAll('#app :is(a, button, input:not([hidden]), select, textarea, summary)')"
    shown = await page.evaluate(
        f"() => [...{controls}].filter((e) => e.checkVisibility() && e.tabIndex >= 0 && !e.disabled).length"
    )
    await page.locator(".left h1").evaluate("(heading) => { heading.tabIndex = -1; heading.focus(); }")
    reached = set()
    for _ in range(shown + 10):
        await page.keyboard.press("Tab")
        reached.add(await page.evaluate(f"() => [...{controls}].indexOf(document.activeElement)"))
    assert len(reached - {-1}) >= shown
