"""How the page shows a stream, whatever the stream does. The service's side is scripted."""

import asyncio
import json
import re
from contextlib import closing
from typing import Any

import pypdfium2
import pytest
from playwright.async_api import Page, expect

from tests.page.scripted import WAIT, Script, ask, citation, claim, document, done, event, ingestion, send, turn

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTILE = (
    '<img src=x onerror="window.hurt = true"><script>window.hurt = true</script>\u202etxt.exe\u2066\u200b '
    "![i](https://evil.example/i.png) [go](javascript:window.hurt=1) <https://evil.example> <b onclick=alert(1)>"
)


async def test_a_stream_cut_anywhere_reads_the_same(page: Page, script: Script) -> None:
    answer = "Größe – 25 días [1].\n\n日本 😀 **bold** `a[1]`"
    head = ": a comment\r\n\r\n" + 'retry: 10\nevent: sources\rdata: {\ndata:"citations": []}\n\n'
    data = (
        head.encode()
        + event("content", token=answer)
        + event("citation", citation=citation(1))
        + done(answer, [citation(1)])
    )
    await page.goto(await script([bytes([byte]) for byte in data]))
    await ask(page, "q")
    await expect(page.locator(".answer p").first).to_have_text("Größe – 25 días 1.")
    await expect(page.locator(".answer strong")).to_have_text("bold")
    await expect(page.locator(".answer code")).to_have_text("a[1]")
    await expect(page.locator(".turn .note")).to_have_count(0)
    # Wherever text is cut, the parser finds the same events.
    text = (
        ": x\r\nevent: a\r\ndata: 1\r\ndata:2\r\n\r\nevent: b\rdata: 3\r\rid: 7\ndata: 4\n\n\n\nevent: c\n\ndata: 5\n"
    )
    parsed = await page.evaluate(
        """async (text) => {
            const { EventParser } = (await import("/web/shared.js")).$lib_events_js;
            const parse = (...pieces) => {
                const parser = new EventParser();
                return JSON.stringify(pieces.flatMap((piece) => [...parser.feed(piece)]));
            };
            const cuts = [...text].map((_, at) => parse(text.slice(0, at), text.slice(at)));
            return [...new Set([...cuts, parse(...text)])];
        }""",
        text,
    )
    assert [json.loads(events) for events in parsed] == [
        [
            {"type": "a", "data": "1\n2", "id": ""},
            {"type": "b", "data": "3", "id": ""},
            {"type": "message", "data": "4", "id": "7"},
        ]
    ]


async def test_what_goes_wrong_is_said_with_what_to_do(page: Page, script: Script) -> None:
    failed = event("error", "1-2", code="database_unavailable", message="The database did not answer.", retryable=True)
    body = {"error": {"code": "question_error", "message": "The question is too long.", "retryable": False}}
    await page.goto(await script([event("thinking", step="route"), failed], (422, body), (502, {})))
    note = page.locator(".turn").last.locator(".note.bad")
    for said in ("The database did not answer.", "The question is too long.", "status 502"):
        await ask(page, "q")
        await expect(note).to_contain_text(said)
    await expect(page.locator(".turn").first.get_by_role("button", name="Try again")).to_be_visible()
    await page.route("**/api/chat", lambda route: route.abort())
    await ask(page, "q")
    await expect(note).to_contain_text("cannot be reached")


async def test_a_damaged_conversation_is_left_for_a_new_one(page: Page, script: Script) -> None:
    failed = event("error", code="damaged_state", message="A saved state is damaged.", retryable=False)
    script.turns = [turn("r-0", "before", failed)]
    await page.goto(f"{await script([done('36 months.', [])])}/t/t-0")
    await expect(page.locator(".turn .note.bad")).to_contain_text("A saved state is damaged.")
    # Here every conversation has the same turns; the new one has none.
    script.turns = []
    await page.get_by_role("button", name="Ask in a new conversation").click()
    await expect(page.locator(".answer")).to_have_text(["36 months."])
    assert [(body["question"], body["thread_id"]) for body in script.bodies] == [("before", None)]


