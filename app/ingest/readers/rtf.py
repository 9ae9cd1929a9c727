"""Rich Text Format, through pandoc: what it reads wrongly or would show is set right before."""

import codecs
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from app.ingest.readers.assembly import FIELD, UNSEEN_LETTERS, clean, squeeze
from app.ingest.readers.pandoc import Walk, parse
from app.ingest.readers.symbols import spell_symbols
from domain.documents import ParsedDocument, UnreadKind
from domain.text.storable import make_storable

MAX_DEPTH = 1000
"""Nested groups whose formatting is kept apart; deeper ones share it."""
_LEVELS = 9
"""Of headings and items."""
_TOKEN = re.compile(
    rb"\\bin(?P<size>\d{1,9}) ?|\\(?P<word>[a-z]{1,32})(?P<number>-?\d{1,10})? ?|\\'(?P<hex>[0-9a-f]{2})"
    rb"|\\(?P<symbol>[^a-z])|(?P<brace>[{}])|[\r\n]+|(?P<text>[^\\{}\r\n]+)",
    re.IGNORECASE | re.DOTALL,
)
_KEPT = frozenset({
    "author", "cell", "field", "fldinst", "fldrslt", "footnote", "info", "intbl", "keywords", "line", "nosupersub",
    "par", "pard", "row", "strike", "striked", "strikedl", "sub", "super", "title", "trowd",
})  # fmt: skip
"""Control words that pandoc is given."""
_WORDS = {
    "sect": "par", "page": "par", "\r": "par", "\n": "par", "nestrow": "line", "up": "super", "dn": "sub",
}  # fmt: skip
"""Control words by those that are written in their place."""
_SKIPPED = frozenset({
    "category", "colortbl", "comment", "company", "doccomm", "fonttbl", "hlinkbase", "listoverridetable", "listtable",
    "manager", "mmathPr", "nonesttables", "nonshppict", "operator", "sp", "stylesheet", "subject",
})  # fmt: skip
"""Groups that hold no text of the document."""
_EDGES = frozenset(f"{kind}{pages}" for kind in ("header", "footer") for pages in ("", "f", "l", "r"))
_COUNTED: dict[str, UnreadKind] = {"annotation": "comment", "object": "attachment", "pict": "picture"}
_GROUPS = {
    "field": "frame", "fldinst": "other", "fldrslt": "", "footnote": "", "info": "other", "listtext": "marker",
    "pntext": "marker", "shpinst": "", "shppict": "", "*": "star",
}  # fmt: skip
"""What the text of other groups is; empty for text of the document."""
_CHARSETS = {
    77: "mac_roman", 128: "cp932", 129: "cp949", 134: "cp936", 136: "cp950", 161: "cp1253", 162: "cp1254",
    163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250",
}  # fmt: skip
_FONT = re.compile(
    rb"\\f(\d{1,5})(?:\s?\\[a-z]{1,20}\d{0,5}){0,9}?\s?\\fcharset(\d{1,3})"
    rb"(?:\s?\\[a-z]{1,20}\d{0,5}|\{[^{}]{0,99}\}){0,9} ?([^;{}\\]{0,99})"
)
_SIGNS = 2
"""The charset of fonts whose characters stand for signs."""
_STYLE = re.compile(
    rb"\{\\s(\d{1,4})\b[^{}]{0,999}?(?:\\outlinelevel([0-8])|(?:heading|berschrift|titre|tulo) (\d);)", re.I
)
_COLORS = re.compile(rb"\\colortbl([^{}]{0,99999})")
_WHITE = re.compile(rb"\\red255\s*\\green255\s*\\blue255")
_BACKGROUND = re.compile(rb"\\(?:cb|highlight|chcbpat|chcfpat|chshdng|cbpat|clcbpat|shading)0*[1-9]")
"""A colour behind the text, which makes white letters visible."""
_SMALLEST = 2
"""Size of type, in half points, below which nobody reads it."""
_TEXTS = {
    "tab": " ", "nestcell": " ", "emspace": " ", "enspace": " ", "emdash": "—", "endash": "–", "lquote": "‘",
    "rquote": "’", "ldblquote": "“", "rdblquote": "”", "bullet": "•", "~": " ", "_": "-",
}  # fmt: skip
"""Control words and symbols that stand for text."""
_NUMBER = re.compile(r"\(?(\d{1,4})[.)]?")
"""Marker of an item; others that are no bullets have a figure or a sign behind a letter."""


_TWICE = re.compile(rb"\{\\upr\s?\{[^{}]{0,2000}\}\{\\\*\\ud(\s?\{[^{}]{0,2000}\})\s?\}\}")
"""Words in the old encoding, and again in Unicode."""


