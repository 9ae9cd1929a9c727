"""Rich Text Format."""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from app.ingest.readers.assembly import UNSEEN_LETTERS, Assembly, clean, squeeze
from app.ingest.readers.grids import add_table, check_cells
from domain.documents import ParsedDocument
from domain.text.storable import make_storable

MAX_DEPTH = 1000
"""Nested groups whose formatting is kept apart; deeper ones share it."""

MAX_COLORS = 1000
"""Colours of the document that are read."""

_TOKEN = re.compile(
    rb"\\bin(?P<size>\d{1,9}) ?|\\(?P<word>[a-z]{1,32})(?P<number>-?\d{1,10})? ?|\\'(?P<hex>[0-9a-f]{2})"
    rb"|\\(?P<symbol>[^a-z])|(?P<brace>[{}])|[\r\n]+|(?P<text>[^\\{}\r\n]+)",
    re.IGNORECASE | re.DOTALL,
)
_SKIPPED = frozenset(
    b"datastore filetbl generator info listtable listoverridetable nonshppict object objdata pict private "
    b"revtbl rsidtbl themedata colorschememapping latentstyles xmlnstbl header headerl headerr headerf footer footerl "
    b"footerr footerf footnotesep fldinst bkmkstart bkmkend atnid atnauthor annotation pntxta pntxtb ftnsep ftnsepc "
    b"ftncn aftnsep aftnsepc aftncn wgrffmtfilter template mmathPr sp shpinst levelnumbers leveltext listname".split()
)
"""Groups that hold no text of the document."""
_SPECIAL = {
    b"tab": " ",
    b"line": "\n",
    b"emdash": "—",
    b"endash": "–",
    b"lquote": "‘",
    b"rquote": "’",
    b"ldblquote": "“",
    b"rdblquote": "”",
    b"bullet": "•",
    b"emspace": " ",
    b"enspace": " ",
}
_SYMBOLS = {b"~": b" ", b"_": b"-", b"\\": b"\\", b"{": b"{", b"}": b"}"}
_CHARSETS = {
    77: "mac_roman", 128: "cp932", 129: "cp949", 134: "cp936", 136: "cp950", 161: "cp1253", 162: "cp1254",
    163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250",
}  # fmt: skip
_WHITE = (255, 255, 255)
_SMALLEST = 2
"""Size of type, in half points, below which nobody reads it."""
_CHANNELS = (b"red", b"green", b"blue")
_BACKGROUNDS = frozenset({b"cb", b"highlight", b"chcbpat", b"chcfpat", b"chshdng", b"cbpat", b"clcbpat", b"shading"})
"""Colours behind the text, which make white letters visible."""
_HEADING = re.compile(r"(?:heading|überschrift|titre|título) (\d)", re.IGNORECASE)


def read_rtf(source: str, data: bytes) -> ParsedDocument:
    """Read an RTF document: headings, paragraphs, lists, tables and notes, without page headers and
    footers, and without text that is hidden, white or of no size. Takes linear time. Raises `OversizedDocument`."""
    reader = _Reader()
    reader.read(data)
    return reader.assembly.finish(None, source)


@dataclass(slots=True)
class _State:
    """What holds until its group ends."""

    destination: str = ""
    """Where text goes: empty to the document; "skip", "colors", "fonts", "styles" or "marker"."""
    is_hidden: bool = False
    color: int = 0
    """Place in the table of colours; 0: that of the reader."""
    size: int = 24
    """Half points."""
    fallback: int = 1
    """Characters that follow a Unicode character for readers that do not know it."""
    font: int = -1


@dataclass(slots=True)
class _Paragraph:
    """What holds for the paragraph until `pard`."""

    level: int = 0
    """Level of the heading, 0 for other paragraphs."""
    is_in_table: bool = False
    indent: int = 0
    """Level of the list item, from 0."""


@dataclass(slots=True)
class _Table:
    rows: list[list[str]] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    count: int = 0