async def test_what_the_agent_looks_up_is_shown_while_it_works_and_folded_then(page: Page, script: Script) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    await page.goto(
        await script(
            [
                event("thinking", step="work"),
                event("tool_call", call_id="1", name="search", arguments={"queries": ["notice period", hostile]}),
                event("tool_call", call_id="2", name="read", arguments={"document": "Handbook", "section": "Leave"}),
                event("tool_result", call_id="1", name="search", text="", sources=[1, 2, 3]),
                event("tool_call", call_id="3", name="calculate", arguments={"sql": "select 150 / 12.0 as days"}),
                event("tool_result", call_id="3", name="calculate", text="days\n---\n12.5", sources=[]),
                WAIT,
                event("tool_result", call_id="2", name="read", text="The document has no such section.", sources=[]),
                event("sources", citations=[citation(1)]),
                event("content", token="Six weeks [1]."),
                done("Six weeks [1].", [citation(1)]),
            ]
        )
    )
    await send(page, "q")
    work = page.locator(".work")
    await expect(work.locator("li")).to_have_count(3)
    await expect(work.locator("li").last).to_have_text(re.compile(r"^\s*Compute\s+days: 12\.5\s*$"))
    await expect(work.locator("li").first).to_contain_text(f"“notice period”, “{hostile}”")
    await expect(work.locator("li").first).to_contain_text("3 sources")
    await expect(work.locator("li").first).to_be_visible()
    script.go_on()
    await expect(page.locator(".answer")).to_have_text("Six weeks 1.")
    await expect(work.locator("li").last).to_be_hidden()
    await expect(work.locator("li").nth(1)).to_contain_text("no such section")


async def test_the_end_of_a_long_answer_is_a_click_away(page: Page, script: Script) -> None:
    await page.goto(await script([event("content", token="And so on.\n\n" * 80), WAIT, done("So.", [])]))
    await send(page, "q")
    end = page.get_by_role("button", name="To the end of the answer")
    await end.click()
    await expect(page.locator(".answer > :last-child")).to_be_in_viewport()
    await expect(end).to_have_count(0)
    script.go_on()
    await page.locator(".turn.over").wait_for()


async def test_a_correction_is_one_closed_line_with_the_difference_behind_it(page: Page, script: Script) -> None:
    kept = "It is 25 [1].\n\n| a | b |\n|---|---|\n| c | 1 |"
    before = kept.replace("25 [1].", "25 [1]. It is 30 [1].") + "\n| d | 2 |\n\n$$x^2$$\n\n1. Stays.\n2. **Goes.**"
    after = f"{kept}\n\n1. Stays."
    checked = [
        claim(text, verdict="unsupported", reason="No.", score=0.2) for text in ("It is 30 [1].", "2. **Goes.**")
    ]
    withdrawn = [{"code": "withdrawn", "statements": ["It is 30.", "d | 2", "$$x^2$$", "Goes."]}]
    streamed = [
        event("sources", citations=[citation(1)]),
        event("content", token=before),
        event("verification", status="unsupported", claims=checked),
        event("correction", reason="2 of 3 withdrawn.", answer=after, citations=[citation(1)]),
    ]
    how = {
        "outcome": "answered_with_caveat",
        "confidence": 0.7,
        "outcome_reasons": withdrawn,
        "warnings": ["2 of 3 withdrawn."],
    }
    end = done(after, [citation(1)], verification={"status": "reconciled", "claims": [*checked, claim("c")]}, **how)
    script.turns = [turn("r-1", "q", end, corrections=[{"reason": "2 of 3 withdrawn.", "withdrawn": before}])]
    await page.goto(await script([*streamed, end]))
    await ask(page, "q")
    for _ in range(2):
        await page.locator(".turn.over").wait_for()
        correction = page.locator(".correction")
        await expect(correction).to_have_text("4 of 3 statements withdrawn")
        box, answer = await correction.bounding_box(), await page.locator(".answer").first.bounding_box()
        assert box
        assert answer
        assert box["y"] >= answer["y"] + answer["height"]
        await expect(page.locator(".turn .note")).to_have_count(0)
        await correction.locator("summary").click()
        await expect(correction.locator("del math")).to_have_count(1)
        gone = correction.locator("del:not(.formula *)")
        await expect(gone).to_have_text(["It is 30 [1].", "d", "2", "Goes."])
        await expect(correction.locator("tr")).to_have_count(3)
        await page.goto(f"{script.address}/t/t-1")


async def test_a_correction_without_figures_says_why(page: Page, script: Script) -> None:
    wrong = claim("It is 30.", verdict="unsupported", reason="It says 25.", score=0.2)
    streamed = [
        event("content", token="It is 30 [1]."),
        event("verification", status="unsupported", claims=[wrong]),
        event("correction", reason="1 of 1 statement rewritten.", answer="It is 25 [1].", citations=[citation(1)]),
    ]
    how = {"confidence": 0.7, "outcome": "answered_with_caveat"}
    await page.goto(await script([*streamed, done("It is 25 [1].", [citation(1)], **how)]))
    await ask(page, "q")
    await page.get_by_text("This answer was corrected.").click()
    await expect(page.locator(".correction")).to_contain_text("1 of 1 statement rewritten.")
    await expect(page.locator("del")).to_have_text("It is 30 [1].")
    await expect(page.locator(".answer").first).to_have_text("It is 25 1.")
    await expect(page.locator(".claims")).to_contain_text("Not supported: “It is 30.” It says 25.")
    await expect(page.locator(".facts summary")).to_contain_text("0 of 1 statement")
    await expect(page.locator(".caveat")).to_be_visible()


