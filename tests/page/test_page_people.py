"""The page for those who look after a service: a large library, keys and people."""

import asyncio
import re
from datetime import timedelta

import httpx
import pytest
from playwright.async_api import Page, Route, expect

from app.chosen_models import ChosenModels
from app.history.retention import read_policy
from app.serving.application import make_app
from domain.assistants import Draft
from domain.people.access import OWNER
from domain.scope import Scope
from tests.history.test_retention import age
from tests.http_client import run_app
from tests.page.conftest import Site
from tests.page.scripted import ask
from tests.page.test_page_access import look
from tests.wire.openai import serve_openai
from tests.wire.serving import serve_app

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_library_is_looked_through_and_asked_in_part(page: Page, house: Site) -> None:
    await page.goto(house.address)
    await page.get_by_role("button", name="Library").click()
    panel, entries = page.locator(".left-panel"), page.get_by_label("Documents", exact=True).locator(".entry")
    await expect(page.get_by_role("button", name="Library")).to_contain_text("4")
    # Folders are as they were ingested, and what lies in them is not listed beside them.
    folders = page.get_by_label("Folders", exact=True).locator(".entry")
    await expect(folders).to_have_text(["hr2 documents", "legal1 document"])
    await expect(entries).to_have_count(1)
    # A long title is whole for the mouse and for the keyboard.
    title = entries.locator(".plain-button")
    await title.hover()
    await expect(page.locator("#tip")).to_have_text(
        "A welcome to everybody who has come here since the year began/docs/welcome.md"
    )
    await page.mouse.move(900, 500)
    await expect(page.locator("#tip")).to_have_count(0)
    await title.focus()
    await expect(page.locator("#tip")).to_be_visible()

    # Whatever is found, what it is found with stays above it.
    add, search = page.locator(".left").get_by_role("button", name="Add files"), page.get_by_label("Search the library")
    for words, found in (("", 1), ("a", 4), ("no such words", 0), ("leave", 1), ("", 1)):
        await search.fill(words)
        await expect(entries).to_have_count(found)
        shown = await asyncio.gather(*(each.bounding_box() for each in (add, search, page.get_by_label("Documents"))))
        assert [box and box["y"] for box in shown] == sorted(box["y"] for box in shown if box), words
    await page.get_by_label("Search the library").fill("trav hr")
    await expect(entries).to_have_count(1)
    await expect(entries).to_contain_text("Travel")
    await page.get_by_label("Search the library").fill("")
    await folders.first.click()
    await expect(page.get_by_label("Folder", exact=True)).to_have_text("All documents › hr")
    await expect(folders).to_have_text(["leave1 document"])
    await page.get_by_label("Folder", exact=True).get_by_role("button", name="All documents").click()

    await panel.locator("summary").click()
    await page.get_by_label("team").get_by_role("button", name="legal").click()
    await expect(entries).to_have_count(2)
    assert await look(page) == {}
    await page.get_by_role("button", name="Ask only these 2 documents").click()
    await expect(panel).to_contain_text("Answers come only from legal (2 documents).")
    await ask(page, "How many days of annual leave does everybody have?")
    await expect(page.locator(".answer")).not_to_contain_text("31")
    # What the question was limited by is known after a reload too.
    await page.reload()
    await page.get_by_role("button", name="Search all documents instead").click()
    await expect(page.locator(".answer").last).to_contain_text("31 days")
    # Beside a file that came without a folder: the root of a file system has no name, and none is shown.
    await house.add("notes.md", "# Notes\n\nNone.")
    await page.reload()
    await page.get_by_role("button", name="Library").click()
    await expect(folders).to_have_text(["docs4 documents"])
    await folders.get_by_role("button").click()
    await expect(page.get_by_label("Folder", exact=True)).to_have_text("All documents › docs")
    await expect(folders.first).to_contain_text("hr")


