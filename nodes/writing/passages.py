"""Shows where the answer may stand, when none is sure enough to be quoted as one: what a good search engine does."""

import re
from collections.abc import Sequence

from domain.documents import Source, name_place
from domain.library.citations import cite
from domain.outcome import Framing, Reason
from domain.ports.judgement import Quote
from domain.profile import CitationStyle
from domain.text.hyperlinks import strip_images
from domain.text.languages import Language, detect_language
from domain.text.markers import render_marker, strip_markers
from domain.text.snippets import find_snippet, show_snippet
from domain.text.tables import is_row, is_rule, join_cells, split_cells, write_rule
from domain.text.terms import find_terms
from nodes.wording.notices import Wording
from nodes.writing.stream import AnswerWriter

MOST = 3
"""Passages that are shown."""

_LEAST, _ROWS = 2, 3
"""Rows that make a table, with its header, and rows that are shown below that."""

_LENGTH = 180
"""Characters of a passage: about two lines."""

_WORD = re.compile(r"`[^`\n]+`|(?<![@\w])\w++(?:[-'’.]\w++)*+(?!@)")
"""Code, or a word, but not of a mail address, which a mark would break."""
_MARKS = re.compile(r"^[-=| :]{3,}$|^[ \t]*(?:`{3,}|~{3,}).*$|^[ \t]*[-+•>#:]+[ \t]+", re.MULTILINE)
"""Signs of Markdown at the beginning of a line, but numbers of steps, which are asked for."""
_EMPHASIS = re.compile(r"(`[^`\n]+`)|(\*{1,3})(?=\S)([^*\n]+)(?<=\S)\2")
_TARGET = re.compile(r"!?\[([^\[\]\n]*)\](?:\[\]|\([^()\n]{0,500}\))")
"""A link: two lines have no room for where it leads."""
_ACTIVE = re.compile(r"(`[^`\n]+`)|([`*]|\](?=\()|<(?=[\w/!?]))")
"""Code, or what Markdown would read as a sign."""


def show_passages(
    writer: AnswerWriter,
    question: str,
    quotes: Sequence[Quote],
    sources: Sequence[Source],
    reasons: Sequence[Reason],
    wording: Wording,
    style: CitationStyle,
) -> Framing:
    """Write the passages as a list, each with its place and two lines in which the words of the question are marked."""
    by_number = {source["number"]: source for source in sources}
    writer.write(wording.passages.opening)
    opening = len(writer.text)
    language = detect_language(question) or "en"
    asked = find_terms(question, language)
    for place, quote in enumerate(quotes, 1):
        source = by_number[quote.number]
        citation = cite(source, [(quote.start, quote.end)])
        name = _flatten(name_place(citation["title"], citation["heading_path"][-1:]))
        marker = render_marker(quote.number, source["chunk_id"], style)
        shown = _tabulate(quote, question, asked, language) or [
            _mark_words(_cut(_join(quote), question), asked, language)
        ]
        writer.write(f"\n\n{place}. {name} {marker}\n" + "".join(f"\n   {line}" for line in shown))
        writer.cite(citation)
    closing = wording.close(reasons)
    writer.write(closing)
    return Framing(opening=opening, closing=len(closing))


def _join(quote: Quote) -> str:
    text = _flatten(quote.text)
    return f"{_flatten(quote.lead).rstrip(':')}: {text}" if quote.lead else text


def _tabulate(quote: Quote, question: str, asked: frozenset[str], language: Language) -> list[str]:
    """Return the lines of a table: the header, and the first rows of the passage; none where it has no row."""
    lead, rows = (
        [split_cells(line) for line in text.split("\n") if is_row(line) and not is_rule(line)]
        for text in (quote.lead, quote.text)
    )
    # A line alone may be code with a pipe.
    if not rows or len([*lead, *rows]) < _LEAST:
        return []
    # Without a header the first row stands for one, as in an answer.
    header, *rows = [*lead[-1:], *rows][: _ROWS + 1]
    width = max(map(len, (header, *rows)))
    plain, *said = ([_flatten(cell) for cell in [*row, *[""] * (width - len(row))]] for row in (header, *rows))
    marked = ([_mark_words(_cut(cell, question), asked, language) for cell in row] for row in said)
    above = _flatten("\n".join(line for line in quote.lead.split("\n") if not is_row(line)))
    return [*([above, ""] if above else []), join_cells(plain), write_rule(width), *map(join_cells, marked)]


def _cut(text: str, question: str) -> str:
    return show_snippet(text, find_snippet(text, [question], _LENGTH))


def _flatten(text: str) -> str:
    """Return the text in one line of Markdown, its code as it is."""
    text = _TARGET.sub(r"\1", strip_markers(strip_images(text)))
    text = _MARKS.sub(" ", text)
    text = _EMPHASIS.sub(lambda found: found[1] or found[3], text)
    return " ".join(_ACTIVE.sub(lambda found: found[1] or f"\\{found[2]}", text).split())


def _mark_words(text: str, asked: frozenset[str], language: Language) -> str:
    def mark(word: re.Match[str]) -> str:
        is_asked = word[0][0] != "`" and find_terms(word[0], language) & asked
        return f"**{word[0]}**" if is_asked else word[0]

    return _WORD.sub(mark, text)
