"""Summarises a document or a section by quotes: what each of its sections says first, and what its items hold."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from domain.documents import Passage
from domain.text.blocks import Block, read_blocks
from domain.text.languages import Language, detect_language
from domain.text.sentences import split_block
from domain.text.terms import analyse

WORDS = 175
"""Words of a summary, with headings, markers and the signs that open items. Chosen: with what opens the answer
fewer than 200, the most that the practical set calls a summary (`app/evaluation/practical.py`)."""

MOST, SECTIONS = 6, 3
"""Quotes of one section, where there are more than this many sections. Chosen: to leave room for the others."""

LONGEST = 45
"""Words of a quote; a longer sentence is passed over where there is another. Chosen: a quarter of the summary."""

OPENING, AMOUNT, FIGURE, NAMED, NESTED, ANY = 1.0, 1.6, 0.4, 0.6, 0.15, 0.2
"""Weights of a sentence: OPENING if it is the first of its section, AMOUNT for money or a percentage, FIGURE for
another number, NAMED for each word of the subject in it that is not in the title. NESTED is subtracted for each heading
level above it, ANY is added to each. Chosen: people ask for a summary to learn what it costs and what it is."""

TOO_LONG = 0.3
"""Factor for what is longer. Chosen: taken only where a section has nothing else."""

HANDICAP = 12
"""Words that each quote counts more than it has. Chosen: otherwise the shortest have the most worth a word."""

AGAIN = 0.5
"""Factor by which a further sentence of a section is worth less than the one before it. Chosen: sections take turns."""

_CHARACTERS = 3
"""Characters that a token has at least, in most languages."""
_TAG = 150
"""Characters that name a source."""
_LEAST = 300
"""Characters of a section that a model needs to say what it is about. Chosen."""
_OUTLINED = 150
"""Headings of an outline. Chosen: two pages of them."""

_AMOUNT = re.compile(r"[$€£]\s?\d|\d\s?(?:[€£%]|(?:euro|dollar|percent|prozent)s?\b)", re.IGNORECASE)
_FIGURE = re.compile(r"\d")
_ITEM = re.compile(r"^\s*(?:[-*+•>:]|\(?\d{1,3}[.)])\s+")
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Section:
    """The text under one heading. `text` stands at `start` of the document."""

    passage: Passage
    """The first chunk of it."""
    heading_path: tuple[str, ...]
    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Extract:
    """The quotes of a section, in order, as offsets in the section's text."""

    section: Section
    spans: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Unit:
    section: int
    start: int
    end: int
    worth: float
    words: int


def join_sections(passages: Sequence[Passage]) -> list[Section]:
    """Join neighbouring chunks under the same heading to sections."""
    sections: list[Section] = []
    for passage in passages:
        last = sections[-1] if sections else None
        if last is None or last.heading_path != passage.heading_path:
            sections.append(Section(passage, passage.heading_path, passage.text, passage.start))
            continue
        gap = passage.start - last.start - len(last.text)
        # Chunks of another application's table may overlap, or have no places.
        added = passage.text[-gap:] if gap < 0 else "\n" * min(gap, 2) + passage.text
        sections[-1] = Section(last.passage, last.heading_path, last.text + added, last.start)
    return sections


def name_section(section: Section, title: str) -> str:
    """Return the innermost heading of a section that is not the document's title; empty where there is none."""
    heading = next((each for each in reversed(section.heading_path) if each != title), "")
    return " ".join(heading.split()).rstrip(":")


def summarise(sections: Sequence[Section], subject: str) -> list[Extract]:
    """Choose the sentences, items and rows with the most worth per word, at most `WORDS` words in all."""
    named = {term for section in sections[:1] for term in analyse(section.passage.title)}
    asked = set(analyse(subject)) - named
    headings = [len(name_section(section, section.passage.title).split()) + 2 for section in sections]
    least = min((len(section.heading_path) for section in sections), default=0)
    units = [
        unit
        for number, section in enumerate(sections)
        for unit in _weigh(number, section, asked, NESTED * (len(section.heading_path) - least))
    ]
    chosen: list[_Unit] = []
    taken = [0] * len(sections)
    left = WORDS
    while units:
        best = max(units, key=lambda unit: unit.worth * AGAIN ** taken[unit.section] / (unit.words + HANDICAP))
        units.remove(best)
        words = best.words + (0 if taken[best.section] else headings[best.section])
        if words <= left and best.worth > 0 and (taken[best.section] < MOST or len(sections) <= SECTIONS):
            chosen.append(best)
            taken[best.section] += 1
            left -= words
    chosen.sort(key=lambda unit: (unit.section, unit.start))
    return [
        Extract(section, [(unit.start, unit.end) for unit in chosen if unit.section == number])
        for number, section in enumerate(sections)
        if taken[number]
    ]


