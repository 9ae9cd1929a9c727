"""The words of a text, and the keys that they are compared by."""

import re
from functools import lru_cache

from domain.text.terms import analyse

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’](?:t|s|re|ve|ll|d|m)\b)?")

_THOUSANDS = re.compile(r"(?<=\d)\.(?=\d{3}(?:\.\d{3})*$)")
"""Dots that part thousands where a comma parts decimals: 5.000 and 5000 are one figure."""

_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        str.split(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen twenty"
        )
    )
}


def tokenize(text: str) -> list[tuple[str, str]]:
    """Return all words of a text in lower case, each with its key: its stem, itself where it is a function word, and
    the digits of a number in words."""
    return [(word, _find_key(word)) for word in _WORD.findall(text.lower())]


def read_keys(text: str) -> list[str]:
    """Return the keys of all words, in order."""
    return [key for _, key in tokenize(text)]


@lru_cache(maxsize=2048)
def find_keys(text: str) -> frozenset[str]:
    """Return the keys of all words, without order. Cached, because turns read the same sentences."""
    return frozenset(read_keys(text))


@lru_cache(maxsize=50_000)
def _find_key(word: str) -> str:
    word = _THOUSANDS.sub("", word.replace("’", "'").replace(",", ""))
    word = _NUMBERS.get(word, word)
    return (*analyse(word), word)[0]
