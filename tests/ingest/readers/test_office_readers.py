"""Presentations, workbooks, tables, books, mails and other texts keep their structure."""

import io
import re
import time as clock
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from datetime import date, datetime, time, timedelta
from email.message import EmailMessage
from typing import Any

import openpyxl
import pytest
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.chart import BarChart, Reference
from openpyxl.styles import Font
from pptx import Presentation
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.enum.shapes import PP_PLACEHOLDER
from pptx.oxml import parse_xml
from pptx.oxml.ns import qn
from pptx.util import Inches

from app.ingest.readers import grids
from app.ingest.readers.assembly import MOST_UNSEEN
from app.ingest.readers.boxes import Box, put_in_order
from app.ingest.readers.number_formats import show_value
from app.ingest.reading import read_document, read_own_metadata
from domain.documents import Unread, name_unread, tell_unread
from domain.errors import DocumentError, EmptyDocument, EncryptedDocument, OversizedDocument, UnreadableDocument
from tests.ingest.readers.strict import make_strict


def save(document: Any) -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def pack(parts: Mapping[str, bytes | str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def make_workbook(*rows: list[Any]) -> bytes:
    workbook = openpyxl.Workbook()
    for row in rows:
        workbook.active.append(row)
    return save(workbook)


def make_deck() -> bytes:
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Why rain gauges"
    frame = slide.placeholders[1].text_frame
    frame.text = "They are cheap"
    nested = frame.add_paragraph()
    nested.text, nested.level = "four euros", 1
    slide.notes_slide.notes_text_frame.text = "Ask for questions."
    table_slide = deck.slides.add_slide(deck.slide_layouts[5])
    table_slide.shapes.title.text = "Prices"
    table = table_slide.shapes.add_table(2, 2, Inches(1), Inches(2), Inches(4), Inches(1)).table
    for place, text in enumerate(("Gauge", "Price", "RG-4", "4 €")):
        table.cell(place // 2, place % 2).text = text
    chart: Any = CategoryChartData()  # type: ignore[no-untyped-call]
    chart.categories = ["2023", "2024"]
    chart.add_series("Sold", (12, 15.5))
    table_slide.shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, Inches(1), Inches(4), Inches(4), Inches(2), chart)
    box = deck.slides.add_slide(deck.slide_layouts[6]).shapes.add_textbox(0, 0, Inches(2), Inches(1))
    box.text_frame.text = "Thank you"
    return save(deck)


def test_a_slide_is_a_section_with_its_lists_tables_and_notes() -> None:
    document = read_document("deck.pptx", make_deck())
    assert [section.heading_path for section in document.sections if section.heading_path] == [
        ("Why rain gauges",),
        ("Prices",),
        ("Slide 3",),
    ]
    assert "- They are cheap\n  - four euros" in document.text
    assert "Notes: Ask for questions." in document.text
    assert "Gauge | Price\n--- | ---\nRG-4 | 4 €" in document.text
    assert "2024 | 15.5" in document.text
    assert document.title == "Why rain gauges"


def make_slide() -> tuple[Any, Any]:
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "Pumps"
    return deck, slide.shapes


def read_slide(deck: Any) -> list[str]:
    return read_document("deck.pptx", save(deck)).text.split("\n\n")[1:]


def test_a_box_with_an_equation_is_read_in_its_new_form() -> None:
    deck, shapes = make_slide()
    box = shapes.add_textbox(0, Inches(2), Inches(2), Inches(1))
    box.text_frame.text = "Pump P-7 delivers "
    math = "http://schemas.openxmlformats.org/officeDocument/2006/math"
    new = "http://schemas.microsoft.com/office/drawing/2010/main"
    square = "<m:sSup><m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"
    equation = f'<a14:m xmlns:a14="{new}" xmlns:m="{math}"><m:oMath>{square}</m:oMath></a14:m>'
    box.text_frame.paragraphs[0]._p.append(parse_xml(equation))
    compatible = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    wrapper = parse_xml(
        f'<mc:AlternateContent xmlns:mc="{compatible}"><mc:Choice Requires="a14"/><mc:Fallback/></mc:AlternateContent>'
    )
    old = deepcopy(box._element)
    box._element.addprevious(wrapper)
    wrapper[0].append(box._element)
    wrapper[1].append(old)
    assert read_slide(deck) == ["Pump P-7 delivers $x^{2}$"]


def test_numbers_of_slides_begin_where_they_say_and_links_keep_their_address() -> None:
    deck, shapes = make_slide()
    frame = shapes.add_textbox(0, Inches(2), Inches(2), Inches(1)).text_frame
    for words, marks in (
        ("Open.", 'type="arabicPeriod" startAt="4"'),
        ("Wait.", 'type="arabicPeriod" startAt="4"'),
        ("Red", 'type="alphaLcParenR" startAt="3"'),
    ):
        paragraph = frame.paragraphs[0] if not frame.text else frame.add_paragraph()
        paragraph.add_run().text = words
        drawing = "http://schemas.openxmlformats.org/drawingml/2006/main"
        paragraph._p.get_or_add_pPr().append(parse_xml(f'<a:buAutoNum xmlns:a="{drawing}" {marks}/>'))
    paragraph.runs[0].hyperlink.address = "https://example.org/red"
    document = read_document("deck.pptx", save(deck))
    assert document.text.split("\n\n")[1:] == ["4. Open.\n5. Wait.\n- (c) Red (https://example.org/red)"]
    assert [(document.text[each.start : each.end], each.address) for each in document.links] == [
        ("Red", "https://example.org/red")
    ]


def test_what_footers_of_slides_say_is_read_once() -> None:
    deck = Presentation()
    for _ in range(2):
        slide = deck.slides.add_slide(deck.slide_layouts[5])
        for each in slide.slide_layout.placeholders:
            if each.placeholder_format.type in (PP_PLACEHOLDER.FOOTER, PP_PLACEHOLDER.SLIDE_NUMBER):
                each.text_frame.text = "Ask Ada, extension 3390"
                slide.shapes._spTree.append(deepcopy(each._element))
    text = read_document("deck.pptx", save(deck)).text
    assert text.endswith("Page footer: Ask Ada, extension 3390")
    assert text.count("3390") == 1


def test_raised_and_struck_words_of_slides_keep_their_meaning() -> None:
    deck, shapes = make_slide()
    paragraph = shapes.add_textbox(0, Inches(2), Inches(2), Inches(1)).text_frame.paragraphs[0]
    for text, name, value in (
        ("40 m", "b", "0"),
        ("3", "baseline", "30000"),
        (" of CO", "b", "0"),
        ("2", "baseline", "-25000"),
    ):
        run = paragraph.add_run()
        run.text = text
        run._r.get_or_add_rPr().set(name, value)
    paragraph.add_run().text = " for "
    run = paragraph.add_run()
    run.text = "20 euros"
    run._r.get_or_add_rPr().set("strike", "sngStrike")
    run = paragraph.add_run()
    run.text, run.font.name = "m", "Symbol"
    assert read_slide(deck) == ["40 m³ of CO₂ for ~~20 euros~~μ"]


def test_charts_with_several_plots_and_of_pairs_are_tables() -> None:
    deck, shapes = make_slide()
    bars: Any = CategoryChartData(number_format="0%")  # type: ignore[no-untyped-call]
    bars.categories = ["May", "June"]
    bars.add_series("Full", (0.5, 0.25))
    chart = shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, Inches(2), Inches(4), Inches(2), bars).chart
    line = deepcopy(chart._chartSpace.find(f".//{qn('c:barChart')}"))
    line.tag = qn("c:lineChart")
    line.find(f".//{qn('c:tx')}//{qn('c:v')}").text = "Plan"
    chart._chartSpace.find(f".//{qn('c:barChart')}").addnext(line)
    pairs: Any = XyChartData()  # type: ignore[no-untyped-call]
    series = pairs.add_series("Flow")
    for x, y in ((1, 2.5), (3, 4)):
        series.add_data_point(x, y)
    shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, 0, Inches(4), Inches(4), Inches(2), pairs)
    assert read_slide(deck) == [
        "| | Full | Plan |\n--- | --- | ---\nMay | 50% | 50%\nJune | 25% | 25%",
        "| | Flow |\n--- | ---\n1 | 2.5\n3 | 4",
    ]


def test_categories_within_others_and_days_of_charts_are_read() -> None:
    deck, shapes = make_slide()
    nested: Any = CategoryChartData()  # type: ignore[no-untyped-call]
    year = nested.add_category("2024")
    year.add_sub_category("May")
    year.add_sub_category("June")
    nested.add_series("Sold", (1, 2))
    shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, 0, Inches(2), Inches(4), Inches(2), nested)
    days: Any = CategoryChartData()  # type: ignore[no-untyped-call]
    days.categories = [date(2024, 5, 1)]
    days.add_series("Sold", (3,))
    shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, 0, Inches(4), Inches(4), Inches(2), days)
    text = "\n\n".join(read_slide(deck))
    assert "2024 May | 1\n2024 June | 2" in text
    assert "2024-05-01 | 3" in text