def read_rtf(source: str, data: bytes) -> ParsedDocument:
    """Read an RTF document without text that is hidden, white or of no size. Raises what `parse` does."""
    walk = Walk()
    data = _TWICE.sub(rb"\1", data)
    tree = parse(_Writer(walk, data).write().encode(), "rtf")
    title = walk.name(tree["meta"])
    tree["meta"].pop("title", None)  # it stands above no text
    return walk.read(tree, source, title)


@dataclass(slots=True)
class _State:
    """What holds until its group ends."""

    group: str = ""
    """What text is: empty for that of the document, "skip" for none, or one of those in `_GROUPS`."""
    is_hidden: bool = False
    is_deleted: bool = False
    color: int = 0
    size: int = 24
    """Half points."""
    fallback: int = 1
    """Characters that follow a Unicode character for readers that do not know it."""
    font: int = -1


class _Writer:
    """Writes the document anew: in Unicode, and with nothing that is not read."""

    def __init__(self, walk: Walk, data: bytes) -> None:
        self._assembly, self._edges, self._data = walk.assembly, walk.edges, data
        self._state, self._stack = _State(), list[tuple[_State, bool]]()
        self._encoding = "cp1252"
        fonts = [(int(font), int(charset), name.decode("latin-1")) for font, charset, name in _FONT.findall(data)]
        self._fonts = {font: _CHARSETS.get(charset) for font, charset, _ in fonts}
        self._signs = {font: name.strip() for font, charset, name in fonts if charset == _SIGNS}
        self._styles = {
            int(style): int(outline or b"-1") + 1 or int(level) for style, outline, level in _STYLE.findall(data)
        }
        colors = _COLORS.search(data)
        # Where a document has colours behind text at all, white letters are taken to stand on one.
        stated = colors[1].split(b";") if colors and not _BACKGROUND.search(data) else []
        self._white = {n for n, each in enumerate(stated) if _WHITE.search(each)}
        self._written, self._texts, self._unseen = list[str](), list[str](), list[str]()
        self._level = self._depth = 0
        """Of the paragraph as a heading, counted from 1, and as an item."""
        self._marker: str | None = None
        self._said = ""
        self._starts = {0}
        self._is_begun = self._is_item = self._is_row = False
        self._skip = 0
        self._font = -1
        """Of text that states none."""

    def write(self) -> str:
        """Return the whole document."""
        held = bytearray()
        for word, number, token in _tokenize(self._data):
            if word != "'" and held:
                self._put(self._decode(held))
                held.clear()
            if word == "'":
                held += token[self._skip :]
                self._skip = max(0, self._skip - 1)
            elif not word:
                cut = min(self._skip, len(token))
                self._skip -= cut
                self._put(self._decode(token[cut:]))
            elif word in "{}":
                self._skip = 0
                self._nest(word)
            elif self._state.group != "skip":
                self._control(word, number)
        self._assembly.leave_out("".join(self._unseen), UNSEEN_LETTERS)
        self._assembly.expect(make_storable(" ".join(self._texts)))
        level = r"{\listlevel\levelnfc0\levelstartat%d}"
        lists = "".join(rf"{{\list{level % n * _LEVELS}\listid{n + 1}}}" for n in self._starts)
        overrides = "".join(rf"{{\listoverride\listid{n + 1}\ls{n + 1}}}" for n in self._starts)
        body = "".join(self._written) + "}" * sum(is_written for _, is_written in self._stack)
        return make_storable(rf"{{\rtf1{{\*\listtable{lists}}}{{\*\listoverridetable{overrides}}}{body}\par}}")

    def _decode(self, data: bytes | bytearray) -> str:
        """Return characters of the font that holds, or the signs that it shows for them."""
        font = self._state.font
        if font not in self._signs:
            return data.decode(self._fonts.get(font) or self._encoding, "replace")
        return spell_symbols(data.decode("latin-1"), self._signs[font])

    def _nest(self, brace: str) -> None:
        state, is_deep = self._state, len(self._stack) >= MAX_DEPTH
        if brace == "{":
            is_written = state.group != "skip" and not is_deep
            self._stack.append((state if is_deep else replace(state), is_written))
        elif self._stack:
            self._unseen += " " * self._is_unseen()
            self._state, is_written = self._stack.pop()
            if state.group == "marker" != self._state.group:
                self._marker, self._said = squeeze(clean(self._said)), ""
        else:
            return
        self._written += brace * is_written

    def _control(self, word: str, number: int | None) -> None:
        state = self._state
        if state.group in self._edges and word not in ("u", "uc", "f"):
            self._edges[state.group] += [""] * (word == "par")
            self._put({"chpgn": FIELD, "field": FIELD, "tab": " "}.get(word, _TEXTS.get(word, "")))
            state.group = "skip" if word == "field" else state.group
        elif word in _EDGES:
            state.group = word[:6]
            self._edges[state.group].append("")
        elif word in _COUNTED:
            self._assembly.skip(_COUNTED[word])
            state.group = "" if word == "object" else "skip"
        elif word in _GROUPS:
            state.group = _GROUPS[word]
            if word in _KEPT:
                self._written.append(r"\*\fldinst " if word == "fldinst" else f"\\{word} ")
        elif state.group == "star" or word in _SKIPPED:
            state.group = "skip"  # older readers pass over a group with a star
        elif word == "ansicpg":
            with suppress(LookupError):
                self._encoding = codecs.lookup(f"cp{number}").name
        elif word in ("f", "deff"):
            state.font = number or 0
            self._font = state.font if word == "deff" else self._font
        elif word == "uc":
            state.fallback = max(0, min(number or 0, 16))
        elif word == "u":
            self._put(spell_symbols(chr((number or 0) % 0x10000), self._signs.get(state.font, "")))
            self._skip = state.fallback
        elif word == "plain":
            state.is_hidden, state.is_deleted, state.color, state.size, state.font = False, False, 0, 24, self._font
            self._written.append(r"\nosupersub \strike0 ")
        elif word == "v":
            state.is_hidden = number != 0
        elif word == "deleted":
            state.is_deleted = number != 0
            self._assembly.skip("deletion", number=int(state.is_deleted))
        elif word == "cf":
            state.color = number or 0
        elif word == "fs":
            state.size = 24 if number is None else number
        elif word == "s":
            self._level = self._styles.get(number or 0, 0)
        elif word == "outlinelevel":
            self._level = (number or 0) + 1 if (number or 0) < _LEVELS else 0
        elif word == "ilvl":
            self._depth = max(0, min(number or 0, _LEVELS - 1))
        elif word in _TEXTS:
            self._put(_TEXTS[word])
        elif state.group in ("", "other") and (word := _WORDS.get(word, word)) in _KEPT:
            self._write(word, number)

    def _write(self, word: str, number: int | None) -> None:
        if word == "pard":
            self._level = self._depth = 0
        elif word in ("trowd", "intbl"):
            if self._is_item:
                self._is_item = False
                self._written.append(r"{\pard  \par}")  # pandoc would put the list behind the table
            if word == "intbl" and not self._is_row:  # has the form of the row above
                self._written.append(r"\trowd ")
            self._is_row = True
        elif word == "row":
            self._is_row = False
        self._written.append(f"\\{word}{'' if number is None else number} ")
        if word in ("par", "cell"):
            self._unseen.append(" ")
            self._marker, self._is_begun = None, False

    def _put(self, text: str) -> None:
        group = self._state.group
        if group in self._edges:
            self._edges[group][-1] += text
        elif group == "marker":
            self._said += text
        elif not group and self._is_unseen():
            self._unseen.append(text)
        elif group == "other" or not (group or self._state.is_deleted):
            if not group and not self._is_begun:
                if not text.strip() or (text == "•" and self._marker is None):
                    self._marker = text.strip() or self._marker
                    return
                text = self._begin() + text
            if not group:
                self._texts.append(text)
            self._written.append(re.sub(r"[\\{}]", r"\\\g<0>", text))

    def _begin(self) -> str:
        """Say what the paragraph is before its first words, and return those of its marker. Each item has the number
        that is shown: pandoc would count anew after an item within."""
        self._is_begun = True
        marker = self._marker or ""
        number = None if self._level else _NUMBER.fullmatch(marker)
        self._is_item = self._marker is not None and not self._level
        if number:
            self._starts.add(int(number[1]))
        place = f"{int(number[1]) + 1 if number else 0}" if self._is_item else ""
        level = str(self._level - 1) if self._level else ""
        self._written.append(rf"\outlinelevel{level} \ls{place} \ilvl{self._depth} ")
        return f"{marker} " if not number and (self._level or re.search(r"\d|\w[.)]", marker)) and marker else ""

    def _is_unseen(self) -> bool:
        return self._state.is_hidden or self._state.size < _SMALLEST or self._state.color in self._white


def _tokenize(data: bytes) -> Iterator[tuple[str, int | None, bytes]]:
    """Yield control words with their numbers, and text; binary data is passed over."""
    position = 0
    while found := _TOKEN.search(data, position):
        position = found.end() + int(found["size"] or 0)
        if word := found["word"] or found["brace"]:
            yield word.decode(), None if found["number"] is None else int(found["number"]), b""
        elif found["hex"]:
            yield "'", None, bytes.fromhex(found["hex"].decode())
        elif found["symbol"]:
            symbol = found["symbol"].decode("latin-1")
            yield ("", None, found["symbol"]) if symbol in "\\{}" else (symbol, None, b"")
        elif found["text"]:
            yield "", None, found["text"]
