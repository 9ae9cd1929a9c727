"""Splits an answer into its statements, each with the sources that it cites."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, groupby
from operator import itemgetter
from typing import NamedTuple

from domain.text.blocks import Block, Span, find_fence, read_blocks
from domain.text.languages import Language, detect_language, read_file
from domain.text.markers import MarkerSpan, find_markers, strip_markers
from domain.text.sentences import split_block
from domain.text.tables import is_row
from domain.text.terms import analyse

BOLD_LINE = re.compile(r"(?P<mark>\*\*|__)[^*_\n\d]+(?<![.!?…\s])(?P=mark)")
"""A line in bold that ends no sentence and has no figure: a heading, though nothing marks it as one."""

_MARK = r"^[ \t]{0,20}(?:[-*+]|\d{1,3}[.)])[ \t]{0,20}\n[ \t\n]{0,20}"
LATEX = (
    r"(?:\$\$(?:[^$\n]|\n(?![ \t]*\n)){1,2000}\$\$|\\\[(?:[^\\\n]|\\(?![][])|\n(?![ \t]*\n)){1,2000}\\\]"
    r"|\\\((?:[^\\\n]|\\(?![()])){1,500}\\\)|\$(?!\s)(?:\\.|[^\\$\n]){1,500}(?<!\s)\$(?!\w))"
)
"""Pattern for a formula as answers have it."""
_WHOLE = re.compile(rf"(?:{_MARK})?{LATEX}|{_MARK}\S", re.MULTILINE)
"""What is read whole: a formula, and the mark of an item with what begins on the line below it."""

MOST_SENTENCES, MOST_CHARACTERS = 200, 20_000
"""How much of an answer is split: twice the longest reply that the shipped modes take (1,000 tokens), with sentences of
five tokens. So many can be judged in 25 calls, and splitting them does not stop the event loop."""

_NAMES_SOURCES = re.compile(r"\W*(?:\w+\W*)?|\W*\w+\W*:.{0,80}", re.DOTALL)
"""What may stand in front of the markers of a line that names the sources of what is above it: nothing, "Source:"."""


@cache
def read_documents(language: Language) -> re.Pattern[str]:
    """Return the pattern for words with which an answer speaks of the documents as such."""
    return re.compile(read_file(language, "reading")["claims"]["documents"], re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ClaimSpan:
    """A statement at `answer[start:end]`, markers included, and the numbers of the sources that it cites."""

    start: int
    end: int
    markers: tuple[int, ...]
    about_documents: bool = False
    """True where it speaks of the documents as such, as in "The sources do not say how long", and cites none."""
    unread: bool = False
    """True for the rest of an answer that is too long to split. What it cites is not told."""


class _Sentence(NamedTuple):
    start: int
    end: int
    text: str
    """Without markers."""
    numbers: tuple[int, ...]
    part: int
    """The item, row or definition of its block that it stands in; -1: in none."""
    line: int
    states: bool
    about_documents: bool


def split_claims(answer: str, chunk_ids: Sequence[str]) -> list[ClaimSpan]:
    """Return the answer's statements with their markers.

    These are the markers in or right behind the sentence. A sentence without any has those of the next one with markers
    in its paragraph or item, else those of the one before. An item, row or definition without any has those of the item
    that it is nested in, of the lead-in, caption or term, of the next item, or of the paragraph above; a quotation, of
    the paragraph above. A line below that only names sources covers a block that cites none.

    Questions, headings, headers of tables, terms, and lines that introduce a list are no statements; code is none.
    What is more than `MOST_SENTENCES` or `MOST_CHARACTERS` is returned unread, in one piece.
    `chunk_ids` are those of the sources, in order.
    """
    read = answer[:MOST_CHARACTERS]
    markers = find_markers(read, chunk_ids)
    language = detect_language(read) or "en"
    claims: list[ClaimSpan] = []
    left, begin = MOST_SENTENCES, 0
    """The sentences that may still be read, and the first claim of the block above."""
    ending: tuple[int, ...] = ()
    """What the sentence right above cites, if it ends a paragraph that may introduce the block."""
    unread = len(answer)
    whole = [each.span() for each in _WHOLE.finditer(read)]
    reached = 0
    for block in read_blocks(read):
        if block.kind == "code":
            continue
        if block.kind == "heading":
            begin, ending = len(claims), ()
            continue
        first = bisect_right(whole, max(block.start, reached), key=itemgetter(1))
        within = whole[first : bisect_left(whole, (block.end,))]
        spans = [span for span in split_block(read, block, language) if span[0] >= reached]
        sentences = _read_sentences(read, block, _keep_whole(spans, within), markers, left, language)
        reached = sentences[-1].end if sentences else reached
        if len(sentences) == 1 and _names_sources(answer, sentences[0], markers):
            for position in range(begin, len(claims)):
                claim = claims[position]
                if not claim.markers and not claim.about_documents:
                    claims[position] = ClaimSpan(claim.start, claim.end, sentences[0].numbers)
        begin = len(claims)
        cited = _find_cited(block, sentences, ending)
        for sentence, numbers in zip(sentences, cited, strict=True):
            is_term = block.kind == "definition" and sentence.part < 0
            if sentence.text and not is_term and (sentence.numbers or sentence.states):
                about = sentence.about_documents
                claims.append(ClaimSpan(sentence.start, sentence.end, () if about else numbers, about))
        ending = sentences[-1].numbers if block.kind == "paragraph" and sentences else ()
        left -= len(sentences)
        if not left:
            unread = sentences[-1].end
            break
    else:
        if len(read) < len(answer):
            unread = claims.pop().start if claims else 0  # The last sentence may be cut.
    if rest := answer[unread:].strip():
        claims.append(ClaimSpan(start := answer.index(rest, unread), start + len(rest), (), unread=True))
    return claims


def _read_sentences(
    answer: str, block: Block, spans: Iterable[Span], markers: Sequence[MarkerSpan], most: int, language: Language
) -> list[_Sentence]:
    """Return at `most` so many sentences of a block, without the header of a table and without code."""
    sentences: list[_Sentence] = []
    part = line = 0
    counted = block.start
    for start, end in spans:
        if len(sentences) == most:
            break
        while part < len(block.parts) and block.parts[part][1] <= start:
            part += 1
        inside = part < len(block.parts) and block.parts[part][0] <= start
        is_header = block.kind == "table" and not inside and is_row(answer[start:end])
        if is_header or find_fence(answer[start:end].split("\n", 1)[0]):
            continue
        line += answer.count("\n", counted, start)
        counted = start
        numbers = tuple(dict.fromkeys(n for span in _list_within(markers, start, end) for n in span.numbers))
        text = strip_markers(answer[start:end]).strip()
        about = not numbers and read_documents(language).match(text) is not None
        sentences.append(_Sentence(start, end, text, numbers, part if inside else -1, line, is_statement(text), about))
    return sentences


def _keep_whole(spans: Sequence[Span], whole: Sequence[Span]) -> list[Span]:
    """Return the spans of a block, joined where they would cut what is whole, each with all of what it is part of."""
    joined: list[tuple[int, int, bool]] = []
    for start, end, is_read in sorted([*((*each, False) for each in whole), *((*each, True) for each in spans)]):
        if joined and start < joined[-1][1]:
            first, last, was_read = joined.pop()
            start, end, is_read = first, max(end, last), is_read or was_read
        joined.append((start, end, is_read))
    return [(start, end) for start, end, is_read in joined if is_read]


def _find_cited(block: Block, sentences: Sequence[_Sentence], ending: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return what each sentence of a block cites. `ending` are the markers right above the block."""
    lead = tuple(dict.fromkeys(n for sentence in sentences if sentence.part < 0 for n in sentence.numbers))
    following = _take_next(sentences)
    cited: list[tuple[int, ...]] = []
    for part, group in groupby(sentences, key=lambda sentence: sentence.part):
        together = list(group)
        outside = ending if block.kind == "quote" else ()
        if part >= 0:
            outside = lead or following[len(cited) + len(together) - 1] or ending
        # On other lines of an item: first the item that a nested one belongs to.
        first = next((sentence.numbers for sentence in together if sentence.numbers), outside)
        for _, flow in groupby(together, key=lambda sentence: sentence.line if part >= 0 else 0):
            cited += [numbers or first for numbers in accumulate(_take_next(list(flow)), _keep_last)]
    return cited