def test_a_cell_over_rows_of_a_slide_is_said_in_each_and_lines_are_one() -> None:
    deck, shapes = make_slide()
    table = shapes.add_table(3, 2, Inches(1), Inches(2), Inches(4), Inches(1)).table
    for place, text in enumerate(("Pump", "Part", "P-7", "Valve\nand seal", "", "Belt")):
        table.cell(place // 2, place % 2).text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    assert read_slide(deck) == ["Pump | Part\n--- | ---\nP-7 | Valve; and seal\nP-7 | Belt"]


def test_names_of_groups_of_columns_of_a_slide_stand_before_the_columns() -> None:
    deck, shapes = make_slide()
    table = shapes.add_table(3, 3, Inches(1), Inches(2), Inches(4), Inches(1)).table
    for place, text in enumerate(("Site", "Rate", "", "Site", "Weekday", "Weekend", "Lewes", "340", "460")):
        table.cell(place // 3, place % 3).text = text
    table.cell(0, 1).merge(table.cell(0, 2))
    assert read_slide(deck) == ["Site | Rate Weekday | Rate Weekend\n--- | --- | ---\nLewes | 340 | 460"]
    for place, text in enumerate(("Eyes", "120", "130")):
        table.cell(1, place).text = text
    assert read_slide(deck) == ["Site | Rate | Rate\n--- | --- | ---\nEyes | 120 | 130\nLewes | 340 | 460"]


def test_a_sheet_is_a_section_and_empty_rows_separate_its_tables() -> None:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    sheet.title = "Rain"
    for row in (["In litres"], ["Month", "Rain"], [date(2024, 5, 1), 1234.5], [], ["Station", "Height"], ["Alb", 850]):
        sheet.append(row)
    sheet["A3"].number_format, sheet["B3"].number_format = "dd/mm/yyyy", '#,##0.00 "l"'
    workbook.create_sheet("Secret").append(["hidden"])
    workbook["Secret"].sheet_state = "hidden"
    chart = BarChart()
    chart.add_data(Reference(sheet, min_col=2, min_row=2, max_row=3))
    workbook.create_chartsheet("Chart").add_chart(chart)
    document = read_document("rain.xlsx", save(workbook))
    assert "In litres\n\nMonth | Rain\n--- | ---\n2024-05-01 | 1,234.50 l\n\n" in document.text
    assert document.text.endswith("Station | Height\n--- | ---\nAlb | 850")
    assert [section.heading_path for section in document.sections][-1] == ("Rain",)
    assert "hidden" not in document.text
    assert document.unseen_words == 1


def make_sheet(rows: Sequence[Any], *merged: str) -> tuple[openpyxl.Workbook, Any]:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    for row in rows:
        sheet.append(row)
    for cells in merged:
        sheet.merge_cells(cells)
    return workbook, sheet


FIRST: list[list[Any]] = [["Water", 100, 10], ["Coffee", 200, 30]]
SECOND: list[list[Any]] = [["Water", 90, 9], ["Coffee", 180, 25]]
NAMES: list[Any] = ["Segment", "Sales", "Profit"]


@pytest.mark.parametrize(
    "rows",
    [
        [["Half of 2023"], NAMES, *FIRST, ["Half of 2022"], NAMES, *SECOND],
        [["Half of 2023"], NAMES, *FIRST, [], ["Half of 2022"], NAMES, *SECOND],
        [NAMES, ["Half of 2023"], *FIRST, ["Half of 2022"], *SECOND],
    ],
)
def test_tables_below_each_other_have_their_period_and_their_header(rows: list[Any]) -> None:
    header = "Segment | Sales | Profit\n--- | --- | ---"
    assert read_document("a.xlsx", make_workbook(*rows)).text.split("\n\n")[1:] == [
        "Half of 2023",
        f"{header}\nWater | 100 | 10\nCoffee | 200 | 30",
        "Half of 2022",
        f"{header}\nWater | 90 | 9\nCoffee | 180 | 25",
    ]


HALVES = "Segment | Sales | Profit\n--- | --- | ---"
YEARS = "Region | 2023 Revenue | 2023 Cost | 2024 Revenue | 2024 Cost\n--- | --- | --- | --- | ---"


@pytest.mark.parametrize(
    ("rows", "merged", "parts"),
    [
        # Names of groups are part of the names of columns, and an empty row sets off a total.
        (
            [["Sales in thousand euros"], ["Region", 2023, None, 2024, None], [None, "Revenue", "Cost", "Revenue", "Cost"],
             ["North", 10, 5, 12, 6], ["South", 20, 9, None, 11], [], ["Total", 30, 14, 12, 17], [], ["Checked by", "Smith"]],
            ["A1:E1", "A2:A3", "B2:C2", "D2:E2"],
            ["Sales in thousand euros", f"{YEARS}\nNorth | 10 | 5 | 12 | 6\nSouth | 20 | 9 |  | 11",
             f"{YEARS}\nTotal | 30 | 14 | 12 | 17", "Checked by | Smith"],
        ),
        # A merged cell is said in each of its rows, and a note once.
        (
            [["Plant", "as of May", None, None], ["Machine", "Part", "Interval", "Hours"], ["Press", "Pump", "weekly", 2],
             [None, "Valve", "closed", None], ["Saw", "Belt", "daily", 1]],
            ["B1:C1", "A3:A4", "C4:D4"],
            ["Plant as of May", "Machine | Part | Interval | Hours\n--- | --- | --- | ---\nPress | Pump | weekly | 2\n"
             "Press | Valve | closed | closed\nSaw | Belt | daily | 1"],
        ),
        # Tables beside each other are read one after the other, and columns of one stay together across an empty one.
        (
            [["Item", "Sold", None, "Town", "People"], ["Bolt", 4, None, "Kiel", 246], ["Nut", 9], ["Gear", 1]], [],
            ["Item | Sold\n--- | ---\nBolt | 4\nNut | 9\nGear | 1", "Town | People\n--- | ---\nKiel | 246"],
        ),
        (
            [["Item", "Q1", "Q2", None, "Q3", "Q4"], ["Bolt", 4, 5, None, 6, 7]], [],
            ["Item | Q1 | Q2 | Q3 | Q4\n--- | --- | --- | --- | ---\nBolt | 4 | 5 | 6 | 7"],
        ),
        # Names that stand apart are those of the tables below. A row with a name alone is no period.
        (
            [NAMES, [], ["Half of 2023"], *FIRST, [], ["Half of 2022"], *SECOND], [],
            ["Segment | Sales | Profit", "Half of 2023", f"{HALVES}\nWater | 100 | 10\nCoffee | 200 | 30",
             "Half of 2022", f"{HALVES}\nWater | 90 | 9\nCoffee | 180 | 25"],
        ),
        ([NAMES, *FIRST, ["Tea"], ["Juice", 5, 1]], [], [f"{HALVES}\nWater | 100 | 10\nCoffee | 200 | 30\nTea |  |\nJuice | 5 | 1"]),
        # Groups above names and units below them are part of the names.
        (
            [["Region", 2023, None, 2022], [None, "Sales", "Profit", "Sales"], ["North", 1, 2, 3], ["South", 4, 5, 6]], [],
            ["Region | 2023 Sales | 2023 Profit | 2022 Sales\n--- | --- | --- | ---\nNorth | 1 | 2 | 3\nSouth | 4 | 5 | 6"],
        ),
        (
            [[None, 2023, 2022], ["CHF m", "audited", "audited"], ["Europe", 10, 20], ["Asia", 5, 6]], [],
            ["CHF m | 2023 audited | 2022 audited\n--- | --- | ---\nEurope | 10 | 20\nAsia | 5 | 6"],
        ),
        (
            [["Region", 2023, 2022], ["Europe", "n/a", "n/a"], ["Asia", 5, 6]], [],
            ["Region | 2023 | 2022\n--- | --- | ---\nEurope | n/a | n/a\nAsia | 5 | 6"],
        ),
        # Days and years head columns of figures, and not of days.
        (
            [["Item", date(2023, 12, 31), date(2022, 12, 31)], ["Cash", 10, 20]], [],
            ["Item | 2023-12-31 | 2022-12-31\n--- | --- | ---\nCash | 10 | 20"],
        ),
        (
            [["Bowie", date(1947, 1, 8), date(2016, 1, 10)], ["Prince", date(1958, 6, 7), date(2016, 4, 21)]], [],
            ["Bowie | 1947-01-08 | 2016-01-10\nPrince | 1958-06-07 | 2016-04-21"],
        ),
    ],
)  # fmt: skip
def test_tables_of_a_sheet_have_the_names_and_cells_that_a_reader_sees(
    rows: list[list[Any]], merged: list[str], parts: list[str]
) -> None:
    assert read_document("a.xlsx", save(make_sheet(rows, *merged)[0])).text.split("\n\n")[1:] == parts


def test_hidden_and_filtered_rows_and_columns_are_left_out_and_folded_ones_read() -> None:
    rows = [["Name", "Wage", "Town"], ["Ann", 99, "Kiel"], ["Bob", 98, "Bonn"], ["Eve", 97, "Trier"]]
    workbook, sheet = make_sheet(rows)
    sheet.column_dimensions["B"].hidden = True
    sheet.row_dimensions[3].hidden = True
    sheet.row_dimensions[4].outlineLevel, sheet.row_dimensions[4].hidden = 1, True
    document = read_document("a.xlsx", save(workbook))
    assert document.text.endswith("Name | Town\n--- | ---\nAnn | Kiel\nEve | Trier")
    assert [(each.text, each.why) for each in document.unseen] == [
        ("Bob 98 Bonn", "in a hidden row"),
        ("Wage 99 97", "in a hidden column"),
    ]
    assert document.unseen_words == 6
    sheet.auto_filter.ref = "A1:C4"
    sheet.auto_filter.add_filter_column(2, ["Kiel"])
    sheet.append(["Kai", 96, "Bonn"])
    sheet.row_dimensions[5].hidden = True
    sheet.oddFooter.left.text, sheet.oddFooter.right.text = "Ask the porter, &D", "Page &P of &N"
    sheet.auto_filter.ref = "A1:C5"
    document = read_document("a.xlsx", save(workbook))
    assert document.unseen[0].why == "in 2 filtered rows"
    assert document.text.endswith("\n\nPage footer: Ask the porter,")


def test_of_a_workbook_in_which_all_is_hidden_it_is_said_so() -> None:
    workbook, sheet = make_sheet([["Name", "Wage"], ["Ann", 99]])
    sheet.row_dimensions[1].hidden = sheet.row_dimensions[2].hidden = True
    with pytest.raises(EmptyDocument, match="Not read: 4 hidden words"):
        read_document("a.xlsx", save(workbook))


def test_words_that_are_drawn_over_a_sheet_are_read() -> None:
    workbook, sheet = make_sheet([["Network", "Floor"], ["Guest", 1]])
    chart = BarChart()
    chart.title = "Guests"
    sheet.add_chart(chart)
    archive = zipfile.ZipFile(io.BytesIO(save(workbook)))
    box = "<sp><txBody><a:p {ns}><a:r><a:t>Ask the </a:t></a:r><a:r><a:t>porter.</a:t></a:r></a:p></txBody></sp>"
    box = box.format(ns='xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"')
    drawing = archive.read("xl/drawings/drawing1.xml").decode().replace("<graphicFrame", f"{box}<graphicFrame")
    parts = {name: archive.read(name) for name in archive.namelist()} | {"xl/drawings/drawing1.xml": drawing}
    assert read_document("a.xlsx", pack(parts)).text.endswith("Guest | 1\n\nAsk the porter.")


def test_formulas_without_results_are_reported() -> None:
    document = read_document("a.xlsx", save(make_sheet([["Item", "Sold"], ["Bolt", "=1+1"]])[0]))
    assert "save it in a spreadsheet program" in tell_unread(document.unread)
    assert read_document("a.xlsx", save(make_sheet([["Item", "Sold"], ["Bolt", None]])[0])).unread == ()


def test_the_beginning_of_what_nobody_sees_is_kept() -> None:
    workbook, sheet = make_sheet([["seen"], ["word " * 5000], ["last " * 2000]])
    sheet.row_dimensions[2].hidden = sheet.row_dimensions[3].hidden = True
    document = read_document("a.xlsx", save(workbook))
    assert document.unseen_words == 7000
    assert sum(len(each.text) for each in document.unseen) == MOST_UNSEEN


@pytest.mark.parametrize(
    ("value", "number_format", "shown"),
    [
        (14349.0, "General", "14349"),
        (0.1 + 0.2, "General", "0.3"),
        (14349, "#,##0", "14,349"),
        (0, '_("$"* #,##0_);_("$"* (#,##0);_("$"* "-"??_);_(@_)', "$-"),
        (0, "#", ""),
        (0.2567, "0.0%", "25.7%"),
        (-1234.5, "#,##0.00;(#,##0.00)", "(1,234.50)"),
        (-3, "0.00", "-3.00"),
        (1200, "[$€-407] #,##0", "€ 1,200"),
        (4, '"$"#,##0.00_);[Red]("$"#,##0.00)', "$4.00"),
        (5, '0" kg"', "5 kg"),
        (1.5, "0.0##", "1.5"),
        (2, "0.###", "2"),
        (1e20, "General", "1e+20"),
        (True, "General", "TRUE"),
        (datetime(2024, 5, 1), "d.m.yy", "2024-05-01"),  # noqa: DTZ001
        (datetime(2024, 5, 1, 9, 30), "d.m.yy h:mm", "2024-05-01 09:30"),  # noqa: DTZ001
        (datetime(1900, 1, 1, 12), "h:mm AM/PM", "12:00"),  # noqa: DTZ001
        (datetime(2024, 5, 1, 9, 30, 12), "d.m.yy h:mm:ss", "2024-05-01 09:30:12"),  # noqa: DTZ001
        (datetime(2024, 5, 1, 9, 30, 12, 345000), "d.m.yy h:mm:ss.0", "2024-05-01 09:30:12.3"),  # noqa: DTZ001
        (time(0, 1, 23, 450000), "mm:ss.000", "00:01:23.450"),
        (time(23, 59, 29, 700000), "h:mm:ss", "23:59:30"),
        (timedelta(minutes=135), '[m]" min"', "135 min"),
        (timedelta(seconds=60), "[s]", "60"),
        (timedelta(hours=1, seconds=2.25), "[h]:mm:ss.00", "1:00:02.25"),
        (timedelta(hours=30, minutes=5), "[h]:mm", "30:05"),
        (-timedelta(hours=2, minutes=30), "[h]:mm", "-2:30"),
        (None, "General", ""),
        (12345678, '#,##0.0,,"M"', "12.3M"),
        (184500, '0.0,"k"', "184.5k"),
        (472, "00000", "00472"),
        (-17, "0;(0)", "(17)"),
        (123456789, "000-00-0000", "123-45-6789"),
        (5551234567, "(000) 000-0000", "(555) 123-4567"),
        (0, '0.0;-0.0;"none"', "none"),
        (3, ";;;", ""),
        (1500, '[>=1000000]0.0,,"M";[>=1000]0.0,"k";0', "1.5k"),
        (-0.2, "0", "0"),
        (-5, "[Red]0;[Blue]0", "-5"),
        (-1834.1, "#,##0.00;[Red]#,##0.00", "-1,834.10"),
        (-5, "[<0]-0;0", "-5"),
        (-7, "0;0-", "7-"),
        (-7, '0;"loss "0', "-loss 7"),
        (-123456789, "000-00-0000;000-00-0000", "-123-45-6789"),
        (40, "GENERAL", "40"),
        (75.5, 'General" litres"', "75.5 litres"),
        (-5, "General;[RED]-General", "-5"),
        (40, '"General € "General', "General € 40"),
        (2.5, "0", "3"),
        (-0.5, "0", "-1"),
        (2.675, "0.00", "2.68"),
        (1.065, "0%", "107%"),
    ],
)
def test_values_are_spelled_as_they_are_shown(value: Any, number_format: str, shown: str) -> None:
    assert show_value(value, number_format) == shown


def test_struck_and_raised_words_of_cells_keep_their_meaning() -> None:
    bold, struck, raised = InlineFont(b=True), InlineFont(strike=True), InlineFont(vertAlign="superscript")
    room = CellRichText([TextBlock(struck, "Room 12"), TextBlock(bold, " Room 45")])
    area = CellRichText(["40 m", TextBlock(raised, "2")])
    workbook, sheet = make_sheet(
        [["Supplier", "Place", "Area"], ["Omega", room, area], ["Delta", "Room 9", "two\nlines"]]
    )
    sheet["A2"].font = Font(strike=True)
    text = read_document("a.xlsx", save(workbook)).text
    assert text.endswith("~~Omega~~ | ~~Room 12~~ Room 45 | 40 m²\nDelta | Room 9 | two lines")


def test_links_of_cells_keep_their_address() -> None:
    workbook = openpyxl.Workbook()
    for row in (["Form", "Where"], ["Leave", "here"], ["Travel", '=HYPERLINK("https://example.org/b","there")']):
        workbook.active.append(row)
    workbook.active["B2"].hyperlink = "https://example.org/a"
    with zipfile.ZipFile(io.BytesIO(save(workbook))) as made:
        parts: dict[str, bytes | str] = {name: made.read(name) for name in made.namelist()}
        sheet = made.read("xl/worksheets/sheet1.xml").decode().replace('r="B3"', 'r="B3" t="str"')
    parts["xl/worksheets/sheet1.xml"] = re.sub(r"<v ?/>|<v></v>", "<v>there</v>", sheet)
    document = read_document("a.xlsx", pack(parts))
    assert {document.text[each.start : each.end]: each.address for each in document.links} == {
        "here": "https://example.org/a",
        "there": "https://example.org/b",
    }


def test_a_workbook_in_the_strict_form_is_read() -> None:
    workbook, _ = make_sheet([["Key", "Holder"], ["K-9", "Warden"]])
    assert read_document("a.xlsx", make_strict(workbook)).text.endswith("K-9 | Warden")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", "^"])
def test_the_delimiter_of_a_table_is_found(delimiter: str) -> None:
    rows = ["Name{d}Place{d}Since", '3M{d}"Saint Paul, Minnesota; USA"{d}1957', "Aflac{d}Columbus{d}1999"]
    data = "\r\n".join(rows).format(d=delimiter).encode()
    lines = read_document("table.csv", data).text.splitlines()
    assert lines[:2] == ["Name | Place | Since", "--- | --- | ---"]
    assert lines[2] == "3M | Saint Paul, Minnesota; USA | 1957"


@pytest.mark.parametrize(
    ("name", "lines", "rows"),
    [
        ("a.tsv", ['K1\t"Blue" paint\tA4', 'K2\t"Harbour grey\tB7', 'K3\t"Oil"\tC2'], ['K1 | "Blue" paint | A4', 'K2 | "Harbour grey | B7', "K3 | Oil | C2"]),
        ("a.csv", ['1,"Said \\"stop, now\\" twice",Ana', '2,"All good",Ben'], ['1 | Said "stop, now" twice | Ana', "2 | All good | Ben"]),
        ("a.tsv", ['1\t"Pipe\tA', '2\tPipe 2\tB', '3\tPipe 5"\tC'], ['1 | "Pipe | A', "2 | Pipe 2 | B", '3 | Pipe 5" | C']),
        ("a.csv", ['1,"Said ""stop"",', 'twice",Ana', '2,"All good",Ben'], ['1 | Said "stop", twice | Ana', "2 | All good | Ben"]),
        ("a.csv", ['1, "Said, once", Ana'], ["1 | Said, once | Ana"]),
    ],
)  # fmt: skip
def test_quotes_that_do_not_enclose_a_cell_are_letters(name: str, lines: list[str], rows: list[str]) -> None:
    header = "\t".join(("Code", "Name", "Shelf")) if name == "a.tsv" else "Code,Name,Shelf"
    text = read_document(name, "\n".join([header, *lines]).encode()).text
    assert text.splitlines()[2:] == rows


def test_a_first_line_that_states_the_delimiter_is_no_text() -> None:
    text = read_document("a.csv", b"sep=;\r\nItem;Price\r\nBolt, long;0,35\r\nNut, short;0,20").text
    assert text == "Item | Price\n--- | ---\nBolt, long | 0,35\nNut, short | 0,20"


def test_rows_of_numbers_have_no_header() -> None:
    assert read_document("a.tsv", b"Id\tPaid\t\nA\t".replace(b"\t\n", b"\t") + b"4\tB\t6\t").text.endswith(
        "A | 4\nB | 6"
    )
    assert read_document("table.csv", b"1,2\n3,4").text == "1 | 2\n3 | 4"


def test_cells_cannot_look_like_other_cells() -> None:
    assert "a \\| b | c" in read_document("table.csv", b'x,y\n"a | b",c').text


def test_rows_under_a_long_header_become_records_named_by_the_column_that_names_them() -> None:
    header = ["code", *[f"a rather long name of column {i}" for i in range(10)], "country", "again"]
    rows = [[f"C{i}", *["1"] * 9, "", name, name.upper()] for i, name in enumerate(("Kenya", "Norway", "Peru"))]
    text = read_document("wide.csv", "\n".join(",".join(row) for row in [header, *rows]).encode()).text
    assert "Norway:\n- code: C1\n- a rather long name of column 0: 1\n" in text
    assert "column 9:" not in text, "empty cells say nothing"


CONTAINER = '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>'
PACKAGE = """<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>Winter</dc:title>
<dc:creator>E. F. Benson</dc:creator></metadata><manifest>
<item id="n" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="b" href="b%20two.xhtml" media-type="application/xhtml+xml"/>
<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>
<spine><itemref idref="n"/><itemref idref="a"/><itemref idref="b"/><itemref idref="a"/></spine></package>"""


def make_book(**parts: bytes | str) -> bytes:
    book: dict[str, bytes | str] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": CONTAINER,
        "OPS/book.opf": PACKAGE,
        "OPS/nav.xhtml": "<html><body>Contents</body></html>",
        "OPS/a.xhtml": "<html><head><title/></head><body><h1>Snow</h1><p><a id='x'/>It is white.</p></body></html>",
        "OPS/b two.xhtml": "<html><body><h1>Ice</h1><p>It is slippery.</p></body></html>",
    }
    return pack(book | {name.replace("__", "/"): content for name, content in parts.items()})


def test_a_book_is_read_in_the_order_of_its_spine() -> None:
    document = read_document("book.epub", make_book(**{"OPS__book.opf": PACKAGE.replace("a.x", "A.x")}))
    assert [section.heading_path for section in document.sections if section.heading_path] == [("Snow",), ("Ice",)]
    assert "It is white." in document.text
    assert "Contents" not in document.text
    assert (document.title, document.metadata) == ("Winter", {"author": "E. F. Benson"})


NOTES = """<html xmlns:epub="http://www.idpf.org/2007/ops"><body><p>It is 45<a epub:type="noteref" href="#n1">1</a> m
deep<sup><a epub:type="noteref" id="r2" href="b%20two.xhtml#n2">2</a></sup>, or 46<a role="doc-noteref" href="#n1">1</a>, or
47<a role="doc-noteref" href="lost.xhtml#n">3</a>.</p><aside epub:type="footnote" id="n1"><p>In May
<a epub:type="noteref" href="#n3">4</a> or June.</p><div id="n3">Never.</div></aside></body></html>"""
END_NOTES = '<html><body><h1>Notes</h1><p id="n2"><a href="a.xhtml#r2">2</a>. Measured.</p></body></html>'


def test_a_note_of_a_book_is_read_where_it_is_referred_to() -> None:
    book = make_book(**{"OPS__a.xhtml": NOTES, "OPS__b two.xhtml": END_NOTES})
    assert read_document("book.epub", book).text == (
        "It is 45 (In May 4 or June. Never.) m deep (Measured.), or 46 [1], or 47 [3].\n\n# Notes"
    )


def test_what_stands_beside_the_order_of_a_book_is_read_where_a_link_leads_there_and_named_where_none_does() -> None:
    items = "".join(f'<item id="{name}" href="{name}.xhtml" media-type="text/html"/>' for name in ("c", "d"))
    link = "<html><body><h1>Snow</h1><p>See <a href='c.xhtml#x'>more</a>, 9<span class=lnum>10</span></p></body></html>"
    more = {f"OPS__{name}.xhtml": f"<html><body><p>It is {name}.</p></body></html>" for name in ("c", "d")}
    package = {"OPS__book.opf": PACKAGE.replace("</manifest>", f"{items}</manifest>"), "OPS__a.xhtml": link}
    document = read_document("book.epub", make_book(**package, **more))
    assert document.text == "# Snow\n\nSee more, 9\n\n# Ice\n\nIt is slippery.\n\nIt is c."
    assert name_unread(document.unread) == "1 file (d.xhtml, to which nothing leads)"


def test_a_book_without_a_chapter_is_read_and_says_so() -> None:
    book = make_book(**{"OPS__book.opf": PACKAGE.replace("b%20two", "c")})
    document = read_document("book.epub", book)
    assert "It is white." in document.text
    assert document.unread == (Unread(kind="file", number=1, where="c.xhtml, which is damaged or missing"),)


def test_a_protected_book_is_refused() -> None:
    listed = (
        '<encryption xmlns:e="http://www.w3.org/2001/04/xmlenc#"><e:CipherReference URI="OPS/a.xhtml"/></encryption>'
    )
    with pytest.raises(EncryptedDocument, match="copying"):
        read_document("book.epub", make_book(**{"META-INF__encryption.xml": listed}))


def make_mail() -> EmailMessage:
    mail = EmailMessage()
    mail["From"] = "Jürgen Müller <jm@example.com>"
    mail["To"] = "a@example.com, Bob <b@example.com>"
    mail["Subject"] = "Straße gesperrt"
    mail["Date"] = "Wed, 21 Dec 2022 10:28:53 -0600"
    mail.set_content("Hallo,\n\ndie Straße ist zu.\n")
    return mail


def test_a_mail_says_who_wrote_what_to_whom_and_when() -> None:
    mail = make_mail()
    mail.add_alternative("<p>Only a page</p>", subtype="html")
    mail.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="Übersicht.pdf")
    document = read_document("mail.eml", mail.as_bytes())
    assert document.title == "Straße gesperrt"
    assert "From: Jürgen Müller <jm@example.com>\nTo: a@example.com, Bob <b@example.com>\n" in document.text
    assert "Date: 2022-12-21 10:28-06:00" in document.text
    assert "die Straße ist zu." in document.text
    assert "Only a page" not in document.text
    assert document.text.endswith("Attachments:\n- Übersicht.pdf")
    expected = {
        "from": "Jürgen Müller <jm@example.com>",
        "to": "a@example.com, Bob <b@example.com>",
        "subject": "Straße gesperrt",
        "date": "2022-12-21",
    }
    assert document.metadata == read_own_metadata("mail.eml", mail.as_bytes()) == expected


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2023-05-04T14:32:49Z", "2023-05-04 14:32+00:00"),
        ("Thursday, May 4, 2023 2:32 PM", "2023-05-04 14:32"),
        ("Thu, 4 May 2023 12:05 a.m.", "2023-05-04 00:05"),
        ("Do, 4 Mai 2023 14:32:49 +0200", "Do, 4 Mai 2023 14:32:49 +0200"),
        ("5/4/2023 2:32 PM", "5/4/2023 2:32 PM"),
    ],
)
def test_the_date_of_a_mail_is_read_or_as_it_is_written(written: str, read: str) -> None:
    assert (
        f"\nDate: {read}\n" in read_document("mail.eml", f"From: a@b.c\nDate: {written}\nSubject: x\n\nA".encode()).text
    )


