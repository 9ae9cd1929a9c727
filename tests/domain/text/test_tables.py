"""Rows, headers and labels of tables."""

import pytest

from domain.text.tables import find_header, is_row, is_rule, is_value, split_cells


def count_header(text: str) -> int:
    spans, start = [], 0
    for line in text.split("\n"):
        spans.append((start, start + len(line)))
        start += len(line) + 1
    return find_header(text, spans)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("May | June\n--- | ---\n1 | 2", 2),
        ("| May |\n|:---:|\n| 1 |", 2),
        (" | May | June\n | 2022 | 2023\nHills | 1 | 2", 2),
        ("Part | What to do\nRain gauge | Rinse\nBattery | Replace", 1),
        ("Rain | 1 | 2\nSnow | 3 | 4", 0),
        (f"{'Name of a column | ' * 20}\nMay | 12", 0),
    ],
)
def test_the_header_stands_above_the_rule_or_the_first_value(text: str, count: int) -> None:
    assert count_header(text) == count


def test_years_and_dates_are_no_values() -> None:
    assert [is_value(cell) for cell in ("2023", "12/31", "1st", "May 3", "", "$ 12", "(1,234)", "5 %", "—")] == [
        False, False, False, False, False, True, True, True, True,
    ]  # fmt: skip


def test_a_row_has_a_bar_between_cells() -> None:
    assert [is_row(line) for line in ("a | b", "| a |", " | a", "a |", "a|b", "grep x|wc", "none")] == [
        True, True, True, True, False, False, False,
    ]  # fmt: skip
    assert [is_rule(line) for line in ("--- | ---", "|:-:|", "---", "a | -")] == [True, True, False, False]


def test_cells_stand_between_the_bars() -> None:
    assert split_cells("| a | b c | |") == ["a", "b c", ""]
    assert split_cells("a | b \\| c") == ["a", "b \\| c"]
