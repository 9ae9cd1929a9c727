"""Questions that are worth an expensive step."""

import pytest

from domain.text.complexity import is_complex


@pytest.mark.parametrize(
    "question",
    [
        "How do the Falke and the Amsel differ?",
        "Which is better, lithium or alkaline?",
        "Why was the barometer moved?",
        "Who signs the log and when is it archived?",
        "What does it cost? And how long does it last?",
        "Falke vs. Amsel battery life",
        "Which documents must a supplier from outside the European Union hand in before the first delivery can be paid?",
    ],
)
def test_questions_that_ask_for_more_than_one_fact(question: str) -> None:
    assert is_complex(question)


@pytest.mark.parametrize(
    "question", ["How long is the warranty of the Falke?", "Who handles claims?", "barometer calibration interval", ""]
)
def test_questions_that_ask_for_one(question: str) -> None:
    assert not is_complex(question)
