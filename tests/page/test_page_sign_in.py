"""The page on a service that asks for a key."""

import re

import pytest
from playwright.async_api import Page, expect

from app.access.keys import make_key
from app.adapters.embedded import Servers
from domain.people.access import ApiKey
from tests.page.conftest import STATION, Site, open_site
from tests.page.scripted import ask
from tests.wire.oidc import serve_oidc

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_reader_signs_in_asks_and_signs_out(page: Page, house: Site) -> None:
    house.services.settings.keys_from = "Ask Ann for a key: ann@example.com"
    await house.add("station.md", STATION, "legal")
    _, key = await make_key(house.services.keys, ApiKey("", "reader", frozenset({"ask"}), frozenset({"legal"})))
    await page.goto(house.address)
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    await expect(page.get_by_label("Question", exact=True)).to_be_hidden()
    await expect(page.locator(".sign-in")).to_contain_text("Ask Ann for a key: ann@example.com")

    field, button = page.get_by_label("Your key"), page.get_by_role("button", name="Sign in")
    await field.fill("ask_wrong")
    await button.click()
    await expect(page.get_by_role("alert")).to_contain_text("This key is not known")

    await field.fill(key)
    await button.click()
    await ask(page, "How long is the warranty of the Falke?")
    await expect(page.locator(".answer")).to_contain_text("36 months")
    assert key not in await page.evaluate("document.cookie + JSON.stringify(sessionStorage)")

    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


async def test_a_reader_signs_in_at_an_identity_provider(page: Page, servers: Servers, template: str) -> None:
    async with serve_oidc() as provider, open_site(servers, template, **provider.settings) as site:
        await site.add("station.md", STATION)
        # Another site than the provider's, 127.0.0.1: which cookies a browser sends depends on that.
        here = site.address.replace("127.0.0.1", "localhost")
        link = page.get_by_role("link", name="Sign in with your account")

        await page.goto(f"{here}/?workspace=default")
        provider.refusal = "access_denied"
        await link.click()
        await expect(page.get_by_role("heading", name="Sign-in failed")).to_be_visible()
        await expect(page.locator("body")).to_contain_text("It says: access_denied.")
        provider.refusal = ""
        for path in ("settings", "debug"):
            await page.goto(f"{here}/{path}")
            await expect(link).to_be_visible()

        # The way back begins at another site's page, as it does where people type their password.
        provider.asks = True
        await page.goto(f"{here}/?workspace=default")
        await link.click()
        await page.get_by_role("link", name="Go on as Ann").click()
        await expect(page).to_have_url(f"{here}/?workspace=default")
        await ask(page, "How long is the warranty of the Falke?")
        await expect(page.locator(".answer")).to_contain_text("36 months")
        cookies = {str(cookie.get("name")): cookie for cookie in await page.context.cookies()}
        assert cookies.keys() == {"askgraph_key"}
        kept = cookies["askgraph_key"]
        assert (kept.get("httpOnly"), kept.get("sameSite")) == (True, "Strict")
        assert not re.search(r"code=|state=", await page.evaluate("location.href + JSON.stringify(history.state)"))
        await page.get_by_role("button", name="Sign out").click()
        await expect(link).to_be_visible()
