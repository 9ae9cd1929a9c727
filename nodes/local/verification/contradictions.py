"""Points in which a source contradicts a claim: a number, an opposite word, a negation, or who speaks."""

import re
from collections.abc import Sequence, Set
from functools import lru_cache

from domain.text.terms import STOP_WORDS, analyse
from nodes.local.verification.numbers import agree, read_numbers
from nodes.local.verification.source_text import SourceText
from nodes.local.verification.words import ITEM_START, WORD, stem_of, stems_of

_OPPOSITES = (
    ("increases rises rose grows grew higher improves", "decreases falls fell shrinks declines drops reduces lower"),
    ("more above exceeds", "less fewer below"),
    ("before", "after"),
    ("allowed permitted", "forbidden prohibited banned"),
    ("includes", "excludes"),
    ("maximum most largest highest", "minimum least smallest lowest"),
    ("required mandatory must", "optional voluntary"),
    ("possible able", "impossible unable"),
    ("positive", "negative"),
    ("accepts approves", "rejects refuses denies"),
    ("wins won", "loses lost"),
    ("open", "closed"),
    ("buys bought", "sells sold"),
    ("succeeds success", "fails failure"),
    ("safe", "dangerous unsafe"),
    ("activates enables promotes", "deactivates disables inhibits suppresses"),
    ("all every always each", "some sometimes few rarely several"),
)  # fmt: skip

_NEGATIONS = frozenset(str.split("not no never none neither nor without cannot nobody nothing lacks lack"))

_NEGATED_WORDS = 2
"""Number of content words after a negation that it governs."""

_SAME_MATTER = 0.75
"""Share of a claim's words that a sentence must have before a difference between the two counts as a contradiction."""

_FIRST_PERSON = frozenset(str.split("i me my mine myself"))


def find_contradiction(part: str, nearest: str, texts: Sequence[SourceText], given: Set[str]) -> str | None:
    """Return a sentence for the reader about the first point that the sources contradict or cannot know, or None."""
    return (
        _find_strange_number(part, nearest, texts)
        or _find_opposite(part, nearest)
        or _find_negation(part, nearest)
        or _find_speaker(part, given)
    )


def _find_strange_number(part: str, nearest: str, texts: Sequence[SourceText]) -> str | None:
    known = [number for text in texts for number in text.numbers]
    close = list(read_numbers(nearest))
    for number in read_numbers(ITEM_START.sub("", part)):
        rival = next((n for n in close if n.unit and n.unit == number.unit and n.value != number.value), None)
        if any(agree(number, other) for other in (close if rival else known)):
            continue
        if rival:
            return f"The source says {rival.text}, the answer says {number.text}."
        if re.search(r"\d", number.text):  # a number in words may merely count things that the source lists
            return f"The source does not mention {number.text}."
    return None


def _find_speaker(part: str, given: Set[str]) -> str | None:
    spoken = [word for word in WORD.findall(part) if word.lower() in _FIRST_PERSON and word.lower() not in given]
    return f"“{spoken[0]}” is not the source." if spoken else None


def _find_opposite(part: str, nearest: str) -> str | None:
    claimed, said = stems_of(part), stems_of(nearest)
    if not _same_matter(part, nearest):
        return None
    for side, other in _opposites():
        for ours, theirs in ((side, other), (other, side)):
            mine, yours = claimed & ours.keys(), said & theirs.keys()
            if mine and yours and not claimed & theirs.keys() and not said & ours.keys():
                return f"The source says “{theirs[min(yours)]}”, the answer says “{ours[min(mine)]}”."
    return None


@lru_cache(maxsize=1)
def _opposites() -> list[tuple[dict[str, str], dict[str, str]]]:
    """Return the pairs of opposites, each side as words by their stem."""
    return [
        ({stem_of(word): word for word in side.split()}, {stem_of(word): word for word in other.split()})
        for side, other in _OPPOSITES
    ]


def _find_negation(part: str, nearest: str) -> str | None:
    if not _same_matter(part, nearest):
        return None
    claimed, said = _read_negated(part), _read_negated(nearest)
    both = stems_of(part) & stems_of(nearest)
    if claimed & both - said and not said:
        return "The answer denies what the source says."
    if said & both - claimed and not claimed:
        return "The source denies what the answer says."
    return None


def _read_negated(text: str) -> set[str]:
    """Return the content words that a negation governs."""
    negated: set[str] = set()
    left = 0
    for word in WORD.findall(text.lower()):
        if word in _NEGATIONS or word.endswith(("n't", "n’t")):
            left = _NEGATED_WORDS
        elif left and analyse(word):
            negated.add(stem_of(word))
            left -= 1
    return negated


def _same_matter(part: str, nearest: str) -> bool:
    """Return True where two sentences are so alike that a difference between them is a contradiction."""
    one, other = (keys - STOP_WORDS for keys in (stems_of(part), stems_of(nearest)))
    shared = len(one & other)
    return shared >= _SAME_MATTER * max(1, len(one)) and shared >= _SAME_MATTER / 2 * len(other)
