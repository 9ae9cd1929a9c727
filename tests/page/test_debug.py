"""The debugger's page on the real service."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect

from app.settings import Settings
from app.workbench.replay.bundle import read_bundle
from tests.page.scripted import ask
from tests.page.test_page_access import look
from tests.wire.openai import OpenAIServer

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTILE = r"\<img src=x onerror=alert(1)\> Sturm" + " \u202egnp"
FACTS = (
    "is made of brass",
    "weighs 40 grams",
    "must be oiled every spring",
    "is sold in boxes of six",
    "is painted white against the sun",
    "comes from a foundry in Bergen",
    "is tested at forty degrees below zero",
    "has a thread of eight millimetres",
    "is cleaned with vinegar",
    "is stored in wooden crates",
)
PARTS = {
    f"part-{number}.md": f"# {HOSTILE} {number}\n\n"
    f"Part {number} of the Sturm wind gauge has a warranty of {number} years and {fact}."
    for number, fact in enumerate(FACTS, 1)
}
"""Documents of their own, because what stands side by side becomes one source."""
QUESTION = "How many years of warranty does part 3 of the Sturm wind gauge have?"


@dataclass
class Asked:
    """A workspace of its own, and a run in it."""

    site: str
    client: httpx.AsyncClient
    run_id: str

    def at(self, path: str) -> str:
        """The address of a page in the workspace."""
        return f"{self.site}{path}?workspace=gauges"

    async def send(self, question: str, **body: Any) -> Any:
        """Ask, and return the answer."""
        body = {"question": question, "workspace": "gauges", "mode": "thorough", **body}
        answered = await self.client.post("/api/chat?stream=false", json=body)
        assert answered.is_success, answered.text
        return answered.json()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def asked(site: str) -> AsyncIterator[Asked]:
    async with httpx.AsyncClient(base_url=site, timeout=60) as client:
        files = [("files", (name, text.encode())) for name, text in PARTS.items()]
        added = await client.post("/api/documents", files=files, params={"workspace": "gauges"})
        assert added.is_success, added.text
        made = Asked(site, client, "")
        made.run_id = (await made.send(QUESTION))["run_id"]
        await made.send("Which composer wrote the opera Fidelio?")
        yield made


@asynccontextmanager
async def hold_writing(site: str, model: OpenAIServer, question: str) -> AsyncIterator[str]:
    """Ask, and keep the model from writing the answer meanwhile. Gives the run's id."""
    released = asyncio.Event()

    async def hold(body: Any) -> None:
        if body.get("stream"):
            await released.wait()

    model.hold = hold
    try:
        async with (
            httpx.AsyncClient(base_url=site, timeout=60) as client,
            client.stream("POST", "/api/chat", json={"question": question}) as response,
        ):
            yield response.headers["X-Run-Id"]
            released.set()
            await response.aread()
    finally:
        model.hold = None


async def test_one_click_leads_from_an_answer_to_why_a_passage_was_dropped(page: Page, asked: Asked) -> None:
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    await page.goto(asked.at("/"))
    await ask(page, "How much does part 2 of the Sturm wind gauge weigh?")
    await page.get_by_role("link", name="Why this answer?").click()
    dropped = page.locator(".candidate.bad .dropped")
    await expect(dropped.first).to_contain_text("(profile.rerank.keep): relevance")
    await expect(page.locator(".why")).to_contain_text("the best that was dropped")
    # What strangers have written is text, also where it would be markup, and what hides in it is named.
    await expect(page.locator(".candidate b").first).to_contain_text("<img src=x onerror=alert(1)>")
    await expect(page.locator(".candidate b").first).to_contain_text("‹U+202E›gnp")
    assert await page.locator("main img").count() == 0
    assert dialogs == []


