"""Compares two answers word by word."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Literal

from typing_extensions import TypedDict

MOST_WORDS = 4_000
"""Words of both answers together, with the blanks between them. Of longer ones the first is shown removed, and the
second added."""

_WORD = re.compile(r"\S+|\s+")


class Part(TypedDict):
    """A piece of two answers, in reading order."""

    kind: Literal["same", "removed", "added"]
    text: str


def compare_words(one: str, other: str) -> list[Part]:
    """Return the pieces that make both answers: the first of what is the same and removed, the second of what is the
    same and added."""
    return list(_compare(one, other))


def _compare(one: str, other: str) -> Iterator[Part]:
    mine, theirs = _WORD.findall(one), _WORD.findall(other)
    # Blanks between words are the same everywhere, and tell nothing of where two texts agree.
    matcher = SequenceMatcher(str.isspace, mine, theirs, autojunk=False)
    if len(mine) + len(theirs) <= MOST_WORDS:
        found = matcher.get_opcodes()
    else:
        found = [("replace", 0, len(mine), 0, len(theirs))]
    for tag, start, end, other_start, other_end in found:
        if tag == "equal":
            yield Part(kind="same", text="".join(mine[start:end]))
            continue
        if end > start:
            yield Part(kind="removed", text="".join(mine[start:end]))
        if other_end > other_start:
            yield Part(kind="added", text="".join(theirs[other_start:other_end]))
