"""Reads and writes citation markers in answers, and escapes raw HTML.

A marker is `[1]`, `[Source 1]`, `[Citation 1]` or `[cite:CHUNK_ID]`; a model that is shown `[Source 1: path]` may
write that, others `【1†source】`, as OpenAI's file search does, `[ID:1]`, as RAGFlow's prompts ask, `[doc1]`, `[[1]]`,
`(Source 1)`, `<sup>[1]</sup>`, the tag of the source or its name. Models write every style, in groups, with stray
spaces, and point at sources that do not exist. The client gets one style, and only markers with a source.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from domain.profile import CitationStyle

_LONGEST_MARKER = 200
"""Limit, in characters, between the brackets; bounds what the stream holds back."""
_LONGEST_CODE = 300
"""Limit, in characters, of inline code and of a fence's line, which are held back while looking for their end."""
_MOST_BLANKS = 200
"""Limit of blanks that are held back because a marker without a source takes those before it along."""
_REACH = _MOST_BLANKS + 2 * _LONGEST_CODE
"""Characters among which the next piece is looked for; more than all limits above together."""

_WORDS = (
    *("sources", "source", "src", "citations", "citation", "cites", "cite"),
    *("documents", "document", "docs", "doc", "references", "reference", "refs", "ref", "id"),
)
_JOIN = r"\s*(?:[,;&]|\band\b|,\s*and\b)\s*"
_NUMBER = r"\d{1,9}(?:\s*[-–]\s*\d{1,9})?[\"']?"
_LABEL = rf"(?:(?:{'|'.join(_WORDS)})(?:[_-]id|\s+n(?:umber|o\.?|r\.?))?[\s:=_-]*[#\"']?|#)?"
_NUMBERED = re.compile(rf"\s*\^?{_LABEL}{_NUMBER}(?:{_JOIN}{_LABEL}{_NUMBER})*\s*", re.IGNORECASE)
_IDENTIFIED = re.compile(r"\s*cites?\s*:\s*([^\s,;]+(?:\s*[,;]\s*(?:cite\s*:\s*)?[^\s,;]+)*)\s*", re.IGNORECASE)
_ISSUE = re.compile(r"\s*#(\d+)")
"""A number as lists of issues have it, which is a marker only where there is such a source."""
_FULL_WIDTH = re.compile(rf"\s*({_LABEL}{_NUMBER}(?:{_JOIN}{_LABEL}{_NUMBER})*)\s*(?:†[^【】\n]*)?", re.IGNORECASE)
_ROUND = re.compile(
    rf"\s*sources?(?:\s+n(?:umber|o\.?|r\.?))?\s*[:=]?\s*[#\"']?{_NUMBER}(?:{_JOIN}{_LABEL}{_NUMBER})*\s*",
    re.IGNORECASE,
)
_CLOSING = {"[": "]", "【": "】", "(": ")"}
_PATHED = re.compile(r"\s*source\s+(\d{1,9})\s*:\s*[^\s\d].*", re.IGNORECASE)
"""A source as profiles with `source_label = "path"` show it to the model."""
_PLAIN = re.compile(r"[^ \t\[【(`~\\<]+")
_TAG = re.compile(r"<[a-z/!?]", re.IGNORECASE)
_ANGLED_ADDRESS = re.compile(r"<(?:[a-z][a-z0-9+.-]{0,30}(?:$|:)|$)", re.IGNORECASE)
"""The beginning of an address between angle brackets, complete or not."""
_MARKING_TAG = re.compile(r"</?source\b[^<>\n]*>|<sup>\s*\[[^\[\]<>\n]*\]\s*</sup>", re.IGNORECASE)
_MAY_MARK = re.compile(
    r"</?s?(?:o?|ou|our|ourc|ource[^<>\n]*|up?|up>[^<>\n]*(?:<(?:/(?:s(?:up?)?)?)?)?)", re.IGNORECASE
)
"""The beginning of such a tag."""
_NAMED = re.compile(r"\s*(?:(?P<word>sources?|documents?|refs?|references?)\s*:)?\s*(?P<name>.*?)\s*", re.IGNORECASE)
_TELLING = re.compile(rf"(?!{_LABEL}[\d\W]*$).{{3,}}", re.IGNORECASE)
"""A name that is nothing else in brackets, such as a number or the cross of a task."""
_FILE_NAME = re.compile(r"\S\.\w{1,5}")
_WORD_START = re.compile(r"\s*\^?([a-z]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MarkerSpan:
    """A marker at `text[start:end]` and the numbers of its sources, in order, each once."""

    start: int
    end: int
    numbers: tuple[int, ...]


def render_marker(number: int, chunk_id: str, style: CitationStyle) -> str:
    """Return the marker of source `number` in the profile's style."""
    match style:
        case "number":
            return f"[{number}]"
        case "source":
            return f"[Source {number}]"
        case "citation":
            return f"[Citation {number}]"
        case "chunk":
            return f"[cite:{chunk_id}]"


def find_markers(text: str, chunk_ids: Sequence[str]) -> list[MarkerSpan]:
    """Return the markers in `text` that point at a source. `chunk_ids` are those of the sources, in order from number
    1.

    Any style counts, groups too (`[1, 3]`, `[1-3]`). Code, links and numbers without a source do not.
    """
    scanner = _Scanner(chunk_ids)
    found = []
    position = 0
    for piece in scanner.scan(text, final=True):
        if piece.numbers:
            found.append(MarkerSpan(position + piece.lead, position + len(piece.text), piece.numbers))
        position += len(piece.text)
    return found


def strip_markers(text: str) -> str:
    """Return `text` without anything that reads as a marker, such as a quoted document's own footnote numbers, and with
    raw HTML escaped."""
    if _PLAIN.fullmatch(text.replace(" ", "")):
        return text
    return "".join(piece.shown or piece.text for piece in _Scanner(()).scan(text, final=True) if piece.numbers is None)


class MarkerStream:
    """Turns a model's tokens into text with valid markers in one style.

    Markers without a source are dropped with the space before them; groups become one marker per source. Text is held
    back only while it may be part of a marker or of code, so the output does not depend on how the input is cut.
    """

    def __init__(self, chunk_ids: Sequence[str], style: CitationStyle, names: Mapping[str, int] | None = None) -> None:
        """`names` are what sources may be called, and the number of the first of that name."""
        self._chunk_ids = chunk_ids
        self._style = style
        self._scanner = _Scanner(chunk_ids, names or {})

    def feed(self, text: str) -> str:
        """Return what can be sent now."""
        return self._collect(self._scanner.scan(text, final=False))

    def finish(self) -> str:
        """Return the rest, once no more text comes."""
        return self._collect(self._scanner.scan("", final=True))

    def _collect(self, pieces: Iterator["_Piece"]) -> str:
        text = ""
        for piece in pieces:
            if piece.numbers is None:
                text += piece.shown or piece.text
            elif piece.numbers:
                ids = self._chunk_ids
                markers = [render_marker(number, ids[number - 1], self._style) for number in piece.numbers]
                text += piece.text[: piece.lead] + "".join(markers)
        return text


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece of text. `numbers` is None for plain text; for a marker, the sources that it points at, perhaps none.
    `lead` counts the blanks before the bracket. `shown` replaces raw HTML, which a client would take for its own."""

    text: str
    numbers: tuple[int, ...] | None = None
    lead: int = 0
    shown: str = ""


class _Scanner:
    """Cuts streamed text into plain pieces and markers."""

    def __init__(self, chunk_ids: Sequence[str], names: Mapping[str, int] | None = None) -> None:
        self._count = len(chunk_ids)
        self._names = {name.casefold(): number for name, number in (names or {}).items() if _TELLING.fullmatch(name)}
        self._by_id = {chunk_id: number for number, chunk_id in enumerate(chunk_ids, 1)}
        self._text = self._buffer = ""
        self._position = 0
        self._fence = ""
        self._at_line_start = True

    def scan(self, text: str, *, final: bool) -> Iterator[_Piece]:
        """Yield the pieces that are certain; with `final` the rest too, so that the pieces make up the whole text.

        No step looks further than `_REACH`, so a long text costs time in proportion to its length.
        """
        self._text = self._text[self._position :] + text
        self._position = 0
        while self._position < len(self._text):
            self._buffer = self._text[self._position : self._position + _REACH]
            is_last = final and self._position + _REACH >= len(self._text)
            piece = self._take_code(is_last) if self._fence else self._take(is_last)
            if piece is None:
                return
            self._position += len(piece.text)
            last_line = piece.text.rpartition("\n")
            self._at_line_start = not last_line[2].strip(" \t") and (bool(last_line[1]) or self._at_line_start)
            yield piece

    def _take_code(self, final: bool) -> _Piece | None:
        """Take the next line, or its beginning, inside a fenced block."""
        line, newline, _ = self._buffer[:_LONGEST_CODE].partition("\n")
        if self._at_line_start:
            closing = re.fullmatch(r"[ \t]*(`{3,}|~{3,})[ \t\r]*", line)
            complete = final or newline or len(line) == _LONGEST_CODE
            if not complete and re.fullmatch(r"[ \t]*+(`*|~*)[ \t\r]*+", line):
                return None
            if closing and closing[1].startswith(self._fence):
                self._fence = ""
        return _Piece(line + newline)

    def _take(self, final: bool) -> _Piece | None:
        buffer = self._buffer
        blanks = len(buffer) - len(buffer.lstrip(" \t"))
        if blanks >= _MOST_BLANKS:
            return _Piece(buffer[:_MOST_BLANKS])
        if blanks == len(buffer):
            return _Piece(buffer) if final else None
        match buffer[blanks]:
            case "[" | "【" | "(":
                return self._take_bracket(blanks, final)
            case "`" | "~":
                return self._take_ticks(blanks, final)
            case "<":
                return self._take_tag(blanks, final)
            case "\\":
                # An escaped bracket belongs to the text and opens no marker.
                return _Piece(buffer[: blanks + 2]) if len(buffer) > blanks + 1 or final else None
        plain = _PLAIN.match(buffer, blanks)
        return _Piece(buffer[: plain.end()]) if plain else None

    def _take_ticks(self, blanks: int, final: bool) -> _Piece | None:
        """Take the opening line of a fenced block, code within a line, or plain ticks."""
        window = self._buffer[: blanks + _LONGEST_CODE]
        line, newline, _ = window.partition("\n")
        complete = final or bool(newline) or len(window) == blanks + _LONGEST_CODE
        tick = window[blanks]
        run = len(line) - blanks - len(line[blanks:].lstrip(tick))
        if run == len(line) - blanks and not complete:
            return None
        if self._at_line_start and run >= 3:
            if not complete:
                return None
            if (newline or final) and "`" not in line[blanks + run :]:
                self._fence = tick * run
                return _Piece(line + newline)
        if tick == "~":
            return _Piece(window[: blanks + run])
        code = re.compile(rf"`{{{run}}}(?!`).*?(?<!`)`{{{run}}}(?!`)").match(line, blanks)
        if code and (code.end() < len(line) or complete):
            return _Piece(window[: code.end()])
        return _Piece(window[: blanks + run]) if complete else None

    def _take_tag(self, blanks: int, final: bool) -> _Piece | None:
        """Take a "<", escaped where a client would read a tag; a tag that marks a source, whole."""
        if not self._at_line_start:
            window = self._buffer[blanks : blanks + _LONGEST_MARKER]
            if tag := _MARKING_TAG.match(window):
                number = re.search(r"\d{1,9}", tag[0])
                known = number and 1 <= int(number[0]) <= self._count
                return _Piece(self._buffer[: blanks + tag.end()], (int(number[0]),) if number and known else (), blanks)
            if not final and _MAY_MARK.fullmatch(window) and len(window) < _LONGEST_MARKER:
                return None
        address = _ANGLED_ADDRESS.match(self._buffer, blanks)
        if address and not address[0].endswith(":") and not final:
            return None
        opens = _TAG.match(self._buffer, blanks) and not (address and address[0].endswith(":"))
        piece = self._buffer[: blanks + 1]
        return _Piece(piece, shown=f"{piece[:-1]}\\<" if opens else "")

    def _take_bracket(self, blanks: int, final: bool) -> _Piece | None:
        buffer = self._buffer
        opening = buffer[blanks]
        content, bracket, rest = buffer[blanks + 1 : blanks + 2 + _LONGEST_MARKER].partition(_CLOSING[opening])
        literal = _Piece(buffer[: blanks + 1])
        length = len(content) + 2
        if doubled := opening == "[" and content.startswith("["):
            content = content[1:]
        if not bracket:
            may = _may_become_marker(content, opening) or self._may_become_name(content)
            undecided = not final and length <= _LONGEST_MARKER + 2 and may
            return None if undecided else literal
        numbers = self._read_numbers(content, opening)
        if opening == "[" and not rest and not final and len(buffer) == blanks + length and numbers is not None:
            return None
        if doubled:
            if rest == "]" and not final and numbers is not None:
                return None
            length, rest = length + 1, rest[1:] if rest.startswith("]") else "("
        if numbers is None or (opening == "[" and rest.startswith("(")):
            return literal
        # With a colon it would make links of all markers of the number.
        defines = numbers and self._at_line_start and rest.startswith(":")
        return _Piece(buffer[: blanks + length + bool(defines)], numbers, blanks)

    def _read_numbers(self, content: str, opening: str) -> tuple[int, ...] | None:
        """Return the sources that the text between the brackets points at; None where it is no marker."""
        if "\n" in content:
            return None
        if named := self._find_name(content, opening):
            return (named,)
        if opening == "【" and (full := _FULL_WIDTH.fullmatch(content)):
            content = full[1]
        elif opening != "[" and not _ROUND.fullmatch(content):
            return None
        numbers: list[int] = []
        if identified := _IDENTIFIED.fullmatch(content):
            for chunk_id in re.findall(r"[^\s,;]+", re.sub(r"cite\s*:\s*", " ", identified[1])):
                number = self._by_id.get(chunk_id) or (int(chunk_id) if re.fullmatch(r"\d{1,9}", chunk_id) else 0)
                numbers.append(number)
        elif _NUMBERED.fullmatch(content):
            if (issue := _ISSUE.match(content)) and not 1 <= int(issue[1]) <= self._count:
                return None
            for first, last in re.findall(r"(\d+)(?:\s*[-–]\s*(\d+))?", content):
                numbers.extend(range(int(first), min(int(last or first), self._count) + 1))
        elif pathed := _PATHED.fullmatch(content):
            numbers.append(int(pathed[1]))
        else:
            return None
        return tuple(dict.fromkeys(number for number in numbers if 1 <= number <= self._count))

    def _find_name(self, content: str, opening: str) -> int | None:
        """Return the source of this name; between round brackets, what else may be meant is none."""
        named = _NAMED.fullmatch(content) if self._names else None
        if not named or (opening == "(" and not named["word"] and not _FILE_NAME.search(named["name"])):
            return None
        name = named["name"].casefold()
        # A page or section may stand behind it.
        return self._names.get(name) or self._names.get(name.rpartition(",")[0].rstrip())

    def _may_become_name(self, content: str) -> bool:
        named = _NAMED.fullmatch(content) if self._names else None
        given = named["name"].casefold() if named else ""
        return bool(named) and any(name.startswith(given) or given.startswith(f"{name},") for name in self._names)


def _may_become_marker(content: str, opening: str) -> bool:
    """Return True while more text could make `content` a marker; never False for the beginning of one."""
    if "\n" in content:
        return False
    if opening == "(" and not re.match(r"\s*(?:$|s)", content, re.IGNORECASE):
        return False
    if opening == "【" and "†" in content:
        return bool(_FULL_WIDTH.fullmatch(content))
    if word := _WORD_START.match(content):
        name = word[1].lower()
        whole = word.end() < len(content)
        return name in _WORDS if whole else any(known.startswith(name) for known in _WORDS)
    return bool(re.fullmatch(r"\s*[\^#]?(?:\d[^\]]*)?", content)) and not re.search(
        r"[^\d\s,;:#&–\-a-z\"'=.]", content.lstrip().removeprefix("^"), re.IGNORECASE
    )