async def test_a_marker_opens_its_own_lines(page: Page, script: Script) -> None:
    steps = "1. It is **blue**.\n2. It is 😀 `round`."
    # What Markdown leaves out of a link cannot be measured: the raw text is shown.
    link = '[A page](a.md "On weight") says it is heavy.'
    script.blocks = [
        {"kind": "steps", "start": 0, "end": len(steps), "text": steps},
        {"kind": "paragraph", "start": 50, "end": 50 + len(link), "text": link},
    ]
    passages = [
        {"page": None, "boxes": [], "heading_path": [heading], "text": text, "start": start, "end": start + len(text)}
        for heading, text, start in (("Colour", steps[3:18], 3), ("Shape", steps[22:], 22))
    ]
    whole = citation(1, start=0, end=len(steps), text=steps, passages=passages)
    weight = citation(2, start=65, end=50 + len(link), text="heavy.")
    answer = "Blue [1].\n\n| a | b |\n|---|---|\n| x | round [1] |\n\nHeavy [2]."
    await page.goto(await script([done(answer, [whole, weight])], [done("Blue [1].", [whole])]))
    await ask(page, "q")
    await expect(page.locator(".chip").first).to_contain_text("Colour, Shape")
    marks = page.locator(".evidence mark")
    await page.locator(".marker").nth(1).click()
    await expect(page.locator(".evidence li")).to_have_text(["It is blue.", "It is 😀 round."])
    await expect(marks).to_have_text(["It is 😀 ", "round", "."])
    await expect(page.locator(".tools")).to_contain_text("2 of 3")
    await page.keyboard.press("[")
    await expect(marks).to_have_text(["It is ", "blue", "."])
    await page.keyboard.press("Escape")
    await expect(page.locator(".marker").first).to_be_focused()
    await page.locator(".chip").first.click()
    await expect(marks).to_have_text(["It is ", "blue", ".", "It is 😀 ", "round", "."])
    await page.locator(".marker").last.click()
    await expect(marks).to_have_text(["heavy."])
    await expect(page.locator(".evidence .plain")).to_have_text(link)
    # The evidence is that of the answer that is read: with a new question it goes.
    await ask(page, "q")
    await expect(page.locator(".page.with-evidence")).to_have_count(0)
    await expect(page.get_by_label("Question", exact=True)).to_be_focused()
    await page.locator(".marker").last.click()
    await expect(marks).to_have_text(["It is ", "blue", "."])
    await page.locator(".marker").nth(2).click()
    await expect(marks).to_have_text(["heavy."])
    await page.go_back()
    await expect(page.locator(".evidence")).to_have_count(0)
    await expect(page.locator(".turn")).to_have_count(2)


async def test_the_cells_that_are_meant_stand_out_of_their_row(page: Page, script: Script) -> None:
    table = "| Part | Price | Weight |\n|---|---|---|\n| mast | 120 | 12 |\n| float | 35 | 1.2 |"
    script.blocks = [{"kind": "table", "start": 0, "end": len(table), "text": table}]
    mast, float_ = (citation(n, start=at, end=at + 12, text=table[at : at + 12]) for n, at in ((1, 42), (2, 62)))
    rows = citation(1, end=len(table), text=table)
    await page.goto(
        await script(
            [done("The mast weighs **12** kg [1], the float 1.2 [2].", [mast, float_])],
            [done(f"{table}\n\n[1]", [rows])],
            [done(f"{table}\n\n[1]", [rows])],
        )
    )
    meant = page.locator(".evidence td.meant")
    await ask(page, "How heavy are they?")
    await page.locator(".marker").first.click()
    await expect(meant).to_have_text(["12"])
    await page.keyboard.press("]")
    await expect(meant).to_have_text(["1.2"])
    # Of a quoted table, the question tells column and row.
    await ask(page, "What is the price of the float?")
    await page.locator(".marker").last.click()
    await expect(meant).to_have_text(["35"])
    await ask(page, "What is known of the parts?")
    await page.locator(".marker").last.click()
    await expect(page.locator(".evidence td mark").first).to_be_visible()
    await expect(meant).to_have_count(0)


