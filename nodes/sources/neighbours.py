"""Widen sources to what the found chunk stands in: its sentence, its list, table or code, then its section.

Chunks are small, so that they can be found; an answer needs what stands around them. Measured on the practical set's
questions about Markdown, text and HTML (139, first readers of 2026-11-22; share whose facts are all among the sources,
and characters of all sources together): five chunks as they are .78 and 1,800; widened within their sections to 1,500
characters .86 and 6,600; and beyond, among the sections of one parent, .885 and 9,000, to 3,000 .90 and 16,000. The
five documents whole have .91.
"""

import asyncio
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

from domain.documents import Passage, SectionStart, Source, TextLine
from domain.ports.library import Library
from domain.scope import Scope
from domain.text.blocks import Span, find_fence, find_item, read_blocks
from domain.text.sentences import split_sentences
from domain.text.tables import is_row
from nodes.sources.sourcing import make_line, make_source

BUDGET = 1500
"""The characters to which a source grows."""

LONGEST = 2500
"""The most characters of a source that a sentence, list, table or block of code makes longer than `BUDGET`."""

ABOVE, BELOW = 4, 4
"""Chunks read above and below a found one: about as many as fit into `LONGEST`."""

SPARE = 5
"""Further candidates that are widened to take the places of those that turn out to stand side by side."""

_CLOSE = 16
"""The most characters of white space between two neighbours."""

_Stretch = tuple[int, str]
"""A text and its start in the document."""


async def widen_sources(
    ranked: Sequence[Source], keep: int, scope: Scope, library: Library, known: Sequence[Source] = ()
) -> list[Source]:
    """Return the `known` sources and the first `keep` places of `ranked` that they do not hold, each widened; chunks of
    one place become one source, so that others can follow. No source gets text of another page. Raises
    `DatabaseUnavailable`.
    """
    chosen = ranked[: keep + SPARE]
    around = await library.read_around(scope, [source["chunk_id"] for source in chosen], before=ABOVE, after=BELOW)
    widened = list(known)
    most = len(known) + keep
    for source in chosen:
        if holder := next((place for place, other in enumerate(widened, 1) if _holds(other, source)), 0):
            new = source.get("found", [])
            if is_row(source["text"].split("\n", 1)[0]) or any("query" in span for span in new):
                # Rows are alike: that another part of their table is more relevant says little about them. What another
                # query has found is relevant to that.
                found = [*widened[holder - 1].get("found", []), *new]
                widened[holder - 1] = {**widened[holder - 1], "found": found}
        elif len(widened) < most:
            widened = _add(widened, widen(source, around))
            await asyncio.sleep(0)  # Each may take tens of milliseconds, and others want their turn.
    return number_sources(widened)


def merge_touching(sources: Sequence[Source]) -> list[Source]:
    """Join sources that touch or overlap on one page, at the place and under the name of the first, and number them
    anew."""
    merged: list[Source] = []
    for source in sources:
        merged = _add(merged, source)
    return number_sources(merged)


def _add(sources: list[Source], source: Source) -> list[Source]:
    touched = [other for other in sources if _touch(other, source)]
    if not touched:
        return [*sources, source]
    joined = _join([*touched, source])
    return [joined if other is touched[0] else other for other in sources if other not in touched[1:]]


def number_sources(sources: Sequence[Source]) -> list[Source]:
    """Return the sources numbered from 1, in order."""
    return [{**source, "number": number} for number, source in enumerate(sources, 1)]


def widen(source: Source, passages: Iterable[Passage]) -> Source:
    """Return the source with the whole blocks that it was cut from, and with its neighbours among `passages`, which are
    in any order: those of its section first, then those of the sections beside it, as long as they fit."""
    near = _find_contiguous(source, passages)
    start, text = reduce(_append, sorted([(p.start, p.text) for p in near] + [(source["start"], source["text"])]))
    first, last = _complete(text, source["start"] - start, source["end"] - start)
    for those in ([p for p in near if list(p.heading_path) == source["heading_path"]], near):
        first, last = _grow(first, last, [(p.start - start, p.end - start) for p in those])
    held = [p for p in near if p.start < start + last and start + first < p.end]
    lines = [*(make_line(line) for p in near for line in p.lines), *source["lines"]]
    parts = [*(_Part(p.start, list(p.heading_path), p.lead) for p in held), *_list_parts(source)]
    return _replace_text(source, start + first, text[first:last], lines, parts)


def narrow(source: Source) -> Source:
    """Return the source with nothing but the chunks that it was widened from, and what lies between them. Rows stay
    whole: they are not read without their header."""
    spans = source.get("found")
    if not spans or "computed" in source or any(map(is_row, source["text"].split("\n"))):
        return source
    start = max(source["start"], min(span["start"] for span in spans))
    end = min(source["end"], max(span["end"] for span in spans))
    text = source["text"][start - source["start"] : max(0, end - source["start"])]
    if not text or text == source["text"]:
        return source
    parts = _list_parts(source)
    above = [part for part in parts if part.start <= start][-1:]
    held = [*above, *(part for part in parts if start < part.start < end)] or parts[:1]
    return {**_replace_text(source, start, text, source["lines"], held), "cut": True}


class _Part(NamedTuple):
    """Where a part of a source begins, the headings over it, and the lead-in that it cannot be read without."""

    start: int
    heading_path: list[str]
    lead: str


def _list_parts(source: Source) -> list[_Part]:
    sections = source.get("sections") or [SectionStart(start=source["start"], heading_path=source["heading_path"])]
    return [_Part(each["start"], each["heading_path"], source.get("lead", "")) for each in sections]


