"""Tells whether what people wrote consists of a document's words, however either is marked up or written."""

import re
from collections.abc import Iterable
from html import unescape
from itertools import pairwise

from domain.text.languages import fold

_LEAST_WORDS, _LEAST_BYTES = 3, 12
"""Words, and bytes of them, that are enough to be the document's. Chosen: "How is it?" and "Overview" are anybody's."""

_MARKS = re.compile(
    r"[*`~\u00ad\u200b-\u200d\u2060\ufeff]|\]\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|\\(?=[^\w\s])"
    r"|(?P<parts></?[a-z][^<>\n]*>|\((?:[a-z][a-z\d+.-]{1,15}:|www\.)[^\s()]*(?:\([^\s()]*\)[^\s()]*)*\))",
    re.IGNORECASE,
)
"""What is not shown: signs of Markdown, targets of links, characters without width; addresses in brackets,
as readers write those of links, and tags, which part words."""
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")
"""Each sign of Chinese and Japanese, which have no blanks, counts as a word."""
_BLOCK = re.compile(r"\n\s*\n")
_PART = re.compile(r"(?<=[.?!:])\s+|\n")


def simplify(text: str) -> str:
    """Return the words that a reader sees, folded, without signs."""
    return " ".join(_WORD.findall(fold(unescape(_MARKS.sub(lambda mark: " " if mark["parts"] else "", text)))))


def simplify_blocks(texts: Iterable[str]) -> str:
    """Return each different block of the texts simplified, on a line of its own."""
    blocks = dict.fromkeys(block for text in texts for block in _BLOCK.split(text))
    return "\n".join(dict.fromkeys(filter(None, map(simplify, blocks))))


class Repeats:
    """Looks texts up in what `simplify_blocks` has returned. Most are ruled out by two neighbouring words, which takes
    no time in a long text."""

    def __init__(self, text: str) -> None:
        self._text = " " + text.replace("\n", "\n ")
        self._pairs = bytearray(2**24)
        for pair in pairwise(text.split()):
            self._pairs[hash(pair) % len(self._pairs)] = 1

    def find(self, said: str) -> list[str]:
        """Return what of it stands in the text: the whole, or those of its sentences that do. Its last word may be cut
        off, as in names of conversations."""
        parts = (said, *_PART.split(said))
        return [part for part in dict.fromkeys(map(str.strip, parts)) if self._has(simplify(part))]

    def _has(self, said: str) -> bool:
        *whole, _ = words = said.split() or [""]
        return (
            len(words) >= _LEAST_WORDS
            and len(said.encode()) >= _LEAST_BYTES
            and all(self._pairs[hash(pair) % len(self._pairs)] for pair in pairwise(whole))
            and f" {said}" in self._text
        )
