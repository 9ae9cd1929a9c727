"""PDF: words, rows, headings, and where each line stands on its page."""

import io
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fpdf import FPDF
from fpdf.enums import TableSpan
from PIL import Image
from pypdf import PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    NameObject,
    NumberObject,
    PdfObject,
    RectangleObject,
    TextStringObject,
)

from app.ingest.page_picture import draw_page
from app.ingest.preparation import prepare
from app.ingest.reading import read_document
from domain.documents import Box, Line, ParsedDocument, name_unread
from domain.errors import ScannedDocument, UnreadableDocument

WIDTH, HEIGHT = 600.0, 800.0
"""Points."""


def make_pdf(*pages: Callable[[FPDF], None], title: str = "") -> bytes:
    pdf = FPDF(unit="pt", format=(WIDTH, HEIGHT))
    pdf.set_auto_page_break(False)
    if title:
        pdf.set_title(title)
    for draw in pages:
        pdf.add_page()
        pdf.set_font("helvetica", size=12)
        draw(pdf)
    return bytes(pdf.output())


def write(x: float, y: float, text: str, size: float = 12) -> Callable[[FPDF], None]:
    def draw(pdf: FPDF) -> None:
        pdf.set_font("helvetica", size=size)
        pdf.text(x, y, text)

    return draw


def draw_all(*steps: Callable[[FPDF], None]) -> Callable[[FPDF], None]:
    def draw(pdf: FPDF) -> None:
        for step in steps:
            step(pdf)

    return draw


def measure(text: str, size: float = 12) -> float:
    pdf = FPDF(unit="pt")
    pdf.set_font("helvetica", size=size)
    return pdf.get_string_width(text)


def read_pages(*pages: Callable[[FPDF], None]) -> ParsedDocument:
    return read_document("a.pdf", make_pdf(*pages))


def read_page(*steps: Callable[[FPDF], None]) -> ParsedDocument:
    return read_pages(draw_all(*steps))


def check_lines(document: ParsedDocument) -> None:
    """Lines hold all of the text, in order."""
    reached = 0
    for line in document.lines:
        assert line.start >= reached
        assert not document.text[reached : line.start].strip()
        assert document.text[line.start : line.end].strip() == document.text[line.start : line.end] != ""
        reached = line.end
    assert reached == len(document.text)


def find(document: ParsedDocument, text: str) -> Line:
    [line] = [line for line in document.lines if text in document.text[line.start : line.end]]
    return line


def check_box(
    box: Box, x: float, baseline: float, width: float, *, page: tuple[float, float] = (WIDTH, HEIGHT)
) -> None:
    """Within a point of a line of 12-point Helvetica drawn at this place."""
    assert box["x"] * page[0] / 100 == pytest.approx(x, abs=1)
    assert box["width"] * page[0] / 100 == pytest.approx(width, abs=1)
    top, bottom = box["y"] * page[1] / 100, (box["y"] + box["height"]) * page[1] / 100
    assert baseline - 13 < top < baseline - 8
    assert baseline <= bottom < baseline + 4


def test_boxes_are_where_the_text_was_drawn() -> None:
    first, second = "The rain gauge holds four litres.", "Snow is measured apart."
    document = read_pages(draw_all(write(60, 100, first), write(300, 700, second)), write(60, 50, "Next"))
    assert document.text == f"{first}\n\n{second}\n\nNext"
    assert document.pages == 2
    assert [line.page for line in document.lines] == [1, 1, 2]
    check_lines(document)
    check_box(find(document, first).box, 60, 100, measure(first))
    check_box(find(document, second).box, 300, 700, measure(second))
    check_box(find(document, "Next").box, 60, 50, measure("Next"))


@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_boxes_follow_the_rotation_of_the_page(rotation: int) -> None:
    """The page is shown turned, so the line is measured as the reader sees it, on its side."""
    text = "Measured on its side"
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(make_pdf(write(60, 100, text)))))
    writer.pages[0].rotate(rotation)
    buffer = io.BytesIO()
    writer.write(buffer)
    document = read_document("a.pdf", buffer.getvalue())
    assert document.text == text
    box = document.lines[0].box
    left, right = 60 / WIDTH * 100, (60 + measure(text)) / WIDTH * 100
    top, bottom = (100 - 13) / HEIGHT * 100, (100 + 4) / HEIGHT * 100
    seen = (box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"])
    expected = {
        90: (100 - bottom, left, 100 - top, right),
        180: (100 - right, 100 - bottom, 100 - left, 100 - top),
        270: (top, 100 - right, bottom, 100 - left),
    }[rotation]
    assert seen == pytest.approx(expected, abs=0.6)


def test_boxes_count_from_the_crop_box() -> None:
    text = "Cropped"
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(make_pdf(write(160, 300, text)))))
    writer.pages[0].cropbox = RectangleObject((100, 200, 500, 700))
    buffer = io.BytesIO()
    writer.write(buffer)
    document = read_document("a.pdf", buffer.getvalue())
    # 100 points are cut off on the left and 100 at the top; 400 by 500 remain
    check_box(document.lines[0].box, 60, 200, measure(text), page=(400, 500))


def draw_rows(rows: Sequence[tuple[str, ...]], columns: tuple[float, ...]) -> Callable[[FPDF], None]:
    return draw_all(
        *[write(columns[c], 100 + 20 * r, cell) for r, row in enumerate(rows) for c, cell in enumerate(row)]
    )


def test_cells_of_a_row_stay_on_one_line_and_apart() -> None:
    rows = [("Quantity", "2024", "2025"), ("Rain in mm", "812", "790"), ("Days with snow", "31", "(12)")]
    document = read_pages(draw_rows(rows, (60, 240, 420)))
    assert document.text.split("\n") == [" | ".join(row) for row in (rows[0], ("---",) * 3, *rows[1:])]
    check_lines(document)
    assert len(document.lines) == 3
    check_box(find(document, "812").box, 60, 120, 360 + measure("790"))


def test_signs_belong_to_their_figure() -> None:
    rows = [("Sales", "$", "1,200", "(", "40", ")", "12", "%"), ("Costs", "$", "900", "(", "30", ")", "8", "%")]
    document = read_pages(draw_rows(rows, (60, 160, 200, 280, 310, 350, 420, 460)))
    assert document.text.split("\n") == ["Sales | $ 1,200 | ( 40 ) | 12 %", "Costs | $ 900 | ( 30 ) | 8 %"]