async def test_the_first_key_and_all_others_are_made_on_the_page(page: Page, house: Site) -> None:
    await page.goto(house.address)
    await page.get_by_role("link", name="Settings").click()
    await expect(page.get_by_text("There is no key yet")).to_be_visible()
    assert await look(page) == {}
    await page.get_by_role("button", name="Make your own key").click()
    await expect(page.get_by_label("Who or what will use it?")).to_be_focused()
    await page.keyboard.type("Petra")
    await page.keyboard.press("Enter")
    await expect(page.locator(".secret")).to_have_text(re.compile("^ask_"))
    assert await look(page) == {}
    await page.get_by_role("button", name="I have kept it: sign in with it").click()
    rows = page.locator("tbody").first.locator("tr")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("Petra (yours)")
    # Nobody takes away their own key.
    await expect(rows.get_by_role("button")).to_have_text(["Change"])

    await page.get_by_role("button", name="Make a key").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Who or what will use it?").fill("Ann")
    await dialog.get_by_label("Only documents of some groups").check()
    await dialog.get_by_placeholder("Names, with commas").fill("board, staff")
    await dialog.get_by_label("Ends").select_option("in 90 days")
    assert await look(page, "dialog") == {}
    await dialog.get_by_role("button", name="Make a key").click()
    secret = await page.locator(".secret").text_content() or ""
    await page.get_by_role("button", name="I have kept it").click()
    await expect(dialog).to_have_count(0)
    ann = rows.filter(has_text="Ann")
    await expect(ann).to_contain_text("board, staff")
    await ann.get_by_role("button", name="Change Ann").click()
    await dialog.get_by_text("Limits").click()
    await dialog.get_by_label("Dollars a day").fill("2.5")
    await dialog.get_by_role("button", name="Change").click()
    await expect(ann).to_contain_text("$2.50 a day")
    [_, kept] = await house.services.keys.list()
    assert (kept.groups, kept.rights, kept.workspaces) == (frozenset({"board", "staff"}), frozenset({"ask"}), None)
    assert kept.expires_at is not None
    assert await look(page) == {}

    # Ann's key opens neither this page nor what it is made of.
    async with httpx.AsyncClient(base_url=house.address, headers={"X-API-Key": secret}) as client:
        assert (await client.get("/api/session")).status_code == 200
        assert (await client.get("/api/keys")).status_code == 403
    await ann.get_by_role("button", name="Revoke Ann").click()
    await ann.get_by_role("button", name="Really revoke Ann").click()
    await expect(ann).to_contain_text("revoked")

    await page.get_by_role("link", name="Back to the questions").click()
    await page.get_by_role("button", name="Library").click()
    entry = page.get_by_label("Documents", exact=True).locator(".entry")
    await entry.locator(".plain-button").click()
    await page.get_by_role("button", name="Who may read this document").click()
    assert await look(page, "dialog") == {}
    await dialog.get_by_label("Groups").fill("board")
    await page.keyboard.press("Enter")
    await expect(page.locator(".evidence")).to_contain_text("Only board may read it.")
    await expect(entry).to_contain_text("board")
    await ask(page, "How many days of annual leave does everybody have?")
    await page.goto(f"{house.address}/settings")
    usage = page.get_by_role("group", name="Usage of the last 30 days")
    await expect(usage.locator("tbody tr")).to_have_count(1)
    await page.get_by_label("By").select_option("Person")
    await expect(usage.locator("tbody tr")).to_have_text(["Petra100–"])
    await page.get_by_role("link", name="Runs and sets of questions").click()
    await expect(page.locator(".runs")).to_contain_text("How many days of annual leave")


async def test_workspaces_and_who_may_read_their_documents(page: Page, house: Site) -> None:
    async with httpx.AsyncClient(base_url=house.address, timeout=60) as client:
        body = {"question": "How many days of annual leave does everybody have?"}
        assert (await client.post("/api/chat?stream=false", json=body)).is_success
    await house.add("kept.md", "# Kept\n\nThis stays.", "le-gal.1")
    await house.services.assistants.create(Scope("default"), Draft(name="desk"), OWNER)
    await page.goto(f"{house.address}/settings")
    dialog = page.get_by_role("dialog")
    workspaces = page.get_by_role("group", name="Workspaces").locator("tbody tr")
    await expect(workspaces).to_contain_text(["default41", "le-gal.110"])
    await page.get_by_role("button", name="Who may read default").click()
    documents = page.get_by_role("group", name="Who may read the documents of default")
    await expect(documents.locator("tbody tr")).to_have_count(4)
    assert await look(page) == {}
    # What words find is changed together.
    await page.get_by_label("Title, path or group").fill("/hr/")
    await page.get_by_role("button", name="Change for these 2 documents").click()
    await dialog.get_by_label("Groups").fill("hr, board")
    assert await look(page) == {}
    await page.keyboard.press("Enter")
    await expect(documents.locator("tbody tr").first).to_contain_text("board, hr")
    await page.get_by_role("list", name="Groups").get_by_role("button", name="board").click()
    await expect(documents.locator("tbody tr")).to_have_count(2)
    readers = {each.source: each.groups for each in await house.services.library.documents.list("default")}
    assert {source for source, groups in readers.items() if groups} == {
        "/docs/hr/leave/annual.md",
        "/docs/hr/travel.md",
    }

    # A workspace goes once its name is typed; what is in others stays.
    await page.get_by_role("button", name="Delete default").click()
    await expect(dialog).to_contain_text("This deletes 4 documents and 1 conversation")
    assert await look(page) == {}
    await dialog.get_by_label("type its name").fill("defaults")
    await dialog.get_by_role("button", name="Delete").click()
    assert len(await house.services.library.documents.list("default")) == 4
    await dialog.get_by_label("type its name").fill("default")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(workspaces.first).to_have_text("default00")
    assert await house.services.library.documents.list("default") == []
    assert await house.services.runs.assistants.list(Scope("default")) == []
    await page.get_by_role("button", name="Delete le-gal.1").click()
    await dialog.get_by_label("type its name").fill("le-galx1")
    await dialog.get_by_role("button", name="Delete").click()
    assert await dialog.get_by_label("type its name").evaluate("(field) => field.validity.patternMismatch")
    assert len(await house.services.library.documents.list("le-gal.1")) == 1
    await dialog.get_by_role("button", name="Cancel").click()

    await page.get_by_role("button", name="New workspace").click()
    assert await look(page) == {}
    await dialog.get_by_label("Name").fill("sales")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{house.address}/?workspace=sales")
    await expect(page.locator(".drop-area")).to_contain_text("The library is empty.")


