"""What of a file is not in its document's text is counted."""

import io

import pytest
from docx import Document
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from openpyxl import Workbook
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from PIL import Image
from pptx import Presentation
from pptx.util import Inches

from app.ingest.readers.assembly import MOST_UNREAD, Assembly
from app.ingest.reading import read_document
from domain.documents import Unread, name_unread

RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


@pytest.fixture
def picture() -> io.BytesIO:
    buffer = io.BytesIO()
    Image.new("L", (2, 2)).save(buffer, "PNG")
    return buffer


def test_a_word_file_says_which_pictures_and_deletions_are_not_read_and_what_readers_note(picture: io.BytesIO) -> None:
    document = Document()
    paragraph = document.add_paragraph("The gauge holds four litres.")
    document.add_comment(paragraph.runs, "Five?", "A. Reader")
    document.add_picture(picture)._inline.docPr.set("descr", "A gauge that is full")
    page = Part(PackURI("/word/page.html"), "text/html", b"<p>Six.</p>", document.part.package)
    document.part.relate_to(page, RELATION + "/aFChunk")
    xml = f"<w:del {nsdecls('w')}><w:r><w:delText>Never mind.</w:delText></w:r></w:del>"
    paragraph._p.append(parse_xml(xml))
    buffer = io.BytesIO()
    document.save(buffer)
    parsed = read_document("a.docx", buffer.getvalue())
    assert parsed.text == (
        "The gauge holds four litres.\n\nA gauge that is full\n\n"
        "# Comments\n\nComment by A. Reader on “The gauge holds four litres.”: Five?"
    )
    assert (parsed.title, name_unread(parsed.unread)) == ("a", "1 deletion (tracked), 1 picture, 1 attachment")


def test_a_presentation_says_on_which_slide_a_picture_is(picture: io.BytesIO) -> None:
    presentation = Presentation()
    for _ in range(2):
        slide = presentation.slides.add_slide(presentation.slide_layouts[5])
        slide.shapes.title.text = "Pumps"
    shown = slide.shapes.add_picture(picture, Inches(1), Inches(2))
    shown._element.nvPicPr.cNvPr.set("descr", "A pump that leaks")
    buffer = io.BytesIO()
    presentation.save(buffer)
    parsed = read_document("a.pptx", buffer.getvalue())
    assert parsed.text.endswith("A pump that leaks")
    assert parsed.unread == (Unread(kind="picture", number=1, where="on slide 2"),)


def test_a_workbook_says_on_which_sheet_a_chart_and_comments_are() -> None:
    workbook = Workbook()
    sheet = workbook.active
    assert sheet is not None
    sheet.title = "Sales"
    for row in (("Month", "Sales"), ("May", 5), ("June", 6)):
        sheet.append(row)
    sheet["A1"].comment = Comment("Of this year", "A. Reader")
    sheet["B1"].comment = Comment("In thousands", "A. Reader")
    chart = BarChart()
    chart.add_data(Reference(sheet, 2, 1, 2, 3), titles_from_data=True)
    sheet.add_chart(chart)
    sheet.append(("All", "=SUM(B2:B3)"))
    workbook.create_chartsheet("Trend").add_chart(BarChart())
    buffer = io.BytesIO()
    workbook.save(buffer)
    parsed = read_document("a.xlsx", buffer.getvalue())
    assert name_unread(parsed.unread) == (
        "1 chart (on sheet “Trend”), "
        "1 formula (on sheet “Sales”, without a stored result: save it in a spreadsheet program), "
        "1 chart (on sheet “Sales”), 2 comments (on sheet “Sales”)"
    )


@pytest.mark.parametrize(("own", "missing"), [("Pay 45² in the oﬃce.", 0), ("Pay 45 at noon.", 3)])
def test_letters_of_the_file_that_no_rule_names_are_counted(own: str, missing: int) -> None:
    assembly = Assembly()
    assembly.expect(f"{own} Secret.")
    assembly.leave_out("Secret.", "in white letters")
    assembly.add_paragraph("Pay 45 2 in the office.")
    unread = assembly.finish(None, "a.txt").unread
    assert ("such as “at noon”" in name_unread(unread)) == (missing > 0)
    assert sum(each["number"] for each in unread if each["kind"] == "character") == missing


def test_places_beyond_the_limit_are_counted_together() -> None:
    assembly = Assembly()
    for slide in range(MOST_UNREAD + 5):
        assembly.skip("text box", f"on slide {slide}")
    unread = assembly.finish(None, "a.txt").unread
    assert len(unread) == MOST_UNREAD + 1
    assert unread[-1] == Unread(kind="text box", number=5, where="")
    assert name_unread(unread[-1:]) == "5 text boxes"
