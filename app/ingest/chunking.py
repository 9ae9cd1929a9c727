"""Splits documents into chunks of whole blocks, by section and page first."""

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from domain.documents import Chunk, Line, ParsedDocument
from domain.text.blocks import Block, Span, closes_fence, find_fence, read_blocks
from domain.text.languages import detect_language
from domain.text.sentences import split_block, split_paragraph
from domain.text.tables import is_row

SIZE = 500
"""Characters of a chunk, about. Measured: docs/measurements.md."""

_TINY = 8
"""Pieces shorter than the chunk size divided by this are too small to be found and understood alone."""
_MIXED = 4
"""Pieces shorter than the chunk size divided by this may share a chunk with a part of a long block."""
_MOST_LEAD = 2000
"""Characters of what each further part of a block repeats. A table of 5,000 columns would grow two hundredfold."""
_SHORT_LEAD = 200
"""Limit, in characters, of a paragraph that ends with a colon and stays with the block below it."""
_LINE = re.compile(r"[^\n]+")


@dataclass(frozen=True, slots=True)
class _Piece:
    """Text that stays together: one section's part of one page, or several tiny ones merged."""

    start: int
    end: int
    path: tuple[str, ...]
    page: int | None


@dataclass(frozen=True, slots=True)
class _Atom:
    """Text that is not cut: a block, or a part of one that is too long. `lead` is earlier text that is needed to
    understand it, such as a table header. `leads` is true for a heading or lead-in, which stays with the next atom.
    `block` is the start of the block that was cut."""

    start: int
    end: int
    lead: str = ""
    leads: bool = False
    block: int | None = None


def split(parsed: ParsedDocument, *, size: int = SIZE) -> list[Chunk]:
    """Split into chunks of at most `size` characters, in order; together they hold all text except white space.

    A chunk holds whole blocks of one section of one page; tiny neighbouring sections are merged under the heading that
    they share. A block that is longer is split at its items, rows, lines or sentences, and its further parts have its
    lead-in, header or fence as their `lead`. A heading stays with what follows, which may make a chunk longer by as
    much.
    """
    chunks: list[Chunk] = []
    line_ends = [line.end for line in parsed.lines]
    line_starts = [line.start for line in parsed.lines]
    language = detect_language(parsed.text) or "en"
    for piece in _merge(_cut(parsed), parsed.text, size):
        for start, end, lead in _pack(parsed.text, _split_piece(parsed.text, piece, size, language), size):
            text = parsed.text[start:end]
            first, last = bisect_right(line_ends, start), bisect_left(line_starts, end)
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


