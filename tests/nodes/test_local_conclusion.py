"""Conclusions from a quoted sentence: yes, no and how many."""

import pytest

from nodes.local.extraction.conclusion import conclude


@pytest.mark.parametrize(
    ("question", "sentence", "conclusion"),
    [
        ("Is water damage covered?", "Water damage is not covered.", "No"),
        ("Is water damage covered?", "Water damage is covered.", "Yes"),
        ("Are dogs allowed in the office?", "No dogs are allowed in the office.", "No"),
        (
            "How many days of paid leave do employees get?",
            "Employees get 28 days of paid leave a year.",
            "28 days",
        ),
        (
            "How many lithium cells does the Falke need?",
            "Replace it with two AA lithium cells.",
            "two AA lithium cells",
        ),
    ],
)
def test_what_a_sentence_says_is_concluded(question: str, sentence: str, conclusion: str) -> None:
    assert conclude(question, sentence, "Falke manual") == conclusion


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("Is water damage covered?", "Water damage is covered if it was reported within a week."),
        ("Is water or fire damage covered?", "Water damage is covered."),
        ("Is fire damage covered?", "Water damage is covered."),
        ("Is water damage not covered?", "Water damage is not covered."),
        ("Does Anna report to Peter?", "Peter reports to Anna."),
        ("Must expenses be approved?", "Expenses may be approved by the team lead."),
        ("Do I need a mentor on my first day?", "You meet a mentor on your first day."),
        ("Is the office closed on holidays?", "The office closed on holidays, which nobody minded."),
        ("What is covered?", "Water damage is covered."),
        ("Is water damage covered?", "| water damage | covered |"),
        ("How many sports does the Yale team play?", "The Harvard team plays 42 sports."),
        ("How many sports does the team play?", "The team plays 42 sports and trains 12 sports."),
        ("How many sports does the team play?", "The team does not play 42 sports."),
        ("How many people work here?", "The team plays 42 sports."),
    ],
)
def test_what_is_not_said_outright_is_left_to_the_reader(question: str, sentence: str) -> None:
    assert conclude(question, sentence, "Handbook") is None