async def test_a_new_conversation_begins_with_questions(page: Page, script: Script) -> None:
    asked = ["How long is the annual leave?", "What does a float cost?", "Who signs?"]
    script.documents = [document("d")]
    await page.route("**/api/starters*", lambda route: route.fulfill(json={"questions": asked}))
    await page.goto(await script([done("So.", [])]))
    starters = page.locator(".starters button")
    await expect(starters).to_have_text(asked)
    await starters.first.click()
    await page.locator(".turn.over").wait_for()
    assert script.bodies[0]["question"] == asked[0]
    assert script.bodies[0]["document_ids"] is None
    await page.get_by_role("button", name="New conversation").click()
    await page.get_by_role("button", name="Library").click()
    await page.locator(".entry").get_by_role("checkbox").check()
    await expect(starters).to_have_text(["Which documents are there?"])
    await starters.first.click()
    await page.locator(".turn.over").wait_for()
    assert script.bodies[1]["document_ids"] == ["d"]


async def test_what_an_answer_names_can_be_clicked(page: Page, script: Script) -> None:
    script.documents = [document("d", title="Rules of 2024"), document("e", title="Manual")]
    script.blocks = [
        {"kind": kind, "start": 30 * place, "end": 30 * place + len(text), "text": text}
        for place, (kind, text) in enumerate(
            [
                ("heading", "# Manual"),
                ("heading", "## 1 Annual"),
                ("paragraph", "Passage 1."),
                ("heading", "## 2 Sickness"),
                ("heading", "## 3 Version 4.1"),
                ("heading", "## Studies"),
            ]
        )
    ]
    choices = [{"label": each, "document_id": each} for each in ("Rules of 2024", "Rules of 2025")]
    named = done("There are 2: “Rules of 2024” and “Others”.", [], outcome="conversed")
    which = done(
        "Which?\n1. Rules of 2024\n2. Rules of 2025",
        [],
        outcome="asked_back",
        outcome_reasons=[{"code": "ambiguous", "choices": choices}],
    )
    sources = event("sources", citations=[citation(1), citation(2)])
    lost = done("The documents do not answer this.", [], outcome="abstained", abstained=True)
    cited = [citation(1, document_id="e", start=60, end=70)]
    picked = done("So [1].", cited)
    nearest = done(
        "This may be it:\n\n1. Manual [1]\n\n   **Passage** 1.", cited, outcome="showed_passages", abstained=True
    )
    await page.goto(await script([named], [which], [picked], [sources, lost], [nearest]))
    await ask(page, "q")
    await page.locator(".answer").get_by_role("button", name="“Rules of 2024”").click()
    await expect(page.locator(".evidence h2")).to_have_text("Rules of 2024")
    await page.keyboard.press("Escape")
    await ask(page, "q")
    await expect(page.locator(".answer li").first).to_be_hidden()
    await page.get_by_role("button", name="Rules of 2025").click()
    await expect(page.locator(".answer").last).to_have_text("So 1.")
    assert script.bodies[2]["question"] == "Rules of 2025"
    await ask(page, "q")
    await page.locator(".turn").last.locator("> .chips .chip").last.click()
    await expect(page.locator(".evidence h2")).to_contain_text("Document 2")
    await page.keyboard.press("Escape")
    await ask(page, "q")
    await page.locator(".answer strong").last.click(force=True)
    await expect(page.locator(".evidence mark")).to_have_text("Passage 1.")


async def test_a_conversation_is_printed_downloaded_and_linked_to(page: Page, script: Script) -> None:
    long = "It is so [1]. " + "And so on. " * 40
    source = citation(1, source="rules/2024.md")
    script.turns = [turn(f"r-{n}", f"Question {n}?", done(f"{long}End {n}.", [source])) for n in range(130)]
    await page.goto(f"{await script()}/t/t-1#r-112")
    await expect(page.get_by_text("Question 112?")).to_be_in_viewport()
    await expect(page.get_by_text("Question 129?")).not_to_be_in_viewport()
    await page.locator(".turn").nth(5).get_by_role("button", name="More").click()
    await page.get_by_role("link", name="Copy a link").click()
    assert page.url.endswith("/t/t-1#r-115")
    # What is printed by the browser's own command says what it leaves out.
    await page.emulate_media(media="print", color_scheme="dark")
    await expect(page.locator(".answer").first).to_have_css("color", "rgb(0, 0, 0)")
    await expect(page.locator(".only-print blockquote").first).to_have_text("Passage 1.")
    await expect(page.locator("p.only-print")).to_be_visible()
    await page.emulate_media(media="null")
    await page.evaluate(
        "() => { window.print = () => { window.printed = document.querySelectorAll('.turn').length; }; }"
    )
    await page.locator(".entry.current").hover()
    await page.locator(".entry.current").get_by_role("button", name="More").click()
    await page.get_by_role("button", name="Print").click()
    await page.wait_for_function("() => window.printed === 130")
    await expect(page.locator("p.only-print")).to_have_count(0)
    with closing(pypdfium2.PdfDocument(await page.pdf())) as pdf:
        text = " ".join(sheet.get_textpage().get_text_range() for sheet in pdf)
    for said in [f"{what} {n}" for n in range(130) for what in ("Question", "End")]:
        assert said in text
    assert "Ask again" not in text
    await page.locator(".entry.current").hover()
    await page.locator(".entry.current").get_by_role("button", name="More").click()
    async with page.expect_download() as downloading:
        await page.locator(".entry.current").get_by_role("button", name="Markdown").click()
    saved = await downloading.value
    assert saved.suggested_filename == "A conversation.md"
    written = await asyncio.to_thread((await saved.path()).read_text)
    assert written.startswith("# A conversation\n\n## Question 0?\n\nIt is so [1].")
    assert written.count("[1] Document 1, Leave › Annual, 2024.md") == 130


