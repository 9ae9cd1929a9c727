"""Complete sources from their neighbours: the rest of a sentence, the head of a table, an adjacent source.

Chunks are cut to be found; an answer needs whole sentences, and rows with the header that says what their figures mean.
Measured: docs/decisions/11-quotes-and-verification.md.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

from domain.documents import Passage, Source, TextLine
from domain.ports.library import Library
from domain.scope import Scope
from domain.text.blocks import read_blocks
from domain.text.sentences import split_sentences
from domain.text.tables import BAR

ABOVE, BELOW = 4, 1
"""Chunks read above and below a source. The header of most tables is within the four above."""

LONGEST = 2500
"""The most characters of a completed source; a longer one stays as it was."""

_CLOSE = 2
"""The most characters of white space between two neighbours."""

_Stretch = tuple[int, str]
"""A text and its start in the document."""


async def complete_sources(sources: Sequence[Source], scope: Scope, library: Library) -> list[Source]:
    """Return the sources, each with whole sentences and with the head of the table it was cut from.

    No source gets text of another page or section. Raises `DatabaseUnavailable`.
    """
    cut = [source["chunk_id"] for source in sources if _is_cut(source["text"])]
    beside = await library.read_around(scope, cut, before=ABOVE, after=BELOW) if cut else []
    return [widen(source, beside) if source["chunk_id"] in cut else source for source in sources]


def merge_touching(sources: Sequence[Source]) -> list[Source]:
    """Join sources that touch or overlap in one section of one page, at the place and under the name of the first, and
    number them anew."""
    merged: list[Source] = []
    for source in sources:
        touched = [other for other in merged if _touch(other, source)]
        if touched:
            merged[merged.index(touched[0])] = _join([*touched, source])
            merged = [other for other in merged if other not in touched[1:]]
        else:
            merged.append(source)
    return [{**source, "number": number} for number, source in enumerate(merged, 1)]


def _is_cut(text: str) -> bool:
    """Return True where a chunk seems to begin or end within a sentence or a table."""
    return BAR in text.split("\n", 1)[0] or text[:1].islower() or text[-1:].isalnum() or text[-1:] in ",-–—"


def widen(source: Source, passages: Iterable[Passage]) -> Source:
    """Add to the source what `passages`, in any order, hold of its first and last sentence and of its table's head."""
    near = list(_find_contiguous(source, passages))
    start, text = reduce(_append, sorted([(p.start, p.text) for p in near] + [(source["start"], source["text"])]))
    first, last = source["start"] - start, source["end"] - start
    for block in read_blocks(text):
        if block.lead and block.start < source["start"] - start < block.end:
            first = min(first, block.lead[0])
    for sentence_start, sentence_end in split_sentences(text):
        if sentence_start < source["start"] - start < sentence_end:
            first = min(first, sentence_start)
        if sentence_start < source["end"] - start < sentence_end:
            last = max(last, sentence_end)
    if last - first > LONGEST:
        return source
    lines = {
        line.start: TextLine(start=line.start, end=line.end, page=line.page, box=line.box)
        for p in near
        for line in p.lines
    }
    lines |= {line["start"]: line for line in source["lines"]}
    return {
        **source,
        "text": text[first:last],
        "start": start + first,
        "end": start + last,
        "lines": [
            line for _, line in sorted(lines.items()) if line["start"] < start + last and line["end"] > start + first
        ],
    }


def _find_contiguous(source: Source, passages: Iterable[Passage]) -> Iterator[Passage]:
    """Yield the passages that adjoin the source without a gap, above and below, in its section and on its page."""
    by_index = {
        p.chunk_index: p
        for p in passages
        if p.document_id == source["document_id"]
        and p.page == source["page"]
        and list(p.heading_path) == source["heading_path"]
    }
    start, end = source["start"], source["end"]
    index = source["chunk_index"]
    while (above := by_index.get(index := index - 1)) and above.end + _CLOSE >= start:
        yield above
        start = above.start
    index = source["chunk_index"]
    while (below := by_index.get(index := index + 1)) and below.start - _CLOSE <= end:
        yield below
        end = below.end


def _touch(one: Source, other: Source) -> bool:
    same = all(one[key] == other[key] for key in ("document_id", "page", "heading_path"))
    return same and one["start"] <= other["end"] + _CLOSE and other["start"] <= one["end"] + _CLOSE


def _join(sources: Sequence[Source]) -> Source:
    """Join the sources under the name of the first."""
    start, text = reduce(_append, sorted((source["start"], source["text"]) for source in sources))
    lines = {line["start"]: line for source in sources for line in source["lines"]}
    return {
        **sources[0],
        "text": text,
        "start": start,
        "end": start + len(text),
        "lines": [line for _, line in sorted(lines.items())],
    }


def _append(left: _Stretch, right: _Stretch) -> _Stretch:
    """Return the text from the beginning of `left` to the end of `right`. Only the length of the white space between
    chunks is known: a line break beside table rows, a blank within a paragraph, an empty line between paragraphs."""
    start, text = left
    gap = right[0] - start - len(text)
    if gap < 0:
        return start, text + right[1][-gap:]
    is_row = BAR in text.rsplit("\n", 1)[-1] or BAR in right[1].split("\n", 1)[0]
    return start, text + ("\n" if gap > 1 or is_row else " ") * gap + right[1]
