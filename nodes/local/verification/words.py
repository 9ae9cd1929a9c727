"""The words of a claim and of its sources, and how much each counts."""

import math
import re
from functools import lru_cache

from domain.text.terms import STOP_WORDS, analyse

WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’](?:t|s|re|ve|ll|d|m)\b)?")

ITEM_START = re.compile(r"^\s*(?:[-*•]\s+|\d{1,2}[.)]\s+)?(?:\*\*[^*]{1,80}\*\*:?\s*|\*\*)?")
"""The bullet, number or bold lead-in before an item of a list."""

NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        str.split(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen twenty"
        )
    )
} | {"thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70", "eighty": "80", "ninety": "90"}

_FUNCTION_WORDS = STOP_WORDS - {"yes", "no"}
"""Function words except "yes" and "no", which answer a question, which is not the sources' business."""

_SPEAKER = frozenset(str.split("i me my mine myself you your yours we us our ours"))

FUNCTION_WORD = 0.7
"""Weight of a function word; a content word has 1. Words like "his" or "because" give inventions away too."""

SPEAKER_WORD = 1.5
"""Weight of "I", "my" or "you": a speaker who speaks of himself does not speak from the sources."""


@lru_cache(maxsize=50_000)
def stem_of(word: str) -> str:
    """Return the key that words are compared by: the stem, or a function word itself; digits for number words."""
    word = word.lower().replace("’", "'").replace(",", "")
    word = NUMBER_WORDS.get(word, word)
    terms = analyse(word)
    return terms[0] if terms else word


def stems_of(text: str) -> set[str]:
    """Return the stems of a text's words."""
    return {stem_of(word) for word in WORD.findall(text)}


def weigh(keys: set[str]) -> float:
    """Sum the weights of words by kind: content words 1, function words less, words for the speaker more."""
    # An exact sum does not depend on the order of the set, which differs between processes.
    return math.fsum(SPEAKER_WORD if k in _SPEAKER else FUNCTION_WORD if k in _FUNCTION_WORDS else 1.0 for k in keys)


def flatten(text: str) -> str:
    """Level case, white space and final stops, for comparing whole sentences."""
    return " ".join(text.lower().split()).rstrip(" .!…")