async def test_a_conversation_saved_as_html_needs_nothing_else_and_is_inert(page: Page, script: Script) -> None:
    answer = f"{HOSTILE} **so** [1].\n\n| a | b |\n|---|---|\n| c | $x^2$ |\n\n```html\n<b>&amp;</b>\n```"
    source = citation(1, title=HOSTILE, source="rules/2024.md", text="<script>window.hurt = true</script> & so on.")
    script.turns = [turn("r-0", f"Is it so? {HOSTILE}", done(answer, [source]))]
    await page.goto(f"{await script()}/t/t-1")
    await page.locator(".entry.current").hover()
    await page.locator(".entry.current").get_by_role("button", name="More").click()
    async with page.expect_download() as downloading:
        await page.locator(".entry.current").get_by_role("button", name="HTML").click()
    saved = await downloading.value
    assert saved.suggested_filename == "A conversation.html"
    elsewhere: list[str] = []
    page.on("request", lambda request: elsewhere.append(request.url))
    written = await asyncio.to_thread((await saved.path()).read_text)
    await page.route("**/saved", lambda route: route.fulfill(body=written, content_type="text/html"))
    await page.goto(f"{script.address}/saved")
    await expect(page.locator("h1")).to_have_text("A conversation")
    await expect(page.locator("h2")).to_contain_text("Is it so? <img src=x")
    await expect(page.locator("p > strong")).to_have_text("so")
    await expect(page.locator("td math")).to_have_text("x2")
    await expect(page.locator("pre")).to_have_text("<b>&amp;</b>")
    await page.get_by_role("link", name="[1]").click()
    await expect(page.locator("li:target")).to_contain_text("Leave › Annual, 2024.md")
    await expect(page.locator("li:target blockquote")).to_have_text("<script>window.hurt = true</script> & so on.")
    assert await page.evaluate("window.hurt") is None
    assert await page.locator("script, img, [onclick], [onerror]").count() == 0
    assert {url.partition("#")[0] for url in elsewhere} == {f"{script.address}/saved"}


async def test_what_limits_an_answer_leaves_the_page_with_it(page: Page, script: Script) -> None:
    script.documents = [document("d", title="Rules of 2024")]
    limited = done("It is so [1].", [citation(1)], outcome="answered_with_caveat", warnings=["One file was not read."])
    script.turns = [turn("r-1", "Is it so?", limited, document_ids=["d"])]
    said = ["Only from Rules of 2024", "It is so [1].", "One file was not read."]
    said += ["The documents may answer this only in part.", "[1] Document 1, Leave › Annual"]
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.goto(f"{await script()}/t/t-1")
    # Over plain http, no page may write to the clipboard by itself.
    await page.evaluate("delete Clipboard.prototype.writeText")
    await page.get_by_role("button", name="Copy with sources").click()
    await expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert (await page.evaluate("() => navigator.clipboard.readText()")).split("\n\n") == said
    for kind in ("Markdown", "HTML"):
        await page.locator(".entry.current").hover()
        await page.locator(".entry.current").get_by_role("button", name="More").click()
        async with page.expect_download() as downloading:
            await page.locator(".entry.current").get_by_role("button", name=kind).click()
        written = await asyncio.to_thread((await (await downloading.value).path()).read_text)
        assert all(each in written for each in [*said[:1], *said[2:4]])


