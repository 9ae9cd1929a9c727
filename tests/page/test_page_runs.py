"""How the page holds on to an answer: over broken connections, restarts and reloads, until it ends or is stopped."""

import json

import pytest
from playwright.async_api import Page, expect

from tests.page.scripted import CUT, WAIT, Script, ask, citation, done, event, send, turn

pytestmark = pytest.mark.asyncio(loop_scope="session")

DRAINING = {"error": {"code": "draining", "message": "This server is about to end.", "retryable": True}}


def tokens(*words: str, attempt: int = 1, first: int = 1) -> list[bytes]:
    return [event("content", f"{attempt}-{first + place}", token=word) for place, word in enumerate(words)]


STOPS = event("error", code="draining", message="This server is about to stop.", retryable=True)
"""Of the connection: it has no id."""


@pytest.mark.parametrize("end", [[], [CUT], [b"\r\n", STOPS]], ids=["clean", "broken", "planned"])
async def test_an_answer_that_is_cut_goes_on_where_it_broke_off(page: Page, script: Script, end: list[bytes]) -> None:
    half = b'id: 1-3\r\nevent: content\r\ndata: {"token": "lost "}\r\n' if STOPS not in end else b": half"
    three, four = tokens("three ", "four", first=3)
    ended = [four, done("one two three four", [])]
    await page.goto(await script([*tokens("one ", "two "), half, WAIT, *end], [], [three, WAIT, *end], ended))
    await send(page, "q")
    await expect(page.locator(".answer")).to_have_text("one two")
    script.go_on()
    await expect(page.locator(".step")).to_contain_text("Reconnecting…")
    await expect(page.locator("#status")).to_contain_text("Reconnecting…")
    await expect(page.locator(".answer")).to_have_text("one two three")
    script.go_on()
    await expect(page.locator(".answer")).to_have_text("one two three four")
    await expect(page.locator(".facts")).to_be_visible()
    await expect(page.locator(".turn .note")).to_have_count(0)
    assert script.came_back == [("r-1", "1-2"), ("r-1", "1-2"), ("r-1", "1-3")]
    assert script.asked == ["q"]


async def test_the_network_goes_and_comes_back(page: Page, script: Script) -> None:
    await page.goto(await script([*tokens("one "), WAIT, CUT], [*tokens("two", first=2), done("one two", [])]))
    await send(page, "q")
    await expect(page.locator(".answer")).to_have_text("one")
    await page.context.set_offline(True)
    script.go_on()
    await expect(page.locator(".notices")).to_contain_text("You are offline.")
    await expect(page.locator(".step")).not_to_contain_text("Reconnecting…")
    await page.context.set_offline(False)
    await expect(page.locator(".answer")).to_have_text("one two")
    await expect(page.locator(".note")).to_have_count(0)
    await page.context.set_offline(True)
    await send(page, "q")
    await expect(page.locator(".turn .note")).to_contain_text("You are offline.")
    await expect(page.get_by_text("askgraph is running")).to_have_count(0)


async def test_what_was_not_asked_stays_with_its_conversation(page: Page, script: Script) -> None:
    script.turns = [turn("r-0", "before", done("Before.", []))]
    address = await script([done("It is.", [])], [done("Anew.", [])])
    box = page.get_by_label("Question", exact=True)
    await page.goto(f"{address}/t/t-1")
    await expect(page.locator(".answer")).to_have_text("Before.")
    await page.context.set_offline(True)
    await send(page, "Is it so?")
    await expect(page.locator(".turn .note")).to_contain_text("You are offline.")
    await box.fill("And why?")
    await page.context.set_offline(False)
    await page.get_by_role("button", name="New conversation").click()
    await expect(box).to_have_value("")
    await box.fill("Half a")
    await page.goto(f"{address}/settings")
    await page.goto(f"{address}/t/t-1")
    await expect(box).to_have_value("Is it so?\n\nAnd why?")
    # More than the server takes is said before it is sent, and stays.
    await box.fill("w" * 2001)
    await box.press("Enter")
    await expect(page.locator(".composer")).to_contain_text("at most 2,000 characters; this one has 2,001")
    await expect(page.locator("#send")).to_be_disabled()
    await page.reload()
    await expect(box).to_have_value("w" * 2001)
    await box.fill("Is it so?")
    await box.press("Enter")
    await expect(page.locator(".answer")).to_have_text(["Before.", "It is."])
    await page.get_by_role("button", name="New conversation").click()
    await expect(box).to_have_value("Half a")
    await page.go_back()
    await expect(page.locator(".answer")).to_have_text("Before.")
    await expect(box).to_have_value("")
    # A conversation that was deleted elsewhere does not begin anew in silence.
    script.turns, known = None, script.bodies
    script.bodies = []
    await send(page, "And then?")
    await expect(page.locator(".turn .note")).to_contain_text("This conversation was deleted.")
    await page.get_by_role("button", name="Ask in a new conversation").click()
    await expect(page.locator(".answer")).to_have_text("Anew.")
    assert [body["thread_id"] for body in [*known, *script.bodies]] == ["t-1", None]


