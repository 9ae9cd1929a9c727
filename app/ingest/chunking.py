"""Splits documents into chunks: by section and page first, then by paragraph, line, sentence and word."""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from semantic_text_splitter import TextSplitter

from domain.documents import Chunk, Line, ParsedDocument
from domain.text.blocks import Block, read_blocks
from domain.text.tables import is_row

SIZE = 500
OVERLAP = 50

_SPAN = 20_000
"""Characters per call of the splitter, whose computation of character offsets takes quadratic time."""
_TINY = 8
"""Pieces shorter than the chunk size divided by this are too small to be found and understood alone."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Text that stays together: one section's part of one page, or several tiny ones merged."""

    start: int
    end: int
    path: tuple[str, ...]
    page: int | None


def split(parsed: ParsedDocument, *, size: int = SIZE, overlap: int = OVERLAP) -> list[Chunk]:
    """Split into chunks of at most `size` characters, in order; together they hold all text except white space.

    A chunk crosses neither a section's nor a page's end, except that tiny neighbouring sections are merged under the
    heading that they share. Neighbours within a section share up to `overlap` characters if those are whole sentences
    or lines, or if a sentence had to be cut.
    """
    chunks: list[Chunk] = []
    line_ends = [line.end for line in parsed.lines]
    line_starts = [line.start for line in parsed.lines]
    blocks = [
        block.move(section.start)
        for section in parsed.sections
        for block in read_blocks(parsed.text[section.start : section.end])
        if block.parts
    ]
    block_ends = [block.end for block in blocks]
    for piece in _merge(_cut(parsed), parsed.text, size):
        for start, end in _split_piece(parsed.text, piece, size, overlap):
            text = parsed.text[start:end]
            first, last = bisect_right(line_ends, start), bisect_left(line_starts, end)
            lead = _find_lead(parsed.text, blocks[bisect_right(block_ends, start) :][:1], start)
            chunks.append(
                Chunk(
                    index=len(chunks),
                    text=text,
                    start=start,
                    end=end,
                    heading_path=piece.path,
                    content_hash=_hash(parsed.title, piece.path, lead, text),
                    lines=parsed.lines[first:last],
                    lead=lead,
                )
            )
    return chunks


def _find_lead(text: str, blocks: Sequence[Block], start: int) -> str:
    """Return what stands above the chunk of the block that it is cut from: a lead-in, or caption and header with the
    latest label among the rows."""
    for block in blocks:
        if block.lead and block.lead[1] <= start:
            above = [part for part in block.parts if part[1] <= start and block.kind == "table"]
            labels = [part for part in above if not is_row(text[slice(*part)])]
            return "\n".join(text[slice(*span)] for span in [block.lead, *labels[-1:]])
    return ""


def _hash(title: str, heading_path: tuple[str, ...], lead: str, text: str) -> str:
    parts = (title, *heading_path, lead, text) if lead else (title, *heading_path, text)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _cut(parsed: ParsedDocument) -> Iterator[_Piece]:
    """Cut the sections where a page begins, so that each chunk has one page to be cited by."""
    breaks = list(_find_pages(parsed.lines))
    for section in parsed.sections:
        inside = [(start, page) for start, page in breaks if section.start < start < section.end]
        before = [page for start, page in breaks if start <= section.start]
        starts = [(section.start, before[-1] if before else None), *inside]
        for (start, page), (end, _) in zip(starts, [*starts[1:], (section.end, None)], strict=True):
            if parsed.text[start:end].strip():
                yield _Piece(start, end, section.heading_path, page)


def _find_pages(lines: tuple[Line, ...]) -> Iterator[tuple[int, int]]:
    page = None
    for line in lines:
        if line.page != page:
            page = line.page
            yield line.start, page


def _merge(pieces: Iterator[_Piece], text: str, size: int) -> Iterator[_Piece]:
    """Merge tiny pieces with what follows: a heading without text with its first subsection, tiny sections with their
    tiny siblings."""
    held: _Piece | None = None
    for piece in pieces:
        if held is None:
            held = piece
            continue
        shared = _share(held.path, piece.path)
        is_small = held.end - held.start < size // _TINY
        fits = piece.end - held.start <= size
        if held.page != piece.page or not is_small:
            merged = None
        elif shared == held.path:
            merged = piece.path
        elif fits and shared and piece.end - piece.start < size // _TINY:
            merged = shared
        else:
            merged = None
        if merged is None:
            yield held
            held = piece
        else:
            held = _Piece(held.start, piece.end, merged, piece.page)
    if held is not None:
        yield held


def _share(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
    length = 0
    while length < min(len(left), len(right)) and left[length] == right[length]:
        length += 1
    return left[:length]


@lru_cache(maxsize=8)
def _make_splitter(size: int, overlap: int) -> TextSplitter:
    return TextSplitter(size, overlap=overlap)


def _split_piece(text: str, piece: _Piece, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    splitter = _make_splitter(size, overlap)
    held: tuple[int, int] | None = None
    for span_start, span_end in _find_spans(text, piece):
        for offset, part in splitter.chunk_indices(text[span_start:span_end]):
            start, end = span_start + offset, span_start + offset + len(part)
            if held is None:
                held = start, end
                continue
            # The splitter leaves a line alone that stands before a long paragraph, such as a heading.
            is_tiny = min(held[1] - held[0], end - start) < size // _TINY
            if is_tiny and end - held[0] <= size:
                held = held[0], end
                continue
            yield held
            held = start, end
    if held is not None:
        yield held


def _find_spans(text: str, piece: _Piece) -> Iterator[tuple[int, int]]:
    """Yield spans of about `_SPAN` characters of the piece, cut at paragraphs or lines where possible."""
    start = piece.start
    while piece.end - start > _SPAN:
        earliest, latest = start + _SPAN // 2, start + _SPAN
        cuts = (text.rfind(separator, earliest, latest) for separator in ("\n\n", "\n", " "))
        cut = next((cut for cut in cuts if cut >= 0), latest)
        yield start, cut
        start = cut
    yield start, piece.end