class _Reader:
    def __init__(self) -> None:
        self.assembly = Assembly()
        self._state = _State()
        self._stack: list[_State] = []
        self._encoding = "cp1252"
        self._fonts: dict[int, str] = {}
        self._colors: list[list[int]] = [[0, 0, 0]]
        self._has_backgrounds = False
        self._styles: dict[int, int] = {}
        self._style = 0
        self._style_name: list[str] = []
        self._paragraph = _Paragraph()
        self._words: list[str] = []
        self._unseen: list[str] = []
        self._marker: list[str] = []
        self._items: list[str] = []
        self._table = _Table()
        self._bytes = bytearray()
        self._skip = 0

    def read(self, data: bytes) -> None:
        """Read the whole document."""
        # Where it has colours behind text at all, white letters are taken to stand on one.
        self._has_backgrounds = any(word in _BACKGROUNDS and number for word, number, _ in _tokenize(data))
        for word, number, token in _tokenize(data):
            if word != b"'":
                self._flush_bytes()
            if word == b"{":
                self._skip = 0
                if len(self._stack) < MAX_DEPTH:
                    self._stack.append(replace(self._state))
                else:
                    self._stack.append(self._state)
            elif word == b"}":
                self._skip = 0
                if self._is_unseen():
                    self._unseen.append(" ")
                if self._state.destination == "styles":
                    self._end_style()
                if self._stack:
                    self._state = self._stack.pop()
            elif word == b"'":
                if self._skip:
                    self._skip -= 1
                else:
                    self._bytes += token
            elif word == b"text":
                cut = min(self._skip, len(token))
                self._skip -= cut
                self._write(token[cut:].decode(self._find_encoding(), "replace"))
            elif word == b"*":
                self._state.destination = self._state.destination or "star"
            else:
                self._control(word, number)
        self._flush_bytes()
        self._end_paragraph()
        self._end_table()
        self._end_list()
        self.assembly.leave_out("".join(self._unseen), UNSEEN_LETTERS)

    def _control(self, word: bytes, number: int | None) -> None:
        state = self._state
        if state.destination == "star":
            # A group that older readers pass over. It holds text only if its name is known here.
            state.destination = {b"listtext": "marker", b"pntext": "marker", b"shppict": "skip"}.get(word, "skip")
            return
        if word in _SKIPPED:
            state.destination = "skip"
        elif word == b"colortbl":
            state.destination = "colors"
        elif word in _CHANNELS and state.destination == "colors":
            self._colors[-1][_CHANNELS.index(word)] = number or 0
        elif word == b"fonttbl":
            state.destination = "fonts"
        elif word == b"stylesheet":
            state.destination = "styles"
        elif word in (b"listtext", b"pntext"):
            state.destination = "marker"
            self._marker.clear()
        elif word == b"ansicpg":
            self._encoding = _check_encoding(f"cp{number}") or self._encoding
        elif word == b"f":
            state.font = number or 0
        elif word == b"fcharset" and state.destination == "fonts":
            if encoding := _CHARSETS.get(number or 0):
                self._fonts[state.font] = encoding
        elif word == b"uc":
            state.fallback = max(0, min(number or 0, 16))
        elif word == b"u" and number is not None:
            self._write(chr(number % 0x10000))
            self._skip = state.fallback
        elif word == b"v":
            state.is_hidden = number != 0
        elif state.destination == "styles":
            self._style = number or 0 if word == b"s" else self._style
        elif word in _SPECIAL:
            self._write(_SPECIAL[word])
        elif state.destination != "skip":
            self._format(word, number)

    def _format(self, word: bytes, number: int | None) -> None:
        if word == b"pard":
            self._paragraph = _Paragraph()
        elif word == b"plain":
            self._state.is_hidden, self._state.color, self._state.size = False, 0, 24
        elif word == b"cf":
            self._state.color = number or 0
        elif word == b"fs":
            self._state.size = 24 if number is None else number
        elif word == b"s":
            self._paragraph.level = self._styles.get(number or 0, 0)
        elif word == b"outlinelevel":
            self._paragraph.level = min((number or 0) + 1, 6)
        elif word == b"ilvl":
            self._paragraph.indent = max(0, min(number or 0, 8))
        elif word == b"intbl":
            self._paragraph.is_in_table = True
        elif word in (b"cell", b"nestcell"):
            self._table.cells.append(squeeze("".join(self._words)))
            self._table.count += 1
            check_cells(self._table.count)
            self._words.clear()
            self._marker.clear()
        elif word in (b"row", b"nestrow"):
            if any(self._table.cells):
                self._table.rows.append(self._table.cells)
            self._table.cells = []
        elif word in (b"par", b"sect", b"page", b"footnote"):
            self._unseen.append(" ")
            self._end_paragraph()

    def _write(self, text: str) -> None:
        match self._state.destination:
            case "marker":
                self._marker.append(text)
            case "styles":
                self._style_name.append(text)
            case "colors":
                self._colors += [[0, 0, 0] for _ in range(min(text.count(";"), MAX_COLORS - len(self._colors)))]
            case "":
                (self._unseen if self._is_unseen() else self._words).append(text)

    def _is_unseen(self) -> bool:
        state = self._state
        if state.is_hidden or state.size < _SMALLEST:
            return True
        is_white = 0 < state.color < len(self._colors) and tuple(self._colors[state.color]) == _WHITE
        return is_white and not self._has_backgrounds

    def _flush_bytes(self) -> None:
        if self._bytes:
            self._write(self._bytes.decode(self._find_encoding(), "replace"))
            self._bytes.clear()

    def _find_encoding(self) -> str:
        return self._fonts.get(self._state.font, self._encoding)

    def _end_style(self) -> None:
        if found := _HEADING.match("".join(self._style_name).strip()):
            self._styles[self._style] = int(found[1])
        self._style_name.clear()
        self._style = 0

    def _end_paragraph(self) -> None:
        if self._paragraph.is_in_table and self._words:
            self._words.append(" ")  # several paragraphs of a cell
            return
        text = clean(make_storable("".join(self._words)))
        lines = "\n".join(filter(None, map(squeeze, text.split("\n"))))
        marker = squeeze("".join(self._marker))
        self._words.clear()
        self._marker.clear()
        if not lines:
            return
        self._end_table()
        if marker:
            number = re.fullmatch(r"\(?(\d{1,4})[.)]", marker)
            self._items.append(f"{'  ' * self._paragraph.indent}{f'{number[1]}.' if number else '-'} {lines}")
            return
        self._end_list()
        if self._paragraph.level:
            self.assembly.add_heading(self._paragraph.level, lines)
        else:
            self.assembly.add_block(lines)

    def _end_list(self) -> None:
        self.assembly.add_block("\n".join(self._items))
        self._items.clear()

    def _end_table(self) -> None:
        if self._table.rows:
            self._end_list()
            add_table(self.assembly, self._table.rows, has_header=len(self._table.rows) > 1)
        self._table = _Table(count=self._table.count)


def _tokenize(data: bytes) -> Iterator[tuple[bytes, int | None, bytes]]:
    """Yield control words with their numbers, and text; binary data is passed over."""
    position = 0
    while found := _TOKEN.search(data, position):
        position = found.end()
        if found["size"] is not None:
            position += int(found["size"])
        elif found["word"] is not None:
            yield found["word"], None if found["number"] is None else int(found["number"]), b""
        elif found["hex"] is not None:
            yield b"'", None, bytes.fromhex(found["hex"].decode())
        elif found["brace"] is not None:
            yield found["brace"], None, b""
        elif found["text"] is not None:
            yield b"text", None, found["text"]
        elif found["symbol"] == b"*":
            yield b"*", None, b""
        elif (symbol := found["symbol"]) in (b"\n", b"\r"):
            yield b"par", None, b""
        elif symbol in _SYMBOLS:
            yield b"text", None, _SYMBOLS[symbol]


def _check_encoding(name: str) -> str | None:
    try:
        return codecs.lookup(name).name
    except LookupError:
        return None
