"""Shows where the answer may stand, when none is sure enough to be quoted as one: what a good search engine does."""

import re
from collections.abc import Sequence

from domain.documents import Source, name_place
from domain.library.citations import cite
from domain.outcome import Framing, Reason
from domain.ports.judgement import Quote
from domain.profile import CitationStyle
from domain.text.hyperlinks import strip_links
from domain.text.languages import Language, detect_language
from domain.text.markers import render_marker, strip_markers
from domain.text.snippets import find_snippet, show_snippet
from domain.text.terms import find_terms
from nodes.wording.notices import Wording
from nodes.writing.stream import AnswerWriter

MOST = 3
"""Passages that are shown."""

_LENGTH = 180
"""Characters of a passage: about two lines."""

_WORD = re.compile(r"(?<![@\w])[^\W_]++(?:[-'’.][^\W_]++)*+(?!@)")
"""A word, but not of a mail address, which a mark would break."""
_MARKS = re.compile(r"^[-=| :]{3,}$|^[ \t]*(?:[-+•>#:]+|\d{1,3}[.)])[ \t]+|[*`~|\\<>\[\]]+", re.MULTILINE)
"""Signs of Markdown that would be read as such outside of their block."""
_TARGET = re.compile(r"\]\([^()\n]{0,500}\)")
"""Where a link leads: two lines have no room for it."""


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
        said = quote.text if not quote.lead else f"{_flatten(quote.lead).rstrip(':')}: {quote.text}"
        marker = render_marker(quote.number, source["chunk_id"], style)
        writer.write(f"\n\n{place}. {name} {marker}\n\n   {_mark_words(_cut(said, question), asked, language)}")
        writer.cite(citation)
    closing = wording.close(reasons)
    writer.write(closing)
    return Framing(opening=opening, closing=len(closing))


def _cut(text: str, question: str) -> str:
    flat = _flatten(text)
    return show_snippet(flat, find_snippet(flat, [question], _LENGTH))


def _flatten(text: str) -> str:
    text = _TARGET.sub("]", strip_markers(text))
    return " ".join(_MARKS.sub(" ", strip_links(text, [text])).split())


def _mark_words(text: str, asked: frozenset[str], language: Language) -> str:
    return _WORD.sub(lambda word: f"**{word[0]}**" if find_terms(word[0], language) & asked else word[0], text)
