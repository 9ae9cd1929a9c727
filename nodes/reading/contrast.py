"""Detects where a question or a claim contradicts the sentence that is nearest to it.

A text may repeat a sentence nearly word for word and still mean something else: it denies what the sentence affirms,
or says "after" for "before". Embeddings hardly notice; words do. Then the sentence does not answer the question, or
does not support the claim.
"""

import re
import tomllib
from collections.abc import Sequence, Set
from functools import cache
from math import fsum
from pathlib import Path

from domain.text.terms import STOP_WORDS
from domain.text.words import find_keys, tokenize

_DATA = Path(__file__).parent / "data" / "en" / "opposites.toml"

_DENIAL = re.compile(r"\b(not|no|never|nor|neither|without|cannot|except|fail\w*|lack\w*)\b|n['’]t\b")
"""Negations, in lower case only: a title may be "Never Cry Wolf"."""

_OPEN = re.compile(r"\b(what|which|who|whom|whose|when|where|why|how)\b", re.IGNORECASE)
"""The question word of an open question. A yes-or-no question is answered by what contradicts it, an open one is
not."""

_CLAUSE = re.compile(r"[,;?]|\band\b", re.IGNORECASE)
"""The borders between the parts of a question."""

SAME_MATTER = 0.75
"""Share of the meaningful words of a question or claim that a sentence must have before an opposite or a denial
counts. Chosen: docs/decisions/10-grading.md."""

SEARCHED_FUNCTION_WORD = 0.2
"""Weight of a function word in looking for the nearest sentence; a meaningful word has 1. Chosen by hand."""


def find_contradiction(question: str, sentences: Sequence[str]) -> float:
    """Return 1 where an open question denies what the nearest sentence affirms, or has the opposite of one of its
    words; else 0."""
    if not sentences or _OPEN.search(question) is None:
        return 0.0
    nearest = find_nearest(question, sentences)
    same = share_matter(find_keys(question), find_keys(nearest))
    return float((same and denies(question, nearest)) or has_opposite(question, nearest))


def has_opposite(text: str, sentence: str) -> bool:
    """Return True where the text has the opposite of a word of a sentence about the same matter."""
    own, others = find_keys(text), find_keys(sentence)
    opposed = {key for key in own - others if not (others - own).isdisjoint(_read_opposites().get(key, ()))}
    return bool(opposed) and share_matter(own, others | opposed)


def share_matter(own: Set[str], others: Set[str]) -> bool:
    """Return True where a sentence with the keys `others` is about the same matter as a text with the keys `own`."""
    meaningful = own - STOP_WORDS
    return len(meaningful & others) >= SAME_MATTER * len(meaningful)


def denies(text: str, sentence: str) -> bool:
    """Return True where the text denies something, in the part that is about the sentence, and the sentence nothing:
    "How long is the warranty, and what is not covered?" denies nothing of how long it is."""
    clause = find_nearest(sentence, _CLAUSE.split(text))
    return bool(_DENIAL.search(clause)) and not _DENIAL.search(sentence.lower())


def find_nearest(text: str, sentences: Sequence[str]) -> str:
    """Return the first of the sentences that have most words of the text, by weight."""
    weights = {key: SEARCHED_FUNCTION_WORD if word in STOP_WORDS else 1.0 for word, key in tokenize(text)}
    return max(sentences, key=lambda sentence: fsum(map(weights.__getitem__, weights.keys() & find_keys(sentence))))


@cache
def _read_opposites() -> dict[str, set[str]]:
    """Return the opposites of each key."""
    opposites: dict[str, set[str]] = {}
    for line in tomllib.loads(_DATA.read_text(encoding="utf-8"))["opposites"].strip().splitlines():
        one, other = map(find_keys, line.split("|"))
        for keys, against in ((one, other), (other, one)):
            for key in keys:
                opposites.setdefault(key, set()).update(against)
    return opposites
