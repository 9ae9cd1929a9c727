"""Names in a claim that its sources do not have."""

import re
from collections.abc import Sequence, Set

from domain.text.terms import STOP_WORDS
from nodes.local.verification.source_text import SourceText
from nodes.local.verification.words import ITEM_START, stems_of


def find_strange_name(part: str, texts: Sequence[SourceText], given: Set[str]) -> str | None:
    """Return a sentence for the reader about the first name that no source has, or None."""
    body = ITEM_START.sub("", part)
    words = list(re.finditer(r"[^\W\d_][\w’'&-]*", body))
    if sum(word[0][0].isupper() for word in words) > len(words) / 2:
        return None  # a heading or a line of names, where capitals mean nothing
    lowered = "\n".join(text.flat for text in texts)
    for word in words[1:]:
        name = word[0].removesuffix("'s").removesuffix("’s")
        opens = body[: word.start()].rstrip()[-1:] in '.:!?"“'
        if not name[0].isupper() or opens or name.lower() in STOP_WORDS or len(name) < 2:
            continue
        # "Belgian" is covered by "Belgium", and "UK" by "United Kingdom".
        if name.lower()[:5] in lowered or stems_of(name) <= given or (name.isupper() and _spells(name, lowered)):
            continue
        if "-" in name and all(piece.lower()[:5] in lowered for piece in name.split("-") if piece[:1].isupper()):
            continue
        if _introduces(body, word):
            continue
        return f"The source does not mention {name}."
    return None


def _introduces(body: str, word: re.Match[str]) -> bool:
    """Return True for an abbreviation in brackets behind its long form."""
    return body[word.start() - 1] == "(" and body[word.end() : word.end() + 1] == ")"


def _spells(initials: str, text: str) -> bool:
    """Return True where consecutive words of the text begin with these letters."""
    return re.search(r"[\s-]+".join(rf"\b{re.escape(letter)}\w*" for letter in initials.lower()), text) is not None