async def test_a_service_that_others_reach_says_how_its_first_key_is_made(page: Page, house: Site) -> None:
    async with run_app(make_app(house.services, exposed=True)) as app, serve_app(app) as address:
        await page.goto(address)
        await page.get_by_role("link", name="Settings").click()
        await expect(page.get_by_text("The first key is made where the service runs")).to_be_visible()
        await expect(page.locator(".secret")).to_contain_text("askgraph keys create")
        await expect(page.get_by_role("button", name="Make your own key")).to_have_count(0)
        assert await look(page) == {}


async def test_documents_beyond_the_first_are_reached(page: Page, house: Site) -> None:
    async def list_many(route: Route) -> None:
        many = [{"id": str(number), "title": f"Paper {number}", "source": "", "groups": []} for number in range(120)]
        await route.fulfill(json={"documents": many})

    await page.route("**/api/documents?*", list_many)
    await page.goto(f"{house.address}/settings")
    await page.get_by_role("button", name="Who may read default").click()
    rows = page.get_by_role("group", name="Who may read the documents of default").locator("tbody tr")
    for shown in (50, 100, 120):
        await expect(rows).to_have_count(shown)
        if shown < 120:
            await page.get_by_role("button", name="Show more").click()
    await expect(page.get_by_role("button", name="Show more")).to_have_count(0)


async def test_how_long_conversations_are_kept_is_changed_where_it_is_shown(page: Page, house: Site) -> None:
    async with httpx.AsyncClient(base_url=house.address, timeout=60) as client:
        old = (await client.post("/api/chat?stream=false", json={"question": "How are trains booked?"})).json()
    url = house.services.settings.database_url
    assert url is not None
    await age(url.get_secret_value(), old["thread_id"], days=10)
    kept = page.get_by_label("Conversations, from their last question on")
    said = page.locator(".retention").get_by_role("alert")
    await page.goto(f"{house.address}/settings")
    await expect(kept).to_have_value("")
    # What goes is said first, and can be taken back.
    await kept.select_option("7")
    await expect(said).to_contain_text("1 conversation and the steps of up to 1 answer are deleted")
    assert await look(page) == {}
    await said.get_by_role("button", name="Cancel").click()
    await expect(kept).to_have_value("")
    # What deletes nothing now says nothing.
    await kept.select_option("90")
    await page.get_by_label("Another time for").select_option("default")
    await page.get_by_label("In default").select_option("365")
    await expect(said).not_to_contain_text("deleted")
    # What is only tried may still be under way.
    async with page.expect_response(lambda each: '"dry_run":false' in (each.request.post_data or "")):
        await said.get_by_role("button", name="Keep them so").click()
    await expect(said).to_be_empty()
    await page.reload()
    await expect(kept).to_have_value("90")
    await expect(page.get_by_label("In default")).to_have_value("365")
    policy = await read_policy(house.services.settings, house.services.runs.retention)
    assert (policy.older_than, policy.by_workspace) == (timedelta(days=90), {"default": timedelta(days=365)})


async def test_a_model_is_tried_and_kept_on_the_page(page: Page, house: Site) -> None:
    async with serve_openai(models=("qwen3:8b",)) as server:
        await page.goto(f"{house.address}/settings")
        form = page.locator("form.models")
        await form.get_by_label("Model").fill("qwen3:8b")
        await form.get_by_label("Address").fill(server.base_url)
        await form.get_by_role("button", name="Try it").click()
        await expect(form.get_by_role("status")).to_contain_text("Calls functions: yes")
        assert await look(page) == {}
        assert ChosenModels.read(house.services.settings.home) is None
        await form.get_by_role("button", name="Use it").click()
        await expect(page.get_by_text("From the next start on qwen3:8b writes.")).to_be_visible()
        chosen = ChosenModels.read(house.services.settings.home)
        assert chosen is not None
        assert chosen.openai_base_url == server.base_url
        await form.get_by_label("Address").fill("http://127.0.0.1:9/v1")
        await form.get_by_role("button", name="Try it").click()
        await expect(form.get_by_role("alert")).to_contain_text("does not answer")


async def test_questions_to_begin_with_are_of_any_folder(page: Page, house: Site) -> None:
    await house.add(
        "/docs/hr/Cars.md", "# Cars\n\n## Scope\n\nFor all.\n\n## Parking\n\nA permit for the yard costs 20 euros."
    )
    await page.goto(house.address)
    asked = [
        "How much does a permit for the yard cost?",
        "How long is the notice period?",
        "Which documents are there?",
    ]
    await expect(page.locator(".starters button")).to_have_text(asked)
    await page.locator(".starters button").first.click()
    await expect(page.locator(".answer")).to_contain_text("20 euros")
    await expect(page.locator(".facts")).to_contain_text("sure")