def _replace_text(source: Source, start: int, text: str, lines: Iterable[TextLine], parts: Iterable[_Part]) -> Source:
    """Return the source with another text that begins at `start`, with those of the lines that stand in it. `parts` are
    what the text consists of."""
    end = start + len(text)
    by_start = {line["start"]: line for line in lines if line["start"] < end and line["end"] > start}
    replaced: Source = {
        **source,
        "text": text,
        "start": start,
        "end": end,
        "lines": [line for _, line in sorted(by_start.items())],
    }
    first, *others = sorted(parts)
    replaced.pop("lead", None)
    replaced.pop("sections", None)
    if first.lead:
        replaced["lead"] = first.lead
    opened = [first, *(two for one, two in pairwise([first, *others]) if one.heading_path != two.heading_path)]
    if len(opened) > 1:
        replaced["sections"] = [SectionStart(start=part.start, heading_path=part.heading_path) for part in opened]
    return replaced


def _complete(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span with the blocks that it cuts, or, where one is too long, with the sentences that it cuts."""
    first, last = start, end
    is_left = False
    for block in read_blocks(text):
        if block.start < end and start < block.end:
            if max(last, block.end) - min(first, block.start) <= LONGEST:
                first, last = min(first, block.start), max(last, block.end)
            else:
                is_left = True
    for sentence_start, sentence_end in split_sentences(text) if is_left else ():
        if (
            sentence_start < end
            and start < sentence_end
            and max(last, sentence_end) - min(first, sentence_start) <= LONGEST
        ):
            first, last = min(first, sentence_start), max(last, sentence_end)
    return first, last


def _grow(first: int, last: int, neighbours: Sequence[Span]) -> Span:
    """Return the span with the neighbours beside it that fit, those on the side where fewer were added first."""
    above = below = 0  # characters that were added
    while True:
        fitting = [(a, b) for a, b in neighbours if max(last, b) - min(first, a) <= BUDGET]
        ends = [b for a, b in fitting if a <= last + _CLOSE and last < b]
        starts = [a for a, b in fitting if a < first <= b + _CLOSE]
        if ends and (below <= above or not starts):
            below += min(ends) - last
            last = min(ends)
        elif starts:
            above += first - max(starts)
            first = max(starts)
        else:
            return first, last


def _find_contiguous(source: Source, passages: Iterable[Passage]) -> list[Passage]:
    """Return the passages that adjoin the source without a gap, above and below, on its page, among the sections that
    stand under the same heading as its own."""
    parent = source["heading_path"][:-1] or source["heading_path"]
    by_index = {
        p.chunk_index: p
        for p in passages
        if p.document_id == source["document_id"]
        and p.page == source["page"]
        and list(p.heading_path[: len(parent)]) == parent
    }
    found: list[Passage] = []
    start, end = source["start"], source["end"]
    for step in (-1, 1):
        index = source["chunk_index"] + step
        while (near := by_index.get(index)) and near.start - _CLOSE <= end and start <= near.end + _CLOSE:
            found.append(near)
            start, end = min(start, near.start), max(end, near.end)
            index += step
    return found


def join_passages(passages: Sequence[Passage]) -> list[Source]:
    """Return consecutive passages of a document as sources, not numbered yet, one a page, each at most `LONGEST` long
    where its chunks are."""
    joined: list[Source] = []
    for passage in passages:
        source = make_source(0, passage, score=1.0)
        source["found"] = []
        last = joined[-1] if joined else None
        if last and _share_page(last, source) and source["end"] - last["start"] <= LONGEST:
            joined[-1] = _join([last, source])
        else:
            joined.append(source)
    return joined


def _touch(one: Source, other: Source) -> bool:
    """Return True where two sources overlap, or stand side by side in one section."""
    near = _CLOSE if one["heading_path"] == other["heading_path"] else -1
    return _share_page(one, other) and one["start"] <= other["end"] + near and other["start"] <= one["end"] + near


def _holds(one: Source, other: Source) -> bool:
    return _share_page(one, other) and one["start"] <= other["start"] and other["end"] <= one["end"]


def _share_page(one: Source, other: Source) -> bool:
    """Return True where the two are parts of one page. What was computed stays apart."""
    is_text = "computed" not in one and "computed" not in other
    return is_text and one["document_id"] == other["document_id"] and one["page"] == other["page"]


def _join(sources: Sequence[Source]) -> Source:
    """Join the sources under the name of the first."""
    start, text = reduce(_append, sorted((source["start"], source["text"]) for source in sources))
    lines = [line for source in sources for line in source["lines"]]
    joined = _replace_text(sources[0], start, text, lines, [part for each in sources for part in _list_parts(each)])
    joined["found"] = [span for source in sources for span in source.get("found", [])]
    joined.pop("cut", None)
    return joined


def _append(left: _Stretch, right: _Stretch) -> _Stretch:
    """Return the text from the beginning of `left` to the end of `right`. Only the length of the white space between
    chunks is known: line breaks between blocks, items, rows and lines of code, a blank within a paragraph."""
    start, text = left
    gap = right[0] - start - len(text)
    if gap < 0:
        return start, text + right[1][-gap:]
    before, after = text.rsplit("\n", 1)[-1], right[1].split("\n", 1)[0]
    is_broken = (
        gap > 1 or _ends_in_code(text) or find_item(after) > 0 or is_row(before) or is_row(after) or after[:1].isspace()
    )
    return start, text + ("\n" if is_broken else " ") * gap + right[1]


def _ends_in_code(text: str) -> bool:
    """Return True where the text opens code that it does not close."""
    is_fenced = "```" in text or "~~~" in text
    return is_fenced and sum(find_fence(line) != "" for line in text.split("\n")) % 2 == 1
