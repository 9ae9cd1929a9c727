"""The common words of our languages."""

import pytest

from domain.text.dictionary import is_word
from domain.text.languages import LANGUAGES, Language, fold


@pytest.mark.parametrize(
    ("word", "language"),
    [("whats", "en"), ("dont", "en"), ("repositories", "en"), ("aktualisiere", "de"), ("fahre", "de"),
     ("kündigung", "de"), ("update", "de"), ("préavis", "fr"), ("trabajo", "es")],
)  # fmt: skip
def test_a_form_of_a_common_word_is_known(word: str, language: Language) -> None:
    assert is_word(fold(word), language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_misspelt_word_is_not_known(language: Language) -> None:
    assert not any(is_word(word, language) for word in ("compnay", "arbeitsfertrag", "hollidays", ""))