async def test_passages_of_one_source_stand_together_without_marks(page: Page, asked: Asked) -> None:
    parts = [f"## Calm {part}\n\nThe Calm anemometer {part} {fact}." for part, fact in enumerate(FACTS)]
    files = [("files", ("calm.md", "\n\n".join(["# Calm", *parts]).encode()))]
    await asked.client.post("/api/documents", files=files, params={"workspace": "gauges"})
    run_id = (await asked.send("What must be oiled every spring at the Calm anemometer 2?"))["run_id"]
    await page.goto(asked.at(f"/debug/runs/{run_id}"))
    entries = page.locator(".middle-pane > .candidates > .candidate")
    await expect(entries.first).to_be_visible()
    badges = await entries.locator("> .heading .badge").all_inner_texts()
    named = [badge for badge in badges if badge != "dropped"]
    assert named
    assert len(named) == len(set(named))
    group = entries.filter(has_text="more passage").first
    await group.locator("summary").click()
    await expect(group.locator(".candidate").first).to_be_visible()
    assert await group.locator(".candidate .badge").count() == 0
    assert await look(page, ".middle-pane") == {}
    assert "##" not in await page.locator(".middle-pane").inner_text()


async def test_the_debugger_is_in_one_language(browser: Browser, asked: Asked) -> None:
    context = await browser.new_context(locale="de-DE")
    window = await context.new_page()
    await window.goto(asked.at("/debug"))
    await expect(window.locator(".runs a").last).to_contain_text(re.compile(r"now|\d+ min"))
    await context.close()


async def test_a_value_of_a_saved_state_is_changed_where_it_stands(page: Page, asked: Asked) -> None:
    run_id = (await asked.send("Is part 8 of the Sturm wind gauge painted white?"))["run_id"]
    await page.goto(f"{asked.at(f'/debug/runs/{run_id}')}#grade")
    await page.get_by_text("The whole state after this step").click()
    await page.get_by_role("button", name="Change confidence").click()
    await expect(page.get_by_label("Begin with")).to_have_value("after grade")
    # It goes on there at once, without another click.
    await expect(page.get_by_label("New value")).to_be_focused()
    await page.get_by_label("New value").fill("0")
    await page.keyboard.press("Enter")
    second = page.get_by_label("The second", exact=True)
    await expect(second).to_contain_text("steps took")
    # What does not answer has none: that of its last grade stands above.
    await expect(second).not_to_contain_text("confidence")
    await expect(page.locator(".middle-pane .changes").first).to_contain_text(re.compile(r"^confidence0\.\d+ → 0"))
    # A step that does not read what is proposed for another proposes nothing of it.
    await page.goto(asked.at(f"/debug/runs/{run_id}"))
    await page.locator("[data-step=verify]").click()
    await expect(page.get_by_label("Value to change")).to_have_value("")


async def test_runs_are_filtered_and_what_went_wrong_is_grouped(page: Page, asked: Asked) -> None:
    await page.goto(asked.at("/debug"))
    entries = page.locator(".runs a")
    await expect(entries.filter(has_text=QUESTION)).to_have_count(1)
    await expect(page.locator(".failures")).to_contain_text("kept, and judged not to answer")
    await page.get_by_label("Words").fill("FIDELIO composer")
    await page.get_by_label("Words").press("Enter")
    await expect(entries).to_have_count(1)
    await page.get_by_label("When").select_option("yesterday")
    await expect(page.locator(".list-page")).to_contain_text("No run of yesterday is like that.")
    await page.get_by_label("When").select_option("7d")
    await page.get_by_label("Words").fill("")
    await page.get_by_label("Words").press("Enter")
    await page.get_by_label("Outcome").select_option("abstained")
    await expect(entries).to_have_count(1)
    await expect(entries).to_contain_text("Fidelio")
    await page.get_by_label("Mode").select_option("fast")
    await expect(page.locator(".list-page")).to_contain_text("No run of the last 7 days is like that.")
    await page.get_by_label("Mode").select_option("")
    await page.get_by_text("More filters").click()
    await page.get_by_label("Where").fill("nonsense > 3")
    await page.get_by_label("Where").press("Enter")
    await expect(page.locator(".note.bad")).to_contain_text("A run has no 'nonsense'.")
    # What is listed is never what was not asked for.
    await expect(entries).to_have_count(0)
    # Both have to hold, whatever stands in the field.
    await page.get_by_label("Where").fill("retries >= 0 or ms > 0")
    await page.get_by_role("button", name="Filter").click()
    await expect(entries).to_have_count(1)
    await page.reload()
    await expect(entries).to_have_count(1)
    await entries.click()
    await expect(page.locator(".summary h1")).to_contain_text("Fidelio")
    await page.go_back()
    await page.get_by_label("Outcome").select_option("")
    await expect(entries.filter(has_text=QUESTION)).to_have_count(1)