async def test_hostile_text_is_inert_wherever_it_comes_from(page: Page, script: Script) -> None:
    elsewhere: list[str] = []
    page.on("request", lambda request: elsewhere.append(request.url))
    page.on("dialog", lambda dialog: elsewhere.append(dialog.message))
    source = citation(1, title=HOSTILE, heading_path=[HOSTILE], text=HOSTILE, source=HOSTILE)
    end = done(
        f"{HOSTILE} [1] **{HOSTILE}**\n\n{HOSTILE}\n\n[1]: https://evil.example/definition\n",
        [source],
        warnings=[HOSTILE],
        verification={"status": "supported", "claims": [claim(HOSTILE, reason=HOSTILE)]},
        mode=HOSTILE,
        standalone_question=HOSTILE,
        trace_url="javascript:window.hurt=true",
    )
    error = event("error", code="x", message=HOSTILE, retryable=False)
    script.documents = [document("d", title=f"{HOSTILE}{'long ' * 2000}", source=HOSTILE)]
    script.blocks = [{"kind": "paragraph", "start": 0, "end": 10, "text": HOSTILE}]
    script.ingestions = [ingestion("i", source=HOSTILE, state="failed", report={"error": HOSTILE})]
    address = await script([event("thinking", step=HOSTILE), end], [error])
    await page.goto(address)
    await ask(page, HOSTILE)
    await page.locator(".marker").first.hover()
    await expect(page.locator("#tip")).to_contain_text("<img src=x")
    await page.locator(".facts summary").click()
    await page.locator(".marker").first.click()
    await expect(page.locator(".block")).to_contain_text("<img src=x")
    await ask(page, "q")
    await page.get_by_role("button", name="Library").click()
    await expect(page.locator(".arrival")).to_contain_text("<img src=x")
    links = page.locator("a:not([href^='/'])")
    assert await page.locator("img, #app script, iframe, object, form[action]").count() == 0
    assert await links.count() == 0
    assert await page.evaluate("() => window.hurt") is None
    assert [url for url in elsewhere if not url.startswith((address, "data:"))] == []
    # A character that turns text around is named; none is left to do so.
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b]", await page.locator("body").inner_text())
    await expect(page.locator(".question").first).to_contain_text("‹U+202E›")
    # Not even by mistake would text become markup.
    outcome = "() => { try { document.body.innerHTML = '<i></i>'; return 'set'; } catch (e) { return e.name; } }"
    assert await page.evaluate(outcome) == "TypeError"
    assert await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


GOLDEN = """## Summary

The device has **three** parts [1]:

1. a base
   - with feet
   - with *wheels*
2. a mast

> Keep it dry. [2]

| Part | Price |
|:---|---:|
| base [1] | 12 € [1] |
| mast | 30 € [2] |

```python
print("[1]")
```

See <https://example.com/a> and [the manual](https://example.com/m).
"""


async def test_markdown_becomes_the_elements_that_it_means(page: Page, script: Script) -> None:
    await page.goto(
        await script([*(event("content", token=c) for c in GOLDEN), done(GOLDEN, [citation(1), citation(2)])])
    )
    await ask(page, "q")
    shape = """() => {
        const outline = (node) => [...node.children].map((child) =>
            child.tagName.toLowerCase() + (child.children.length ? `(${outline(child)})` : ""));
        return outline(document.querySelector(".answer")).join(" ");
    }"""
    assert await page.evaluate(shape) == (
        "h3 p(strong,button(span)) ol(li(ul(li,li(em))),li) blockquote(p(button(span))) div(table(thead(tr(th,th)),"
        "tbody(tr(td,td(button(span))),tr(td,td(button(span)))))) div(pre(code),button) p(span)"
    )
    assert await page.locator(".answer .marker").all_text_contents() == ["1", "2", "1", "2"]
    await expect(page.locator(".answer td").last).to_have_css("text-align", "right")
    for cell in await page.locator(".answer :is(td, th)").all():
        await expect(cell).to_have_css("display", "table-cell")
    await expect(page.locator(".answer pre")).to_have_text('print("[1]")')
    await expect(page.locator(".answer p").last).to_have_text(
        "See https://example.com/a and the manual (https://example.com/m)."
    )


async def test_a_focused_marker_keeps_the_focus_while_the_answer_grows(page: Page, script: Script) -> None:
    begun = [event("content", token="It is so [1]. "), event("citation", citation=citation(1)), WAIT]
    rest = [event("content", token=f"word{number} ") for number in range(300)]
    end = done("It is so [1]. " + "".join(f"word{number} " for number in range(300)), [citation(1)])
    await page.goto(await script([*begun, *rest, WAIT, end]))
    await send(page, "q")
    await page.locator(".marker").focus()
    await expect(page.locator("#tip")).to_contain_text("Passage 1.")
    await page.evaluate("""() => {
        const marker = document.activeElement;
        window.lost = 0;
        window.frames = 0;
        const look = () => {
            window.frames += 1;
            if (document.activeElement !== marker || !document.querySelector("#tip")) window.lost += 1;
            requestAnimationFrame(look);
        };
        look();
    }""")
    script.pace = 0.003
    script.go_on()
    await expect(page.locator(".answer")).to_contain_text("word299")
    script.go_on()
    await expect(page.locator(".facts")).to_be_visible()
    assert await page.evaluate("() => [window.lost, window.frames > 30]") == [0, True]


