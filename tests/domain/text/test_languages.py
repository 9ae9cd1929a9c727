import pytest

from domain.text.languages import detect_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("heaviest car", None),
        ("sea surface temperature in june 1997", None),
        ("Where is the sea?", "en"),
        ("Le car pour Paris", "fr"),
        ("Wie viel kostet das?", "de"),
        ("¿Dónde está?", "es"),
        ("Kündigungsfrist", "de"),
        ("git rebase", None),
        ("household income in Lancaster County NE", None),
        ("WAS KOSTET DAS", "de"),
    ],
)
def test_one_word_that_means_something_elsewhere_tells_no_language(text: str, language: str | None) -> None:
    assert detect_language(text) == language
