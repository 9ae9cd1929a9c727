"""Outcomes in words, in every language."""

from string import Formatter
from typing import Any

import pytest

from domain.outcome import LowConfidence, MissingWords, NothingFound, NothingQuotable, Reason, RetriesSpent, Uncited
from domain.profile import GenerateKnobs, Profile
from domain.text.languages import FOLDER, LANGUAGES, Language, read_file
from nodes.wording.notices import Wording, read_catalogue, wording_of

ENGLISH = read_catalogue("en")


def found(searched: str = "the price", *, empty: bool = False) -> NothingFound:
    return NothingFound(code="nothing_found", searched=searched, scope_is_empty=empty)


def list_texts(value: Any, path: str = "") -> dict[str, str]:
    """The texts of a file by their path. Lists of alternatives may differ in length."""
    if not isinstance(value, dict):
        return {path: "" if isinstance(value, list) else value}
    return {k: text for key, part in value.items() for k, text in list_texts(part, f"{path}.{key}").items()}


def read_texts(language: Language, name: str) -> dict[str, str]:
    return list_texts(read_file(language, name))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_files_of_the_english_one(language: Language) -> None:
    assert {"reading.toml", "notices.toml"} <= {file.name for file in (FOLDER / language).iterdir()}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_understands_what_the_english_one_does(language: Language) -> None:
    optional = {".talk.replies.settings", ".talk.replies.life"}
    assert read_texts(language, "reading").keys() | optional == read_texts("en", "reading").keys() | optional


@pytest.mark.parametrize("language", LANGUAGES)
def test_notices_fill_in_what_the_english_ones_do(language: Language) -> None:
    def fields(text: str) -> set[str]:
        return {name for _, name, _, _ in Formatter().parse(text) if name}

    texts, english = read_texts(language, "notices"), read_texts("en", "notices")
    assert {path: fields(text) for path, text in texts.items()} == {
        path: fields(text) for path, text in english.items()
    }
    assert isinstance(read_catalogue(language), Wording)


@pytest.mark.parametrize(
    ("reasons", "text"),
    [
        ([NothingQuotable(code="nothing_quotable")], "The documents do not answer this."),
        (
            [found(), RetriesSpent(code="retries_spent", retries=2)],
            "The documents do not answer this. I searched for “the price”. Nothing I found comes close.",
        ),
        (
            [found(empty=True)],
            "There is nothing to search in: no documents have been added here, or none match what was chosen.",
        ),
    ],
)
def test_an_abstention_says_what_was_searched(reasons: list[Reason], text: str) -> None:
    assert ENGLISH.abstain(reasons) == text


def test_that_another_script_is_hardly_read_is_said() -> None:
    said = "I read English, German, French and Spanish; in other languages I find little."
    for question, is_other in (
        ("蓝莓 WS 的单价是多少", True),
        ("Сколько стоит?", True),
        ("What of 蓝莓 costs?", False),
    ):
        assert (said in ENGLISH.abstain([found(question)])) == is_other


def test_of_a_long_question_the_beginning_is_repeated() -> None:
    said = ENGLISH.abstain([found(f"Is it {'so ' * 600}?")])
    assert len(said) < 300
    assert "“Is it so so" in said
    assert said.index("so…”") > 150
    assert len(ENGLISH.abstain([found("x" * 2000)])) < 300


def test_caveat_and_admission() -> None:
    low = LowConfidence(code="low_confidence", confidence=0.5)
    missing = MissingWords(code="missing_words", words=["Oslo", "2031"])
    assert ENGLISH.open([missing, low]) == "The documents may answer this only in part.\n\n"
    assert ENGLISH.close([low, missing]) == "\n\nThe sources do not mention “Oslo” or “2031”."
    assert ENGLISH.open([missing, Uncited(code="uncited")]) == ENGLISH.close([low, Uncited(code="uncited")]) == ""


@pytest.mark.parametrize(
    "whole",
    [
        r"$x = \frac{-b \pm \sqrt{b^2 - 4ac}}{2a}$",
        r"\( E = m c^2 + \sum_{i=1}^{n} k_i \)",
        "**the warranty of every weather station**",
        "`SELECT name FROM stations WHERE id = 4`",
        "[the list of stations](https://example.org/stations/list)",
    ],
)
def test_what_names_a_statement_is_not_cut_through_what_the_page_draws_as_one(whole: str) -> None:
    def name(statement: str) -> str:
        return ENGLISH.close([Uncited(code="uncited", statements=[statement])]).strip()

    assert name(f"The roots of the equation are known as {whole} and no more.").endswith(
        "“The roots of the equation are known as…”."
    )
    assert name(f"{whole} {'and more ' * 9}").startswith(f"No source was found for “{whole}")


def test_questions_are_no_templates() -> None:
    assert "“{query}”" in ENGLISH.abstain([found("{query}")])


def test_a_profile_has_a_language_and_may_have_a_sentence_of_its_own() -> None:
    german = Profile(name="own", language="de")
    own = Profile(name="own", generate=GenerateKnobs(fallback="Not in our files."))
    assert wording_of(german, "de") == read_catalogue("de")
    assert wording_of(own, "en").abstain([found()]) == "Not in our files."
    assert wording_of(own, "en").caveat == ENGLISH.caveat


def test_no_title_brings_an_image_into_an_answer() -> None:
    wording, title = ENGLISH, "![x](https://evil.example/p.png)"
    for said in (wording.list_documents([title, title], 2), wording.name([title]), wording.ask_back([title])):
        assert ("x" in said, "![" in said) == (True, False)