async def test_a_slow_answer_about_earlier_filters_changes_nothing(page: Page, asked: Asked) -> None:
    released = asyncio.Event()

    async def hold(route: Route) -> None:
        await released.wait()
        await route.continue_()

    entries = page.locator(".runs a")
    await page.route(lambda url: "/api/runs?" in url and "abstained" in url, hold)
    await page.goto(asked.at("/debug"))
    await expect(entries.filter(has_text=QUESTION)).to_have_count(1)
    await page.get_by_label("Outcome").select_option("abstained")
    async with page.expect_response(lambda response: "/api/runs?" in response.url):
        await page.get_by_label("Outcome").select_option("")
    async with page.expect_response(lambda response: "abstained" in response.url) as late:
        released.set()
    await (await late.value).finished()
    await page.evaluate("new Promise((shown) => setTimeout(shown, 200))")
    await expect(entries.filter(has_text=QUESTION)).to_have_count(1)


async def test_a_changed_knob_is_run_on_and_stands_beside_the_run(page: Page, asked: Asked) -> None:
    run_id = (await asked.send("How many grams does part 2 of the Sturm wind gauge have?"))["run_id"]
    await page.goto(f"{asked.at(f'/debug/runs/{run_id}')}#rerank")
    await expect(page.locator(".candidate").first).to_be_visible()
    await expect(page.locator(".graph .node.visited")).to_have_count(await page.locator("[data-step]").count() - 1)
    await expect(page.get_by_label("New value")).to_have_attribute("placeholder", "now 8")
    # A change that no step would notice is refused with what to do about it.
    await page.get_by_label("Begin with").select_option("after rerank")
    await page.get_by_label("New value").fill("1")
    await page.get_by_role("button", name="Run on").click()
    await expect(page.locator(".change .note")).to_contain_text("'profile.rerank.keep' cannot take effect")
    await page.get_by_label("Begin with").select_option("node rerank")
    await page.get_by_role("button", name="Run on").click()
    sides = page.locator(".side")
    await expect(sides).to_have_count(2)
    for side in await sides.all():
        await expect(side.locator(".written")).to_contain_text("40 grams")
    await expect(page.locator(".changes").first).to_contain_text("8 → 1")
    await expect(page.locator(".parts-here")).to_contain_text("rerank came to another result")
    await expect(page.locator(".entry-step.parts")).to_have_attribute("data-step", "rerank")
    await expect(page.locator(".graph .node.parts")).to_have_attribute("data-node", "rerank")
    read = page.locator(".places").last.locator(".badge.warn, .badge.good")
    await expect(page.locator(".places")).to_have_count(2)
    assert await read.count() < await page.locator(".places").first.locator(".badge.warn, .badge.good").count()
    # Words that only one of them says are marked by more than colour.
    added = sides.last.locator("ins")
    if await added.count():
        await expect(added.first).to_have_css("text-decoration-line", "underline")
        await expect(added.first.locator(".unseen").first).to_have_text(" only here: ")
    # The comparison has an address.
    await page.reload()
    await expect(sides).to_have_count(2)
    await page.get_by_role("link", name="Open the second").click()
    await expect(page.locator(".summary")).to_contain_text(
        "The run that it continues, with profile.rerank.keep changed"
    )


