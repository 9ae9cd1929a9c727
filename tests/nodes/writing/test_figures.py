import pytest

from nodes.writing.figures import find_unstated


@pytest.mark.parametrize(
    ("said", "given", "unstated"),
    [
        ("It is 45 days.", "It is 30 days, or 20.", "It is 45 days."),
        ("It has thirty days, until 20:00.", "30 days, until 8 p.m. (20 h)", ""),
        ("There are 14,349 tracts.", "14349.00 | 0.19", ""),
        ("5 nights × $300 = $1,500.\nMeals: 6 days × $80 = $480.\nIn total $1,500 + $480 + $250 = $2,230.\nIt is $2,230.",
         "6 days, 5 nights: 300, 80, 250", ""),
        ("27 Werktage ÷ 12 × 3 Monate = 6,75 Werktage.", "27 Werktage im Jahr, 3 Monate von 12", ""),
        ("3 × 80 + 250 = 490 EUR, and 2 + 3 × 80 = 242 EUR.", "2 to 3 nights at 80, 250 once", ""),
        ("130 of 310 ducks are 41.9 %, about 42 %.", "130 ducks of 310", ""),
        ("36 months / 12 = 3 years. It is 12 months.", "36 months", ""),
        ("It is 12 months.", "36 months", "It is 12 months."),
        ("130 of 310 ducks are 43 %.", "130 ducks of 310", "130 of 310 ducks are 43 %."),
        ("It was 30, it is 36, so 20 % more.", "30 in 2024; 36 in 2025", ""),
    ],
)  # fmt: skip
def test_a_figure_is_stated_or_computed_from_what_is(said: str, given: str, unstated: str) -> None:
    assert find_unstated(said.split("\n"), [given]) == [each for each in [unstated] if each]