async def test_a_server_that_stays_away_is_given_up_and_can_be_tried_again(page: Page, script: Script) -> None:
    await page.goto(await script(tokens("one "), [*tokens("two", first=2), done("one two", [])]))
    await page.clock.install()
    await page.route("**/events", lambda route: route.abort())
    await send(page, "q")
    again = page.get_by_role("button", name="Reconnect")
    for _ in range(100):
        if await again.count():
            break
        await page.clock.run_for(10_000)
    await expect(page.locator(".turn .note.bad")).to_contain_text("the rest is not lost")
    await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    await page.unroute("**/events")
    await again.click()
    await expect(page.locator(".answer")).to_have_text("one two")
    await expect(page.locator(".turn .note")).to_have_count(0)
    assert script.came_back == [("r-1", "1-1")]


async def test_a_run_whose_events_nobody_has_is_broken_off_or_told_in_one_piece(page: Page, script: Script) -> None:
    unknown = {"error": {"code": "unknown_run", "message": "There is no run.", "retryable": False}}
    retold = event("correction", reason="restart", answer="one two", citations=[])
    end = event("done", "1-9", **json.loads(done("one two", []).split(b"data: ")[1]))
    whole = [done("Whole.", [])]
    await page.goto(await script(tokens("Every emplo"), (404, unknown), whole, tokens("one "), [retold], [retold, end]))
    await ask(page, "q")
    await expect(page.locator(".answer")).to_have_text("Every emplo")
    await expect(page.locator(".turn .note.bad")).to_contain_text("only a part")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.locator(".answer")).to_have_text("Whole.")
    await expect(page.locator(".turn")).to_have_count(1)
    await expect(page.locator(".turn .note.bad")).to_have_count(0)
    await ask(page, "q")
    await expect(page.locator(".answer").last).to_have_text("one two")
    assert script.came_back == [("r-1", "1-1"), ("r-3", "1-1"), ("r-3", "1-1")]


@pytest.mark.parametrize(("known", "said"), [("", "starts again"), ("Known. ", "goes on")])
async def test_a_run_that_starts_again_replaces_what_it_wrote(
    page: Page, script: Script, known: str, said: str
) -> None:
    first = [event("sources", "1-1", citations=[citation(1), citation(2)]), *tokens("Wrong [2].", first=2)]
    restart = event("correction", "2-1", reason="restart", answer=known, citations=[])
    rest = [event("sources", "2-2", citations=[citation(1)]), *tokens("Right [1].", attempt=2, first=3)]
    await page.goto(await script(first, [restart, *rest, WAIT, done(f"{known}Right [1].", [citation(1)])]))
    await send(page, "q")
    await expect(page.locator(".restarted")).to_contain_text(said)
    await expect(page.locator(".answer")).to_have_text(f"{known}Right 1.")
    await expect(page.locator(".marker")).to_have_count(1)
    await expect(page.locator("del")).to_have_count(0)
    await page.get_by_role("button", name="Stop").click()
    await expect(page.locator(".facts summary")).to_contain_text("sure")
    await expect(page.locator(".turn .note")).to_have_count(0)


async def test_a_reload_in_the_middle_of_an_answer_loses_nothing(page: Page, script: Script) -> None:
    answer = [*tokens("one ", "two "), WAIT]
    before = done("Before.", [])
    await page.goto(await script([before], answer, [*answer[:2], *tokens("three", first=3), WAIT]))
    await ask(page, "before")
    await send(page, "q")
    await expect(page.locator(".answer").last).to_have_text("one two")
    script.turns = [turn("r-1", "before", before), turn("r-2", "q", None)]
    await page.reload()
    await expect(page.locator(".question")).to_have_text(["before", "q"])
    await expect(page.locator(".answer")).to_have_text(["Before.", "one two three"])
    assert script.came_back == [("r-2", None)]
    # Its end came between two reloads: nothing is followed any more.
    script.turns = [turn("r-1", "before", before), turn("r-2", "q", done("one two three", []))]
    await page.reload()
    await expect(page.locator(".answer")).to_have_text(["Before.", "one two three"])
    await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    assert len(script.came_back) == 1


