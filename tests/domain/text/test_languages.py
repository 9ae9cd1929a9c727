import pytest

from domain.text.languages import detect_language, is_in_other_language


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


@pytest.mark.parametrize(
    ("question", "answer", "differs"),
    [
        ("Wie viel kostet ein Hotel?", "A hotel in Berlin is 140 euros a night, and no more.", True),
        ("Wie viel kostet ein Hotel?", "Höchstens 140 Euro, in München sind es 165.", False),
        ("Wie viel kostet ein Hotel?", "140 EUR", False),
        ("Wie viel kostet ein Hotel? Antworte auf Englisch.", "A hotel is 140 euros a night, and no more.", False),
        ("What are the roles of Orion?", "角色有四种。", True),
        ("Orion 门户有哪些角色?", "Orion knows four roles.", True),
        ("Orion 门户有哪些角色?", "Viewer, Editor, Approver 和 Administrator", False),
        # Not one of ours, though words of it look like them.
        (
            "Quali sono i ruoli di Orion e chi approva le fatture?",
            "I ruoli sono quattro e li approva el administrador",
            False,
        ),
        ("hotel Berlin", "Un hotel en Berlín cuesta como máximo 140 euros por noche.", False),
    ],
)
def test_an_answer_in_another_language_is_noticed(question: str, answer: str, differs: bool) -> None:
    assert is_in_other_language(answer, question) == differs