def test_a_mail_without_plain_text_is_read_as_a_page() -> None:
    mail = make_mail()
    mail.set_content("<h2>News</h2><ul><li>one</li></ul><p style='display:none'>secret</p>", subtype="html")
    text = read_document("mail.eml", mail.as_bytes()).text
    assert "- one" in text
    assert "secret" not in text


MAIL = "From: Ann <ann@example.org>\nTo: bob@example.org\nSubject: Pumps\nDate: Tue, 16 Apr 2024 10:00:00 +0200\nMIME-Version: 1.0\n"
# fmt: off
MAILS = [
    ('a.eml', '{MAIL}Content-Type: multipart/alternative; boundary="bb1"\n\n--bb1\nContent-Type: text/plain; charset=utf-8\n\nThis message has no plain version.\n\n--bb1\nContent-Type: text/html; charset=utf-8\n\n<p>The barrier code is 7731.\n\n--bb1--\n', ['The barrier code is 7731.'], ['no plain version']),
    ('a.eml', '{MAIL}Content-Type: multipart/mixed; boundary="bb1"\n\n--bb1\nContent-Type: text/plain; charset=utf-8\n\nSee the attached mail.\n\n--bb1\nContent-Type: message/rfc822\n\nFrom: Inspector <i@example.net>\nSubject: Crane\nDate: Mon, 15 Apr 2024 10:00:00 +0200\n\nCrane 3 must not lift more.\n--bb1\nContent-Type: text/csv; name="loads.csv"\nContent-Disposition: attachment; filename="loads.csv"\n\n3,800\n--bb1--\n', ['Attachments:\n- loads.csv\n\n## Crane\n\nFrom: Inspector <i@example.net>\nDate: 2024-04-15 10:00+02:00', 'Crane 3 must not lift more.', '1 attachment (loads.csv)'], []),
    ('a.eml', '{MAIL}Content-Type: multipart/alternative; boundary="bb1"\n\n--bb1\nContent-Type: text/plain; charset=utf-8\n\nBerth Fee\nNorth 40\nSouth 50\n\n--bb1\nContent-Type: text/html; charset=utf-8\n\n<table><tr><th>Berth<th>Fee<tr><td>North<td>40<tr><td>South<td>50</table>\n\n--bb1--\n', ['Berth | Fee\n--- | ---\nNorth | 40'], []),
    ('a.eml', '{MAIL}Content-Type: multipart/alternative; boundary="bb1"\n\n--bb1\nContent-Type: text/plain; charset=utf-8\n\nThe crane is closed until May. Use crane 4, and call Ann before you begin.\n\n--bb1\nContent-Type: text/html; charset=utf-8\n\n<p>View in browser\n\n--bb1--\n', ['Use crane 4'], []),
    ('a.eml', '{MAIL}Content-Type: multipart/mixed; boundary="bb1"\n\n--bb1\nContent-Type: text/html; charset=utf-8\n\n<p>The code is 7731.\n\n--bb1\nContent-Type: text/plain; charset=utf-8\n\n_______\nPumps mailing list\nUnsubscribe: https://x\n\n--bb1--\n', ['The code is 7731.'], []),
    ('a.eml', '{MAIL}Content-Type: multipart/mixed; boundary="bb1"\n\n--bb1\nContent-Type: multipart/related; boundary="r"\n\n--r\nContent-Type: text/html; charset=utf-8\n\n<p>The code is 7731.<img src=cid:a>\n--r\nContent-Type: image/png\nContent-ID: <a>\nContent-Transfer-Encoding: base64\n\niVBORw0KGgo=\n--r--\n\n--bb1\nContent-Type: text/plain; charset=utf-8\n\n-- \nlist footer\n\n--bb1--\n', ['7731', 'picture'], ['Attachments']),
    ('a.eml', '{MAIL}Content-Type: multipart/mixed; boundary="bb1"\n\n--bb1\nContent-Type: text/plain; charset=utf-8\n\nThe code is 7731.\n\n--bb1\nContent-Type: text/html; charset=utf-8\n\n<p>The code is 7731.</p>\n\n--bb1--\n', ['7731'], ['7731.\n\nThe code is 7731']),
    ('a.eml', '{MAIL}Content-Type: multipart/digest; boundary="bb1"\n\n--bb1\n\nFrom: a@x.org\nSubject: One\n\nFirst mail.\n--bb1\n\nFrom: b@x.org\nSubject: Two\n\nSecond mail.\n--bb1--\n', ['## One', 'First mail.', 'Second mail.'], []),
    ('a.mbox', 'From ann@x Tue Apr 16 10:00:00 2024\n{MAIL}\nThe crane is closed until May for repairs.\n\nFrom bob@x Tue Apr 16 11:00:00 2024\nFrom: Ann <ann@example.org>\nTo: bob@example.org\nSubject: Re: Pumps\nDate: Tue, 16 Apr 2024 10:00:00 +0200\nMIME-Version: 1.0\n\nOn Tue Ann wrote:\n> The crane is closed until May for repairs.\n\nWhich one?\n', ['# Re: Pumps', 'Which one?'], ['> The crane']),
    ('a.eml', '{MAIL}Content-Type: multipart/alternative; boundary="bb1"\n\n--bb1\nContent-Type: text/plain; charset=utf-8\n\nInvitation\n\n--bb1\nContent-Type: text/calendar; charset=utf-8; method=REQUEST\n\nBEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;TZID=Europe/Oslo:20240504T100000\nDTEND:20240504T090000Z\nSUMMARY:Crane inspection\\, north\nLOCATION:Hall 3\nDESCRIPTION:Bring the\n  keys.\\nAnd a hat.\nEND:VEVENT\nEND:VCALENDAR\n\n--bb1--\n', ['Event: Crane inspection, north', 'Start: 2024-05-04 10:00 Europe/Oslo', 'End: 2024-05-04 09:00 UTC', 'Place: Hall 3', 'Bring the keys. And a hat.'], []),
    ('a.eml', '{MAIL}Content-Type: multipart/encrypted; boundary="bb1"\n\n--bb1\nContent-Type: application/pgp-encrypted\n\nVersion: 1\n\n--bb1\nContent-Type: application/octet-stream\n\n-----BEGIN PGP MESSAGE-----\nabc\n-----END PGP MESSAGE-----\n\n--bb1--\n', ['1 mail part (encrypted with PGP)'], []),
    ('a.eml', '{MAIL}\nHello\n-----BEGIN PGP MESSAGE-----\n\nhQEMA\n-----END PGP MESSAGE-----\n', ['Hello', 'encrypted with PGP'], ['hQEMA']),
    ('a.eml', '{MAIL}Content-Type: application/pkcs7-mime; smime-type=enveloped-data; name="smime.p7m"\nContent-Disposition: attachment; filename="smime.p7m"\nContent-Transfer-Encoding: base64\n\nMIIB\n', ['1 mail part (encrypted or signed with S/MIME)'], []),
    ('a.eml', '{MAIL}Content-Type: multipart/signed; boundary="bb1"\n\n--bb1\nContent-Type: text/plain; charset=utf-8\n\nThe code is 7731.\n\n--bb1\nContent-Type: application/pgp-signature; name="signature.asc"\n\n-----BEGIN PGP SIGNATURE-----\nabc\n-----END PGP SIGNATURE-----\n\n--bb1--\n', ['7731'], ['signature', 'Attachments']),
    ('a.eml', '{MAIL}\n-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nThe code is 7731.\n-----BEGIN PGP SIGNATURE-----\n\niQEz\n-----END PGP SIGNATURE-----\n', ['7731'], ['iQEz', 'SHA256', 'BEGIN']),
    ('a.eml', 'From: Ann <ann@example.org>\nTo: bob@example.org\nSubject: Größe der Pumpe\nDate: Tue, 16 Apr 2024 10:00:00 +0200\nMIME-Version: 1.0\n\nText', ['Größe der Pumpe'], []),
    ('a.eml', 'From: Ann <ann@example.org>\nTo: bob@example.org\nSubject: =?utf-8?B?R3LDtsOf?= =?utf-8?Q?e_der?= Pumpe\nDate: Tue, 16 Apr 2024 10:00:00 +0200\nMIME-Version: 1.0\n\nText', ['Größe der Pumpe'], []),
    ('a.eml', 'From: Ann <ann@example.org>\nTo: bob@example.org\nSubject: =?x-foo?Q?Gr=C3=B6=C3=9Fe?=\nDate: Tue, 16 Apr 2024 10:00:00 +0200\nMIME-Version: 1.0\n\nText', ['Größe'], []),
    ('a.eml', '{MAIL}Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: BASE64 \n\nVGhlIGNvZGUgaXMgNzczMS4=\n', ['The code is 7731.'], []),
    ('a.eml', 'Received: from a by b; Tue, 16 Apr 2024 10:00:00 +0200\nFrom: ann@example.org\nSubject: Pumps\n\nText', ['2024-04-16'], []),
    ('a.eml', '{MAIL}Content-Type: multipart/mixed; boundary="bb1"\n\n--bb1\nContent-Type: text/html; charset=utf-8; name="mail.html"\nContent-Disposition: inline; filename="mail.html"\n\n<p>The code is 7731.</p>\n\n--bb1--\n', ['7731'], []),
    ('a.eml', '{MAIL}Content-Type: multipart/mixed; boundary="bb1"\n\n--bb1\nContent-Type: text/plain; charset=utf-8\n\nSee file.\n\n--bb1\nContent-Type: text/plain; name="notes.txt"\nContent-Disposition: attachment; filename="notes.txt"\n\nsecret notes\n\n--bb1--\n', ['1 attachment (notes.txt)'], ['secret notes']),
    ('a.eml', '{MAIL}Content-Type: multipart/report; boundary="bb1"\n\n--bb1\nContent-Type: text/plain; charset=utf-8\n\nNot delivered.\n\n--bb1\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; x\n\nFinal-Recipient: rfc822; bob@example.org\nStatus: 5.1.1\n\n--bb1--\n', ['Status: 5.1.1', 'Not delivered.'], []),
    ('a.eml', '{MAIL}Content-Type: text/html\n\n<table width=600><tr><td><table><tr><td><img src=a width=1 height=1></td></tr><tr><td><h1>News</h1><p>One.</p><p>Two.</p></td></tr></table></td></tr><tr><td><table border=1><tr><th>Item</th><th>Price</th></tr><tr><td>Pump</td><td>40</td></tr></table></td></tr></table>', ['# News\n\nOne.\n\nTwo.', 'Item | Price\n--- | ---\nPump | 40'], ['picture']),
    ('a.mhtml', 'From: <Saved by Blink>\nSnapshot-Content-Location: https://a.example/x\nSubject: Rules\nDate: Tue, 16 Apr 2024 10:00:00 +0200\nMIME-Version: 1.0\nContent-Type: multipart/related;\n\ttype="text/html";\n\tboundary="b"\n\n--b\nContent-Type: text/html\nContent-ID: <f>\nContent-Transfer-Encoding: quoted-printable\nContent-Location: https://a.example/x\n\n<html><head><title>Rules</title></head><body><main><h1>Rules</h1><p>No gr=C3=BC=C3=9Fe.</p></main></body></html>\n--b\nContent-Type: text/css\n\np{}\n--b--\n', ['Rules', '# Rules\n\nNo grüße.', '2024-04-16'], ['Attachments', 'From:']),
    ('leave.doc', 'Date: Tue, 16 Apr 2024 10:00:00 +0200\nMessage-ID: <1@x>\nSubject: Exported From Confluence\nMIME-Version: 1.0\nContent-Type: multipart/related; \n\tboundary="----=_Part_1"\n\n------=_Part_1\nContent-Type: text/html; charset=UTF-8\nContent-Transfer-Encoding: quoted-printable\nContent-Location: file:///C:/exported.html\n\n<html><head><title>Leave</title></head><body><h1>Leave</h1><p>Thirty days.</p></body></html>\n------=_Part_1--\n', ['Leave', 'Thirty days.'], []),
    ('a.eml', '{MAIL}Content-Type: multipart/mixed; boundary="bb1"\n\n--bb1\nContent-Type: application/zip\nContent-Disposition: attachment; filename="Größe.zip"\n\nx\n--bb1--\n', ['- Größe.zip', '1 attachment (Größe.zip)'], []),
    ('a.eml', '{MAIL}Content-Type: multipart/mixed\n\nThe code is 7731.', ['7731'], []),
    ('a.eml', '{MAIL}Content-Type: multipart/alternative; boundary="bb1"\n\n--bb1\nContent-Type: text/plain; charset=utf-8\n\nThe code of the south gate is 7731 today.\n\n--bb1\nContent-Type: text/x-amp-html; charset=utf-8\n\n<html amp4email><body>The code of the south gate is 7731 today and more words here <b>x</b></body></html>\n\n--bb1\nContent-Type: text/html; charset=utf-8\n\n<p>The code of the south gate is 7731 today.\n\n--bb1--\n', ['7731 today.'], ['Attachments']),
    ('a.eml', 'MIME-Version: 1.0\nDate: Thu, 29 Sep 2022 12:22:20 +0100\nSubject: A subject\nFrom: Nobody <a@example.com>\nTo: b@example.com\n\n\n\nContent-type: multipart/alternative;\n\tBoundary="0__=4EBB"\n\n--0__=4EBB\nContent-transfer-encoding: quoted-printable\nContent-type: text/plain; charset=ISO-8859-1\n\nThis is a te=\nst with gr=FC=DFe.\n--0__=4EBB--\n', ['This is a test with grüße.'], ['--0__']),
    ('a.eml', '\n\n{MAIL}\nThe code is 7731.', ['# Pumps', 'Date: 2024-04-16'], []),
    ('a.eml', '{MAIL}\nPG1ldGEgaHR0cC1lcXVpdj0iQ29udGVudC1UeXBlIiBjb250ZW50PSJ0ZXh0L2h0bWw7IGNoYXJz\nZXQ9dXRmLTgiPihTZXJ2ZXI6IERBVEVWKSBEZXIgQXVmdHJhZyB3dXJkZSBlcmZvbGdyZWljaCBh\nYmdlc2NobG9zc2VuLg==\n', ['Der Auftrag wurde erfolgreich abgeschlossen.'], []),
    ('box.mbox', 'From ann@x Tue Apr 16 10:00:00 2024\rFrom: Ann <ann@example.org>\rTo: bob@example.org\rSubject: Pumps\rDate: Tue, 16 Apr 2024 10:00:00 +0200\rMIME-Version: 1.0\r\rOne code.\r\rFrom bob@x Tue Apr 16 11:00:00 2024\rFrom: Ann <ann@example.org>\rTo: bob@example.org\rSubject: Keys\rDate: Tue, 16 Apr 2024 10:00:00 +0200\rMIME-Version: 1.0\r\rTwo codes.\r', ['# Pumps', '# Keys', 'Two codes.'], []),
    ('a.eml', '{MAIL}Content-Type: text/calendar; charset=utf-8; method=REQUEST\n\nBEGIN:VCALENDAR\nMETHOD:CANCEL\nBEGIN:VEVENT\nRRULE:FREQ=WEEKLY;COUNT=5\nSUMMARY:Pumps\nDTSTART;TZID="W. Europe Standard Time":20240504T100000\nLOCATION:Room 5\nBEGIN:VALARM\nDESCRIPTION:Reminder\nEND:VALARM\nEND:VEVENT\nEND:VCALENDAR\n', ['Event: Pumps', 'Status: CANCELLED', '2024-05-04 10:00', 'Repeated: FREQ=WEEKLY;COUNT=5', 'Place: Room 5'], ['Reminder', 'Earlier mail']),
    ('a.eml', '8E662D2D05B0\nqueued by gate3\nX-Env: a@x\nSubject : A subject that a\ngateway cut\n{MAIL}no header\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\nVGhlIGNvZGUgb2YgdGhlIHNvdXRoIGdhdGUgaXMgNzczMSB0b2RheS4KR3LDvMOfZSBmcm9tIHRo\nZSBub3J0aCBnYXRlLgo=\n', ['# A subject that a gateway cut', 'is 7731 today.', '3 mail parts (lines among the headers)'], ['queued']),
    ('a.eml', 'Gate 3\n\nReceived: from a by b; Tue, 16 Apr 2024 10:00:00 +0200\n\n{MAIL}Content-Type: text/plain\nContent-Transfer-Encoding: 7bit\n\nVGhlIGNvZGUgb2YgdGhlIHNvdXRoIGdhdGUgaXMgNzczMSB0b2RheS4KR3LDvMOfZSBmcm9tIHRo\nZSBub3J0aCBnYXRlLgo=\n', ['# Pumps', 'is 7731 today.'], ['VGhl', 'Gate 3']),
    ('a.eml', '{MAIL}Content-Type: multipart/mixed; boundary="bb1"\n\n--other\nContent-Type: text/plain; charset=utf-8\n\nGr=C3=BC=C3=9Fe, the code is=\n 7731.\n\nVGhlIGNvZGUgb2YgdGhlIHNvdXRoIGdhdGUgaXMgNzczMSB0b2RheS4KR3LDvMOfZSBmcm9tIHRo\nZSBub3J0aCBnYXRlLgo=\n\nbegin 644 a.txt\n#0V%T\n`\nend\n--other\nContent-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\nRnJvbTogY0B4Lm9yZwpTdWJqZWN0OiBPbGQKClNlZSB0aGUgY2F0Lg==\n--other--\n', ['the south gate is 7731', '## Old', 'See the cat.', '1 attachment (a.txt)'], ['VGhl', '#0V']),
    ('a.eml', '{MAIL}Content-Type: multipart/mixed; boundary="bb1"\n\n--bb1\nContent-Type: message/rfc822\nContent-Transfer-Encoding: quoted-printable\n\nFrom: c@x.org\nSubject: =3D?utf-8?Q?K=3DC3=3DBChl?=3D\nContent-Type: text/plain; charset=3Dutf-8\n\nAsk G=C3=BCnther.\n--bb1--\n', ['## Kühl', 'Ask Günther.'], []),
    ('a.eml', '{MAIL}\nThe code is 7731.\n\nOn Mon, Apr 15, 2024 at 9:12 AM Bob\n<bob@example.org> wrote:\n> Which code?\n> Bob\n> On 14.4. Ann wrote:\n> > Use\n> > the code.\n\nBye\n', ['## Earlier mail: On Mon, Apr 15, 2024 at 9:12 AM Bob <bob@example.org> wrote\n\n> Which code?\n> Bob\n', '## Earlier mail: On 14.4. Ann wrote\n\n> > Use\n> > the code.\n\n## Reply\n\nBye'], ['```']),
    ('a.eml', '{MAIL}\nThe code is 7731 now.\n\n-----Original Message-----\nFrom: Bob\nSent: Monday, April 15, 2024 9:12 AM\nTo: Ann\nSubject: RE: Pumps\n\nThe code is 4410.\n\nVon: Ann\nGesendet: Freitag, 12. April 2024 17:03\nAn: Bob\nBetreff: Pumps\n\nThe code is 1234.\n', ['now.\n\n## Earlier mail: Monday, April 15, 2024 9:12 AM\n\n---', '4410.\n\n## Earlier mail: Freitag, 12. April 2024 17:03\n\nVon:'], []),
    ('a.eml', '{MAIL}Content-Type: text/html\n\n<p>The code is 7731 now.<div>On Mon, Apr 15, 2024 at 9:12 AM Bob wrote:</div><blockquote><div>The code is 4410.</div></blockquote><p>Not so.<div style="border-top:solid"><p><b>From:</b> Bob<br><b>Sent:</b> 2024-04-12 9:12<br><b>Subject:</b> Pumps</div><p>Hours: 9:00 to 2100\n', ['wrote:\n\n## Earlier mail: On Mon, Apr 15, 2024 at 9:12 AM Bob wrote\n\n> The code is 4410.\n\n## Reply\n\nNot so.\n\n## Earlier mail: 2024-04-12 9:12\n\nFrom: Bob'], ['mail: 9:00']),
    ('a.eml', '{MAIL}Content-Type: text/plain; charset=utf-8; format=flowed; delsp=yes\n\n> The gate is open in the sea \n> son.\n>> Until when? \nUntil  \n May.\n-- \nAnn', ['> The gate is open in the season.\n>\n> > Until when?', 'Until May.\n--\nAnn'], []),
    ('a.eml', '{MAIL}\nGr=C3=BC=C3=9Fe, the code is=\n 7731 = x.\n', ['=C3=BC'], []),
    ('a.eml', '{MAIL}\nGr=C3=BC=C3=9Fe, the code is=\n 7731.\n', ['Grüße, the code is 7731.'], []),
    ('box.mbox', 'From ann@x Tue Apr 16 10:00:00 2024\n{MAIL}\nDear all,\n\nFrom May the north gate is closed.\n\nFrom now on use 2024 keys.\n', ['From May the north gate is closed.', 'From now on use 2024 keys.'], []),
]
# fmt: on


