"""How the page shows a stream, whatever the stream does. The service's side is scripted."""

import json
import re

import pytest
from playwright.async_api import Page, expect

from tests.page.scripted import Script, ask, citation, done, event

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTILE = '<img src=x onerror="window.hurt = true"><script>window.hurt = true</script>'


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
    await expect(page.locator("#turns .note")).to_have_count(0)


async def test_the_parser_does_not_mind_where_text_is_cut(page: Page, script: Script) -> None:
    await page.goto(await script())
    text = (
        ": x\r\nevent: a\r\ndata: 1\r\ndata:2\r\n\r\nevent: b\rdata: 3\r\rid: 7\ndata: 4\n\n\n\nevent: c\n\ndata: 5\n"
    )
    parsed = await page.evaluate(
        """(text) => {
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


async def test_an_error_in_the_stream_says_what_to_do(page: Page, script: Script) -> None:
    failed = event("error", code="database_unavailable", message="The database did not answer.", retryable=True)
    await page.goto(await script([event("thinking", step="route"), failed]))
    await ask(page, "q")
    await expect(page.locator("#turns .note.bad")).to_contain_text("The database did not answer.")
    await expect(page.get_by_role("button", name="Try again")).to_be_visible()


async def test_a_damaged_conversation_is_left_for_a_new_one(page: Page, script: Script) -> None:
    script.steps = [{"node": "damaged", "run_id": "r-0", "changed": {}, "next": []}]
    failed = event("error", code="damaged_state", message="A saved state is damaged.", retryable=False)
    await page.goto(
        f"{await script([failed], [event('content', token='36 months.'), done('36 months.', [])])}#thread=t-0"
    )
    await expect(page.locator("#trouble")).to_contain_text("damaged")
    await ask(page, "How long?")
    await expect(page.locator("#turns .note.bad")).to_contain_text("A saved state is damaged.")
    await page.get_by_role("button", name="Ask in a new conversation").click()
    await expect(page.locator(".answer")).to_have_text(["36 months."])
    assert script.asked == ["How long?"] * 2


async def test_a_refused_question_says_why(page: Page, script: Script) -> None:
    body = {"error": {"code": "question_error", "message": "The question is too long.", "retryable": False}}
    await page.goto(await script((422, body), (502, {})))
    await ask(page, "q")
    await expect(page.locator("#turns .note.bad")).to_contain_text("The question is too long.")
    await ask(page, "q")
    await expect(page.locator("#turns .note.bad").last).to_contain_text("status 502")


async def test_a_server_that_is_gone_is_named(page: Page, script: Script) -> None:
    await page.goto(await script())
    await page.route("**/api/chat", lambda route: route.abort())
    await ask(page, "q")
    await expect(page.locator("#turns .note.bad")).to_contain_text("cannot be reached")


async def test_a_correction_is_shown_openly(page: Page, script: Script) -> None:
    claim = {
        "text": "It is 30.",
        "start": 0,
        "end": 9,
        "markers": [1],
        "verdict": "unsupported",
        "reason": "It says 25.",
        "score": 0.2,
    }
    await page.goto(
        await script(
            [
                event("sources", citations=[citation(1)]),
                event("content", token="It is 30 [1]."),
                event("verification", status="unsupported", claims=[claim]),
                event(
                    "correction",
                    reason="1 of 1 statement rewritten.",
                    answer="It is 25 [1].",
                    citations=[citation(1)],
                ),
                done("It is 25 [1].", [citation(1)], confidence=0.7),
            ]
        )
    )
    await ask(page, "q")
    await expect(page.locator("#turns .withdrawn .note")).to_contain_text("1 of 1 statement rewritten.")
    await expect(page.locator("del")).to_have_text("It is 30 [1].")
    await expect(page.locator(".answer")).to_have_text("It is 25 1.")
    await expect(page.locator(".claims")).to_contain_text("Not supported (20 %): “It is 30.” It says 25.")
    await expect(page.locator(".confidence")).to_have_text("Medium confidence")
    await expect(page.locator(".caveat")).to_be_visible()


async def test_markers_of_every_style_and_none_without_a_source(page: Page, script: Script) -> None:
    answer = "A [1] b [Source 2] c [Citation 1] d [cite:c2] e [7] f\n```\nx[1]\n```\nend"
    await page.goto(await script([done(answer, [citation(1), citation(2)])]))
    await ask(page, "q")
    assert await page.locator(".answer .marker").all_text_contents() == ["1", "2", "1", "2"]
    await expect(page.locator(".answer")).to_contain_text("[7]")
    await expect(page.locator(".answer pre")).to_have_text("x[1]\n")


async def test_hostile_text_is_inert_wherever_it_comes_from(page: Page, script: Script) -> None:
    source = citation(1, title=HOSTILE, heading_path=[HOSTILE], text=HOSTILE)
    claim = {
        "text": HOSTILE,
        "start": 0,
        "end": 1,
        "markers": [1],
        "verdict": "supported",
        "reason": HOSTILE,
        "score": 1,
    }
    end = done(
        f"{HOSTILE} [1] **{HOSTILE}**",
        [source],
        warnings=[HOSTILE],
        verification={"status": "supported", "claims": [claim]},
        mode=HOSTILE,
        trace_url="javascript:window.hurt=true",
    )
    error = event("error", code="x", message=HOSTILE, retryable=False)
    await page.goto(await script([event("thinking", step=HOSTILE, detail=HOSTILE), end], [error]))
    await ask(page, HOSTILE)
    await page.locator(".marker").first.hover()
    await expect(page.locator("#tip")).to_contain_text(HOSTILE)
    await ask(page, "q")
    assert await page.locator("main img, main script, main a, #tip img").count() == 0
    assert await page.evaluate("() => window.hurt") is None


async def test_text_cannot_become_markup_even_by_mistake(page: Page, script: Script) -> None:
    await page.goto(await script())
    outcome = "() => { try { document.body.innerHTML = '<i></i>'; return 'set'; } catch (e) { return e.name; } }"
    assert await page.evaluate(outcome) == "TypeError"


async def test_enter_sends_and_shift_enter_does_not(page: Page, script: Script) -> None:
    await page.goto(await script([done("Hello.", [])]))
    box = page.get_by_label("Question")
    await expect(box).to_be_focused()
    await page.keyboard.type("one")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.type("two")
    await expect(box).to_have_value("one\ntwo")
    await page.keyboard.press("Enter")
    await expect(page.locator(".question")).to_have_text("one\ntwo")
    await expect(box).to_have_value("")


async def test_new_conversation_forgets_the_thread(page: Page, script: Script) -> None:
    address = await script([done("A.", [])], [done("B.", [])])
    await page.goto(address)
    await ask(page, "q")
    assert page.url.endswith("#thread=t-1")
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator(".turn")).to_have_count(0)
    assert "#" not in page.url
    async with page.expect_request("**/api/chat") as sent:
        await ask(page, "q")
    body = (await sent.value).post_data_json
    assert body == {"question": "q", "mode": "standard", "document_ids": None, "thread_id": None}


@pytest.mark.parametrize("width", [320, 360, 1280])
async def test_nothing_runs_off_the_side(page: Page, script: Script, width: int) -> None:
    word = "Donaudampfschifffahrtsgesellschaftskapitän" * 3
    sources = [citation(1, title=word, heading_path=[word], text=word), citation(2)]
    await page.set_viewport_size({"width": width, "height": 740})
    await page.goto(
        await script([event("sources", citations=sources), done(f"{word} [1]\n```\n{word * 3}\n```", sources[:1])])
    )
    await ask(page, word)
    assert await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    for control in ("Ask", "Add files", "New conversation"):
        box = await page.get_by_role("button", name=control, exact=True).bounding_box()
        assert box
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


async def test_the_cache_is_named(page: Page, script: Script) -> None:
    await page.goto(await script([done("A [1].", [citation(1)], cached=True)]))
    await ask(page, "q")
    await expect(page.locator(".badge.cached")).to_have_text(re.compile("cache", re.IGNORECASE))


async def test_a_source_shows_which_of_its_words_the_answer_has_from_it(page: Page, script: Script) -> None:
    passage = (
        "… The week has 38.5 hours, spread\nover five days. Overtime must be\napproved beforehand by the team lead. …"
    )
    table = "Meals\n\nAbsence | Allowance\na full day | 28 euros"
    answer = (
        "The team lead approves overtime, which must be approved before [1]. A day has 28 euros [2]. No hours here."
    )
    cited = [citation(1, text=passage), citation(2, text=table), citation(3, text="Quoted whole.")]
    await page.goto(await script([done(f"{answer} Quoted whole [3].", cited)]))
    await ask(page, "q")
    shown = page.locator(".snippet")
    await expect(shown.nth(0)).to_have_text(passage.replace("\n", " "))
    await expect(shown.nth(0).locator("mark:not(:text-matches('^ $'))")).to_have_text(
        ["Overtime", "must", "approved", "team", "lead"]
    )
    assert await shown.nth(1).inner_text() == "Meals\nAbsence | Allowance\na full day | 28 euros"
    await expect(shown.nth(1).locator("mark").last).to_have_text("euros")
    await expect(shown.nth(2).locator("mark")).to_have_count(0)


async def test_a_caveat_is_said_once(page: Page, script: Script) -> None:
    caveat = "The documents may answer this only in part."
    both = [
        done(f"{words}It is 30 [1].", [citation(1)], confidence=0.5, framing={"opening": len(words), "closing": 0})
        for words in ("", f"{caveat} ")
    ]
    await page.goto(await script(*[[each] for each in both]))
    for _ in both:
        await ask(page, "q")
    await expect(page.locator(".caveat")).to_have_text([caveat])
    await expect(page.locator(".facts").first).to_contain_text("standard · 12 ms")


async def test_an_empty_library_does_not_look_as_if_it_could_be_opened(page: Page, script: Script) -> None:
    await page.goto(await script())
    summary = page.locator("#library summary")
    await expect(summary).to_contain_text("No documents yet")
    await expect(summary).to_have_css("list-style-type", "none")