def _pack(text: str, atoms: Iterator[_Atom], size: int) -> Iterator[tuple[int, int, str]]:
    """Yield chunks as (start, end, lead), each of as many atoms as fit."""
    held: list[_Atom] = []

    def take(atoms: Sequence[_Atom]) -> Iterator[tuple[int, int, str]]:
        if atoms:
            yield atoms[0].start, atoms[-1].end, atoms[0].lead

    for atom in atoms:
        leading = len(held)
        while leading and held[leading - 1].leads:
            leading -= 1
        start = held[leading].start if leading < len(held) else atom.start
        is_other = bool(held) and held[-1].block != atom.block and not held[-1].leads
        # Read by itself, the rest of a block of code would turn into code what follows its closing fence.
        is_rest = is_other and find_fence(held[0].lead) != ""
        is_apart = is_rest or (is_other and held[-1].end - held[0].start >= size // _MIXED)
        if held and (is_apart or atom.end - held[0].start > size):
            # What leads goes with the atom, unless it is all there is.
            yield from take(held[:leading])
            held = held[leading:]
            if held and not leading and atom.end - start > 2 * size:
                yield from take(held)
                held = []
        held.append(atom)
    yield from take(held)


def _split_piece(text: str, piece: _Piece, size: int, language: str) -> Iterator[_Atom]:
    blocks = read_blocks(text[piece.start : piece.end])
    for number, block in enumerate(block.move(piece.start) for block in blocks):
        if block.end - block.start <= size:
            is_lead_in = block.end - block.start <= _SHORT_LEAD and text[block.end - 1] == ":"
            leads = number + 1 < len(blocks) and (block.kind == "heading" or is_lead_in)
            yield _Atom(_begin(text, block.start), block.end, leads=leads)
        else:
            yield from (replace(atom, block=block.start) for atom in _split_long(text, block, size, language))


def _begin(text: str, start: int) -> int:
    """Return the start of the line where only blanks stand before `start`: indentation belongs to the text."""
    line = text.rfind("\n", 0, start) + 1
    return start if text[line:start].strip() else line


def _split_long(text: str, block: Block, size: int, language: str) -> Iterator[_Atom]:
    """Split a block that is longer than a chunk, so that each atom is at most as long as one."""
    position = block.start
    if block.lead and block.parts:
        yield from _cut_span(text, *block.lead, size, language, lead="", leads=True)
        position = block.lead[1]
    label: Span | None = None
    spans = block.parts or tuple(_split_lines_or_sentences(text, block, language))
    for start, end in spans:
        lead = "" if position == block.start else _find_lead(text, block, label)
        if block.kind == "table" and not is_row(text[start:end]):
            label = start, end
        yield from _cut_span(text, start, end, size, language, lead=lead)
        position = end


def _split_lines_or_sentences(text: str, block: Block, language: str) -> Iterator[Span]:
    if block.kind == "code":
        lines = list(_find_lines(text, block.start, block.end))
        if len(lines) > 2 and closes_fence(text[slice(*lines[-1])], find_fence(text[slice(*lines[0])])):
            *lines, before, closing = lines
            lines.append((before[0], closing[1]))
        yield from lines
    else:
        yield from split_block(text, block, language)


def _find_lines(text: str, start: int, end: int) -> Iterator[Span]:
    for line in _LINE.finditer(text, start, end):
        if not line[0].isspace():
            yield line.start(), line.start() + len(line[0].rstrip())


def _find_lead(text: str, block: Block, label: Span | None) -> str:
    """Return the `lead` of the further parts of a block: the fence of code, or lead-in, caption and header with the
    latest label."""
    if block.kind == "code":
        return text[block.start : block.end].split("\n", 1)[0][:_MOST_LEAD]
    spans = [span for span in (block.lead, label) if span]
    return "\n".join(text[slice(*span)] for span in spans)[:_MOST_LEAD]


def _cut_span(
    text: str, start: int, end: int, size: int, language: str, *, lead: str, leads: bool = False
) -> Iterator[_Atom]:
    """Yield a span whole if it fits into a chunk, else by its lines, sentences and, last, words."""
    start = _begin(text, start)
    if end - start <= size:
        yield _Atom(start, end, lead, leads)
        return
    lines = list(_find_lines(text, start, end))
    if len(lines) > 1:
        for line_start, line_end in lines:
            yield from _cut_span(text, line_start, line_end, size, language, lead=lead)
        return
    sentences = list(split_paragraph(text, start, end, language))
    if len(sentences) > 1:
        for first, last in sentences:
            yield from _cut_span(text, first, last, size, language, lead=lead)
        return
    while end - start > size:
        cut = max(text.rfind(blank, start + size // 2, start + size) for blank in (" ", "\t"))
        cut = start + size if cut < 0 else cut
        yield _Atom(start, start + len(text[start:cut].rstrip()), lead)
        start = cut + len(text[cut:end]) - len(text[cut:end].lstrip())
    yield _Atom(start, end, lead)


def _hash(title: str, heading_path: tuple[str, ...], lead: str, text: str) -> str:
    parts = (title, *heading_path, lead, text) if lead else (title, *heading_path, text)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _cut(parsed: ParsedDocument) -> Iterator[_Piece]:
    """Cut the sections where a page begins, so that each chunk has one page to be cited by, unless a block goes on
    there."""
    breaks = [each for each in _find_pages(parsed.lines) if parsed.text[max(0, each[0] - 2) : each[0]] in ("", "\n\n")]
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
