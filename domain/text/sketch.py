"""What a text shares with others, whatever its format: some of its runs of letters, as numbers.

They are chosen by winnowing (Schleimer, Wilkerson, Aiken, "Local Algorithms for Document Fingerprinting", 2003): two
texts that have `RUN + WINDOW - 1` letters and digits in common, about twelve words, have a number in common.
"""

import re
from collections.abc import Iterator

import numpy as np

RUN = 32
"""Letters and digits of a run: six words, which are no idiom any more. A power of two, as is the next."""
WINDOW = 32
"""Neighbouring runs of which one is chosen, that with the least number."""

_PART = 2**17
"""Characters that are worked on at once, some milliseconds."""
_NO_LETTERS = re.compile(r"[\W_]+")


def sketch(text: str) -> list[int]:
    """Return the numbers of the chosen runs, without case, blanks and punctuation, in ascending order. A shorter text
    is one run; one without letters has none."""
    chosen, before = set[int](), ""
    for first in range(0, len(text), _PART):
        letters = before + _NO_LETTERS.sub("", text[first : first + _PART].casefold())
        if letters:
            chosen.update(_choose(letters.ljust(RUN, "\0")))
        before = letters[-(RUN + WINDOW) :]
    return sorted(chosen)


def _choose(letters: str) -> Iterator[int]:
    runs = np.frombuffer(letters.encode("utf-32-le"), np.uint32).astype(np.uint64)
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
    yield from np.unique(runs).view(np.int64).tolist()