async def test_a_change_is_tried_on_the_runs_that_are_listed(page: Page, asked: Asked) -> None:
    await page.goto(asked.at("/debug"))
    await page.get_by_label("Outcome").select_option("answered")
    await page.get_by_text("Try a change on these runs").click()
    form = page.get_by_role("form", name="Try a change")
    await form.get_by_role("button").click()
    await expect(page.locator(".fleet .note.bad")).to_contain_text("Say what to change")
    await form.get_by_label("Knob").fill("profile.grade.sufficient")
    await form.get_by_label("New value").fill("1.0")
    await form.get_by_role("button").click()
    await expect(page.locator(".fleet [role=status]")).to_contain_text("no language model is asked")
    await page.get_by_role("button", name="Replay ").click()
    report = page.get_by_role("region", name="Report")
    await expect(report).to_contain_text("With profile.grade.sufficient=1.0")
    await expect(report.locator("summary").first).to_be_visible()
    await report.locator("summary").first.click()
    await expect(report.locator(".side")).not_to_have_count(0)


async def test_a_conversation_is_looked_at_as_a_whole(page: Page, asked: Asked) -> None:
    first = await asked.send("Which part of the Sturm wind gauge is cleaned with vinegar?")
    await asked.send("And which is made of brass?", thread_id=first["thread_id"])
    await page.goto(asked.at(f"/debug/runs/{first['run_id']}"))
    await page.get_by_text("Question 1 of 2 in its conversation").click()
    await page.get_by_role("link", name="And which is made of brass?").click()
    await expect(page.locator(".summary h1")).to_contain_text("And which")
    # A test holds what was typed, and says what that took from the conversation.
    await expect(page.get_by_label("Question", exact=True)).to_have_value("And which is made of brass?")
    await expect(page.locator(".tools-pane")).to_contain_text("It was understood as “And which is made of brass? (")
    await page.get_by_text("Question 2 of 2 in its conversation").click()
    assert await look(page, ".summary") == {}
    await page.get_by_role("link", name="All of them").click()
    entries = page.locator(".runs a")
    await expect(entries).to_have_count(2)
    await expect(page.locator(".charts")).to_contain_text("2 runs")
    # What is looked at often is kept under a name.
    await page.get_by_label("Name of this view").fill("Vinegar")
    await page.get_by_role("button", name="Keep this view").click()
    await page.goto(asked.at("/debug"))
    await page.get_by_role("link", name="Vinegar", exact=True).click()
    assert await look(page) == {}
    await expect(entries).to_have_count(2)
    await page.get_by_role("button", name="Remove the view Vinegar").click()
    await page.reload()
    await expect(entries).to_have_count(2)
    for box in await page.get_by_role("checkbox", name="Compare").all():
        await box.check()
    await page.get_by_role("link", name="Compare these two").click()
    await expect(page.get_by_label("The second", exact=True)).to_contain_text("wind gauge")
    await expect(page.get_by_role("link", name="Vinegar", exact=True)).to_have_count(0)


async def test_an_answer_from_the_cache_leads_to_the_run_that_made_it(page: Page, asked: Asked) -> None:
    question = "Which part of the Sturm wind gauge comes from a foundry in Bergen?"
    made, again = await asked.send(question), await asked.send(question)
    assert again["cached"]
    await page.goto(asked.at(f"/debug/runs/{again['run_id']}"))
    await expect(page.locator(".tools-pane")).to_contain_text("No step of this run is saved")
    await expect(page.get_by_role("button", name="Replay strictly")).to_have_count(0)
    await page.get_by_role("link", name="The run that made this answer").click()
    await expect(page).to_have_url(re.compile(made["run_id"]))


async def test_an_address_that_names_no_run_says_so(page: Page, asked: Asked) -> None:
    await page.goto(f"{asked.site}/debug/runs/%25")
    await expect(page.get_by_role("alert").filter(has_text="There is no run")).to_be_visible()
    await page.goto(f"{asked.site}/debug/runs/%")
    await expect(page.get_by_role("alert").filter(has_text="There is no run")).to_be_visible()


