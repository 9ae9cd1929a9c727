"""Tables found in text, with their captions, headers and labels."""

from domain.text.tables import find_tables, is_value

REPORT = """\
Rain fell often. It was measured as follows (in millimetres):
 | May | June
Hills
Station A | 12 | 30
Station B | (3) | 2023
Coast

Station C | 4 | 5
The coast had little rain this year, as it had in the years before it.
Station D | 1
"""


def test_a_table_has_caption_header_labels_and_rows() -> None:
    [table] = find_tables(REPORT)
    shown = [REPORT[slice(*span)] for span in (*table.captions, table.header, *table.labels)]
    assert shown == ["It was measured as follows (in millimetres):", " | May | June", "Hills", "Coast"]
    assert REPORT[table.start : table.end].endswith("Station C | 4 | 5")


def test_short_lines_above_a_table_are_its_captions() -> None:
    text = "The year was wet.\n\nRainfall\nin litres\n2023 2022\nMay | 12 | 30\nJune | 7 | 8"
    [table] = find_tables(text)
    assert [text[slice(*span)] for span in table.captions] == ["Rainfall", "in litres", "2023 2022"]
    assert table.header == (table.start, table.start)


def test_long_text_is_neither_caption_nor_header() -> None:
    text = f"It was measured {'again and ' * 30}thus:\n" + f"{'Name of a column | ' * 20}\n" + "May | 12\nJune | 13"
    [table] = find_tables(text)
    assert table.captions == ()
    assert table.header == (table.start, table.start)


def test_one_row_is_no_table() -> None:
    assert list(find_tables("Contact\nPhone | 12345\nWrite to us.")) == []


def test_years_and_dates_are_no_values() -> None:
    assert [is_value(cell) for cell in ("2023", "12/31", "1st", "May 3", "", "$ 12", "(1,234)", "5 %", "—")] == [
        False, False, False, False, False, True, True, True, True,
    ]  # fmt: skip
