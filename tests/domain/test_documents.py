import pytest

from domain.documents import Box, Chunk, DocumentReport, IngestReport, Line, Passage, name_place

BOX = Box(x=10, y=20, width=30, height=2)
LINES = (Line(0, 5, 3, BOX), Line(6, 9, 4, BOX))


@pytest.mark.parametrize(
    ("title", "headings", "place"),
    [
        ("Handbook", (), "Handbook"),
        ("Handbook", ("Leave", "Parents"), "Handbook › Leave › Parents"),
        ("Handbook", ("Handbook", "Leave"), "Handbook › Leave"),
        ("Handbook", ("Leave", "Handbook"), "Handbook › Leave › Handbook"),
        ("Handbook", ("Handbook",), "Handbook"),
    ],
)
def test_a_title_that_is_the_first_heading_is_said_once(title: str, headings: tuple[str, ...], place: str) -> None:
    assert name_place(title, headings) == place


def test_chunks_and_passages_are_on_the_page_of_their_first_line() -> None:
    chunk = Chunk(index=0, text="a", start=0, end=9, heading_path=(), content_hash="h", lines=LINES)
    passage = Passage("c", 0, "d", "T", "a", 0, 9, lines=LINES)
    assert chunk.page == passage.page == 3
    assert Chunk(index=0, text="a", start=0, end=9, heading_path=(), content_hash="h").page is None
    assert Passage("c", 0, "d", "T", "a", 0, 9).page is None


def test_a_report_counts_what_was_embedded_and_names_what_failed() -> None:
    failed = DocumentReport("b.md", "failed", error="Empty.", code="empty_document")
    report = IngestReport(
        [DocumentReport("a.md", "added", embedded=2), failed, DocumentReport("c.md", "updated", embedded=3)]
    )
    assert report.chunks == 5
    assert report.failed == [failed]