@pytest.mark.parametrize(("name", "mail", "held", "left"), MAILS)
def test_the_richest_part_of_a_mail_is_read_with_what_it_forwards_and_the_rest_is_counted(
    name: str, mail: str, held: list[str], left: list[str]
) -> None:
    document = read_document(name, mail.replace("{MAIL}", MAIL).encode())
    said = f"{document.title} {document.metadata.get('date')} {document.text} {name_unread(document.unread)}"
    assert [each for each in held if each not in said] == []
    assert [each for each in left if each in said] == []


RTF = rb"""{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fswiss\fcharset0 Arial;}{\f1\fcharset204 Cyr;}}
{\stylesheet{\s0 Normal;}{\s1\outlinelevel0 heading 1;}}{\info{\title x}}{\header running title\par}
\pard\s1 Garden rules\par\pard\f0 Water \'fcber \u8364?5 twice{\v hidden words} a day.\line again {\f1 \'cf\'f0\'e8}\par
{\pard{\listtext\'b7\tab}\ls1\ilvl0 tulips\par}{\pard{\listtext\'b7\tab}\ls1\ilvl1 red ones\par}
{\pict\bin5 }}}}}}{\*\generator nobody}
\trowd\cellx100\cellx200\pard\intbl Plant\cell Litres\cell\row\pard\intbl Rose\cell 3\cell\row
\pard After {\field{\*\fldinst HYPERLINK "http://x"}{\fldrslt the link}}.\par}"""


