"""The page speaks the browser's language."""

import re
from string import Formatter

import pytest
from playwright.async_api import Browser, expect

from app.api.pages import TEXTS, WEB, list_texts
from domain.text.languages import read_file
from tests.page.scripted import Script

ENGLISH = dict(list_texts(read_file("en", "page")))


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    ("locale", "language", "asks", "invites", "starts"),
    [
        ("de-DE", "de", "Fragen", "Stellen Sie eine Frage", "Bibliothek"),
        ("ja-JP", "en", "Ask", "Ask a question", "Library"),
    ],
)
async def test_the_page_speaks_the_language_of_the_browser(
    browser: Browser, script: Script, locale: str, language: str, asks: str, invites: str, starts: str
) -> None:
    context = await browser.new_context(locale=locale)
    page = await context.new_page()
    await page.goto(await script())
    await expect(page.get_by_role("button", name=asks, exact=True)).to_be_visible()
    await expect(page.get_by_placeholder(invites)).to_be_visible()
    await expect(page.get_by_role("button", name=starts)).to_be_visible()
    assert await page.locator("html").get_attribute("lang") == language
    await context.close()


def test_the_page_says_what_the_english_file_has() -> None:
    scripts = "".join(path.read_text() for room in ("lib", "ui") for path in (WEB / room).rglob("*.js"))
    calls = re.findall(r"\bphrase\(((?:[^()]|\([^()]*\))*)", scripts)
    said = {key for call in calls for key in re.findall(r'"([a-z_]+(?:\.[a-z_]+)?)"', call)}
    keys = {re.sub(r"\.(one|other)$", "", key) for key in ENGLISH}
    # Named by what the service says: a reason of a reader, a confidence, a stage of a file, a tool, a mode, what became of a source.
    named = {
        key
        for key in keys
        if key.startswith(("feedback", "facts.", "stages.", "tools.", "modes.", "evidence.", "confidence."))
    }
    assert said - keys <= {"supported"}
    assert keys - said <= named


@pytest.mark.parametrize("language", TEXTS)
def test_a_language_fills_in_what_the_english_file_does(language: str) -> None:
    def fields(text: str) -> set[str]:
        return {name for _, name, _, _ in Formatter().parse(text) if name}

    own = dict(list_texts(read_file(language, "page")))
    assert {re.sub(r"\.(one|other|few|many|two|zero)$", "", key) for key in own if not key.startswith("steps.")} == {
        re.sub(r"\.(one|other)$", "", key) for key in ENGLISH
    }
    for key, text in own.items():
        if not key.startswith("steps."):
            english = (
                ENGLISH.get(key) or ENGLISH.get(re.sub(r"\.\w+$", "", key)) or ENGLISH[re.sub(r"\w+$", "other", key)]
            )
            assert fields(text) == fields(english), key