async def test_a_conversation_that_cannot_be_read_is_read_again(page: Page, script: Script) -> None:
    script.turns = [turn("r-1", "q", done("One.", []))]
    address = await script()
    await page.route("**/api/threads/t-1*", lambda route: route.abort())
    await page.goto(f"{address}/t/t-1")
    await expect(page.locator(".note.bad")).to_contain_text("What was said before cannot be shown.")
    await page.unroute("**/api/threads/t-1*")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.locator(".answer")).to_have_text("One.")


async def test_an_address_that_names_no_conversation_is_no_dead_end(page: Page, script: Script) -> None:
    await page.goto(f"{await script([done('A.', [])])}/t/t-9")
    await expect(page.locator("#trouble")).to_contain_text("no conversation at this address")
    await ask(page, "q")
    assert script.bodies[0]["thread_id"] is None


async def test_what_is_posted_belongs_to_the_conversation_that_is_shown(page: Page, script: Script) -> None:
    script.turns = [turn("r-0", "before", done("Before.", []))]
    await page.goto(f"{await script([done('A.', [])], [done('B.', [])])}/#thread=t-1")
    await expect(page.locator(".answer")).to_have_text("Before.")
    assert page.url.endswith("/t/t-1")
    await page.locator(".entry a").nth(1).click()
    await expect(page.locator(".entry.current a")).to_have_attribute("href", "/t/t-2")
    await page.go_back()
    await expect(page.locator(".entry.current a")).to_have_attribute("href", "/t/t-1")
    await ask(page, "q")
    await page.go_forward()
    await expect(page.locator(".entry.current a")).to_have_attribute("href", "/t/t-2")
    await expect(page.locator(".answer")).to_have_text("Before.")
    await ask(page, "q")
    assert [body["thread_id"] for body in script.bodies] == ["t-1", "t-2"]


async def test_a_conversation_that_is_left_goes_on_without_the_page(page: Page, script: Script) -> None:
    whole = [done("So far, so good.", [])]
    # On a busy machine the page may come back twice, as it may to a real server.
    await page.goto(await script([*tokens("So far"), WAIT], [done("B.", [])], whole, whole))
    await send(page, "q")
    await expect(page.locator(".answer")).to_have_text("So far")
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator(".turn")).to_have_count(0)
    await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    await ask(page, "other")
    assert [body["thread_id"] for body in script.bodies] == [None, None]
    script.turns = [turn("r-1", "q", None)]
    await page.go_back()
    await expect(page.locator(".answer")).to_have_text("So far, so good.")
    assert script.stopped == []
    assert set(script.came_back) == {("r-1", None)}


async def test_two_windows_of_a_conversation_agree(page: Page, script: Script) -> None:
    first = done("First.", [])
    script.turns = [turn("r-0", "zero", first)]
    address = await script([WAIT, *tokens("Second."), done("Second.", [])], [*tokens("Second."), done("Second.", [])])
    await page.goto(f"{address}/t/t-1")
    other = await page.context.new_page()
    await other.goto(f"{address}/t/t-1")
    await expect(other.locator(".answer")).to_have_text("First.")
    script.turns.append(turn("r-1", "one", None))
    await send(page, "one")
    await expect(other.locator(".question")).to_have_text(["zero", "one"])
    script.go_on()
    for window in (page, other):
        await expect(window.locator(".answer")).to_have_text(["First.", "Second."])