def test_rich_text_keeps_headings_lists_and_tables() -> None:
    document = read_document("garden.rtf", RTF)
    assert document.text.split("\n\n")[1:] == [
        "Water über €5 twice a day.\nagain При",
        "- tulips\n  - red ones",
        "Plant | Litres\n--- | ---\nRose | 3",
        "After the link.",
        "Page header: running title",
    ]
    assert document.sections[-1].heading_path == ("Garden rules",)
    assert document.unseen_words == 2


MARKED_RTF = rb"""{\rtf1\ansi\deff3{\fonttbl{\f3\fcharset204 A;}{\f5\froman\fcharset2{\*\panose 0}Symbol;}}{\info{\title Roses}{\author Ann}{\subject x}}{\stylesheet{\s1\sb1 heading 2;}}
{\listtext\pard 1.2.\tab}\pard\plain\ls2\s1 Care\par
\pard\plain Beds of 45 m{\super 2}, {\strike 12}{\deleted  11} 13 euros{\super\chftn{\*\footnote\pard\plain{\chftn} In May.}}.\par
{\listtext\pard 3.\tab}\pard\ls1 dig\par{\listtext\pard a)\tab}\pard\ls1\ilvl1 deep\par
{\listtext\pard 4.\tab}\pard\ls1 plant\par{\*\annotation why?}{\object{\*\objdata 00}{\result a sheet}}\par
{\pard{\listtext\'b7\tab}\ls3 water\par}\trowd\pard\intbl a {\shp{\*\shpinst{\sp{\sn b}{\sv 1}}{\shptxt box}}}\cell b\cell\row
\pard{\field{\*\fldinst{HYPERLINK "https://rose.example/"}}{\fldrslt here}}, {\upr{o?ce}{\*\ud{\u111?\u64257?ce}}}, U+1F339: \uc0\u-10180\u-8391, 40 {\f5 W}\plain W \'cf\par}"""