def _take_next(sentences: Sequence[_Sentence]) -> list[tuple[int, ...]]:
    """Return the numbers of each sentence, or of the next one that has some."""
    return [*accumulate((sentence.numbers for sentence in reversed(sentences)), _keep_last)][::-1]


def _keep_last(last: tuple[int, ...], own: tuple[int, ...]) -> tuple[int, ...]:
    return own or last


def _list_within(markers: Sequence[MarkerSpan], start: int, end: int) -> Sequence[MarkerSpan]:
    first, last = (bisect_left(markers, place, key=lambda span: span.start) for place in (start, end))
    return markers[first:last]


def _names_sources(answer: str, sentence: _Sentence, markers: Sequence[MarkerSpan]) -> bool:
    """Return True where the sentence ends in markers, with little in front of them."""
    own = _list_within(markers, sentence.start, sentence.end)
    return (
        bool(own)
        and not any(map(str.isalnum, answer[own[-1].end : sentence.end]))
        and _NAMES_SOURCES.fullmatch(answer[sentence.start : own[0].start]) is not None
    )


def is_statement(sentence: str) -> bool:
    """Return True where the sentence states something, rather than asks, announces or heads it."""
    return (
        bool(analyse(sentence))
        and not sentence.rstrip("*_ ").endswith(("?", ":"))
        and not sentence.startswith("#")
        and not BOLD_LINE.fullmatch(sentence)
    )
