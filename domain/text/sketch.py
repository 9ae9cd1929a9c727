"""What a text shares with others, whatever its format: some of its runs of letters, as numbers.

They are chosen by winnowing (Schleimer, Wilkerson, Aiken, "Local Algorithms for Document Fingerprinting", 2003): two
texts that have `RUN + WINDOW - 1` letters and digits in common, about twelve words, have a number in common.
"""

import sys
from functools import cache

import numpy as np
from numpy.typing import NDArray

RUN = 32
"""Letters and digits of a run: six words, which are no idiom any more. A power of two, as is the next."""
WINDOW = 32
"""Neighbouring runs of which one is chosen, that with the least number."""

_PART = 2**17
"""Characters that are worked on at once, some milliseconds."""


def sketch(text: str) -> list[int]:
    """Return the numbers of the chosen runs, without case, blanks and punctuation, in ascending order. A shorter text
    is one run; one without letters has none."""
    chosen, before = [np.zeros(0, np.int64)], np.zeros(0, np.uint32)
    for first in range(0, len(text), _PART):
        part = text[first : first + _PART].casefold().encode("utf-32-le", "surrogatepass")
        characters = np.frombuffer(part, np.uint32)
        letters = np.concatenate([before, characters[_are_letters()[characters]]])
        if len(letters):
            chosen.append(_choose(letters))
        before = letters[-(RUN + WINDOW) :]
    numbers: list[int] = np.unique(np.concatenate(chosen)).tolist()
    return numbers


@cache
def _are_letters() -> NDArray[np.bool_]:
    """Whether each character of Unicode is a letter or a digit. A table costs a tenth of what a pattern does."""
    return np.fromiter(map(str.isalnum, map(chr, range(sys.maxunicode + 1))), bool)


def _choose(letters: NDArray[np.uint32]) -> NDArray[np.int64]:
    runs = np.pad(letters, (0, max(0, RUN - len(letters)))).astype(np.uint64)
    length, factor = 1, 0x9E3779B97F4A7C15
    while length < RUN:
        runs = runs[:-length] * np.uint64(factor) + runs[length:]
        length, factor = 2 * length, factor * factor % 2**64
    # What lies near each other must not have numbers that do.
    runs ^= runs >> np.uint64(31)
    runs *= np.uint64(0xBF58476D1CE4E5B9)
    length = 1
    while length < WINDOW and len(runs) > length:
        runs = np.minimum(runs[:-length], runs[length:])
        length *= 2
    # Neighbours mostly chose the same; what is left is sorted in a fifteenth of the time.
    chosen: NDArray[np.int64] = runs[np.append(True, runs[1:] != runs[:-1])].view(np.int64)
    return chosen