async def test_what_a_variant_flips_is_taken_over_into_the_form(page: Page, asked: Asked) -> None:
    await page.goto(asked.at(f"/debug/runs/{asked.run_id}"))
    await page.get_by_role("button", name="Try what would change it").click()
    flipped = page.locator(".variants").first.locator("li")
    await expect(flipped.first).to_contain_text("changes ", timeout=45_000)
    await flipped.filter(has_text="grade says").get_by_role("button").click()
    await expect(page.get_by_label("Begin with")).to_have_value("after grade")
    await expect(page.get_by_label("Value to change")).to_have_value("confidence")
    await expect(page.locator(".change")).to_contain_text("The probability that the sources hold the answer")
    tape = page.get_by_label("Answer from the tape")
    await expect(tape).to_be_checked()
    # To search anew, the tape must not answer; and what can be tried on one run can be on all.
    await page.get_by_text("The other ").click()
    await page.get_by_role("button", name="Use this: searched anew").click()
    await expect(page.get_by_label("Begin with")).to_have_value("node retrieve")
    await expect(tape).not_to_be_checked()
    await page.get_by_role("link", name="Try it on all runs").click()
    await expect(page.get_by_label("Only search anew")).to_be_checked()
    await page.get_by_role("button", name="Show what it would do").click()
    await expect(page.locator(".fleet [role=status]")).to_contain_text("would be replayed")


async def test_the_run_says_what_its_reader_said_and_back_stays_in_it(page: Page, asked: Asked) -> None:
    question = "Is part 10 of the Sturm wind gauge stored in wooden crates?"
    answered = await asked.send(question)
    said = {"rating": "down", "reason": "wrong", "comment": "They are of steel."}
    await asked.client.put(f"/api/runs/{answered['run_id']}/feedback", json=said, params={"workspace": "gauges"})
    changed = ("files", ("part-10.md", PARTS["part-10.md"].replace("wooden", "steel").encode()))
    await asked.client.post("/api/documents", files=[changed], params={"workspace": "gauges"})
    await page.goto(asked.at(f"/debug/runs/{answered['run_id']}"))
    await expect(page.locator(".summary")).to_contain_text("A reader complains: wrong. “They are of steel.”")
    await expect(page.locator(".summary")).to_contain_text("Answered from a document that has changed since")
    await expect(page.locator(".answer")).to_contain_text("wooden")
    # Bars lie in the time of the run.
    ends = await page.locator(".entry-step rect").evaluate_all(
        "(bars) => bars.map((bar) => bar.x.baseVal.value + bar.width.baseVal.value)"
    )
    assert ends == sorted(ends)
    assert max(ends) <= 101
    await page.locator("[data-step=retrieve]").click()
    await page.locator("[data-step=grade]").click()
    await page.go_back()
    await expect(page.locator(".middle-pane h2").first).to_have_text("retrieve")
    await page.go_back()
    await expect(page.locator(".middle-pane h2").first).to_have_text("Answer")


async def test_a_strict_replay_is_identical_and_a_bundle_is_downloaded(
    page: Page, asked: Asked, tmp_path: Path
) -> None:
    await page.goto(asked.at(f"/debug/runs/{asked.run_id}"))
    await page.get_by_role("button", name="Replay strictly").click()
    await expect(page.locator(".right")).to_have_text("✓ Identical")
    async with page.expect_download() as downloading:
        await page.get_by_role("link", name="Download the bundle").click()
    downloaded = await downloading.value
    assert downloaded.suggested_filename == f"{asked.run_id}.askgraph"
    file = tmp_path / "run.askgraph"
    await downloaded.save_as(file)
    assert read_bundle(file.read_bytes()).record.run_id == asked.run_id


