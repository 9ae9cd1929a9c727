"""Detects where a question or a claim departs from the sentence that is nearest to it.

A text may repeat a sentence nearly word for word and still mean something else: it denies what the sentence affirms,
says "after" for "before", or has one word in the place of another. Similarity hardly notices; words do. Such a
departure means that the sentence does not answer, or contradicts. Most texts have none.
"""

import re
import tomllib
from collections.abc import Sequence, Set
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from math import fsum
from pathlib import Path

from domain.text.terms import STOP_WORDS
from nodes.local.words import read_words

_DATA = Path(__file__).parent / "data" / "en" / "opposites.toml"

_NEGATED = re.compile(r"(?:un|in|im|ir|il|dis|mis|non-?)(.{4,})")
"""A word that a prefix turns into its opposite."""

_DENIAL = re.compile(r"\b(not|no|never|nor|neither|without|cannot|except|fail\w*|lack\w*)\b|n['’]t\b")
"""Negations, in lower case only: a title may be "Never Cry Wolf"."""

_OPEN = re.compile(r"\b(what|which|who|whom|whose|when|where|why|how)\b", re.IGNORECASE)
"""The question word of an open question. A yes-or-no question is answered by what contradicts it, an open one is
not."""

_CLAUSE = re.compile(r"[,;?]|\band\b", re.IGNORECASE)
"""The borders between the parts of a question."""

SAME_MATTER = 0.75
"""Share of the meaningful words of a question or claim that a sentence must have before an opposite or a denial
counts."""

FUNCTION_WORD = 0.2
"""Weight of a function word in looking for the nearest sentence; a meaningful word has 1."""

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
    asked, said = read_words(question), read_words(sentence)
    terms, wanted = {term for _, term in said}, {term for _, term in asked}
    return Departure(
        opposed=(denies(question, sentence) and share_matter(wanted, terms)) or has_opposite(question, sentence),
        swapped=_has_swap(asked, said, wanted - STOP_WORDS - terms, terms - wanted),
    )


def has_opposite(text: str, sentence: str) -> bool:
    """Return True where the text has the opposite of a word of a sentence about the same matter."""
    own, said = read_words(text), read_words(sentence)
    keys, others = {key for _, key in own}, {key for _, key in said}
    unsaid, unasked = keys - others, others - keys
    opposed = {key for key in unsaid if not unasked.isdisjoint(_read_opposites().get(key, ()))}
    opposed |= {key for word, key in own if key in unsaid and _strip_prefix(word) in unasked}
    opposed |= {bare for word, key in said if key in unasked and (bare := _strip_prefix(word)) in unsaid}
    return bool(opposed) and share_matter(keys, others | opposed)


def share_matter(own: Set[str], others: Set[str]) -> bool:
    """Return True where a sentence with the keys `others` is about the same matter as a text with the keys `own`."""
    meaningful = own - STOP_WORDS
    return len(meaningful & others) >= SAME_MATTER * len(meaningful)


def denies(text: str, sentence: str) -> bool:
    """Return True where the text denies something, in the part that is about the sentence, and the sentence nothing:
    "How long is the warranty, and what is not covered?" denies nothing of how long it is."""
    clauses = _CLAUSE.split(text)
    shared = share_wording(sentence, clauses)
    nearest = clauses[max(range(len(clauses)), key=lambda i: shared[i])]
    return bool(_DENIAL.search(nearest)) and not _DENIAL.search(sentence.lower())


def share_wording(question: str, sentences: Sequence[str]) -> list[float]:
    """Return, per sentence, how many different words of the question it has; a function word counts `FUNCTION_WORD`."""
    asked = {term: FUNCTION_WORD if word in STOP_WORDS else 1.0 for word, term in read_words(question)}
    return [fsum(asked.get(term, 0.0) for term in {term for _, term in read_words(s)}) for s in sentences]


def _has_swap(
    asked: Sequence[tuple[str, str]], said: Sequence[tuple[str, str]], missing: set[str], unasked: set[str]
) -> bool:
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


def _strip_prefix(word: str) -> str | None:
    """Return the term of the word without a prefix that turns it into its opposite."""
    negated = _NEGATED.fullmatch(word)
    return read_words(negated[1])[0][1] if negated else None


@lru_cache(maxsize=1)
def _read_opposites() -> dict[str, set[str]]:
    """Return the opposites of each term."""
    opposites: dict[str, set[str]] = {}
    for line in tomllib.loads(_DATA.read_text(encoding="utf-8"))["opposites"].strip().splitlines():
        one, other = ({term for _, term in read_words(side)} for side in line.split("|"))
        for terms, against in ((one, other), (other, one)):
            for term in terms:
                opposites.setdefault(term, set()).update(against)
    return opposites
