"""The page for those who look after a service: a large library, keys and people."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from app.access import authentication
from app.adapters.embedded import Servers
from app.serving.application import make_app
from app.settings import read_settings
from app.wiring.services import Services, open_services
from domain.library.metadata import Metadata
from tests.conftest import create_database
from tests.http_client import run_app
from tests.page.scripted import ask
from tests.wire.serving import serve_app

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAPERS: dict[str, tuple[Metadata, str]] = {
    "/docs/hr/leave/annual.md": ({"team": "hr"}, "# Annual leave\n\nEverybody has 31 days of annual leave."),
    "/docs/hr/travel.md": ({"team": "hr"}, "# Travel\n\nTrains are booked in second class."),
    "/docs/legal/notice.md": ({"team": "legal"}, "# Notice\n\nThe notice period is 3 months."),
    "/docs/welcome.md": (
        {"team": "legal"},
        "# A welcome to everybody who has come here since the year began\n\nHello.",
    ),
}


@dataclass
class House:
    """A service in this process, whose library has folders."""

    address: str
    services: Services


@pytest_asyncio.fixture(loop_scope="session")
async def house(servers: Servers, template: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    monkeypatch.setattr(authentication, "TRUSTED_SECONDS", 0)
    async with create_database(servers, template) as url:
        settings = read_settings(DATABASE_URL=url, REDIS_URL=servers.redis_url, load_samples=False)
        async with (
            open_services(settings) as services,
            run_app(make_app(services)) as app,
            serve_app(app) as address,
        ):
            for source, (metadata, text) in PAPERS.items():
                await services.library.ingestion.add("default", source, text.encode(), metadata=metadata)
            yield House(address, services)


async def test_a_library_is_looked_through_and_asked_in_part(page: Page, house: House) -> None:
    await page.goto(house.address)
    await page.get_by_role("tab", name="Library").click()
    panel, entries = page.locator(".left-panel"), page.get_by_label("Documents", exact=True).locator(".entry")
    await expect(page.get_by_role("tab", name="Library")).to_contain_text("4")
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
    await page.get_by_role("button", name="Ask only these 2 documents").click()
    await expect(panel).to_contain_text("Answers come only from legal (2 documents).")
    await ask(page, "How many days of annual leave does everybody have?")
    await expect(page.locator(".answer")).not_to_contain_text("31")
    # What the question was limited by is known after a reload too.
    await page.reload()
    await page.get_by_role("button", name="Search all documents instead").click()
    await expect(page.locator(".answer").last).to_contain_text("31 days")
