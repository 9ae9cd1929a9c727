"""Index terms of a text."""

import pytest

from domain.text.terms import STOP_WORDS, analyse, analyse_in, content_words, find_terms, weigh_query_terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        ("What is the warranty of it?", ["warranti"]),
        ("Batteries battery", ["batteri", "batteri"]),
        ("naïve Größe ﬁle", ["naiv", "gross", "file"]),
        ("the company's O’Neil", ["compani", "o", "neil"]),
        ("don't can’t won't", []),
        ("state-of-the-art snake_case", ["state", "art", "snake", "case"]),
        ("IL-6", ["il6", "il", "6"]),
        ("IL6", ["il6"]),
        ("covid‑19", ["covid19", "covid", "19"]),
        ("v2.1", ["v2.1", "v2", "1"]),
        ("3.5% of 1,234,567", ["3.5", "1234567"]),
        ("in the U.S. on 2021-03-04.", ["us", "20210304", "2021", "03", "04"]),
        ("naïve, then: end.", ["naiv", "end"]),
        ("x" * 5000, ["x" * 64]),
        ("\ud800 lone", ["lone"]),
    ],
)
def test_analyse(text: str, terms: list[str]) -> None:
    assert analyse(text) == terms


def test_words_of_a_language_are_stemmed_as_its_words() -> None:
    assert analyse_in("de", "Ab wann gelten die Stunden?") == analyse_in("de", "Stunde")
    assert analyse_in("de", "Kündigungen") == analyse_in("de", "Kündigung")
    assert analyse_in("en", "Batteries of it") == analyse("battery")


def test_content_words_are_not_stemmed_and_keep_codes_whole() -> None:
    assert content_words("How long do the batteries of the IL-6 reader last?") == [
        "long",
        "batteries",
        "il6",
        "reader",
        "last",
    ]


def test_the_terms_of_a_compound_count_as_one_word_together() -> None:
    weights = weigh_query_terms("warranty of the WS-400 and the state-of-the-art WS-400A's warranty")
    assert weights == pytest.approx(
        {"warranti": 2, "ws": 2 / 3, "ws400": 1 / 3, "400": 1 / 3, "ws400a": 1 / 3, "400a": 1 / 3, "state": 1, "art": 1}
    )
    assert weigh_query_terms("die Garantie der WS-400", "de").keys() == {"garanti", "ws400", "ws", "400"}
    # Of a version the whole counts, and the letter before it does not.
    assert weigh_query_terms("fixed in v1.6.2") == {"fix": 1, "1.6.2": 1}
    assert "1.6.2" in analyse_in("en", "Release notes of v1.6.2.")


def test_every_content_word_is_found_by_its_own_terms() -> None:
    text = "The IL-6 of covid-19, v2.1 and the U.S. company's naïve 1,234.5 state-of-the-art"
    assert {term for word in content_words(text) for term in analyse(word)} <= set(analyse(text)) | {"2.1"}


def test_stop_words_are_written_as_texts_are_levelled() -> None:
    assert all(word == word.casefold() and word.isascii() for word in STOP_WORDS)
    assert analyse(" ".join(sorted(STOP_WORDS))) == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Wie lange bekomme ich weiter Lohn?", ["lange", "lohn"]),
        ("Combien de jours avant la fin ?", ["de", "jours", "la", "fin"]),
        ("¿Cuántos días tengo?", ["dias"]),
        ("the car will die in the war", ["car", "die", "war"]),
    ],
)
def test_function_words_of_every_language_are_dropped_but_for_words_of_meaning_elsewhere(
    text: str, kept: list[str]
) -> None:
    assert content_words(text) == kept


@pytest.mark.parametrize(
    "text", ["2025-03-04T10:00", "2025/3/4", "4.3.2025", "4. März 2025", "March 4th, 2025", "4 de marzo de 2025"]
)
@pytest.mark.parametrize("asked", ["4 March 2025", "2025-03-04", "04.03.2025", "Mar 4, 2025"])
def test_a_day_is_found_in_all_forms(text: str, asked: str) -> None:
    assert weigh_query_terms(asked).keys() <= find_terms(text, "en") | find_terms(asked, "en")
    assert "20250304" in find_terms(text, "en") & weigh_query_terms(asked).keys()


@pytest.mark.parametrize("text", ["1.2.3.2025", "32.01.2025", "12 pages 2025", "x-2025-03-04", "14 ju 2025"])
def test_what_is_no_day_is_none(text: str) -> None:
    assert find_terms(text, "en") == {*analyse_in("en", text)}
