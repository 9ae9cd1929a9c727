"""Splits documents and answers into sentences.

`sentencex` (MIT, in Rust, some 300 language) finds the ends of sentences within a paragraph. Headings, items, rows and
code are units of their own, as `domain/text/blocks.py` reads them.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise

from sentencex import get_sentence_boundaries

from domain.text.blocks import Block, Span, closes_fence, find_fence, find_item, is_wrapped, read_blocks
from domain.text.languages import Language, detect_language, fold, read_words
from domain.text.tables import is_row

_RECALLED = 2000
"""Limit, in characters, of a paragraph whose sentences are kept."""

_WINDOW = 4000
"""Characters in which the library, whose time grows with their square, looks for the ends of sentences at once."""

_KEPT = re.compile(
    r"`[^`\n]+`"
    r"|\[\^?\s*(?:(?:sources?|citations?|cite)[\s:]*)?[\w\s,;:#&.–-]{0,200}\d[^\[\]\n]{0,200}\]"
    r"|\.(?=\s)(?:(?<=\bMs\.)|(?<=\bapprox\.)|(?<=\bEq\.)|(?<=\bEqs\.))",
    re.IGNORECASE,
)
"""Inline code, in which no sentence ends, citation markers, which belong to the sentence before them, and full stops of
English abbreviations that the library takes for the end of a sentence. `re` finds the mark that begins each fast."""
_MARKED_END = re.compile(r"\.(?<=1\]\.)\s+(?=\d)")
"""The end of a sentence behind a marker, as `_cover` leaves it, where a figure begins the next."""
_GOES_ON: Mapping[Language, re.Pattern[str]] = {
    "de": re.compile(r"(?<![\w.,:])\d{1,3}\.\s*$"),
    "en": re.compile(r"\d ?[ap]\. ?m\.\s*$", re.IGNORECASE),
}
"""What ends no sentence before a noun or name: German ordinals, as in "das 24. Lebensjahr", and English times, as in
"5 p.m. Monday". The library knows the ordinals of dates. In UD German GSD (dev and test), nine sentences fewer are cut
in two, and no two more run together."""
_MARKED = re.compile(r"(?:~~|[*_]{1,3})(?=\s|$)")
"""What closes words that are struck, in bold or in italics: it belongs to the sentence before it."""
_NUMBER = re.compile(r"(?:\*\*)?(?:§{1,2} ?)?(?:[A-Z]\.)?\d{1,3}(?:\.\d{1,3}){0,8}(?:\.(?:\*\*)?|\*\*\.)\s+(?=\S)")
"""What a paragraph begins with that is numbered, such as "2.1.": no sentence of its own."""
_NEXT_WORD = re.compile(r"\s*([^\W\d_]+)")
_LINE = re.compile(r"[^\n]+")


def split_sentences(text: str) -> list[Span]:
    """Return the sentences of `text` as (start, end), in order, without overlap and without surrounding white space.

    A heading, a table row and a block of code count as one sentence each. An item begins one, marker included. Only
    white space lies outside the spans.
    """
    language = detect_language(text) or "en"
    return [span for block in read_blocks(text) for span in split_block(text, block, language)]


def split_block(text: str, block: Block, language: Language = "en") -> Iterator[Span]:
    """Yield the sentences of one block of `text`, as `split_sentences` does. `language` is that of the text."""
    if block.kind in ("heading", "code"):
        yield block.start, block.end
        return
    for start, end in _split_runs(text, block):
        line = text[start:end]
        if (block.kind == "table" and is_row(line)) or find_fence(line.split("\n", 1)[0]):
            yield start, end
        else:
            yield from split_paragraph(text, start, end, language)


def split_paragraph(text: str, start: int, end: int, language: Language = "en") -> Iterator[Span]:
    """Yield the sentences of the paragraph or item at `text[start:end]`."""
    # The offsets stay, so what must not be cut is replaced by as many characters that no rule cuts at.
    words = _KEPT.sub(_cover, text[start:end])
    opening = max(find_item(words), len(words) - len(words.lstrip(" \t>:")))
    if number := _NUMBER.match(words, opening):
        opening = number.end()
    if opening == len(words):
        yield start, end
    position = opening
    for cut in [*_find_ends(words[opening:], language), len(words) - opening]:
        if mark := _MARKED.match(words, opening + cut):
            cut += len(mark[0])
        piece = words[position : opening + cut]
        first = start if position == opening else start + position + len(piece) - len(piece.lstrip())
        if piece.strip():
            yield first, start + position + len(piece.rstrip())
        position = opening + cut


def _cover(kept: re.Match[str]) -> str:
    return f"[{'1' * (len(kept[0]) - 2)}]" if kept[0][0] == "[" else "x" * len(kept[0])


def _find_ends(words: str, language: Language) -> tuple[int, ...]:
    """Return where sentences end within a paragraph."""
    return _recall_ends(words, language) if len(words) <= _RECALLED else _cut(words, language)


@lru_cache(maxsize=2048)
def _recall_ends(words: str, language: Language) -> tuple[int, ...]:
    """Return the ends in a short paragraph. Cached, because the steps of a turn read the same sources."""
    return _cut(words, language)


def _cut(words: str, language: Language) -> tuple[int, ...]:
    found, start = set[int](), 0
    while start < len(words):
        part = words[start : start + _WINDOW]
        ends = [each["end_index"] + start for each in get_sentence_boundaries(language, part)]
        if start + len(part) < len(words):
            ends.pop()  # The last sentence may go on behind the window.
        found.update(ends)
        start = ends[-1] if ends else start + len(part)
    if language in _GOES_ON:
        found = {end for end in found if not _goes_on(words, end, language)}
    # German has ordinals, so the library sees none in "37 Euro [1]. 22,80 Euro".
    found.update(full_stop.end() for full_stop in _MARKED_END.finditer(words))
    ends = [*sorted(end for end in found if end < len(words)), len(words)]
    # Marks alone are no sentence, such as the colon of "did not yet offer zstd.:": they belong to the one before them.
    return tuple(end for end, following in pairwise(ends) if any(map(str.isalnum, words[end:following])))


def _goes_on(words: str, end: int, language: Language) -> bool:
    """Return True for an end behind which no function word, which may open a sentence, but a noun or name follows."""
    following = _NEXT_WORD.match(words, end)
    if following is None or fold(following[1]) in read_words(language).stop_words:
        return False
    return _GOES_ON[language].search(words, max(0, end - 8), end) is not None


def _split_runs(text: str, block: Block) -> Iterator[Span]:
    """Yield the stretches of a block that no sentence crosses: paragraphs, items, rows, lines that end on purpose, and
    code within an item."""
    run: list[tuple[int, int, str]] = []
    fence = ""
    width = max((len(line) for line in text[block.start : block.end].split("\n")), default=0)

    def take() -> Iterator[Span]:
        if run:
            first, last = run[0], run[-1]
            yield first[0] + len(first[2]) - len(first[2].lstrip()), last[0] + len(last[2].rstrip())
            run.clear()

    for start, end in _find_lines(text, block):
        line = text[start:end]
        if fence:
            run.append((start, end, line))
            if closes_fence(line, fence):
                fence = ""
                yield from take()
            continue
        fence = find_fence(line)
        if fence or not run or _is_apart(text, run[-1], (start, end, line), width):
            yield from take()
        run.append((start, end, line))
    yield from take()


def _is_apart(text: str, before: tuple[int, int, str], line: tuple[int, int, str], width: int) -> bool:
    """Return True where a line of a block does not go on with the line above it."""
    words = line[2].strip(" \t>")
    return (
        not words
        or text.count("\n", before[1], line[0]) > 1
        or find_item(line[2]) > 0
        or words.startswith(": ")
        or is_row(line[2])
        or is_row(before[2])
        or not is_wrapped(before[2], words, width)
    )


def _find_lines(text: str, block: Block) -> Iterator[Span]:
    for line in _LINE.finditer(text, block.start, block.end):
        if not line[0].isspace():
            yield line.span()
