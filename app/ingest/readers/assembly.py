"""Shared by all readers: cleaning characters for storage, and assembling blocks into text with sections."""

import re
import unicodedata
from pathlib import PurePath

from domain.documents import ParsedDocument, Section

_REPLACED = str.maketrans(
    {
        **{chr(code): None for code in (*range(0x20), *range(0x7F, 0xA0))},  # Postgres refuses NUL; none is text
        **{chr(code): "�" for code in range(0xD800, 0xE000)},  # lone surrogates cannot be encoded
        **dict.fromkeys("\u200b\u2060\ufeff\u00ad\ufffe\uffff"),  # invisible, and they break words for search
        **dict.fromkeys("\u00a0\u2007\u202f", " "),
        **dict.fromkeys("\n\u0085\u2028\u2029\v\f", "\n"),
        "\t": "\t",
    }
)
_MAX_TITLE = 200


def clean(text: str) -> str:
    """Return the text in Unicode form NFC, with plain line ends, without characters that cannot be stored or seen."""
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n").translate(_REPLACED))


def squeeze(text: str) -> str:
    """Return the cleaned text on one line with single spaces."""
    return " ".join(clean(text).split())


def name_title(source: str) -> str:
    """Derive a title from a path, file name or address: the last part without extension, underscores replaced by
    spaces."""
    last = re.split(r"[/\\]", re.sub(r"[?#].*", "", source) if "://" in source else source.rstrip("/\\"))[-1]
    return squeeze(PurePath(last).stem.replace("_", " ")) or squeeze(source) or "Untitled"


class Assembly:
    """Assembles blocks in reading order into one text; headings open sections."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._headings: list[tuple[int, str]] = []
        self._sections: list[tuple[int, tuple[str, ...]]] = [(0, ())]

    def add_heading(self, level: int, text: str) -> None:
        """Append a heading and open its section. `level` counts from 1, the outermost; deeper sections end here."""
        if text := squeeze(text):
            self.open_section(level, text, self.add_block(text))

    def open_section(self, level: int, text: str, start: int) -> None:
        """Open a section at `start` under a heading that is already in the text. A second call for the same `start`
        corrects the heading."""
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()
        self._headings.append((level, text))
        path = tuple(heading for _, heading in self._headings)
        while self._sections and self._sections[-1][0] >= start:
            self._sections.pop()
        self._sections.append((start, path))

    def add_block(self, text: str, *, gap: str = "\n\n") -> int:
        """Append a cleaned block and return its start. `gap` separates it from the block before."""
        text = text.strip("\n").rstrip()
        if not text:
            return self._length
        if self._parts:
            self._parts.append(gap)
            self._length += len(gap)
        start = self._length
        self._parts.append(text)
        self._length += len(text)
        return start

    def finish(self, title: str | None, source: str) -> ParsedDocument:
        """Return the document, without its media type. Without a title it is named by its first heading, then by its
        source."""
        first_heading = next((path[-1] for _, path in self._sections if path), "")
        title = squeeze(title or "") or first_heading or name_title(source)
        ends = [start for start, _ in self._sections[1:]] + [self._length]
        return ParsedDocument(
            title=title[:_MAX_TITLE],
            text="".join(self._parts),
            media_type="",
            sections=tuple(Section(start, end, path) for (start, path), end in zip(self._sections, ends, strict=True)),
        )
