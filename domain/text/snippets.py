"""Makes short extracts of a source, for people who read an answer."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import chain

from domain.text.sentences import split_sentences
from domain.text.terms import analyse, find_terms

Span = tuple[int, int]

_MOST_STATEMENTS = 50
"""Statements that are looked for, each in every sentence: more than an extract has room for."""


def find_snippet(text: str, statements: Sequence[str] = (), limit: int = 200) -> list[Span]:
    """Return the spans of `text` that `statements` rest on, in order, at most `limit` characters: for each statement
    the sentence that shares most with it, then neighbouring sentences while there is room. Without shared words, the
    beginning.

    Statements have no markers. Whole sentences where they fit, else whole words.
    """
    blank = len(text) - len(text.lstrip())
    return [(start + blank, end + blank) for start, end in _find(text.strip(), statements, limit)]


def show_snippet(text: str, spans: Sequence[Span]) -> str:
    """Return the spans of `text`, in order, with an ellipsis for every gap."""
    return _show(text, spans).strip()


def _find(text: str, statements: Sequence[str], limit: int) -> list[Span]:
    if len(text) <= limit:
        return [(0, len(text))]
    sentences = split_sentences(text)
    terms = [find_terms(text[start:end]) for start, end in sentences]
    spread = Counter(chain.from_iterable(terms))
    wanted = [set(analyse(statement)) for statement in statements[:_MOST_STATEMENTS]]

    def weigh(place: int, words: Collection[str]) -> float:
        # A term of many sentences distinguishes none of them.
        return sum(1 / spread[term] for term in terms[place].intersection(words))

    def choose(places: set[int]) -> list[Span]:
        return [sentences[place] for place in sorted(places)]

    def show(places: set[int]) -> str:
        return _show(text, choose(places))

    everything = set[str]().union(*wanted)
    nearest = [max(range(len(sentences)), key=lambda place: weigh(place, words)) for words in wanted]
    nearest = [place for place in dict.fromkeys(nearest) if weigh(place, everything)] or [0]
    kept: set[int] = set()
    for place in nearest:
        if len(show(kept | {place})) <= limit:
            kept.add(place)
    if not kept:
        return [_cut_words(text, sentences[nearest[0]], everything, limit)]
    while beside := [
        place
        for place in sorted({k + step for k in kept for step in (1, -1)} - kept)
        if 0 <= place < len(sentences) and len(show(kept | {place})) <= limit
    ]:
        kept.add(max(beside, key=lambda place: (weigh(place, everything), -min(abs(place - near) for near in nearest))))
    return choose(kept)


def _show(text: str, spans: Sequence[Span]) -> str:
    shown, position = "", 0
    for start, end in spans:
        between = text[position:start]
        shown += (" … " if shown else "… ") if between.strip() else between
        shown += text[start:end]
        position = end
    return f"{shown} …" if text[position:].strip() else shown


def _cut_words(text: str, sentence: Span, wanted: set[str], limit: int) -> Span:
    """Return the span of a long sentence in which most wanted words stand together: whole words, with some on either
    side."""
    room = limit - len("…  …")
    words = list(re.compile(r"\S+").finditer(text, *sentence))
    found = [not wanted.isdisjoint(analyse(word.group())) for word in words]
    stretches: list[tuple[int, int, int]] = []
    last = 0
    for first, word in enumerate(words):
        while last < len(words) and words[last].end() - word.start() <= room:
            last += 1
        end = words[last - 1].end() if last > first else word.start() + room
        stretches.append((sum(found[first:last]), word.start(), end))
    most = max(held for held, _, _ in stretches)
    best = [stretch for stretch in stretches if stretch[0] == most]
    _, start, end = best[len(best) // 2 if most else 0]
    return start, end