ENDINGS: dict[str, dict[str, Any]] = {
    "answered": {},
    "abstained": {"outcome": "abstained", "abstained": True},
    "unsure": {"outcome": "showed_passages", "abstained": True},
    "stopped": {"stopped": True},
    "degraded": {"warnings": ["The model did not answer; this is quoted."], "outcome": "answered_with_caveat"},
}


async def test_a_reload_shows_every_ending_as_it_was(page: Page, script: Script) -> None:
    checked = {"status": "supported", "claims": [claim("It is.")]}
    read, cited = citation(2), citation(1)
    begun = [event("thinking", step="retrieve"), event("sources", citations=[cited, read])]
    steps = [{"node": "retrieve", "ms": 3.0}]
    timings = {"retrieve": 3.0, "total": 12.0}
    streams: list[list[bytes]] = []
    turns: list[dict[str, Any]] = []
    for name, changes in ENDINGS.items():
        end = done(
            f"It is {name} [1].",
            [] if name == "abstained" else [cited],
            timings=timings,
            verification=checked,
            **changes,
        )
        streams.append([*begun, end])
        kept = [cited, read] if name == "abstained" else [read]
        # An abstention that was limited to some documents would offer to search all of them.
        limited = None if changes.get("abstained") else ["d"]
        turns.append(turn(f"r-{len(turns) + 1}", name, end, sources=kept, steps=steps, document_ids=limited))
    end = done("It is 25 [1].", [cited], timings=timings)
    correction = event("correction", reason="One statement was withdrawn.", answer="It is 25 [1].", citations=[cited])
    streams.append([*begun, event("content", token="It is 30 [1]."), correction, end])
    corrections = [{"reason": "One statement was withdrawn.", "withdrawn": "It is 30 [1]."}]
    turns.append(turn("r-6", "corrected", end, sources=[read], steps=steps, corrections=corrections))
    failed = event("error", "1-1", code="x", message="The database did not answer.", retryable=True)
    streams.append([*begun, event("content", token="So far"), failed])
    written = [{"reason": "x", "withdrawn": "So far"}]
    turns.append(turn("r-7", "failed", failed, sources=[cited, read], corrections=written))
    await page.goto(await script(*streams))
    for name in (*ENDINGS, "corrected", "failed"):
        await ask(page, name)
    before = await page.locator(".turn").all_text_contents()
    script.turns = turns
    await page.reload()
    await expect(page.locator(".turn")).to_have_count(7)
    # It says what it was limited to, which here only the server knows of.
    after = await page.locator(".turn").all_text_contents()
    assert [text.replace("Only from 1 document", "") for text in after] == before
    # Asked again, it is limited to the documents that it was limited to.
    script.replies = [[done("Again.", [])]]
    await page.locator(".turn").first.get_by_role("button", name="More").click()
    await page.get_by_role("button", name="Ask again in mode thorough").click()
    await expect(page.locator(".answer").last).to_have_text("Again.")
    assert script.bodies[-1]["document_ids"] == ["d"]


async def test_enter_sends_and_shift_enter_does_not(page: Page, script: Script) -> None:
    await page.goto(await script([done("Hello.", [])]))
    box = page.get_by_label("Question", exact=True)
    await expect(box).to_be_focused()
    await page.keyboard.type("one")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.type("two")
    await expect(box).to_have_value("one\ntwo")
    await page.keyboard.press("Enter")
    await expect(page.locator(".question")).to_have_text("one\ntwo")
    await expect(box).to_have_value("")


async def test_nothing_runs_off_the_side(page: Page, script: Script) -> None:
    word = "Donaudampfschifffahrtsgesellschaftskapitän" * 3
    sources = [citation(1, title=word, heading_path=[word], text=word), citation(2)]
    table = f"| {word} | b |\n|---|---|\n| c | d |"
    answer = done(f"{word} [1]\n```\n{word * 3}\n```\n{table}", sources[:1])
    await page.goto(await script([event("sources", citations=sources), answer]))
    await ask(page, word)
    await page.locator(".facts summary").click()
    beyond = """() => [document.documentElement, ...document.querySelectorAll("button, select, a")]
        .filter((each) => each.checkVisibility())
        .filter((each) => each.scrollWidth > innerWidth || each.getBoundingClientRect().right > innerWidth + 1).length"""
    for width in (1280, 320):
        await page.set_viewport_size({"width": width, "height": 740})
        assert await page.evaluate(beyond) == 0