def test_rich_text_keeps_what_marks_mean_and_says_what_it_leaves_out() -> None:
    document = read_document("roses.rtf", MARKED_RTF)
    assert document.text.split("\n\n") == [
        "## 1.2. Care",
        "Beds of 45 m², ~~12~~ 13 euros (In May.).",
        "3. dig\n   - a) deep\n4. plant",
        "a sheet",
        "- water",
        "a box | b",
        "here (https://rose.example/), ofice, U+1F339: \N{ROSE}, 40 ΩW П",
    ]
    assert (document.title, document.metadata) == ("Roses", {"author": "Ann"})
    assert [(each["kind"], each["number"]) for each in document.unread] == [
        ("deletion", 1),
        ("comment", 1),
        ("attachment", 1),
    ]
    assert [link.address for link in document.links] == ["https://rose.example/"]


WHITE_RTF = (
    rb"""{\rtf1{\colortbl;\red255\green255\blue255;\red255\green0\blue0;}Seen.{\cf1 White words.}{\cf2  Red.}\par}"""
)


def test_rich_text_leaves_out_white_and_tiny_letters() -> None:
    document = read_document("a.rtf", WHITE_RTF.replace(rb"{\cf2", rb"{\fs1 Tiny words.}{\cf2"))
    assert (document.text, document.unseen_words) == ("Seen. Red.", 4)


