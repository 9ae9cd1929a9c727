"""Tells whether a passage can answer a question at all: it has to have the names that the question gives,
and something of the kind that it asks for."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal

from domain.documents import name_place
from domain.ports.embedding import Vector
from domain.text.blocks import find_item
from domain.text.days import spell_days
from domain.text.languages import Language, detect_language
from domain.text.question import split_carried
from domain.text.tables import is_row, split_cells
from domain.text.terms import STOP_WORDS, drop_version_sign, find_terms, has_address
from domain.text.words import read_keys
from nodes.reading.phrases import read_phrases
from nodes.reading.units import Unit

Fit = Literal["none", "another", "unsure", "open", "figure"]
"""Whether a quote can answer: not; it is of another subject; it may, and is not seen to; perhaps; it has the figure
that is asked for."""

_WORD = re.compile(r"(?<![\w-])--?[^\W\d_][\w-]*|\w+(?:(?:::|[-.+/:])\w+)*")
_NAME = re.compile(
    r"--|\w+_\w|.*::|.*[a-z]{2}[A-Z][a-z]{2}"  # an option, a setting, a camelCase name
    r"|v?\d+(?:\.\d+)+$|(?:1[5-9]|20)\d\d$"  # a version, a year
    r"|(?=.*\d)(?!\d+[^\W\d_]{1,3}$).*[^\W\d]"  # a code, but no amount with its unit, such as 10m
)
_DATE = re.compile(r"\d{4}-\d\d(?:-\d\d)?$")
_YEAR = re.compile(r"\b(?:1\d|20)\d\d\b|\b\d\d?\.\d\d?\.")
_NAME_AND_VALUE = 2
_BESIDE = re.compile(r"(?=\b([^\W\d_]+)\.? ([^\W\d_]+))")
"""Two words with a space between them; matches overlap."""
_NUMBERED = re.compile(r"(?<![\w.,-])([^\W\d_]{2,})[ -](\d+)(?![\w%]|[.,:/]\d)")
"""A word with a number behind it, such as "fastify 3" or "Windows 11"."""
_FIGURE = re.compile(r"(?<![\w.-])v?\d[\d.,]*|(?<=\d-)\d+")


@lru_cache(maxsize=256)
def _list_names(question: str) -> tuple[re.Pattern[str], ...]:
    """Return a pattern for each identifier, version and year of the question. A date may be written otherwise, so it
    counts as its year."""
    words = (word[:4] if _DATE.match(word) else word for word in _WORD.findall(question))
    names = dict.fromkeys(word.casefold() for word in words if _NAME.match(word))
    return tuple(
        re.compile(rf"(?<!\w)(?<!\d\.)v?{re.escape(drop_version_sign(name))}(?!\w|\.\d{'|-' * (name[0] == '-')})")
        for name in names
    )


def share_names(question: str, text: str) -> float:
    """Return the share of the identifiers, versions and years of the question that the text has; 1 without any."""
    if not (names := _list_names(question)):
        return 1.0
    folded = "\n".join((text, *spell_days(text))).casefold()
    return sum(name.search(folded) is not None for name in names) / len(names)


def has_names(question: str) -> bool:
    """Return True for a question that names something."""
    return bool(_list_names(question))


def read_whole(unit: Unit) -> str:
    """Return what a unit says, with the names of its place."""
    source = unit.source
    path = name_place(source["title"], source["heading_path"])
    return "\n".join((unit.whole, *unit.context, path, unit.section, source.get("source", "")))


@lru_cache(maxsize=256)
def _list_figures(question: str) -> frozenset[str]:
    """Return the figures of the question. Cached, because each unit is compared with them."""
    return frozenset(figure.strip("v.,") for figure in _FIGURE.findall(" ".join((question, *spell_days(question)))))


def has_figure(question: str, text: str) -> bool:
    """Return True where the text has a figure that the question has not."""
    own = _list_figures(question)
    return any(figure.strip("v.,") not in own for figure in _FIGURE.findall(text, find_item(text)))


def judge_fit(question: str, quoted: Sequence[Unit], shares: Vector, units: Sequence[Unit] = ()) -> Fit:
    """Return "none" where the best of the units lacks a name of the question, or they say no more than that, or they
    have no figure but those of a question that asks for a number or a time, or a row has none where that is asked for;
    "figure" where they have one; "another" for a quote of another subject; "unsure" where they are not seen to have
    what is asked for. `units` are all that they were chosen from."""
    asked, _ = split_carried(question)
    best = quoted[int(shares.argmax())]
    language = detect_language(asked) or "en"
    is_named = share_names(question, read_whole(best)) == 1
    # The heading says what is asked for, and the document of what: perhaps the section is of that, too.
    if not is_named and not (
        share_names(question, best.source["text"]) == 1 and is_under(find_terms(asked, language), best, language)
    ):
        return "none"
    phrases = read_phrases(language, "questions")
    said = " ".join(unit.text for unit in quoted if unit.kind != "code")
    # A lead-in is quoted with its item, and code with its text: they say a figure less surely.
    told = " ".join(unit.text if unit.kind == "code" else unit.introduction for unit in quoted)
    fit: Fit = "figure" if phrases["mail"].search(asked) and has_address(said) else "open"
    wanted = find_terms(asked, language)
    # Words that are no sentence and stand in the question, or as the document's title, say no more than that.
    bare = [unit for unit in quoted if unit.kind != "code" and unit.text[-1] not in ".!?"]
    is_bare = len(bare) == len(quoted) and all(
        unit.text == unit.source["title"] or find_terms(unit.whole, language) <= wanted for unit in bare
    )
    if is_bare or (best.kind == "table" and _is_empty(wanted, best, language)):
        return "none"
    if phrases["number"].search(asked) or phrases["past"].search(asked):
        if best.kind == "table":
            said, told = _read_columns(wanted, best, language), ""
        if not _has_amount(asked, f"{said} {told}", phrases):
            return "none"
        # Several rows say no one figure, and that they are so many only if they are all.
        has_rows = best.kind == "table" and sum(unit.kind == "table" for unit in quoted) > 1
        fit = "figure" if _has_amount(asked, said, phrases) and not has_rows else "unsure"
    is_doubtful = (
        # A quote says neither yes nor no, nor that it is all.
        any(phrases[name].search(asked) for name in ("yes_no", "all"))
        or lacks_name(asked, (unit.text for unit in quoted if unit.kind != "code"))
        or lacks_counted(asked, quoted, language)
        or lacks_number(phrases["step"].sub("", asked), quoted)
        or (phrases["past"].search(asked) and not _YEAR.search(said + told))
        or (phrases["span"].search(asked) and not has_span(said + told, phrases))
        or (best.kind != "table" and phrases["price"].search(asked) and not phrases["money"].search(said + told))
        # What is asked of the speakers is said of nobody in particular.
        or (phrases["ours"].search(asked) and not phrases["ours"].search(best.source["text"]))
    )
    if not is_named or find_left_out(asked, quoted, units, language):
        return "another"
    return "unsure" if is_doubtful else fit


def _has_amount(asked: str, said: str, phrases: Mapping[str, re.Pattern[str]]) -> bool:
    # "Daily" says how often, and not how many.
    told = ("numeral", "time", "rate") if phrases["span"].search(asked) else ("numeral", "time")
    return has_figure(asked, said) or any(phrases[name].search(said) for name in told)


def lacks_counted(asked: str, quoted: Sequence[Unit], language: Language) -> bool:
    """Return True for a question how many there are of what the quote and the names of its place do not mention: so are
    two in five that a text does not answer, and one in eleven that it does. A time may be given in another unit."""
    phrases, told = read_phrases(language, "questions"), "\n".join(map(read_whole, quoted))
    counted = phrases["counted"].search(asked)
    if counted is None or (phrases["time"].search(f"1 {counted[1]}") and phrases["time"].search(told)):
        return False
    terms = find_terms(counted[1], language)
    return bool(terms) and terms.isdisjoint(find_terms(told, language))


def has_span(text: str, phrases: Mapping[str, re.Pattern[str]]) -> bool:
    """Return True where the text says how long something takes, or how often it happens."""
    return any(phrases[name].search(text) for name in ("time", "rate"))


def lacks_number(asked: str, quoted: Sequence[Unit]) -> bool:
    """Return True where a number that stands right behind a word of the question, and so may be a part of its name, is
    neither in the quote nor in the names of its place."""
    numbers = {number for word, number in _NUMBERED.findall(asked) if not STOP_WORDS.issuperset(read_keys(word))}
    told = "\n".join(text[find_item(text) :] for unit in quoted for text in read_whole(unit).split("\n"))
    return any(not re.search(rf"(?<![\w.,])v?{number}(?!\w|,\d)", told) for number in numbers)


def lacks_name(asked: str, texts: Iterable[str]) -> bool:
    """Return True for a question that asks who, where no text has two words that are written like a name and that the
    question does not have. One word alone may be anything, and in German each noun is written so."""
    language = detect_language(asked) or "en"
    if not read_phrases(language, "questions")["who"].search(asked):
        return False
    told = STOP_WORDS.union(read_keys(asked))

    def is_name(word: str) -> bool:
        return word[0].isupper() and told.isdisjoint(read_keys(word))

    pairs = (pair for text in texts for pair in _BESIDE.findall(text))
    return language == "de" or not any(is_name(first) and is_name(second) for first, second in pairs)


def _list_columns(wanted: frozenset[str], row: Unit, language: Language) -> list[str]:
    """Return the cells of a row in the columns that the question names."""
    header = next(filter(is_row, row.introduction.split("\n")), "")
    columns = zip(split_cells(header), split_cells(row.text), strict=False)
    return [cell for name, cell in columns if find_terms(name, language) & wanted]


def _read_columns(wanted: frozenset[str], row: Unit, language: Language) -> str:
    """Return what the row has in the columns that the question names; all of it where it has but a name and a value."""
    named = _list_columns(wanted, row, language)
    return row.text if not named and len(split_cells(row.text)) <= _NAME_AND_VALUE else " ".join(named)


def _is_empty(wanted: frozenset[str], row: Unit, language: Language) -> bool:
    """Return True for a row that has nothing in the columns that the question names but what it names itself."""
    named = _list_columns(wanted, row, language)
    told = [cell for cell in named if not (terms := find_terms(cell, language)) or not terms <= wanted]
    return bool(told) and not any(any(map(str.isalnum, cell)) for cell in told)


def find_left_out(asked: str, quoted: Sequence[Unit], units: Sequence[Unit], language: Language) -> frozenset[str]:
    """Return the terms of the question that stand neither in the quote nor in headings over it, but in the title of
    the document and in the heading of another section: that is what it is about."""
    unit, title = quoted[0], quoted[0].source["title"]
    above = (unit.source["text"][slice(*span)] for span in unit.above)
    headings = (each for each in above if each.lstrip("# ") != title)
    told = find_terms("\n".join((*(each.whole for each in quoted), *headings, unit.section)), language)
    sections = {each.section for each in units if each.source["document_id"] == unit.source["document_id"]}
    heads = find_terms("\n".join(sorted(sections)), language) - told
    return find_terms(asked, language) & find_terms(title, language) & heads


def is_under(terms: frozenset[str], unit: Unit, language: Language) -> bool:
    """Return True for a unit with one of these terms, below a heading at least half of which they are."""
    heading = find_terms(unit.section, language)
    return 2 * len(terms & heading) >= max(len(heading), 1) and bool(terms & heading & find_terms(unit.text, language))
