"""The boxes of citations are where PDFium finds the words on the page."""

from collections import Counter
from contextlib import closing
from pathlib import Path

import pypdfium2
from fpdf import FPDF

from app.answering.requests import Ask, collect
from app.samples import FOLDER
from app.wiring.services import Services
from domain.documents import Citation
from domain.scope import Scope

FEWEST = 50
ENOUGH = 0.9
"""A citation fits if it shares this much of its words with its boxes."""
SUBJECTS = 40
SLACK = 0.5
"""Points by which a letter may stand out of its box to the sides."""


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


async def make_questions(services: Services, workspace: str) -> list[str]:
    """Questions whose answers are somewhere in the library, and some that are not."""
    scope = Scope(workspace)
    vector = await services.library.embedder.embed_query("information about rules, numbers and dates")
    matches = await services.library.search.search_dense(scope, vector, SUBJECTS)
    passages = await services.library.search.read_passages(scope, [m.chunk_id for m in matches])
    subjects = [" ".join([*p.heading_path[-1:], *p.text.split()[:6]]) for p in passages]
    return [f"What is said about {subject}?" for subject in subjects] + ["Who won the world cup of 1954?"] * 2


async def collect_citations(services: Services, file: Path) -> list[Citation]:
    """Return what the answers to questions about the file cite and show."""
    workspace = file.stem
    await services.library.ingestion.add_path(workspace, file)
    questions = await make_questions(services, workspace)
    found: dict[str, Citation] = {}
    async with services.make_run_manager() as turns:
        for question in questions[:12]:
            ended, seen = await collect(await turns.ask(Ask(question, Scope(workspace), mode="fast")))
            shown = [citation for event in seen if event["type"] == "sources" for citation in event["citations"]]
            for citation in [*(ended["citations"] if ended["type"] == "done" else []), *shown]:
                found.setdefault(citation["text"], citation)
    return list(found.values())


def compare(citation: Citation, pdf: pypdfium2.PdfDocument) -> float:
    """Return the share of words that stand both in the citation and in its boxes."""
    boxed = Counter[str]()
    for box in citation["boxes"]:
        sheet = pdf[box["page"] - 1]
        width, height = (size / 100 for size in sheet.get_size())
        left, top = box["x"] * width, (100 - box["y"]) * height
        right, bottom = left + box["width"] * width, top - box["height"] * height
        boxed.update(list_words(sheet.get_textpage().get_text_bounded(left - SLACK, bottom, right + SLACK, top)))
    quoted = Counter(list_words(citation["text"]))
    return 2 * (boxed & quoted).total() / max(1, boxed.total() + quoted.total())


def list_words(text: str) -> list[str]:
    bare = ("".join(character for character in word if character.isalnum()) for word in text.split())
    return [word for word in bare if word]


async def test_citations_are_boxed_where_their_words_are(services: Services, tmp_path: Path) -> None:
    narrow, wide, typed = (tmp_path / f"{name}.pdf" for name in ("security", "handbook", "notes"))
    print_pdf(FOLDER / "information-security.md", narrow, columns=2, font="Times", size=9)
    print_pdf(FOLDER / "handbook.md", wide, columns=1, font="Helvetica", size=11)
    print_pdf(FOLDER / "release-notes.txt", typed, columns=1, font="Courier", size=8)
    scores: dict[str, float] = {}
    for file in (FOLDER / "ws-400-manual.pdf", narrow, wide, typed):
        with closing(pypdfium2.PdfDocument(file)) as pdf:
            for citation in await collect_citations(services, file):
                scores[citation["text"]] = compare(citation, pdf)
    assert len(scores) >= FEWEST
    assert {text: score for text, score in scores.items() if score < ENOUGH} == {}