def test_a_cell_that_almost_fills_its_column_is_parted_from_the_next() -> None:
    full = "A label as wide as its column"
    edge = 60 + measure(full) + 10
    rows = [("Short", "one"), (full, "two"), ("Brief", "three")]
    document = read_pages(draw_rows(rows, (60, edge)))
    assert document.text.split("\n") == ["Short | one", f"{full} | two", "Brief | three"]


def centre(x: float, y: float, text: str) -> Callable[[FPDF], None]:
    return write(x - measure(text) / 2, y, text)


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_a_page_whose_words_run_another_way_is_read_as_it_is_held(angle: int) -> None:
    def draw(pdf: FPDF) -> None:
        with pdf.rotation(angle, x=WIDTH / 2, y=HEIGHT / 2):
            for place, text in enumerate(("Pump", "2022", "North", "45", "South", "12")):
                pdf.text(WIDTH / 2 + 60 * (place % 2), HEIGHT / 2 + 18 * (place // 2), text)

    document = read_pages(draw)
    assert document.text == "Pump | 2022\n--- | ---\nNorth | 45\nSouth | 12"
    box = document.lines[0].box
    left, top = {90: (48, 39), 180: (36, 50), 270: (50, 50)}[angle]
    assert (box["x"], box["y"]) == pytest.approx((left, top), abs=3)


def test_the_lines_of_a_header_are_one_row_that_names_every_column() -> None:
    """They are drawn cell by cell, as reports do, and what spans columns is said in each."""
    document = read_page(
        write(60, 60, "Rain was measured by hand at each of the three stations (in mm):"),
        centre(275, 96, "Summer 2024"), centre(455, 96, "Summer 2025"),
        write(60, 126, "Station"),
        *(centre(x, y, line) for x in (230, 410) for y, line in ((112, "Mean of a"), (126, "day"))),
        *(centre(x, y, line) for x in (320, 500) for y, line in ((112, "Longest"), (126, "shower"))),
        *(centre(x, 146, cell) for x, cell in ((230, "2.5"), (320, "31.0"), (410, "2.0"), (500, "28.5"))),
        write(60, 146, "Harbour"),
    )  # fmt: skip
    caption, header, rule, row = document.text.replace("\n\n", "\n").split("\n")
    assert caption.endswith("(in mm):")
    assert header.split(" | ") == [
        "Station",
        *(f"Summer {year} {name}" for year in (2024, 2025) for name in ("Mean of a day", "Longest shower")),
    ]
    assert rule == " | ".join(["---"] * 5)
    assert row == "Harbour | 2.5 | 31.0 | 2.0 | 28.5"
    check_lines(document)
    box = find(document, "Mean").box  # round all of its lines
    assert box["y"] * HEIGHT / 100 < 96 < 126 < (box["y"] + box["height"]) * HEIGHT / 100


def test_a_title_and_labels_are_no_header() -> None:
    steps = [
        centre((510 + measure("2025")) / 2, 60, "Falke Weather Station, report of the year, not audited"),
        write(300, 76, "2024"), write(450, 76, "2025"),
        write(60, 92, "Water"),
        *draw_cells([("Rain in mm", "812", "790"), ("Days with snow", "31", "12")], (60, 300, 450), 108),
    ]  # fmt: skip
    text = read_page(*steps).text
    assert text.endswith("| | 2024 | 2025 |\n--- | --- | ---\nWater\nRain in mm | 812 | 790\nDays with snow | 31 | 12")


def draw_cells(
    rows: Sequence[tuple[str, ...]], columns: tuple[float, ...], top: float, pitch: float = 16
) -> list[Callable[[FPDF], None]]:
    return [
        write(columns[c], top + pitch * r, cell) for r, row in enumerate(rows) for c, cell in enumerate(row) if cell
    ]


@pytest.mark.parametrize(
    ("rows", "columns", "pitch", "text"),
    [
        # Cells stay in their columns where others are empty.
        ([("Rain", "1.5", "2.5", "3.5"), ("Snow", "", "", "4.5"), ("Hail", "0.5", "", ""), ("", "2.0", "2.5", "8.0")], (60, 200, 300, 400), 16,
         "Rain | 1.5 | 2.5 | 3.5\nSnow |  |  | 4.5\nHail | 0.5 |  |\n| | 2.0 | 2.5 | 8.0 |"),
        # A row of words above the first figures is no header.
        ([("Support", "Basic", "Full"), ("Reached by", "mail", "telephone"), ("Gauges", "10", "50")], (60, 300, 400), 20,
         "Support | Basic | Full\n--- | --- | ---\nReached by | mail | telephone\nGauges | 10 | 50"),
        # Cells that are no sentences stay in their rows.
        ([(f"Gauge of station {n}", f"Emptied by hand on day {n}") for n in range(1, 5)], (60, 320), 16,
         "\n".join(f"Gauge of station {n} | Emptied by hand on day {n}" for n in range(1, 5))),
        # Dots lead to a figure and are no part of a label.
        ([("Rain . . . . . . . . . .", "1.5", "2.5"), ("Snow . . . . . . . . .", "3.5", "4.5")], (60, 160, 300), 16,
         "Rain | 1.5 | 2.5\nSnow | 3.5 | 4.5"),
        # Names below a chart are no table.
        ([("Jan-08", "Jul-08", "Jan-09", "Jul-09")], (60, 160, 260, 360), 16, "Jan-08 Jul-08 Jan-09 Jul-09"),
    ],
)  # fmt: skip
def test_rows_of_a_page_have_the_cells_that_a_reader_sees(
    rows: Sequence[tuple[str, ...]], columns: tuple[float, ...], pitch: float, text: str
) -> None:
    assert read_page(*draw_cells(rows, columns, 100, pitch)).text == text


def draw_ruled(rows: Sequence[tuple[object, ...]], **layout: object) -> Callable[[FPDF], None]:
    def draw(pdf: FPDF) -> None:
        pdf.set_line_width(1)
        with pdf.table(rows, line_height=16, **layout):
            pass

    return draw


def test_rules_part_cells_of_several_lines() -> None:
    rows = [
        ("Role", "Duty", "Stands in"),
        ("Head", "Decides what is spent, and reports to the board every month", "Whoever the board names for it"),
        ("Keeper", "Empties the gauges", ""),
    ]
    document = read_pages(draw_ruled(rows))
    assert document.text.split("\n") == [
        "Role | Duty | Stands in", "--- | --- | ---", *(" | ".join(row).rstrip() for row in rows[1:]),
    ]  # fmt: skip
    assert [section.heading_path for section in document.sections] == [()]
    check_lines(document)


WRAPPED: list[list[tuple[str, ...]]] = [
    [("Day",), ("Vendor",), ("Service",), ("Paid",)],
    [("14 March",), ("Bay Copy Center", "12 Harbor Street", "Norfolk"), ("Printing of", "door hangers"), ("412.50",)],
    [("22 March",), ("Tidewater", "Catering"), ("Food for all", "who came"), ("96.00",)],
    [("2 April",), ("Post Office",), ("Postage",), ("8.00",)],
]
WRAPPED_TEXT = (
    "Day | Vendor | Service | Paid\n--- | --- | --- | ---\n"
    "14 March | Bay Copy Center 12 Harbor Street Norfolk | Printing of door hangers | 412.50\n"
    "22 March | Tidewater Catering | Food for all who came | 96.00\n2 April | Post Office | Postage | 8.00"
)


@pytest.mark.parametrize("gap", [4, 30], ids=["near", "far apart"])
@pytest.mark.parametrize("is_ruled", [True, False], ids=["rules", "blank space"])
@pytest.mark.parametrize("key", [lambda at: at, lambda at: (at[0], at[2]), lambda at: (at[2], at[0])], ids="abc")
def test_rows_whose_cells_have_several_lines_are_rows_in_whatever_order_they_are_written(
    gap: int, is_ruled: bool, key: Callable[[tuple[int, int, int]], Any]
) -> None:
    lines: dict[tuple[int, int, int], tuple[int, str]] = {}
    y, rules = 100, [88]
    for row, cells in enumerate(WRAPPED):
        lines |= {(row, c, n): (y + 13 * n, line) for c, cell in enumerate(cells) for n, line in enumerate(cell)}
        y += 13 * max(map(len, cells)) + gap
        rules.append(y - 12 - gap // 2)

    def draw(pdf: FPDF) -> None:
        for at in sorted(lines, key=key):
            pdf.text(60 + 120 * at[1], *lines[at])
        for rule in rules if is_ruled else ():
            pdf.line(56, rule, 520, rule)

    document = read_pages(draw)
    assert document.text == WRAPPED_TEXT
    check_lines(document)


@pytest.mark.parametrize("is_wrapped", [True, False])
def test_names_of_columns_that_stand_as_near_as_words_are_parted(is_wrapped: bool) -> None:
    rows = [("Service", "How", "Delivery", "Provider"), ("Academic help", "As needed", "direct", "Content staff"),
            ("Counseling, also for", "60 min", "direct", "Psychologist"), ("Speech", "30 min", "direct", "Therapist")]  # fmt: skip
    wrapped = [write(60, 145, "pupils")] if is_wrapped else []
    last = [write(x, 164, each) for x, each in zip((60, 250, 350, 402), rows.pop(), strict=True)]
    text = read_pages(draw_all(*draw_cells(rows, (60, 250, 350, 402), 96, pitch=18), *wrapped, *last)).text
    assert text.split("\n")[0] == "Service | How | Delivery | Provider"
    assert f"for{' pupils' * is_wrapped} | 60 min | direct | Psychologist" in text


def test_the_address_of_a_link_stands_behind_its_words() -> None:
    def draw(pdf: FPDF) -> None:
        pdf.text(60, 100, "Book on the booking page before you go, or at rail.example/b.")
        pdf.link(60 + measure("Book on the "), 88, measure("booking page"), 14, "https://rail.example/a")
        pdf.link(60 + measure("Book on the booking page before you go, or at "), 88, 80, 14, "https://rail.example/b")

    text = "Book on the booking page (https://rail.example/a) before you go, or at rail.example/b."
    assert read_pages(draw).text == text


def test_a_column_of_figures_close_to_one_of_words_is_its_own() -> None:
    rows = [("12", "Copper elbow", "B4"), ("1,450", "Wood screw", "C1"), ("7", "Drain rod", "A9")]
    cells = [(100 - measure(row[0]), row[0], n) for n, row in enumerate(rows)]
    cells += [(x, row[c], n) for n, row in enumerate(rows) for c, x in ((1, 107), (2, 300))]
    document = read_page(*[write(x, 100 + 18 * n, text) for x, text, n in sorted(cells, key=lambda cell: cell[2])])
    assert document.text.split("\n") == [" | ".join(row) for row in rows]


def test_a_space_that_the_next_letter_is_drawn_over_is_none() -> None:
    starts = ((60, "The in "), (60 + measure("The in"), "spec "), (60 + measure("The inspec"), "tor comes."))
    assert read_page(*[write(x, 100, words) for x, words in starts]).text == "The inspector comes."


def test_rules_part_words_however_near_they_stand() -> None:
    rows = [("Number", "Date"), ("1", "2024"), ("2", "2025")]
    text = read_pages(draw_ruled(rows, width=104, col_widths=(1, 1), padding=0)).text
    assert text.split("\n") == ["Number | Date", "--- | ---", "1 | 2024", "2 | 2025"]


def test_a_cell_may_span_rows() -> None:
    def draw(pdf: FPDF) -> None:
        for x, y, width, height, text in (
            (60, 100, 80, 60, "Harbour"), (140, 100, 90, 30, "Rain"), (230, 100, 90, 30, "by hand"),
            (140, 130, 90, 30, "Snow"), (230, 130, 90, 30, "by scale"),
        ):  # fmt: skip
            pdf.rect(x, y, width, height)
            pdf.text(x + 5, y + 18, text)

    document = read_pages(draw)
    assert document.text.split("\n") == ["Harbour | Rain | by hand", "Harbour | Snow | by scale"]


@pytest.mark.parametrize(("align", "first"), [("CENTER", "410 | 410"), ("RIGHT", " | 410"), ("LEFT", "410 | ")])
def test_what_spans_columns_is_said_in_each_unless_it_stands_under_one_name(align: str, first: str) -> None:
    across, down = TableSpan.COL, TableSpan.ROW
    rows = [
        ("Term", "2024", across, "Unit"),
        (down, "Plan", "Real", down),
        ("1", "410", across, "EUR"),
        ("2", "4", "5", "EUR"),
    ]
    text = read_pages(draw_ruled(rows, num_heading_rows=2, text_align=("LEFT", align, "LEFT", "LEFT"))).text
    assert text.split("\n") == [
        "Term | 2024 Plan | 2024 Real | Unit", "--- | --- | --- | ---", f"1 | {first} | EUR", "2 | 4 | 5 | EUR",
    ]  # fmt: skip


def test_boxes_that_share_no_side_are_no_table() -> None:
    def draw(pdf: FPDF) -> None:
        for x, y, text in ((60, 100, "Measure"), (200, 100, "Weigh"), (60, 200, "Note"), (200, 200, "Report")):
            pdf.rect(x, y, 100, 40)
            pdf.text(x + 20, y + 25, text)

    assert "|" not in read_pages(draw).text


@pytest.mark.parametrize(
    ("names", "is_header"),
    [(("", "Spring", "", "Autumn", ""), True), (("", "Spring", "", ""), False)],
    ids=["half of the columns", "a third"],
)
def test_a_header_names_at_least_half_of_the_columns(names: tuple[str, ...], is_header: bool) -> None:
    rows = [(place, *(f"{n}.5" for n in range(1, len(names)))) for place in ("Harbour", "Summit")]
    columns = (60, 200, 290, 380, 470)
    text = read_page(*draw_cells([names, *rows], columns, 100, pitch=20)).text
    assert "Spring" in text
    assert ("---" in text) == is_header


def test_the_lines_of_a_label_belong_to_its_row() -> None:
    rows = [("Rain", "1.5", "2"), ("hail", "2.5", "3"), ("Fog", "3.5", "4")]
    steps = draw_cells(rows, (60, 300, 400), 100, pitch=32)
    text = read_page(*steps[:3], write(60, 118, "Snow and"), *steps[3:]).text
    assert text.split("\n") == ["Rain | 1.5 | 2", "Snow and hail | 2.5 | 3", "Fog | 3.5 | 4"]
    text = read_page(*steps[:3], write(60, 118, "Other:"), *steps[3:]).text
    assert text.split("\n") == ["Rain | 1.5 | 2", "Other:", "hail | 2.5 | 3", "Fog | 3.5 | 4"]


def test_amounts_are_parted_however_near_they_stand() -> None:
    rows = [("Sales", "$ 3,226.8 $ 2,729.4"), ("Costs", "$ 762.7 $ 650.0")]
    text = read_page(*draw_cells(rows, (60, 300), 100)).text
    assert text.split("\n") == ["Sales | $ 3,226.8 | $ 2,729.4", "Costs | $ 762.7 | $ 650.0"]
    label = "Cost of what was sold"
    steps = draw_cells([("Sales", "3,226", "5"), ("Wages", "650", "7")], (60, 250, 320), 100)
    last = [
        write(60, 132, label),
        write(60 + measure(label) + 12, 132, "$"),
        write(250, 132, "762"),
        write(320, 132, "9"),
    ]
    text = read_page(*steps, *last).text
    assert text.split("\n")[-1] == f"{label} | $ 762 | 9"


def test_a_gap_in_running_text_is_no_cell() -> None:
    lines = [
        [(60, "A line of prose that says what the rain gauge does, and at length.")],
        [(60, "This one is stretched"), (240, "because the next word is long.")],
        [(60, "The paragraph goes on here until the margin is reached once more.")],
    ]
    steps = [write(x, 100 + 14 * n, text) for n, line in enumerate(lines) for x, text in line]
    assert "|" not in read_page(*steps).text


def test_markers_and_section_numbers_are_no_cells() -> None:
    rows = [("-", "Rain is measured"), ("-", "Snow is weighed"), ("2.1", "Wind is felt"), ("(a)", "and so is hail")]
    document = read_pages(draw_rows(rows, (60, 120)))
    assert document.text.split() == " ".join(" ".join(row) for row in rows).split()


def test_columns_of_text_at_the_same_height_are_not_read_across() -> None:
    left = [write(60, 100, "Jane Falke reads the gauges"), write(60, 114, "of the harbour every day")]
    right = [write(340, 102, "Otto Reiher weighs the snow")]
    document = read_page(*left, *right)
    assert "every day\n\nOtto" in document.text
    check_box(find(document, "Otto").box, 340, 102, measure("Otto Reiher weighs the snow"))


def test_the_further_lines_of_a_cell_belong_to_its_row() -> None:
    rows = [("Jane Falke", "51", "Reads the gauges of the harbour since May"), ("Otto", "49", "Weighs the snow")]
    steps = draw_cells(rows, (60, 200, 260), 100, pitch=60)
    further = [write(260, 114, "and those of the airport"), write(260, 128, "since June")]
    text = read_page(*steps[:3], *further, *steps[3:]).text
    assert text.replace("\n\n", "\n").split("\n") == [
        "Jane Falke | 51 | Reads the gauges of the harbour since May and those of the airport since June",
        "Otto | 49 | Weighs the snow",
    ]


def test_a_large_first_letter_belongs_to_its_word() -> None:
    lines = ["ealized with much care and patience by", "few people, the tunnel was opened early", "in the year 1931."]
    steps = [write(88, 100 + 14 * place, line) for place, line in enumerate(lines)]
    document = read_page(write(56, 128, "R", size=40), *steps)
    assert document.text.startswith("Realized with much care and patience by few people, the tunnel")


def test_lines_set_tightly_stay_apart() -> None:
    steps = [
        write(60, 100 + 9 * n, text)
        for n, text in enumerate(["One", "two", "three", "four is the longest of these lines"])
    ]
    document = read_page(*steps)
    assert document.text == "One\ntwo\nthree\nfour is the longest of these lines"
    assert len(document.lines) == 4


def test_columns_are_read_one_after_the_other() -> None:
    left = ["Rain falls from clouds", "when drops grow heavy"]
    right = ["Snow falls when the", "air is below freezing"]
    steps = [write(x, 100 + 14 * n, text) for x, column in ((60, left), (320, right)) for n, text in enumerate(column)]
    text = read_page(*steps).text
    assert text.split() == " ".join([*left, *right]).split()


def test_a_paragraph_is_one_line_of_text_and_lists_are_not() -> None:
    lines = [
        "A sentence that is long enough to fill the whole line",
        "goes on here, and it ends there. Another one follows",
        "it.",
    ]
    items = ["- first item", "- second item"]
    steps = [write(60, 100 + 14 * n, text) for n, text in enumerate([*lines, *items])]
    document = read_page(*steps)
    assert document.text == " ".join(lines) + "\n" + "\n".join(items)
    assert len(document.lines) == 5
    check_lines(document)


def test_broken_words_are_put_together() -> None:
    lines = [
        "The barometer is a well-",
        "known part; this baro-",
        "meter drifts in long-",
        "term use, see WS-",
        "400 for the mainte-",
        "nance with-",
        "out a follow-",
        "up. The follow-up ends.",
    ]
    steps = [write(60, 100 + 14 * n, text) for n, text in enumerate(lines)]
    document = read_page(*steps)
    assert " ".join(document.text.split()) == (
        "The barometer is a well-known part; this barometer drifts in long-term use, see WS-400 for the maintenance"
        " without a follow-up. The follow-up ends."
    )
    check_lines(document)


def test_larger_type_makes_headings_and_running_titles_do_not() -> None:
    def page(number: int, heading: str, sub: str) -> Callable[[FPDF], None]:
        body = [
            write(60, 200 + 14 * n, f"Body text of chapter {number}, line {n}, is set in small type.") for n in range(8)
        ]
        return draw_all(write(60, 40, "Running title", 16), write(60, 100, heading, 24), write(60, 160, sub, 16), *body)

    document = read_pages(page(1, "Rain", "Buckets"), page(2, "Snow", "Rulers"), page(3, "Wind", "Vanes"))
    assert [section.heading_path for section in document.sections] == [
        (),
        ("Rain",),
        ("Rain", "Buckets"),
        ("Snow",),
        ("Snow", "Rulers"),
        ("Wind",),
        ("Wind", "Vanes"),
    ]
    assert document.sections[-1].end == len(document.text)


def write_strong(x: float, y: float, text: str) -> Callable[[FPDF], None]:
    def draw(pdf: FPDF) -> None:
        pdf.set_font("helvetica", style="B", size=12)
        pdf.text(x, y, text)

    return draw


def test_bold_lines_that_stand_alone_are_headings() -> None:
    body = [write(60, 100 + 14 * n, f"Body text, line {n}, is set in the same size.") for n in range(4)]
    document = read_page(
        write_strong(60, 60, "Rain and snow"), *body,
        write_strong(60, 200, "A sentence in bold type is no heading."),
        write(60, 214, "1. An item with a"), write_strong(60, 228, "bold end of its own"),
        write_strong(60, 260, "Balance"), write(60, 274, "in euros and cents"),
        write(60, 320, "Cash"), write(300, 320, "500"), write(400, 320, "400"),
        write_strong(60, 334, "Total"), write_strong(300, 334, "900"), write_strong(400, 334, "700"),
        write_strong(60, 348, "Debt"),
        write(60, 362, "Loans"), write(300, 362, "300"), write(400, 362, "200"),
    )  # fmt: skip
    assert [section.heading_path for section in document.sections] == [("Rain and snow",), ("Balance",)]
    assert "# Balance\n\nin euros and cents" in document.text


def test_many_bold_lines_in_a_row_are_cells() -> None:
    header = [write_strong(60, 60 + 30 * n, text) for n, text in enumerate(("Stores", "Opened", "Stores", "Closed"))]
    document = read_page(*header, write(60, 200, "Twenty stores were opened."))
    assert [section.heading_path for section in document.sections] == [()]


def test_a_page_of_few_lines_has_no_running_titles() -> None:
    document = read_pages(*(write(60, 100, f"This is page {n}") for n in range(1, 7)))
    assert [section.end - section.start for section in document.sections] == [len(document.text)]


def test_many_centred_bold_lines_are_headings() -> None:
    titles = ["Falke Weather", "Balance", "In thousands", "Not audited", "May"]
    drawn = [write_strong(300 - measure(text) * 0.53, 60 + 15 * n, text) for n, text in enumerate(titles)]
    document = read_page(*drawn, write(60, 300, "The balance follows on this page."))
    assert [section.heading_path for section in document.sections] == [(" ".join(titles),)]


def test_double_spaced_lines_of_a_sentence_go_together_and_rows_too() -> None:
    lines = [
        "The rain gauge holds four litres, and it is emptied by hand",
        "on every Monday. The snow is measured apart with a ruler",
        "that stands behind the house.",
    ]
    rows = [("Rain", "1.5", "2.5"), ("Snow", "3.5", "4.5")]
    document = read_page(
        *(write(60, 60 + 26 * n, line) for n, line in enumerate(lines)),
        write(60, 150, "A new paragraph stands here."),
        *(write(60 + 200 * k, 250 + 25 * n, cell) for n, row in enumerate(rows) for k, cell in enumerate(row)),
    )
    assert document.text == " ".join(lines) + "\n\nA new paragraph stands here.\n\nRain | 1.5 | 2.5\nSnow | 3.5 | 4.5"


def test_running_titles_are_read_once_and_page_numbers_not_at_all() -> None:
    def page(number: int) -> Callable[[FPDF], None]:
        return draw_all(
            write(60, 40, "Annual report"),
            write(60, 100, f"Chapter {number * 3}"),
            *(write(60, 140 + 40 * n, f"Line {n} of {number * number}") for n in range(4)),
            write(300, 780, f"Page {number + 2}"),
        )

    document = read_pages(*map(page, range(1, 6)))
    check_lines(document)
    assert document.text.count("Annual report") == 5
    searched = "".join(document.text[section.start : section.end] for section in document.sections)
    said = [f"Chapter {n * 3} " + " ".join(f"Line {line} of {n * n}" for line in range(4)) for n in range(1, 6)]
    assert searched.split() == ["Annual", "report", *" ".join(said).split()]


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("Machine M-{}", 5), ("Limit: {} bar", 5), ("Article {}", 5), ("Call 4417", 1), ("Page {} of 5", 0),
        ("Falke Weather · {}", 1), ("- {} -", 0), ("Falke Weather, page {}", 1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("y", [40, 780])
def test_a_line_at_the_margin_that_says_something_is_read(line: str, count: int, y: int) -> None:
    def page(number: int) -> Callable[[FPDF], None]:
        body = [write(60, 140 + 40 * n, f"Line {n} of {number * number}") for n in range(6)]
        return draw_all(write(60, y, line.format(number)), *body)

    document = read_pages(*map(page, range(1, 6)))
    held = "".join(document.text[section.start : section.end] for section in document.sections)
    assert sum(line.format(number) in held for number in range(1, 6)) == (count if "{" in line else 5)
    assert held.count(line.format(1)) == min(count, 1)


def test_a_table_of_contents_belongs_to_no_section() -> None:
    """Its lines name pages on which their words stand; those of another table, which also rise, do not."""
    chapters = ["Rain", "Snow and ice", "Wind", "Hail"]
    contents = [write(60, 100 + 20 * n, f"{n + 1}. {name} ........ {n + 1}") for n, name in enumerate(chapters)]
    counts = [
        write(60, 400 + 20 * n, f"Gauges at the {name.lower()} station: {n + 1}") for n, name in enumerate(chapters)
    ]
    bodies = [
        draw_all(write(60, 100, f"{n + 1}. {name}", 16), write(60, 140, f"How {name.lower()} is measured by hand."), *counts[4 * (n < 3) :])
        for n, name in enumerate(chapters)
    ]  # fmt: skip
    document = read_pages(draw_all(write(60, 60, "What is in here"), *contents), *bodies)
    held = "".join(document.text[section.start : section.end] for section in document.sections)
    assert "....." in document.text
    assert "....." not in held
    assert all(f"How {name.lower()} is measured" in held for name in chapters)
    assert "Gauges at the hail station: 4" in held


@pytest.mark.parametrize(
    ("metadata", "title"),
    [
        ("Rain and Snow", "Rain and Snow"),
        ("", "annual report"),
        ("0000012927-23-000007", "annual report"),
        ("Microsoft Word - Document1", "annual report"),
        ("final_v3.indd", "annual report"),
        ("(anonymous)", "annual report"),
        ("PowerPoint Presentation", "annual report"),
    ],
)
def test_the_title_is_one_that_a_person_wrote(metadata: str, title: str) -> None:
    assert read_document("/x/annual_report.pdf", make_pdf(write(60, 100, "Text"), title=metadata)).title == title


def test_pages_without_text_are_counted() -> None:
    document = read_pages(write(60, 100, "One"), lambda pdf: None, write(60, 100, "Three"))
    assert document.pages == 3
    assert [line.page for line in document.lines] == [1, 3]


def test_several_threads_may_read_at_once() -> None:
    files = [make_pdf(*[write(60, 100, f"File {n} page {page}") for page in range(20)]) for n in range(4)]
    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(lambda data: read_document("a.pdf", data).text, files * 3))
    for number, text in enumerate(texts):
        assert text.count(f"File {number % 4} page") == 20


def rewrite(data: bytes, change: Callable[[PdfWriter], object]) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    change(writer)
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


ROWS = [(f"Depot {name}", f"{n}.5", f"{n * 3}") for n, name in enumerate("ABCDEFGH", start=11)]
NAMES = ("Depot", "Lorries", "Drivers")


@pytest.mark.parametrize("again", [[], [NAMES]], ids=["without a header overleaf", "with its header again"])
@pytest.mark.parametrize("other", ["", "Page"], ids=["nothing between", "running lines between"])
def test_a_table_that_goes_on_overleaf_is_one(again: list[tuple[str, ...]], other: str) -> None:
    def page(number: int, rows: list[tuple[str, ...]]) -> Callable[[FPDF], None]:
        foot = [write(300, 780, f"{other} {number}")] if other else []
        return draw_all(*draw_cells(rows, (60, 240, 420), 100), *foot)

    document = read_pages(page(1, [NAMES, *ROWS[:4]]), page(2, [*again, *ROWS[4:]]))
    table = "\n".join(" | ".join(row) for row in (NAMES, ("---",) * 3, *ROWS))
    assert document.text.startswith(table)
    assert document.text[len(table) :].split() == (["Page", "1", "Page", "2"] if other else [])
    check_lines(document)
    assert find(document, "Depot H").page == 2
    assert not document.unread
    held = "".join(document.text[section.start : section.end] for section in document.sections)
    assert "Page 1" not in held


@pytest.mark.parametrize("kind", ["row", "fused", "merged"])
def test_a_cell_that_goes_on_overleaf_is_of_the_same_row(kind: str) -> None:
    def page(*rows: tuple[str, ...], cut: int = -1) -> Callable[[FPDF], None]:
        def draw(pdf: FPDF) -> None:
            pdf.set_line_width(1)
            for number, row in enumerate(rows):
                for column, text in enumerate(row):
                    pdf.text(65 + 100 * column, 113 + 20 * number, text)
            for edge in range(len(rows) + 1):
                if edge != cut:
                    is_inner = kind == "merged" and 0 < edge < len(rows) and rows[edge - 1] != NAMES
                    pdf.line(160 if is_inner else 60, 100 + 20 * edge, 360, 100 + 20 * edge)
            for edge in range(4):
                pdf.line(60 + 100 * edge, 100, 60 + 100 * edge, 100 + 20 * len(rows))

        return draw

    below = page(NAMES, ("", "and a van", ""), cut=1) if kind == "fused" else page(("", "and a van", ""), ROWS[1])
    if kind == "merged":
        below = page(("", "12.5", "36"), ("", "13.5", "39"))
    text = read_pages(page(NAMES, ROWS[0]), below).text
    if kind == "merged":
        assert text.split("\n")[2:] == [f"Depot A | {n}.5 | {n * 3}" for n in (11, 12, 13)]
        return
    assert text.startswith("Depot | Lorries | Drivers\n--- | --- | ---\nDepot A | 11.5 | 33\nDepot A | and a van |")


def test_every_piece_of_a_table_that_goes_on_overleaf_has_its_header() -> None:
    rows = [(f"Depot of the town {n}", f"{n}.5", f"{n * 3}") for n in range(11, 71)]
    pages = [
        draw_all(*draw_cells([*head, *part], (60, 240, 420), 100))
        for head, part in (([NAMES], rows[:30]), ([], rows[30:]))
    ]
    _, chunks = prepare("a.pdf", make_pdf(*pages), media_type=None, max_bytes=10**6)
    header = "Depot | Lorries | Drivers\n--- | --- | ---"
    assert len(chunks) > 3
    assert all(header in (chunk.text, chunk.lead) or chunk.text.startswith(header) for chunk in chunks)
    assert chunks[-1].page == 2


@pytest.mark.parametrize(
    "second",
    [
        [("Site", "Gauges", "Rulers"), ("Harbour", "1.5", "2.5")],
        [("Harbour", "1.5")],
        [("Harbour", "by hand", "by scale"), ("Summit", "by night", "by day")],
    ],
    ids=["another header", "other columns", "no figures"],
)
def test_another_table_overleaf_is_another(second: list[tuple[str, ...]]) -> None:
    document = read_pages(*(draw_all(*draw_cells(rows, (60, 240, 420), 100)) for rows in ([NAMES, *ROWS], second)))
    assert "\n\n" in document.text


def test_a_sentence_goes_on_overleaf() -> None:
    document = read_pages(write(60, 700, "The gauge holds four litres and is"), write(60, 60, "emptied on Mondays."))
    assert document.text == "The gauge holds four litres and is emptied on Mondays."


LEFT = [
    "The warranty for gauges is two",
    "years from the day of sale. It",
    "covers defects of the glass, but",
    "not damage by frost.",
]
RIGHT = ["Returns are accepted within", "thirty days if the seal of the", "box is whole. The buyer pays for", "the parcel."]  # fmt: skip


def test_columns_that_are_written_line_by_line_across_are_read_one_after_the_other() -> None:
    text = read_page(*draw_cells([*zip(LEFT, RIGHT, strict=True)], (60, 320), 100, pitch=14)).text
    assert text.split() == " ".join([*LEFT, *RIGHT]).split()


def test_what_stands_above_comes_first_whenever_it_was_written() -> None:
    text = read_page(*draw_cells(ROWS, (60, 240, 420), 200), write(60, 100, "What each depot has:")).text
    assert text.startswith("What each depot has:\n\nDepot A | 11.5")


def test_a_table_that_was_written_column_by_column_in_a_frame_has_rows() -> None:
    def frame(pdf: FPDF) -> None:
        for x, width in ((50, 180), (230, 180), (410, 100)):
            pdf.rect(x, 60, width, 20)
            pdf.rect(x, 80, width, 200)

    columns = [[(cell,) for cell in column] for column in zip(*ROWS, strict=True)]
    steps = [step for x, cells in zip((60, 240, 420), columns, strict=True) for step in draw_cells(cells, (x,), 95)]
    text = read_page(frame, *draw_cells([NAMES], (60, 240, 420), 75), *steps).text
    assert text.split("\n") == [" | ".join(row) for row in (NAMES, ("---",) * 3, *ROWS)]


@pytest.mark.parametrize(
    ("base", "rise", "text"),
    [("The allowance is 45", 5, "The allowance is 45² euros."), ("Water is H", -3, "Water is H₂ euros.")],
)
def test_raised_and_lowered_digits_are_told_from_others(base: str, rise: float, text: str) -> None:
    width = measure(base)
    steps = [write(60, 100, base), write(60 + width, 100 - rise, "2", 7), write(60 + width + 4, 100, " euros.")]
    assert read_page(*steps).text == text


def test_raised_digits_of_a_ruled_cell_are_no_part_of_its_figure() -> None:
    marks = [write(60 + measure(" 7.87"), 96, "1", 7), write(60 + measure(" H"), 143, "2", 7)]
    frames = [lambda pdf, y=y, x=x: pdf.rect(x, y, 100, 20) for y in (85, 105, 125) for x in (58, 158)]
    cells = draw_cells([(" 7.87", "a"), (" 8.1", "b"), (" H", "c")], (60, 170), 100, pitch=20)
    assert read_page(*frames, *cells, *marks).text.split("\n") == ["7.87¹ | a", "8.1 | b", "H₂ | c"]


def test_cells_of_a_table_with_rules_down_its_header_alone_are_parted() -> None:
    def rule(pdf: FPDF) -> None:
        for x in (50, 230, 410):
            pdf.rect(x, 60, 180, 20)
        for n in range(5):
            pdf.line(50, 80 + 20 * n, 590, 80 + 20 * n)

    text = read_page(rule, *draw_cells([NAMES, *ROWS[:4]], (60, 240, 420), 75, pitch=20)).text
    assert [line for line in text.split("\n") if "-" not in line] == [" | ".join(row) for row in (NAMES, *ROWS[:4])]


def test_words_with_a_line_through_them_are_marked() -> None:
    def strike(pdf: FPDF) -> None:
        pdf.line(60 + measure("Use the "), 96, 60 + measure("Use the old gauge"), 96)
        pdf.line(60, 102, 60 + measure("Use the"), 102)

    assert read_page(write(60, 100, "Use the old gauge on Mondays."), strike).text == (
        "Use the ~~old gauge~~ on Mondays."
    )


def wrap(value: object) -> PdfObject:
    """Return the object of a PDF: a text that begins with a slash is a name."""
    if isinstance(value, PdfObject):
        return value
    if isinstance(value, dict):
        return DictionaryObject({NameObject(f"/{key}"): wrap(held) for key, held in value.items()})
    if isinstance(value, tuple):
        return ArrayObject(map(wrap, value))
    if isinstance(value, str):
        return NameObject(value) if value.startswith("/") else TextStringObject(value)
    assert isinstance(value, int)
    return NumberObject(value)


def note(kind: str, box: tuple[int, ...], **values: object) -> PdfObject:
    return wrap({"Type": "/Annot", "Subtype": f"/{kind}", "Rect": box, **values})


def annotate(*notes: PdfObject, **form: object) -> Callable[[PdfWriter], None]:
    def change(writer: PdfWriter) -> None:
        placed = tuple(writer._add_object(each) for each in notes)
        writer.pages[0][NameObject("/Annots")] = wrap(placed)
        fields = tuple(each for each in placed if "/FT" in repr(each.get_object()))
        writer.root_object[NameObject("/AcroForm")] = wrap({"Fields": fields, **form})

    return change


def test_what_is_entered_in_a_form_stands_at_its_label_and_the_rest_is_counted() -> None:
    labels = ["Licence plate:", "Electric car:", "Colour:", "Remarks:"]
    page = draw_all(
        *(write(60, 100 + 40 * n, label) for n, label in enumerate(labels)),
        write(60, 320, "Size: Small"), write(250, 320, "Large"), write(60, 460, "Return this form."),
    )  # fmt: skip
    states: dict[str, object] = {"N": {"On": {}, "Off": {}}}
    data = rewrite(
        make_pdf(page),
        annotate(
            note("Widget", (200, 698, 400, 712), FT="/Tx", T="plate", V="BS-48213"),
            note("Widget", (200, 655, 212, 667), FT="/Btn", T="car", V="/On", AS="/On", AP=states),
            note("Widget", (200, 615, 400, 632), FT="/Tx", T="colour"),
            note("Widget", (200, 540, 400, 594), FT="/Tx", T="remarks", V="No nuts, please.\nArrives late."),
            note("Widget", (230, 478, 242, 490), FT="/Btn", T="large", V="/Off", AS="/Off", AP=states),
            note("FreeText", (60, 410, 300, 430), Contents="Out of order in June."),
            note("Text", (500, 500, 520, 520), Contents="Is this so?", T="Ann"),
            note("Text", (500, 500, 520, 520), Contents="Ann accepted this.", State="Accepted"),
            note("Text", (500, 500, 520, 520), Contents="Nobody sees this.", F=2),
            note("FileAttachment", (500, 400, 520, 420)),
        ),
    )  # fmt: skip
    document = read_document("a.pdf", data)
    assert document.text.split("\n\n") == [
        "Licence plate: BS-48213", "Electric car: ☒", "Colour:", "Remarks: No nuts, please. Arrives late.",
        "Size: Small ☐ Large", "Out of order in June.", "Return this form.",
        "# Comments", "Comment by Ann: Is this so?",
    ]  # fmt: skip
    check_box(find(document, "BS-48213").box, 60, 100, 340)
    assert name_unread(document.unread) == "1 form field (without a value on page 1), 1 attachment (on page 1)"
    empty = Image.open(io.BytesIO(draw_page(make_pdf(page), 1, 72, "png")))
    assert Image.open(io.BytesIO(draw_page(data, 1, 72, "png"))).tobytes() != empty.tobytes()


def test_a_choice_is_what_the_page_shows_for_it() -> None:
    options = (("w1", "90 grams"), ("w2", "120 grams"), ("w3", "160 grams"))
    choice = note("Widget", (200, 698, 400, 712), FT="/Ch", T="paper", Ff=1 << 17, Opt=options, V="w2")
    typed = note("Widget", (200, 658, 400, 672), FT="/Ch", T="ink", Ff=3 << 17, Opt=(("b", "black"),), V="sepia")
    page = draw_all(write(60, 100, "Paper:"), write(60, 140, "Ink:"))
    document = read_document("a.pdf", rewrite(make_pdf(page), annotate(choice, typed)))
    assert document.text.split("\n\n") == ["Paper: 120 grams", "Ink: sepia"]


def test_a_form_that_only_one_program_shows_is_refused() -> None:
    waits = make_pdf(write(60, 100, "Please wait. Your program cannot show this form."))
    form = ("template",)
    with pytest.raises(UnreadableDocument, match="XFA"):
        read_document("a.pdf", rewrite(waits, annotate(XFA=form)))
    field = note("Widget", (60, 400, 300, 420), FT="/Tx", T="plate", V="BS-48213")
    assert "BS-48213" in read_document("a.pdf", rewrite(waits, annotate(field, XFA=form))).text


def test_files_in_a_file_and_pictures_are_counted() -> None:
    picture = io.BytesIO()
    Image.new("RGB", (40, 40), "red").save(picture, "PNG")

    def show(pdf: FPDF) -> None:
        pdf.image(picture, 100, 200, 300, 300)
        pdf.image(picture, 10, 10, 20, 20)  # a logo

    data = rewrite(make_pdf(write(60, 100, "One"), show), lambda writer: writer.add_attachment("a.txt", b"a"))
    assert name_unread(read_document("a.pdf", data).unread) == "1 attachment (a.txt), 1 picture (on page 2)"


def test_signs_that_are_no_letters_are_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a font of glyph numbers that has no map to Unicode."""
    monkeypatch.setattr("app.ingest.readers.pdf.reader.can_recognise", lambda: False)

    def unmap(writer: PdfWriter) -> None:
        system = {"Registry": "Adobe", "Ordering": "Identity", "Supplement": 0}
        named = {"Type": "/Font", "BaseFont": "/Secret"}
        child = wrap({**named, "Subtype": "/CIDFontType2", "DW": 600, "CIDSystemInfo": system})
        parts = (writer._add_object(child),)
        font = wrap({**named, "Subtype": "/Type0", "Encoding": "/Identity-H", "DescendantFonts": parts})
        fonts = writer.pages[0]["/Resources"].get_object()["/Font"].get_object()  # type: ignore[index]
        fonts[NameObject("/F1")] = writer._add_object(font)

    def ask(pdf: FPDF) -> None:
        pdf.set_font("courier")
        pdf.text(60, 100, "Ask the porter.")

    page = write(60, 100, "The key is with the porter of the house.")
    with pytest.raises(ScannedDocument, match="letters"):
        read_document("a.pdf", rewrite(make_pdf(page), unmap))
    document = read_document("a.pdf", rewrite(make_pdf(page, ask), unmap))
    assert document.text == "Ask the porter."
    assert name_unread(document.unread) == "1 font (without a mapping on page 1)"
