"""Tells which entry of a manual a question names: a term with its definition, a section or a document called so.

A name counts only as a whole: what "SQLITE_BUSY" is does not stand under "SQLITE_BUSY_RECOVERY", nor "VACUUM FULL"
under "VACUUM" alone.
"""

import re
from functools import lru_cache

from domain.text.blocks import find_item
from domain.text.languages import Language
from domain.text.terms import find_terms
from nodes.reading.units import Unit

_WORD = re.compile(r"(?<![\w-])--?[^\W\d_][\w-]*|\\\w+|\w+")
_ASIDE = re.compile(r"\([^()]*\)|\[.*|<.*|=.*|…")
"""What stands behind a name in a term or a heading: its type, its arguments, its place in a manual."""
_NUMBER = re.compile(r"#*\s*(?:(?:\d+\.)*\d+\.?\s+|\(\d+\)\s+)?")
_NAME_LINE = re.compile(r"([\w.+-]+(?:, [\w.+-]+)*) [-–—]+ \S")
"""The line in which a manual page says what it is about: "pg_dump — extract a database"."""
_LONGEST = 6
"""Words of a name; a longer heading is a sentence."""


@lru_cache(maxsize=20_000)
def _read_words(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case. Options keep their dashes, those of a letter also their case."""
    words = _WORD.findall(text.replace("`", "").replace("*", ""))
    return tuple(word if len(word) == 2 and word[0] == "-" else word.casefold() for word in words)


@lru_cache(maxsize=20_000)
def _read_names(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the names that a term or a heading gives, without what stands behind them. A term may give several."""
    parts = [_NUMBER.sub("", text, count=1)] if text.startswith("#") else text.split(", ")
    names = (_read_words(_ASIDE.sub(" ", part)) for part in parts)
    # What stands behind an option or an identifier is its argument.
    names = (name[:1] if name and (name[0][0] == "-" or "_" in name[0]) else name for name in names)
    return tuple(name for name in names if 0 < len(name) <= _LONGEST)


def _holds(words: tuple[str, ...], name: tuple[str, ...]) -> bool:
    # Nearly all names begin with a word that is not there.
    return name[0] in words and any(words[at : at + len(name)] == name for at in range(len(words) - len(name) + 1))


def read_name_line(unit: Unit) -> str:
    """Return the names of which the unit says in a line what they are; empty where it does not."""
    is_item = unit.kind in ("list", "steps")
    line = _NAME_LINE.match(unit.text, find_item(unit.text)) if is_item or unit.kind == "paragraph" else None
    return line[1] if line else ""


def find_named(question: str, unit: Unit, language: Language) -> tuple[frozenset[str], bool | None]:
    """Return the terms of the names of the unit's place that the question has in full, and whether the innermost of its
    places is among these; None where that is a term with a definition which the question does not name."""
    above = (unit.source["text"][slice(*span)] for span in unit.above)
    is_term = unit.kind == "definition" and bool(unit.introduction)
    path = (
        *([read_name_line(unit)] if unit.kind in ("list", "steps") else []),
        *(f"# {each}" for each in (unit.source["title"], *unit.source["heading_path"])),
        *(each for each in above if each.startswith("#")),
        *([unit.introduction] if is_term else []),
    )
    terms, own = _find_named_in(path, question, language)
    return terms, None if is_term and not own else own


@lru_cache(maxsize=2048)
def _find_named_in(path: tuple[str, ...], question: str, language: Language) -> tuple[frozenset[str], bool]:
    """Return the terms of the names on the path that the question has, and whether its last is among them. Cached,
    because many units share a path."""
    asked = _read_words(question)
    named = [part for part in path if any(_holds(asked, name) for name in _read_names(part))]
    return frozenset[str]().union(*(find_terms(part, language) for part in named)), named[-1:] == [path[-1]]