async def test_stop_keeps_what_was_written_also_where_it_reaches_nobody(page: Page, script: Script) -> None:
    stopped = done("So far [1]", [citation(1)], stopped=True)
    begun = [event("thinking", step="generate"), *tokens("So far [1]"), WAIT]
    await page.goto(await script([*begun, stopped], begun))
    await send(page, "q")
    await expect(page.locator(".step")).to_have_text("Writing…")
    await expect(page.locator(".answer")).to_have_text("So far [1]")
    await page.get_by_role("button", name="Stop").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator(".turn .note")).to_contain_text("You stopped this answer")
    await expect(page.locator(".answer")).to_have_text("So far 1")
    await expect(page.locator(".facts summary")).to_have_text("Stopped")
    await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    await expect(page.get_by_label("Question", exact=True)).to_be_focused()
    await page.route("**/cancel", lambda route: route.abort())
    await send(page, "q")
    await expect(page.locator(".answer").last).to_have_text("So far [1]")
    await page.get_by_role("button", name="Stop").click()
    await expect(page.locator(".turn .note").last).to_contain_text("may go on without you")
    await expect(page.locator(".answer").last).to_have_text("So far [1]")
    assert script.stopped == ["r-1"]


async def test_a_second_question_waits_for_the_first(page: Page, script: Script) -> None:
    first = [*tokens("First"), WAIT, done("First", [], stopped=True)]
    await page.goto(await script(first, [WAIT, *tokens("Second"), done("Second", [], route="conversational")]))
    await send(page, "one")
    async with page.expect_request("**/api/chat") as sent:
        await send(page, "two")
    body = (await sent.value).post_data_json
    assert body
    assert body["thread_id"] == "t-1"
    await expect(page.locator(".step").last).to_have_text("Waiting for the answer before it…")
    await expect(page.locator(".question").last).to_be_in_viewport()
    await expect(page.locator(".answer").first).to_be_in_viewport()
    await page.get_by_role("button", name="Stop: one").click()
    await expect(page.locator(".answer")).to_have_text(["First", "Second"])
    await expect(page.locator(".facts summary").first).to_have_text("Stopped")
    assert script.asked == ["one", "two"]
    assert script.stopped == ["r-1"]


async def test_of_two_answers_each_has_its_own_stop(page: Page, script: Script) -> None:
    second = [event("thinking", step="retrieve"), WAIT, done("", [], stopped=True)]
    await page.goto(await script([*tokens("First"), WAIT, WAIT, done("First.", [], route="conversational")], second))
    await send(page, "one")
    await expect(page.get_by_role("button", name="Stop")).to_have_count(1)
    await send(page, "two")
    stops = page.get_by_role("button", name="Stop")
    await expect(stops).to_have_count(2)
    await expect(page.locator("#stop")).to_be_hidden()
    await expect(page.locator(".step").last).to_have_text("Searching…")
    await page.locator(".turn").last.get_by_role("button", name="Stop").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator(".turn").last.locator(".facts summary")).to_have_text("Stopped")
    await expect(page.locator(".turn").first).to_have_class("turn working")
    await expect(page.locator("#stop")).to_be_visible()
    await expect(page.get_by_label("Question", exact=True)).to_be_focused()
    assert script.stopped == ["r-2"]
    script.go_on()
    await expect(page.locator(".answer").first).to_have_text("First.")


async def test_no_more_questions_wait_than_a_browser_has_connections_for(page: Page, script: Script) -> None:
    await page.goto(await script(*[[WAIT, done("A.", [], stopped=True)] for _ in range(4)]))
    for number in range(5):
        await send(page, str(number))
    await expect(page.get_by_role("button", name="Ask", exact=True)).to_be_disabled()
    await expect(page.get_by_label("Question", exact=True)).to_have_value("4")
    await page.get_by_role("button", name="Stop: 0").click()
    await expect(page.get_by_role("button", name="Ask", exact=True)).to_be_enabled()
    assert script.asked == ["0", "1", "2", "3"]


async def test_a_server_that_is_about_to_end_is_asked_again(page: Page, script: Script) -> None:
    cut = [*tokens("A")]
    await page.goto(await script((503, DRAINING), cut, (503, DRAINING), [*tokens(".", first=2), done("A.", [])]))
    await send(page, "q")
    await expect(page.locator(".step")).to_have_text("This server is about to end. Trying again…")
    await expect(page.locator(".answer")).to_have_text("A.")
    await expect(page.locator(".facts")).to_be_visible()
    assert script.asked == ["q", "q"]
    assert script.came_back == [("r-2", "1-1"), ("r-2", "1-1")]
    # A question that is turned away can be stopped.
    script.replies = [(503, DRAINING)] * 10
    await send(page, "q")
    await expect(page.locator(".step")).to_contain_text("Trying again…")
    await page.get_by_role("button", name="Stop").click()
    await expect(page.locator(".turn .note")).to_contain_text("You stopped this question.")
    assert script.stopped == []
