"""Detects where a question departs from the sentence that is nearest to it.

A question may repeat a sentence nearly word for word and still ask for something else: it denies what the sentence
affirms, says "after" for "before", or has one word in the place of another. Similarity hardly notices; words do. Such a
departure means that the sentence does not answer. Most questions have none.
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from math import fsum
from pathlib import Path

from domain.text.terms import STOP_WORDS, analyse

_DATA = Path(__file__).parents[1] / "data" / "en" / "opposites.toml"

_NEGATED = re.compile(r"(?:un|in|im|ir|il|dis|mis|non-?)(.{4,})")
"""A word that a prefix turns into its opposite."""

_DENIAL = re.compile(r"\b(not|no|never|nor|neither|without|cannot|except|fail\w*|lack\w*)\b|n['’]t\b")
"""Negations, in lower case only: a title may be "Never Cry Wolf"."""

_OPEN = re.compile(r"\b(what|which|who|whom|whose|when|where|why|how)\b", re.IGNORECASE)
"""The question word of an open question. A yes-or-no question is answered by what contradicts it, an open one is
not."""

_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")

_CLAUSE = re.compile(r"[,;?]|\band\b", re.IGNORECASE)
"""The borders between the parts of a question."""

SAME_MATTER = 0.6
"""Share of the question's meaningful words that a sentence must have before an opposite counts."""

SAME_WORDING = 0.5
"""The same before a word in the place of another counts."""

FUNCTION_WORD = 0.2
"""Weight of a function word in looking for the nearest sentence; a meaningful word has 1."""

_Words = list[tuple[str, str]]

_OUT, _IN = 2, 3
"""Limits for one word in the place of another: words of the question, and of the sentence."""


@dataclass(frozen=True, slots=True)
class Departure:
    """The ways in which an open question departs from a sentence."""

    opposed: bool
    """True where the question denies what the sentence affirms, or has the opposite of one of its words."""
    swapped: bool
    """True where, amid the same words in the same order, one word stands in the place of another."""


def find_departure(question: str, sentence: str) -> Departure:
    """Compare an open question with a sentence. A yes-or-no question never departs."""
    if _OPEN.search(question) is None:
        return Departure(opposed=False, swapped=False)
    asked, said = _read_words(question), _read_words(sentence)
    terms, wanted = {term for _, term in said}, {term for _, term in asked}
    unsaid, unasked = wanted - terms, terms - wanted
    opposed = {term for term in unsaid if not unasked.isdisjoint(_read_opposites().get(term, ()))}
    opposed |= {term for word, term in asked if term in unsaid and _strip_prefix(word) in unasked}
    opposed |= {bare for word, term in said if term in unasked and (bare := _strip_prefix(word)) in unsaid}
    meaningful = {term for word, term in asked if word not in STOP_WORDS}
    denies = _DENIAL.search(_nearest_clause(question, sentence)) and not _DENIAL.search(sentence.lower())
    same_matter = len(meaningful & (terms | opposed)) >= SAME_MATTER * len(meaningful)
    same_wording = len(meaningful & terms) >= SAME_WORDING * len(meaningful)
    return Departure(
        opposed=bool(same_matter and (denies or opposed)),
        swapped=same_wording and _has_swap(asked, said, meaningful - terms, unasked),
    )


def share_wording(question: str, sentences: Sequence[str]) -> list[float]:
    """Return, per sentence, how many different words of the question it has; a function word counts `FUNCTION_WORD`."""
    asked = {term: FUNCTION_WORD if word in STOP_WORDS else 1.0 for word, term in _read_words(question)}
    return [fsum(asked.get(term, 0.0) for term in {term for _, term in _read_words(s)}) for s in sentences]


def _nearest_clause(question: str, sentence: str) -> str:
    """Return the part of the question that has most words in common with the sentence: "How long is the warranty, and
    what is not covered?" denies nothing of how long it is."""
    clauses = _CLAUSE.split(question)
    shared = share_wording(sentence, clauses)
    return clauses[max(range(len(clauses)), key=lambda i: shared[i])]


def _has_swap(asked: _Words, said: _Words, missing: set[str], unasked: set[str]) -> bool:
    """Return True where, between words that both have in a row, the question has a word of `missing` and the sentence
    one of `unasked`."""
    steps = SequenceMatcher(None, [t for _, t in asked], [t for _, t in said], autojunk=False).get_opcodes()
    for before, (kind, start, end, other_start, other_end), after in zip(steps, steps[1:], steps[2:], strict=False):
        if (before[0], kind, after[0]) == ("equal", "replace", "equal") and (
            end - start <= _OUT
            and other_end - other_start <= _IN
            and not missing.isdisjoint(term for _, term in asked[start:end])
            and any(term in unasked and word not in STOP_WORDS for word, term in said[other_start:other_end])
        ):
            return True
    return False


def _read_words(text: str) -> _Words:
    """Return all words with their terms; a function word is its own term."""
    return [(word, _find_term(word)) for word in _WORD.findall(text.lower())]


@lru_cache(maxsize=20_000)
def _find_term(word: str) -> str:
    return (*analyse(word), word)[0]


def _strip_prefix(word: str) -> str | None:
    """Return the term of the word without a prefix that turns it into its opposite."""
    negated = _NEGATED.fullmatch(word)
    return _read_words(negated[1])[0][1] if negated else None


@lru_cache(maxsize=1)
def _read_opposites() -> dict[str, set[str]]:
    """Return the opposites of each term."""
    opposites: dict[str, set[str]] = {}
    for line in tomllib.loads(_DATA.read_text(encoding="utf-8"))["opposites"].strip().splitlines():
        one, other = ({term for _, term in _read_words(side)} for side in line.split("|"))
        for terms, against in ((one, other), (other, one)):
            for term in terms:
                opposites.setdefault(term, set()).update(against)
    return opposites
