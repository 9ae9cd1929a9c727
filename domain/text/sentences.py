"""Splits documents and answers into sentences.

Written by hand because the installed libraries do not do it and the trained ones bring a model: this is fast, keeps
offsets, and knows headings, list items, table rows and wrapped lines.
"""

import re

_ABBREVIATIONS = frozenset(
    str.split(
        "adm al approx art assn ave bros cap capt cf ch chap co col comdr corp dept dr ed eds eg eq eqs esp est et etc "
        "ex ext fig figs fl ft gen gov hon ie inc incl jr lt ltd maj max min mr mrs ms mt nr op para pl pp pres prof "
        "prop pt ref refs rep resp rev sec sen sgt sr st tab tel univ viz vol vols vs "
        "jan feb mar apr jun jul aug sep sept oct nov dec"
    )
)
_BEFORE_DIGIT = frozenset(str.split("no nos p art ca c app item"))
"""Abbreviations only before a number ("No. 5", but "The answer is no. He left.")."""

_STARTERS = frozenset(
    str.split(
        "the this that these those it its he she they we i you in on at for from by with as if when while after before "
        "since although however but and there here his her their our what who why how where a an"
    )
)
"""Words that, capitalised after "U.S." or an initial, far more likely begin a sentence than a name."""

_MARKER = r"\[\^?\s*(?:(?:sources?|citations?|cite)[\s:]*)?[\w\s,;:#&.–-]*?\d[\w\s,;:#&.–-]*\]"
"""A citation after the full stop, which belongs to the sentence before it."""

_END = re.compile(
    rf"(?:[.!?…]+[\"'”’»)\]*_]*(?:\s?{_MARKER})*(?=\s|$|(?<=\])[A-Z])|[。！？]+[”’」』）]*)",
    re.IGNORECASE,
)
_ITEM = re.compile(r"[ \t]*(?:[-*+•▪◦‣●○–—]|\(?\d{1,3}[.)]|\(?[a-z][.)]|\([ivx]{1,4}\))[ \t]+(?=\S)")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]")
_ROW = re.compile(r"[ \t]*\||.*\S[ \t]*\t[ \t]*\S|.*\|.*\||.*\S \| \S")
_OPENERS = "\"'“‘«([*_"

JUDGED = 300
"""Limit, in characters, of a sentence that is embedded for comparison with a question. Anything longer is a list or
text without stops, and would take several times as long."""


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Return the sentences of `text` as (start, end), in order, without overlap and without surrounding white space.

    Headings, list items and table rows count as sentences; a row is one, whatever its cells hold. Only white space lies
    outside the spans.
    """
    caseless = text == text.lower()
    spans: list[tuple[int, int]] = []
    for block_start, block_end in _split_blocks(text):
        start = block_start
        if _ROW.match(text, block_start, block_end):
            spans.append((block_start, block_end))
            continue
        for match in _END.finditer(text, block_start, block_end):
            if match.end() < block_end and _ends_sentence(text, start, match, block_end, caseless):
                spans.append((start, match.end()))
                start = match.end()
        spans.append((start, block_end))
    return [trimmed for span in spans if (trimmed := _trim(text, span)) is not None]


def _trim(text: str, span: tuple[int, int]) -> tuple[int, int] | None:
    piece = text[span[0] : span[1]]
    start = span[0] + len(piece) - len(piece.lstrip())
    end = span[0] + len(piece.rstrip())
    return (start, end) if start < end else None


def _split_blocks(text: str) -> list[tuple[int, int]]:
    """Return runs of lines that belong together: a wrapped paragraph, one list item, one table row, one heading."""
    blocks: list[tuple[int, int]] = []
    start = position = 0
    previous = ""
    longest = 0
    for line in text.splitlines(keepends=True):
        bare = line.rstrip()
        if position > start and _begins_block(previous, bare, longest):
            blocks.append((start, position))
            start, longest = position, 0
        longest = max(longest, len(bare))
        previous = bare
        position += len(line)
    blocks.append((start, position))
    return blocks


def _begins_block(previous: str, line: str, longest: int) -> bool:
    """Return True where `line` begins a new block after `previous`; `longest` is the length of the longest line of the
    block so far."""
    if not line.strip() or not previous.strip():
        return True
    if _ITEM.match(line) or _HEADING.match(line) or _HEADING.match(previous):
        return True
    if _ROW.match(line) or _ROW.match(previous):
        return True
    first = line.lstrip()[0]
    if first.islower():
        return False
    # A line that stops well short of its neighbours was not broken by the margin: a heading, a cell, an address.
    return len(previous) < 60 or len(previous) < 0.6 * max(longest, len(line))


def _ends_sentence(text: str, start: int, match: re.Match[str], block_end: int, caseless: bool) -> bool:
    mark = match.group()
    if mark[0] in "。！？":
        return True
    rest = text[match.end() : block_end].lstrip()
    if not rest:
        return False
    following = rest.lstrip(_OPENERS)[:1]
    if following.islower() and not caseless:
        return False
    if mark[0] != "." or mark.startswith(".."):
        return True
    word_start = match.start()
    while word_start > start and not text[word_start - 1].isspace() and text[word_start - 1] not in _OPENERS:
        word_start -= 1
    word = text[word_start : match.start()]
    if not word:
        return True
    if word_start == start and _ITEM.match(text, start, block_end):
        return False
    plain = word.lower().replace(".", "")
    if plain in _ABBREVIATIONS:
        # "etc." and the like close a sentence as well as they open a clause.
        return plain in ("etc", "inc", "ltd", "co", "corp", "al") and _starts_like_sentence(rest)
    if plain in _BEFORE_DIGIT and following.isdigit():
        return False
    if (len(word) == 1 and word.isalpha() and word.isupper()) or ("." in word and len(plain) <= 4 and plain.isalpha()):
        return _starts_like_sentence(rest)
    return True


def _starts_like_sentence(rest: str) -> bool:
    first = re.match(r"\W*(\w+)", rest)
    return first is not None and first[1][0].isupper() and first[1].lower() in _STARTERS