async def test_markers_of_every_style_one_caveat_and_changed_sources(page: Page, script: Script) -> None:
    styles = "A [1] b [Source 2] c [Citation 1] d [cite:c2] e [7] f\n```\nx[1]\n```\nend"
    caveat = "The documents may answer this only in part."
    unsure = [
        done(
            f"{words}So [1].",
            [citation(1)],
            outcome="answered_with_caveat",
            framing={"opening": len(words), "closing": 0},
        )
        for words in ("", f"{caveat} ")
    ]
    old = done("It is 30 [1].", [citation(1, since="changed")])
    replies = [done(styles, [citation(1), citation(2)]), *unsure, old, done("It is 25.", [])]
    await page.goto(await script(*[[each] for each in replies]))
    await ask(page, "q")
    assert await page.locator(".answer .marker").all_text_contents() == ["1", "2", "1", "2"]
    await expect(page.locator(".answer")).to_contain_text("[7]")
    await expect(page.locator(".answer pre")).to_have_text("x[1]")
    for _ in unsure:
        await ask(page, "q")
    await expect(page.locator(".caveat")).to_have_text([caveat])
    # Who is told to mind something is not told that it is sure.
    await expect(page.locator(".facts summary")).to_have_text(["2 sourcessure", "1 source", "1 source"])
    await ask(page, "q")
    await page.get_by_role("button", name="Ask again with today's documents").click()
    await expect(page.locator(".answer").last).to_have_text("It is 25.")
    assert script.asked == ["q"] * 5


async def test_an_answer_is_rated_copied_and_asked_again(page: Page, script: Script) -> None:
    cited = citation(1, page=4)
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.goto(
        await script([done("It is so [1].\n\n```\nx = [1]\n```", [cited], cached=True)], [done("Again.", [])])
    )
    await ask(page, "Is it so?")
    await expect(page.locator(".facts summary")).to_contain_text("from the cache")
    # One line below the answer says what it is, and holds what can be done with it.
    tops = [
        await page.locator(f".actions {each}").evaluate("(of) => of.getBoundingClientRect().top")
        for each in (".copy", "summary")
    ]
    assert abs(tops[0] - tops[1]) < 12
    await page.get_by_role("button", name="Not helpful").click()
    await page.get_by_label("What is wrong with it?").select_option("wrong")
    await page.get_by_label("Comment").fill("It is 25.")
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_role("button", name="Not helpful")).to_have_attribute("aria-pressed", "true")
    # What was said is shown, and a second press opens it: nothing is lost in silence.
    await expect(page.locator(".actions")).to_contain_text("“It is 25.”")
    await page.get_by_role("button", name="Not helpful").click()
    await expect(page.get_by_label("What is wrong with it?")).to_have_value("wrong")
    await page.get_by_label("What is wrong with it?").select_option("")
    await page.get_by_label("Comment").fill("")
    await page.get_by_role("button", name="Send").click()
    await expect(page.locator(".actions")).not_to_contain_text("“It is 25.”")
    await page.get_by_role("button", name="Not helpful").click()
    await expect(page.get_by_role("button", name="Not helpful")).to_have_attribute("aria-pressed", "false")
    assert script.feedback == [
        {"rating": "down", "reason": None, "comment": ""},
        {"rating": "down", "reason": "wrong", "comment": "It is 25."},
        {"rating": "down", "reason": None, "comment": ""},
        None,
    ]
    await page.get_by_role("button", name="Copy with sources").click()
    await expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = await page.evaluate("() => navigator.clipboard.readText()")
    assert copied == "It is so [1].\n\n```\nx = [1]\n```\n\n[1] Document 1, page 4 · Leave › Annual"
    await page.get_by_role("button", name="Copy code").click()
    await expect(page.get_by_role("button", name="Copied")).to_have_count(2)
    assert await page.evaluate("() => navigator.clipboard.readText()") == "x = [1]"
    more = page.locator(".turn").get_by_role("button", name="More")
    await more.click()
    await page.get_by_role("button", name="Edit question").click()
    await expect(page.get_by_label("Question", exact=True)).to_have_value("Is it so?")
    await more.click()
    await page.get_by_role("button", name="Ask again in mode thorough").click()
    await expect(page.locator(".answer").last).to_have_text("Again.")
    # A new question goes to the top, where its answer has room.
    assert await page.locator(".question").last.evaluate("(question) => question.getBoundingClientRect().top") < 60
    assert [body["mode"] for body in script.bodies] == ["standard", "thorough"]