def test_white_letters_of_rich_text_on_a_colour_are_kept() -> None:
    document = read_document("a.rtf", WHITE_RTF.replace(rb"{\cf1", rb"{\highlight2\cf1"))
    assert document.text == "Seen.White words. Red."
    assert document.unseen_words == 0


def test_a_slide_that_is_hidden_is_left_out() -> None:
    deck = Presentation(io.BytesIO(make_deck()))
    deck.slides[2]._element.set("show", "0")
    document = read_document("deck.pptx", save(deck))
    assert "Thank you" not in document.text
    assert document.unseen_words == 2


ODT_BODY = """<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
 xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"><office:automatic-styles>
<style:style style:name="T1"><style:text-properties text:display="none"/></style:style>
<text:list-style style:name="L1"><text:list-level-style-number text:level="1" style:num-format="1"/>
<text:list-level-style-bullet text:level="2" text:bullet-char="•"/></text:list-style>
</office:automatic-styles><office:body><office:text><text:tracked-changes>deleted</text:tracked-changes>
<text:h text:outline-level="2">Garden<text:s text:c="900000000"/>rules</text:h>
<text:p>Water<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>Not in winter.</text:p>
</text:note-body></text:note> daily<text:span text:style-name="T1">secret</text:span>.<text:line-break/>Twice.</text:p>
<text:list text:style-name="L1"><text:list-item><text:p>dig</text:p><text:list><text:list-item><text:p>deep</text:p>
</text:list-item></text:list></text:list-item><text:list-item><text:p>plant</text:p></text:list-item></text:list>
<table:table><table:table-header-rows><table:table-row><table:table-cell><text:p>Plant</text:p></table:table-cell>
<table:table-cell table:number-columns-repeated="2"><text:p>Litres</text:p></table:table-cell></table:table-row>
</table:table-header-rows><table:table-row><table:table-cell><text:p>Rose</text:p></table:table-cell>
<table:table-cell><text:p>3</text:p></table:table-cell></table:table-row></table:table>
</office:text></office:body></office:document-content>"""


def make_odt(body: str = ODT_BODY, manifest: str = "<manifest/>") -> bytes:
    return pack(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "META-INF/manifest.xml": manifest,
            "content.xml": body,
        }
    )


def test_an_opendocument_text_keeps_headings_lists_tables_and_notes() -> None:
    document = read_document("garden.odt", make_odt())
    assert document.text.split("\n\n")[1:] == [
        "Water (Not in winter.) daily.\nTwice.",
        "1. dig\n   - deep\n2. plant",
        "Plant | Litres | Litres\n--- | --- | ---\nRose | 3 |",
    ]
    assert document.title == "Garden rules"
    assert document.unseen_words == 1


@pytest.mark.parametrize(
    ("properties", "unseen"),
    [
        ('fo:color="#ffffff"', 1),
        ('fo:font-size="0.5pt"', 1),
        ('fo:color="#ffffff" fo:background-color="#000080"', 0),
        ('fo:color="#ff0000" fo:font-size="9pt"', 0),
    ],
)
def test_an_opendocument_text_leaves_out_white_and_tiny_letters(properties: str, unseen: int) -> None:
    declared = 'xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0"'
    document = read_document("a.odt", make_odt(ODT_BODY.replace('text:display="none"', f"{declared} {properties}")))
    assert ("secret" not in document.text, document.unseen_words) == (bool(unseen), unseen)


def test_an_opendocument_text_keeps_equations_and_counts_what_is_not_read() -> None:
    equation = '<math xmlns="http://www.w3.org/1998/Math/MathML"><msup><mi>x</mi><mn>2</mn></msup></math>'
    frames = "".join(
        f'<draw:frame><draw:{kind} xlink:href="{path}"/></draw:frame>'
        for kind, path in (("object", "./Object 1"), ("object", "./Object 2"), ("image", "Pictures/a.png"))
    )
    body = ODT_BODY.replace("Twice.", f"{frames}<office:annotation><text:p>Why?</text:p></office:annotation>")
    names = 'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:xlink="http://www.w3.org/1999/xlink"'
    body = body.replace("<office:document-content", f"<office:document-content {names}")
    parts: dict[str, bytes | str] = {
        "content.xml": body.replace("deleted", "<text:deletion>deleted</text:deletion>"),
        "Object 1/content.xml": equation,
        "Object 2/content.xml": '<o:chart xmlns:o="urn:oasis:names:tc:opendocument:xmlns:office:1.0"/>',
    }
    with zipfile.ZipFile(io.BytesIO(make_odt())) as made:
        document = read_document("a.odt", pack({**{name: made.read(name) for name in made.namelist()}, **parts}))
    assert "$x^{2}$" in document.text
    kinds = sorted(each["kind"] for each in document.unread)
    assert kinds == ["chart", "comment", "deletion", "hidden word", "picture"]


OUTLINE = "".join(
    f'<text:outline-level-style text:level="{level}" style:num-format="{form}" text:display-levels="{level}"/>'
    for level, form in ((1, "I"), (2, "1"))
)


def test_an_opendocument_text_shows_the_numbers_that_a_program_computes() -> None:
    def head(level: int, words: str, more: str = "") -> str:
        return f'<text:h text:outline-level="{level}"{more}>{words}</text:h>'

    items = "<text:list-item><text:p>one</text:p></text:list-item>"
    items += '<text:list-item text:start-value="9"><text:p>nine</text:p></text:list-item>' + items.replace("one", "ten")
    base = "<text:ruby><text:ruby-base>山田</text:ruby-base><text:ruby-text>やまだ</text:ruby-text></text:ruby>"
    bare = "<text:list-header><text:p>none</text:p></text:list-header>"
    body = head(1, "Scope") + head(1, "Place") + head(2, "Hall") + head(2, "Gate", ' text:start-value="7"')
    body += f'<text:p>{base}</text:p><text:list text:style-name="L1">{bare}{items}</text:list>'
    start, end = ODT_BODY.split("<text:tracked")[0], "</office:text></office:body></office:document-content>"
    start = start.replace("</office:auto", f"<text:outline-style>{OUTLINE}</text:outline-style></office:auto")
    blocks = read_document("a.odt", make_odt(start + body + end)).text.split("\n\n")
    assert blocks[:5] == ["# I Scope", "# II Place", "## II.1 Hall", "## II.7 Gate", "山田(やまだ)"]
    assert blocks[5:] == ["none", "1. one\n9. nine\n10. ten"]


def make_opendocument(kind: str, body: str, styles: str = "") -> bytes:
    around, end = ODT_BODY.split("<office:text>")[0], "</office:body></office:document-content>"
    around = around.replace(
        "<office:automatic",
        'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:p='
        '"urn:oasis:names:tc:opendocument:xmlns:presentation:1.0"><office:automatic',
        1,
    ).replace('style:1.0">', 'style:1.0" ', 1)
    content = f"{around}<office:{kind}>{body}</office:{kind}>{end}"
    mimetype = f"application/vnd.oasis.opendocument.{kind}"
    parts = {"mimetype": mimetype, "META-INF/manifest.xml": "<manifest/>", "content.xml": content}
    return pack(parts | ({"styles.xml": f"{around}{styles}{end}"} if styles else {}))


def test_what_pandoc_drops_in_cells_and_notes_of_an_opendocument_text_is_read() -> None:
    head, list_ = (
        '<text:h text:outline-level="2">{}</text:h>',
        "<text:list><text:list-item>{}</text:list-item></text:list>",
    )
    cell = "<table:table-row><table:table-cell>{}</table:table-cell><table:table-cell>{}</table:table-cell></table:table-row>"
    table = f"<table:table>{cell}</table:table>"
    body = table.format(
        head.format("Hours") + table.format("<text:p>Mon</text:p>", head.format("9")),
        "<text:section><text:p>Gate 5</text:p></text:section>",
    )
    note = f"<text:note><text:note-citation>1</text:note-citation><text:note-body>{list_}</text:note-body></text:note>"
    body += f"<text:p>Pay{note.format('<text:p>7 kg</text:p>')}.</text:p>"
    document = read_document("a.odt", make_opendocument("text", body))
    assert document.text == "Hours; Mon, 9 | Gate 5\n\nPay (7 kg)."
    assert document.unread == ()


def test_an_opendocument_sheet_shows_its_cells() -> None:
    def write(*cells: str, **marks: str) -> str:
        said = "".join(
            f"<table:table-cell {cell.partition('|')[2]}><text:p>{cell.partition('|')[0]}</text:p></table:table-cell>"
            for cell in cells
        )
        return f"<table:table-row {' '.join(f'table:{name}={value!r}' for name, value in marks.items())}>{said}</table:table-row>"

    rows = [
        write("Pump", "Part", "mm"),
        write('P-7|table:number-rows-spanned="2"', "Belt<text:tab/>A", "1,5"),
        write("", "Valve", '|office:value="2"'),
        write("secret", visibility="collapse"),
        write('|table:number-columns-repeated="1000"', **{"number-rows-repeated": "1000000"}),
        write("Town", "People", "mm"),
        write('Oslo|table:number-columns-spanned="2"', "", "4"),
        write("Kiel", "246 601", "3", **{"number-rows-repeated": "150"}),
    ]
    edges = "<style:master-page><style:footer><text:p>Page <text:page-number>1</text:page-number></text:p>"
    edges += "</style:footer><style:header><text:p>Ask the porter.</text:p></style:header></style:master-page>"
    sheet = f'<table:table table:name="May">{"".join(rows)}</table:table>'
    document = read_document("a.ods", make_opendocument("spreadsheet", sheet, edges))
    assert document.text.split("\n\n") == [
        "# May",
        "Pump | Part | mm\n--- | --- | ---\nP-7 | Belt A | 1,5\nP-7 | Valve | 2",
        "Town | People | mm\n--- | --- | ---\nOslo | Oslo | 4" + "\nKiel | 246 601 | 3" * 150,
        "Page header: Ask the porter.",
    ]
    assert document.unseen_words == 1


