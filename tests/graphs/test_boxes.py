"""The boxes of citations are where PDFium finds the words on the page."""

from pathlib import Path

from fpdf import FPDF

from app.samples import FOLDER
from app.wiring.services import Services
from tests.graphs.page_words import ENOUGH, Pages, collect_citations, compare

FEWEST = 50


def print_pdf(source: Path, target: Path, *, columns: int, font: str, size: int) -> None:
    """Set a text of the sample library as a PDF."""
    document = FPDF(format="A4")
    document.set_font(font, size=size)
    document.add_page()
    with document.text_columns(ncols=columns, text_align="J" if columns > 1 else "L", gutter=8) as paper:
        for line in source.read_text("utf-8").encode("latin-1", "replace").decode("latin-1").splitlines():
            with paper.paragraph(bottom_margin=1) as paragraph:
                # Rules are no words, and `Pages` knows words.
                paragraph.write(line.replace("**", "").replace("`", "").strip("=") or " ")
    document.output(str(target))


async def test_citations_are_boxed_where_their_words_are(services: Services, tmp_path: Path) -> None:
    narrow, wide, typed = (tmp_path / f"{name}.pdf" for name in ("security", "handbook", "notes"))
    print_pdf(FOLDER / "information-security.md", narrow, columns=2, font="Times", size=9)
    print_pdf(FOLDER / "handbook.md", wide, columns=1, font="Helvetica", size=11)
    print_pdf(FOLDER / "release-notes.txt", typed, columns=1, font="Courier", size=8)
    scores: dict[str, float] = {}
    for file in (FOLDER / "ws-400-manual.pdf", narrow, wide, typed):
        pages = Pages(file)
        for citation in await collect_citations(services, file):
            words = pages.find(citation["text"], citation["boxes"])
            # None where the file has them in another order: between two columns, or with gaps.
            if words is not None:
                scores[citation["text"]] = compare(citation["boxes"], words)
    assert len(scores) >= FEWEST
    assert {text: score for text, score in scores.items() if score < ENOUGH} == {}
