"""Documents that disagree are both quoted, each under its name, and its date where they came on several days."""

import pytest

from app.wiring.services import Services
from domain.ports.judgement import Quote
from nodes.wording.notices import read_catalogue
from nodes.writing.quoting import head_quotes
from tests.asking import ask
from tests.sources import make_source

QUESTION = "How much may a hotel cost per night?"


@pytest.mark.parametrize("mode", ["standard", "thorough"])
async def test_documents_that_disagree_are_quoted_under_their_names(services: Services, mode: str) -> None:
    for name, title, euros in (("a.md", "Travel policy", 130), ("b.md", "Rules? For staff", 150)):
        text = f"# {title}\n\nA hotel may cost {euros} euros per night.\n\nMeals are paid for by the employee.\n"
        await services.library.ingestion.add("default", name, text.encode())
    answer = (await ask(services, QUESTION, mode=mode))["answer"]
    for title, euros in (("Travel policy", 130), ("Rules? For staff", 150)):
        assert f"#### {title}\n\nA hotel may cost {euros} euros per night." in answer


async def test_one_document_is_not_named(services: Services) -> None:
    await services.library.ingestion.add("default", "a.md", b"# Travel\n\nA hotel may cost 130 euros per night.\n")
    assert "####" not in (await ask(services, QUESTION))["answer"]


def test_a_name_is_left_out_where_the_answer_would_be_too_long() -> None:
    sources = {n: make_source("Text.", number=n, document_id=f"d{n}", title="The [1] rules") for n in (1, 2, 3)}
    sources[2]["updated_at"] = "2026-11-22T23:08:46+00:00"
    quotes = [Quote(number, 0, 5, "word " * 30) for number in (1, 2)]
    german = read_catalogue("de")
    assert head_quotes(quotes, sources, german) == ["#### The rules\n\n", "#### The rules (22.11.2026)\n\n"]
    assert head_quotes(quotes, sources, german, words=14) == ["", ""]
    sources[1]["updated_at"] = "2026-11-22T08:00:00+00:00"
    assert head_quotes(quotes, sources, german) == ["#### The rules\n\n"] * 2
    sources[1]["updated_at"] = "2025-11-22T08:00:00+00:00"
    assert head_quotes(quotes, sources, german)[0] == "#### The rules (22.11.2025)\n\n"
    assert head_quotes(quotes * 2, sources, german)[3] == "#### The rules (22.11.2026)\n\n"
    assert head_quotes([quotes[0], quotes[0]], sources, german) == ["", ""]


def test_a_section_is_named_once_above_its_quotes_and_left_out_first() -> None:
    sources = {n: make_source("Text.", number=n, document_id=f"d{n}", title="Rules") for n in (1, 2)}
    german = read_catalogue("de")
    asked = Quote(1, 0, 5, "word " * 30, heading="Is it?")
    assert head_quotes([asked, asked], sources, german) == ["#### Is it?\n\n", ""]
    other = Quote(2, 0, 5, "word " * 30)
    assert head_quotes([asked, other], sources, german) == ["#### Rules › Is it?\n\n", "#### Rules\n\n"]
    assert head_quotes([asked, other], sources, german, words=16) == ["#### Rules\n\n", "#### Rules\n\n"]