def test_hidden_sheets_and_columns_of_an_opendocument_sheet_are_left_out() -> None:
    row = "".join(f"<table:table-cell><text:p>{words}</text:p></table:table-cell>" for words in ("Lamp", "40", "11"))
    columns = '<table:table-column table:number-columns-repeated="2"/><table:table-column table:visibility="collapse"/>'
    sheet = f'<table:table table:name="Now">{columns}<table:table-row>{row}</table:table-row></table:table>'
    data = make_opendocument(
        "spreadsheet", sheet + sheet.replace("<table:table ", '<table:table table:style-name="T1" ')
    )
    with zipfile.ZipFile(io.BytesIO(data)) as made:
        parts: dict[str, bytes | str] = {name: made.read(name) for name in made.namelist()}
        content = made.read("content.xml").decode()
    hidden = 'table-properties table:display="false"'
    parts["content.xml"] = content.replace('text-properties text:display="none"', hidden)
    document = read_document("a.ods", pack(parts))
    assert document.text == "# Now\n\nLamp | 40"
    assert [each.why for each in document.unseen] == ["on a hidden sheet", "in a hidden column"]


def test_a_slide_of_an_opendocument_presentation_is_a_section() -> None:
    title = 'p:class="title"'
    box = "<draw:frame {}><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"
    slides = (
        f"<draw:page>{box.format(title, 'Why</text:p><text:p>now')}{box.format('', 'Four euros.')}<p:notes>"
        f"{box.format('', 'Ask.')}</p:notes></draw:page><draw:page><draw:custom-shape><text:p>End</text:p></draw:custom-shape>"
        "</draw:page>"
    )
    document = read_document("a.odp", make_opendocument("presentation", slides))
    assert document.text.split("\n\n") == ["# Why now", "Four euros.", "Ask.", "# Slide 2", "End"]


HOURS = ["08:00 to 16:00\nand on Sundays", "10:00 to 18:30\nbut not in May"]
NAMES = ["Kiel", "Bonn"]


def lay_out(*rows: list[str], heights: tuple[float, ...] = (), gap: float = 0.1) -> list[Box]:
    """Boxes of a grid, three wide, written from the last to the first."""
    boxes: list[Box] = []
    for row, height in zip(rows, heights or [0.5] * len(rows), strict=True):
        top = boxes[-1].bottom + gap if boxes else 1
        places = [(words, 3 * place) for place, words in enumerate(row) if words]
        boxes += [Box(words, left, top, left + 2.8, top + height, words) for words, left in places]
    return boxes[::-1]


@pytest.mark.parametrize(
    ("boxes", "order"),
    [
        (lay_out(NAMES, HOURS, heights=(0.5, 3)), [NAMES[0], HOURS[0], NAMES[1], HOURS[1]]),
        (  # bands between which a box goes over the whole width
            [*lay_out(NAMES, HOURS), Box("Both", 0, 0, 6, 0.5, "Both"), Box("Ask", 0, 3, 6, 3.5, "Ask")],
            ["Both", NAMES[0], HOURS[0], NAMES[1], HOURS[1], "Ask"],
        ),
        (
            lay_out(["A", "B", "C"], ["9 €", "20 €", "99 €"], ["3 seats", "9", "15"], gap=0.2),
            "A|9 €|3 seats|B|20 €|9|C|99 €|15",
        ),
        (lay_out(["2019", "2020", "2021"], ["Founded", "Merged", "Sold"]), "2019|Founded|2020|Merged|2021|Sold"),
        (
            lay_out(["Town", "2023", "2024"], ["Kiel", "12", "14"], ["Bonn", "9", "7"]),
            "Town|2023|2024|Kiel|12|14|Bonn|9|7",
        ),
        (lay_out(["", "A", "B"], ["Help", "by mail", "by phone"]), "A|B|Help|by mail|by phone"),
        (
            lay_out(["Monday", "Open"], ["Friday", "Shut"], ["Sunday", "See the door"]),
            "Monday|Open|Friday|Shut|Sunday|See the door",
        ),
        (lay_out(["قسم", "مكتب"], ["يفتح\nيغلق", "يعمل\nيغلق"]), ["مكتب", "يعمل\nيغلق", "قسم", "يفتح\nيغلق"]),
        (  # boxes on cards, and a frame around what belongs together
            [
                *(Box(words, left, 2, left + 2, 2.5, words) for left, words in ((4.5, "late"), (0.5, "early"))),
                *(Box(words, left, 1, left + 3, 4, words) for left, words in ((4, "Bonn"), (0, "Kiel"))),
                *(Box(words, 8.5, top, 11, top + 0.5, words) for top, words in ((3, "never"), (1.5, "Ulm"))),
                Box("", 8, 1, 11.5, 4),
            ],
            ["Kiel", "early", "Bonn", "late", "", "Ulm", "never"],
        ),
    ],
)
def test_boxes_are_read_column_by_column_unless_they_are_a_table(boxes: list[Box], order: list[str] | str) -> None:
    assert put_in_order(boxes) == (order.split("|") if isinstance(order, str) else order)


def test_columns_of_slides_stand_under_their_own_headings() -> None:
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[4])  # comparison
    for place, words in zip(slide.placeholders, ["Hours", NAMES[0], HOURS[0], NAMES[1], HOURS[1]], strict=True):
        place.text_frame.text = words
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    for place, words in enumerate([*NAMES, "early", "late"]):
        box = slide.shapes.add_textbox(*map(Inches, (place % 2 * 5, place // 2, 4, 0.5 + place // 2)))
        box.text_frame.text = words
    text = read_document("deck.pptx", save(deck)).text
    words = re.sub(r"\n+(?:- )?", " ", text)
    assert words == f"## Hours Kiel {HOURS[0]} Bonn {HOURS[1]} ## Slide 2 Kiel early Bonn late".replace("\n", " ")
    frame = (
        '<draw:frame s:x="{}cm" s:y="{}mm" s:width="10cm" s:height="{}cm" '
        'xmlns:s="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0">'
        "<draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"
    )
    places = ((1, 20, 1, "Kiel"), (12, 20, 1, "Bonn"), (1, 31, 4, "early"), (12, 31, 4, "late"))
    page = "".join(frame.format(*place) for place in places)
    text = read_document("a.odp", make_opendocument("presentation", f"<draw:page>{page}</draw:page>")).text
    assert text.split("\n\n") == ["# Slide 1", "Kiel", "early", "Bonn", "late"]


def bomb(of: bytes, part: str) -> bytes:
    buffer = io.BytesIO(of)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(part, bytes(100 * 2**20))
    return buffer.getvalue()


def edit_sheet(xml: str) -> bytes:
    """A workbook whose sheet is this XML."""
    source = io.BytesIO(make_workbook(["a", "b"], [1, 2]))
    edited = io.BytesIO()
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(edited, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, xml if name == "xl/worksheets/sheet1.xml" else old.read(name))
    return edited.getvalue()


SHEET = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">{}</worksheet>'
MERGED = (
    f"<sheetData>{'<row><c><v>1</v></c><c><v>2</v></c></row>' * 2000}</sheetData><mergeCells>{{}}</mergeCells>".format(
        '<mergeCell ref="A1:A1048576"/>' * 2000
    )
)
LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha">{}]>'.format(
    "".join(f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 20}">' for i in range(9))
)


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("bomb.pptx", bomb(make_deck(), "ppt/extra.xml"), OversizedDocument),
        ("bomb.xlsx", bomb(make_workbook(["a"]), "xl/extra.xml"), OversizedDocument),
        ("bomb.epub", bomb(make_book(), "OPS/extra.xhtml"), OversizedDocument),
        ("bomb.odt", bomb(make_odt(), "extra.xml"), OversizedDocument),
        ("parts.epub", make_book(**{f"x{i}": "" for i in range(20_001)}), OversizedDocument),
        (
            "far.xlsx",
            edit_sheet(SHEET.format('<sheetData><row r="999999999999"><c r="A1"><v>1</v></c></row></sheetData>')),
            None,
        ),
        (
            "wide.xlsx",
            edit_sheet(SHEET.format("<sheetData>" + '<row><c r="XFD1"><v>1</v></c></row>' * 5000 + "</sheetData>")),
            OversizedDocument,
        ),
        ("merged.xlsx", edit_sheet(SHEET.format(MERGED)), OversizedDocument),
        ("laughs.xlsx", edit_sheet(LAUGHS + SHEET.format("<sheetData><row><c><v>&j;</v></c></row></sheetData>")), None),
        ("laughs.odt", make_odt(LAUGHS + ODT_BODY.replace("Twice", "&j;")), None),
        ("deep.odt", make_odt(ODT_BODY.replace("Twice.", "<text:span>" * 5000 + "</text:span>" * 5000)), None),
        ("deep.epub", make_book(**{"OPS__a.xhtml": "<div>" * 5000}), UnreadableDocument),
        (
            "deep.eml",
            b"".join(b"Content-Type: multipart/mixed; boundary=%d\n\n--%d\n" % (i, i) for i in range(3000)),
            None,
        ),
        ("tables.html", b"<html>" + b"<table><tr><th>a<td>" * 900 + b"<b>x</b> " * 3_000, None),
        ("style.html", b"<html><style>" + b"a.b," * 50_000 + b"/*" * 9_000 + b"</style>x", None),
        ("deep.rtf", b"{\\rtf1 " + b"{\\b " * 200_000 + b"word" + b"}" * 200_000, None),
        ("cells.csv", b"a,b\n" + b",,,,,,,,,\n" * 300_000, OversizedDocument),
        ("endless.csv", b'a,b\n"' + b"x" * 2_000_000, UnreadableDocument),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hostile_files_end_soon(name: str, data: bytes, error: type[DocumentError] | None) -> None:
    started = clock.process_time()
    if error is not None:
        with pytest.raises(error):
            read_document(name, data)
    else:
        with suppress(UnreadableDocument):
            assert len(read_document(name, data).text) < 10_000
    assert clock.process_time() - started < 10


def test_a_password_protected_opendocument_text_is_refused() -> None:
    with pytest.raises(EncryptedDocument, match="password"):
        read_document("secret.odt", make_odt(manifest="<manifest:encryption-data/>"))


def test_a_stated_size_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "MAX_CELLS", 100)
    xml = SHEET.format('<dimension ref="A1:XFD1048576"/><sheetData><row r="1"><c r="A1"><v>7</v></c></row></sheetData>')
    assert read_document("big.xlsx", edit_sheet(xml)).text.endswith("7")


def test_cells_that_only_have_a_format_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "MAX_CELLS", 100)
    empty = "".join(f'<row r="{n}"><c r="A{n}" s="0"/><c r="XFD{n}" s="0"/></row>' for n in range(2, 99))
    xml = SHEET.format(f'<sheetData><row r="1"><c r="A1"><v>7</v></c></row>{empty}</sheetData>')
    assert read_document("big.xlsx", edit_sheet(xml)).text.endswith("7")
