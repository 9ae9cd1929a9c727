"""The words of a Word paragraph that a reader sees."""

import re
from collections.abc import Mapping
from typing import Any

from docx.oxml.ns import qn

from app.ingest.readers.assembly import BREAK, UNSEEN_LETTERS, Assembly, clean

_SMALLEST = 2
"""Size of type, in half points, below which nobody reads it."""
FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
"""A text box again, for old readers."""
_LEFT_OUT = frozenset(
    {
        FALLBACK,
        qn("w:moveFrom"),
        qn("w:del"),
        qn("w:pPr"),
        qn("w:rPr"),
        qn("w:txbxContent"),
        qn("w:instrText"),
        qn("w:delText"),
    }
)
_OFF = ("0", "false", "off", "none")


class WordReader:
    """Spells paragraphs, and counts the words in them that are hidden."""

    def __init__(self, assembly: Assembly, addresses: Mapping[str, str], hidden_styles: frozenset[str]) -> None:
        """`addresses` are the links of the part by id, `hidden_styles` the ids of styles whose text is not shown."""
        self._assembly = assembly
        self._addresses = addresses
        self._hidden_styles = hidden_styles

    def spell(self, paragraph: Any, *, on_white: bool = True) -> str:
        """Return the words of a `w:p` element, also those in links and insertions, without those of text boxes, which
        are paragraphs of their own. Without `on_white`, white letters can be read."""
        properties = paragraph.find(qn("w:pPr"))
        if properties is not None:
            on_white = on_white and not has_shading(properties)
            if _read_style(properties, "w:pStyle") in self._hidden_styles:
                self._note("".join(t.text or "" for t in paragraph.iter(qn("w:t"))))
                return ""
        words: list[str] = []
        self._collect(paragraph, words, on_white)
        return clean("".join(words)).replace("\n", BREAK).strip(f"{BREAK} ")

    def _collect(self, parent: Any, words: list[str], on_white: bool) -> None:
        for node in parent:
            tag = node.tag
            if tag in _LEFT_OUT or not isinstance(tag, str):
                continue
            if tag == qn("w:r") and self._is_hidden(node, on_white):
                self._note("".join(t.text or "" for t in node.iter(qn("w:t"))))
            elif tag == qn("w:t"):
                words.append(node.text or "")
            elif tag == qn("w:noBreakHyphen"):
                words.append("-")
            elif tag == qn("w:tab"):
                words.append(" ")
            elif tag in (qn("w:br"), qn("w:cr")):
                words.append("\n")
            elif tag == qn("w:hyperlink"):
                inner: list[str] = []
                self._collect(node, inner, on_white)
                address = self._addresses.get(node.get(qn("r:id"), ""), "")
                words.append(self._assembly.link("".join(inner), address))
            else:
                self._collect(node, words, on_white)

    def _is_hidden(self, run: Any, on_white: bool) -> bool:
        properties = run.find(qn("w:rPr"))
        if properties is None:
            return False
        if _read_style(properties, "w:rStyle") in self._hidden_styles or is_vanished(properties):
            return True
        size = properties.find(qn("w:sz"))
        stated = "" if size is None else str(size.get(qn("w:val"), ""))
        if re.fullmatch(r"\d{1,4}", stated) and int(stated) < _SMALLEST:
            return True
        color = properties.find(qn("w:color"))
        is_white = color is not None and str(color.get(qn("w:val"), "")).upper() == "FFFFFF"
        return is_white and on_white and not has_shading(properties) and properties.find(qn("w:highlight")) is None

    def _note(self, text: str) -> None:
        self._assembly.leave_out(text, UNSEEN_LETTERS)


def is_bold(element: Any) -> bool:
    """Return True if all words in it are set in bold by themselves, not by a style."""
    bold = [
        _is_on(run.find(f"{qn('w:rPr')}/{qn('w:b')}"))
        for run in element.iter(qn("w:r"))
        if any((t.text or "").strip() for t in run.iterchildren(qn("w:t")))
    ]
    return bool(bold) and all(bold)


def has_shading(properties: Any) -> bool:
    """Return True if the properties lay a colour other than white behind the text."""
    shading = properties.find(qn("w:shd"))
    return shading is not None and str(shading.get(qn("w:fill"), "auto")).upper() not in ("AUTO", "FFFFFF")


def is_vanished(properties: Any) -> bool:
    """Return True if the properties hide the text."""
    return _is_on(properties.find(qn("w:vanish")))


def _is_on(switch: Any) -> bool:
    return switch is not None and str(switch.get(qn("w:val"), "1")).lower() not in _OFF


def _read_style(properties: Any, name: str) -> str:
    found = properties.find(qn(name))
    return "" if found is None else str(found.get(qn("w:val"), ""))
