"""Finds the words of citations on the pages of a PDF by PDFium, to compare them with the boxes of citations."""

import ctypes
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pypdfium2
from pypdfium2 import raw

from app.answering.requests import Ask, collect
from app.ingest.readers.pdf.characters import View
from app.wiring.services import Services
from benchmarks.shared import make_questions
from domain.documents import Citation, PageBox
from domain.scope import Scope

ENOUGH = 0.9
"""A citation fits if its boxes overlap the words' by this much."""

Rectangle = tuple[float, float, float, float]


class Pages:
    """The words and signs of a PDF's pages with their boxes, in percent."""

    def __init__(self, file: Path) -> None:
        self._document = pypdfium2.PdfDocument(file)
        self._words: dict[int, list[tuple[str, Rectangle]]] = {}

    def find(self, text: str, boxes: Sequence[PageBox]) -> list[Rectangle] | None:
        """Return the boxes of the words of the text, which follow each other in the file near `boxes`, with the signs
        between them; None where the file has them in another order or form, and where they are on several pages."""
        quoted = [bare for word in text.split() if (bare := _bare(word))]
        if len({box["page"] for box in boxes}) != 1 or not quoted:
            return None
        words = self._read(boxes[0]["page"])
        places = [at for at, (word, _) in enumerate(words) if word]
        texts = [words[at][0] for at in places]
        # A quotation may occur twice: the one that is meant is nearest.
        found = [
            range(places[at], places[at + len(quoted) - 1] + 1)
            for at in range(len(texts) - len(quoted) + 1)
            if texts[at : at + len(quoted)] == quoted
        ]
        if not found:
            return None
        x, y = boxes[0]["x"], boxes[0]["y"]
        best = min(found, key=lambda span: abs(words[span[0]][1][0] - x) + abs(words[span[0]][1][1] - y))
        opens_with_sign = not _bare(text.split()[0]) and best[0] > 0 and not words[best[0] - 1][0]
        return [box for _, box in words[best[0] - opens_with_sign : best[-1] + 1]]

    def _read(self, number: int) -> list[tuple[str, Rectangle]]:
        if number not in self._words:
            page = self._document[number - 1]
            self._words[number] = list(_list_words(page))
        return self._words[number]


def _list_words(page: pypdfium2.PdfPage) -> Iterator[tuple[str, Rectangle]]:
    text_page, view, box = page.get_textpage(), View(page), raw.FS_RECTF()
    text, edges = "", list[Rectangle]()
    for index in range(raw.FPDFText_CountChars(text_page.raw) + 1):
        code = raw.FPDFText_GetUnicode(text_page.raw, index)
        character = chr(code) if code < 0x110000 else "?"
        if code == 0 or character.isspace() or code == 2:
            if text and edges:
                yield _bare(text), _enclose(edges)
            text, edges = "", []
        else:
            text += character
            if raw.FPDFText_GetLooseCharBox(text_page.raw, index, ctypes.byref(box)):
                left, top, right, bottom = view.show(box)
                w, h = view.width / 100, view.height / 100
                edges.append((left / w, top / h, right / w, bottom / h))


def _bare(word: str) -> str:
    return "".join(character for character in word if character.isalnum())


def _enclose(boxes: Sequence[Rectangle]) -> Rectangle:
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def compare(boxes: Sequence[PageBox], words: Sequence[Rectangle]) -> float:
    """Return the intersection over the union, both drawn at a twentieth of a percent. Words of a line make one box."""
    lines: list[list[Rectangle]] = []
    for word in words:
        if lines and word[0] >= lines[-1][-1][0] and abs(word[1] - lines[-1][-1][1]) < (word[3] - word[1]) / 2:
            lines[-1].append(word)
        else:
            lines.append([word])
    ours = [(box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]) for box in boxes]
    drawn, wanted = _draw(ours), _draw([_enclose(line) for line in lines])
    return float((drawn & wanted).sum() / (drawn | wanted).sum())


def _draw(rectangles: Sequence[Rectangle]) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    page = np.zeros((2000, 2000), bool)
    for left, top, right, bottom in rectangles:
        page[round(top * 20) : round(bottom * 20), round(left * 20) : round(right * 20)] = True
    return page


async def collect_citations(services: Services, file: Path) -> list[Citation]:
    """Return what the answers to questions about the file cite and show."""
    workspace = file.stem
    await services.library.ingestion.add_paths(workspace, [file])
    questions = await make_questions(services, workspace)
    found: dict[str, Citation] = {}
    async with services.make_run_manager() as turns:
        for question in questions[:12]:
            ended, seen = await collect(await turns.ask(Ask(question, Scope(workspace), mode="fast")))
            shown = [citation for event in seen if event["type"] == "sources" for citation in event["citations"]]
            for citation in [*(ended["citations"] if ended["type"] == "done" else []), *shown]:
                found.setdefault(citation["text"], citation)
    return list(found.values())