async def test_a_run_in_progress_lights_its_nodes(page: Page, model_site: str, model: OpenAIServer) -> None:
    async with hold_writing(model_site, model, "Who handles the claims?") as run_id:
        await page.goto(f"{model_site}/debug/runs/{run_id}")
        await expect(page.locator(".summary .badge")).to_have_text("running")
        await page.locator(".node.now[data-node=generate]").wait_for()
        # What is saved is shown while it goes on.
        await expect(page.locator("[data-step=retrieve]")).to_be_visible()
        await expect(page.locator(".tools-pane")).to_contain_text("When the run has ended")
    await expect(page.locator(".summary .badge")).not_to_have_text("running")
    await expect(page.locator(".node.now")).to_have_count(0)
    # What would ask a model is no row that changes nothing.
    await page.get_by_role("button", name="Try what would change it").click()
    await expect(page.locator(".tools-pane")).to_contain_text(
        re.compile(r"of \d+ tried change something; \d+ would ask")
    )
    await expect(page.get_by_role("button", name=re.compile(r"Ask it, (about \$|at a price)"))).to_be_visible()
    # The answer was begun while the question was still being read; it is shown where it belongs.
    await page.locator("[data-step=generate]").click()
    await page.locator(".calls summary").last.click()
    await expect(page.locator(".calls details[open] pre").first).to_be_visible()
    # Its prompt is edited in place, and the model is asked with it.
    await page.get_by_role("button", name="Edit this prompt").last.click()
    prompt = page.get_by_label("New value")
    await expect(prompt).to_have_value(re.compile("You answer a question"))
    await prompt.fill("Answer like a pirate.")
    await page.get_by_role("button", name="Run on").click()
    await expect(page.locator(".side")).to_have_count(2)
    asked_so = [body["messages"][0]["content"] for body in model.requests]
    assert asked_so.count("Answer like a pirate.") == 1


async def test_an_answer_that_fell_back_is_not_shown_as_a_good_one(
    page: Page, model_site: str, model: OpenAIServer
) -> None:
    badges: list[str | None] = []
    async with httpx.AsyncClient(base_url=model_site, timeout=60) as client:
        for faulty in ("none", Settings().model_large):
            model.behaviour.model_faults = {faulty: "policy"}
            # A threshold of its own, so that nothing comes from the cache.
            body = {"question": "How long is the warranty of the Falke?", "threshold": 0.001 * (len(badges) + 1)}
            answered = (await client.post("/api/chat?stream=false", json=body)).json()
            assert (answered["outcome"], bool(answered["degraded"])) == ("answered", faulty != "none")
            await page.goto(f"{model_site}/debug")
            listed = page.locator(f".runs a[href*='{answered['run_id']}']")
            badges.append(await listed.locator(".badge").get_attribute("class"))
            await listed.click()
            badges.append(await page.locator(".summary .badge").get_attribute("class"))
    model.behaviour.model_faults = {}
    assert badges == ["badge good", "badge good", "badge warn", "badge warn"]


async def test_what_ran_twice_is_counted(page: Page, asked: Asked) -> None:
    async def repeat(route: Any) -> None:
        trace = await (await route.fetch()).json()
        loop = [step for step in trace["steps"] if step["node"] in ("retrieve", "rerank", "grade")]
        again = [{**step, "name": f"{step['name']}@2", "ms": 1000} for step in loop]
        place = trace["steps"].index(loop[-1]) + 1
        trace["steps"][place:place] = again
        await route.fulfill(json=trace)

    await page.route("**/trace?*", repeat)
    await page.goto(asked.at(f"/debug/runs/{asked.run_id}"))
    grade = page.get_by_role("button", name=re.compile(r"^grade, 1\.\d\d s, 2 times$"))
    await expect(grade.locator(".times")).to_have_text("2×")
    await grade.click()
    await expect(page.locator(".middle-pane h2")).to_have_text("grade@2")


async def test_a_traced_run_leads_to_its_trace(page: Page, asked: Asked) -> None:
    async def add_trace(route: Any) -> None:
        run = await (await route.fetch()).json()
        run["ended"]["trace_url"] = "https://smith.example/run"
        await route.fulfill(json=run)

    await page.route(re.compile(rf"/api/runs/{asked.run_id}\?"), add_trace)
    await page.goto(asked.at(f"/debug/runs/{asked.run_id}"))
    link = page.get_by_role("link", name="Open in LangSmith")
    await expect(link).to_have_attribute("href", "https://smith.example/run")
