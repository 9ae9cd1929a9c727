"""Amounts of a question and the ranges that enclose them."""

import pytest

from domain.text.ranges import Fit, compare, read_amounts


@pytest.mark.parametrize(
    ("question", "text", "fit"),
    [
        ("Who approves 3000 euros?", "from 2,500 to 10,000 euros | finance", "encloses"),
        ("Who approves 3000 euros?", "up to 500 euros | nobody", "excludes"),
        ("Who approves €3k?", "from 2,500 euros to 10,000 euros", "encloses"),
        ("Who approves 3000?", "no more than 3,500 euros", "encloses"),
        ("Who approves 500 euros?", "up to 500 euros", "encloses"),
        ("Who approves more than 500 euros?", "up to 500 euros", "excludes"),
        ("Who approves 10,000 euros?", "more than 10,000 euros", "excludes"),
        ("A group of 12 people?", "10 or more people", "encloses"),
        ("A wait of 8 days?", "5–10 days", "encloses"),
        ("A wait of 2 days?", "at least 3 days", "excludes"),
        ("A bid of 2m dollars?", "$1 million or more", "encloses"),
        ("A night for 150 euros?", "up to 130 euros, and up to 180 euros in Oslo", "both"),
        ("Who approves 3000 euros?", "more than 8 hours", None),
        ("Who approves 3000 euros?", "finance", None),
    ],
)
def test_a_range_encloses_or_excludes_an_amount_of_its_unit(question: str, text: str, fit: Fit | None) -> None:
    [amount] = read_amounts(question)
    assert compare(amount, text) == fit


@pytest.mark.parametrize("question", ["What changed in 2024?", "What does the WS-400 weigh?", "On 2024-05-12?"])
def test_years_codes_and_dates_are_no_amounts(question: str) -> None:
    assert read_amounts(question) == []