def choose_passages(sections: Sequence[Section], subject: str, tokens: int) -> list[Section]:
    """Return each section cut to its share of so many tokens, so that all fit: the blocks from the beginning on, or
    from its best sentence on where the beginning does not reach it. Where there are too many sections, those of the
    deepest levels are left out."""
    room = tokens * _CHARACTERS
    while len(sections) * (_LEAST + _TAG) > room and len(levels := {len(each.heading_path) for each in sections}) > 1:
        sections = [each for each in sections if len(each.heading_path) < max(levels)]
    left, passages = room - len(sections) * _TAG, dict[int, Section]()
    # What short sections leave goes to the longer ones.
    for count, place in enumerate(sorted(range(len(sections)), key=lambda place: len(sections[place].text))):
        section = _cut(sections[place], subject, left // (len(sections) - count))
        passages[place] = section
        left -= len(section.text)
    return [passages[place] for place in sorted(passages)]


def outline(sections: Sequence[Section], title: str) -> list[str]:
    """Return the headings of the sections, indented by their level."""
    lines = dict.fromkeys(
        "  " * level + heading
        for section in sections
        for level, heading in enumerate(each for each in section.heading_path if each != title)
    )
    return [*list(lines)[:_OUTLINED], *([f"… and {len(lines) - _OUTLINED} more"] if len(lines) > _OUTLINED else [])]


def _cut(section: Section, subject: str, most: int) -> Section:
    if len(section.text) <= most:
        return section
    blocks = list(read_blocks(section.text))
    best = max(_weigh(0, section, set(analyse(subject)), 0.0), key=lambda unit: unit.worth, default=None)
    first = 0
    if best is not None and best.end > most:
        first = max((block.start for block in blocks if block.start <= best.start), default=0)
    ends = [block.end for block in blocks if block.start >= first and block.end - first <= most]
    last = max(ends, default=first + most)
    return Section(section.passage, section.heading_path, section.text[first:last], section.start + first)


def clean_item(text: str) -> str:
    """Return a quoted item, row or sentence on one line, without the mark that opens an item."""
    return " ".join(_ITEM.sub("", text).split())


def _weigh(number: int, section: Section, asked: set[str], nested: float) -> Iterator[_Unit]:
    opens = True
    language = detect_language(section.text[:1000]) or "en"
    for block in read_blocks(section.text):
        # A document's data, such as its date, stand in definitions.
        if block.kind in ("heading", "code", "definition"):
            continue
        for start, end in _read_units(section.text, block, language):
            text = section.text[start:end]
            words = len(text.split()) + 1
            told = len(_WORD.findall(text))
            # A row of figures says nothing without its table.
            if told < 3 or told < words / 2 or text.rstrip().endswith(("?", ":")):
                continue
            worth = (
                OPENING * opens
                + (AMOUNT if _AMOUNT.search(text) else FIGURE * bool(_FIGURE.search(_ITEM.sub("", text))))
                + NAMED * len(asked & set(analyse(text)))
                + ANY
                - nested
            )
            yield _Unit(number, start, end, worth * (TOO_LONG if words > LONGEST else 1), words)
            opens = False


def _read_units(text: str, block: Block, language: Language) -> Iterator[tuple[int, int]]:
    """Yield the items of a list, the rows of a table and the sentences of anything else."""
    if block.kind in ("list", "steps", "table") and block.parts:
        for start, end in block.parts:
            # What is nested in an item is left out of a summary.
            first = text.find("\n", start, end)
            yield start, first if first > 0 else end
        return
    yield from split_block(text, block, language)
