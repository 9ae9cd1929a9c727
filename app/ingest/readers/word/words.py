"""The words of a Word paragraph that a reader sees."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from docx.oxml import ns

from app.ingest.readers.assembly import BREAK, UNSEEN_LETTERS, Assembly, Looks, clean, mark
from app.ingest.readers.equations import EQUATION
from app.ingest.readers.symbols import PRIVATE, spell_symbols

qn = cache(ns.qn)
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
        qn("w:delText"),
    }
)
_PLAIN = {qn("w:noBreakHyphen"): "-", qn("w:tab"): " ", qn("w:ptab"): " ", qn("w:br"): "\n", qn("w:cr"): "\n"}
_TEXT_PATH = "{urn:schemas-microsoft-com:vml}textpath"
_ADDRESS = re.compile(r"""\s*HYPERLINK\s+"([^"]+)""")
_NOTES = frozenset({qn("w:footnoteReference"), qn("w:endnoteReference")})
_OFF = ("0", "false", "off", "none")
_SWITCHES = {qn("w:vanish"): "hidden", qn("w:strike"): "s", qn("w:dstrike"): "s"}
_RAISED = {"superscript": "sup", "subscript": "sub"}

_Words = list[tuple[Looks, str]]


class WordReader:
    """Spells paragraphs, and counts the words in them that are hidden."""

    def __init__(
        self,
        assembly: Assembly,
        addresses: Mapping[str, str],
        styles: Mapping[str, Looks],
        notes: dict[tuple[str, str], Any],
        equations: Mapping[Any, str],
    ) -> None:
        """`addresses` are the links of the part by id, `styles` the looks of styles by their ids, `notes` the notes by
        the tag of their reference and their id."""
        self._assembly = assembly
        self._addresses = addresses
        self._styles = styles
        self._notes = notes
        self._equations = equations
        self._fields: list[tuple[int, str]] = []
        """Of each field that is open: where its words begin, and what it is told to do."""

    def spell(self, paragraph: Any, *, on_white: bool = True) -> str:
        """Return the words of a `w:p` element, also those in links and insertions, with its notes in brackets, without
        those of text boxes, which are paragraphs of their own. Without `on_white`, white letters can be read."""
        properties = paragraph.find(qn("w:pPr"))
        looks: Looks = frozenset()
        if properties is not None:
            on_white = on_white and not has_shading(properties)
            looks = self._styles.get(read_value(properties, "w:pStyle"), looks)
        words: _Words = []
        around, self._fields = self._fields, []
        self._collect(paragraph, words, looks, on_white)
        self._fields = around
        return clean(mark(words)).replace("\n", BREAK).strip(f"{BREAK} ")

    def _collect(self, parent: Any, words: _Words, looks: Looks, on_white: bool) -> None:
        for node in parent:
            tag = node.tag
            if tag in _LEFT_OUT or not isinstance(tag, str):
                continue
            if tag == qn("w:r"):
                own = self._look(node, looks, on_white)
                if "hidden" in own:
                    self._assembly.leave_out("".join(t.text or "" for t in node.iter(qn("w:t"))), UNSEEN_LETTERS)
                else:
                    self._collect(node, words, own, on_white)
            elif tag == qn("w:t"):
                text = node.text or ""
                words.append((looks, self._respell(text, _find_font(parent))))
            elif tag in _PLAIN:
                words.append((looks, _PLAIN[tag]))
            elif tag == qn("w:hyperlink"):
                inner: _Words = []
                self._collect(node, inner, looks, on_white)
                address = self._addresses.get(node.get(qn("r:id"), ""), "")
                words.append((frozenset(), self._assembly.link(mark(inner), address)))
            elif tag == _TEXT_PATH:
                words.append((looks, f" {node.get('string', '')} "))
            elif tag == qn("w:rt"):
                inner = []
                self._collect(node, inner, looks, on_white)
                words.append((frozenset(), f"({mark(inner)})"))
            elif tag == qn("w:ruby"):
                self._collect(reversed(node), words, looks, on_white)  # what says how to read a word comes first
            elif tag == qn("w:instrText"):
                if self._fields:
                    start, told = self._fields.pop()
                    self._fields.append((start, told + (node.text or "")))
            elif tag == qn("w:sym"):
                words.append((looks, self._respell(_read_character(node), node.get(qn("w:font"), ""))))
            elif tag == qn("w:fldChar"):
                words.append((looks, _read_field(node)))
                self._mark_field(node.get(qn("w:fldCharType")), words)
            elif tag in _NOTES:
                words.append((frozenset(), self._spell_note(tag, node.get(qn("w:id"), ""))))
            elif tag == EQUATION:
                words.append((frozenset(), self._equations.get(node, "")))
            else:
                self._collect(node, words, looks, on_white)

    def _mark_field(self, kind: str, words: _Words) -> None:
        if kind == "begin":
            self._fields.append((0, ""))
        elif kind == "separate" and self._fields:
            self._fields[-1] = len(words), self._fields[-1][1]
        elif kind == "end" and self._fields:
            start, told = self._fields.pop()
            if address := _ADDRESS.match(told):
                words[start:] = [(frozenset(), self._assembly.link(mark(words[start:]), address[1]))]

    def _look(self, run: Any, looks: Looks, on_white: bool) -> Looks:
        properties = run.find(qn("w:rPr"))
        if properties is None:
            return looks
        looks = find_looks(properties, looks | self._styles.get(read_value(properties, "w:rStyle"), frozenset()))
        size = read_value(properties, "w:sz")
        is_tiny = re.fullmatch(r"\d{1,4}", size) is not None and int(size) < _SMALLEST
        is_white = read_value(properties, "w:color").upper() == "FFFFFF"
        is_set_off = not on_white or has_shading(properties) or properties.find(qn("w:highlight")) is not None
        return looks | {"hidden"} if is_tiny or (is_white and not is_set_off) else looks

    def _respell(self, text: str, font: str) -> str:
        """Return the signs that a font of symbols shows for its characters."""
        spelled = spell_symbols(text, font)
        self._assembly.pass_over("".join(each for each, sign in zip(text, spelled, strict=True) if each != sign))
        if unknown := len(PRIVATE.findall(spelled)):
            self._assembly.skip("font", f"signs of {font or 'an unknown font'}", unknown)
        return spelled

    def _spell_note(self, tag: str, name: str) -> str:
        note = self._notes.pop((tag, name), None)
        paragraphs = () if note is None else note.iter(qn("w:p"))
        text = " ".join(filter(None, map(self.spell, paragraphs))).replace(BREAK, " ")
        return f" ({text})" if text else ""


def find_looks(properties: Any, looks: Looks) -> Looks:
    """Return how words with these properties look that without them look so."""
    for each in properties:
        if look := _SWITCHES.get(each.tag):
            looks = looks | {look} if is_on(each) else looks - {look}
        elif each.tag == qn("w:vertAlign"):
            looks = looks - {"sup", "sub"} | {*filter(None, [_RAISED.get(each.get(qn("w:val"), ""))])}
    return looks


def is_bold(element: Any) -> bool:
    """Return True if all words in it are set in bold by themselves, not by a style."""
    bold = [
        is_on(run.find(f"{qn('w:rPr')}/{qn('w:b')}"))
        for run in element.iter(qn("w:r"))
        if any((t.text or "").strip() for t in run.iterchildren(qn("w:t")))
    ]
    return bool(bold) and all(bold)


def has_shading(properties: Any) -> bool:
    """Return True if the properties lay a colour other than white behind the text."""
    shading = properties.find(qn("w:shd"))
    return shading is not None and str(shading.get(qn("w:fill"), "auto")).upper() not in ("AUTO", "FFFFFF")


def _read_field(begin: Any) -> str:
    """Return what a form field shows that has no words of its own: a box to tick, or a choice."""
    box, choices = next(begin.iter(qn("w:checkBox")), None), next(begin.iter(qn("w:ddList")), None)
    if box is not None:
        ticked = box.find(qn("w:checked"))
        return "☒" if is_on(box.find(qn("w:default")) if ticked is None else ticked) else "☐"
    if choices is None:
        return ""
    entries = [each.get(qn("w:val"), "") for each in choices.iter(qn("w:listEntry"))]
    chosen = read_value(choices, "w:result") or read_value(choices, "w:default") or "0"
    return entries[int(chosen)] if chosen.isdecimal() and int(chosen) < len(entries) else ""


def _read_character(symbol: Any) -> str:
    code = symbol.get(qn("w:char"), "")
    return chr(int(code, 16)) if re.fullmatch("[0-9A-Fa-f]{2,4}", code) else ""


def _find_font(run: Any) -> str:
    fonts = run.find(f"{qn('w:rPr')}/{qn('w:rFonts')}")
    return "" if fonts is None else str(fonts.get(qn("w:ascii"), ""))


def is_on(switch: Any) -> bool:
    """Return True for an element that is there and does not say that it is off."""
    return switch is not None and str(switch.get(qn("w:val"), "1")).lower() not in _OFF


def read_value(properties: Any, name: str) -> str:
    """Return what an element states by a child of that name; empty where it does not."""
    found = properties.find(qn(name))
    return "" if found is None else str(found.get(qn("w:val"), ""))
