"""Names and numbers of a question that no source mentions, and parts of it that none answers."""

import re
from collections.abc import Collection, Iterable

from domain.outcome import MissingParts, MissingWords, Reason
from domain.text.terms import content_words

_WORDS = re.compile(r"[^\W_]+(?:(?:[-'’.]|(?<=\d),(?=\d))[^\W_]+)*")


def list_missing(question: str, missing: Collection[str]) -> list[Reason]:
    """Return the reasons that list the missing names and numbers of the question, and its parts that are among
    `missing`; empty where nothing is missing."""
    words = find_missing_names(question, missing)
    parts = [each for each in missing if " " in each and each.rstrip("?") in question]
    reasons: list[Reason] = [MissingWords(code="missing_words", words=words)] if words else []
    return [*reasons, MissingParts(code="missing_parts", parts=parts)] if parts else reasons


def find_missing_names(question: str, missing: Iterable[str]) -> list[str]:
    """Return the names and numbers of the question among the `missing` words, as the question spells them."""
    unheard = set(missing)
    return [word for word in find_names(question) if set(content_words(word)) & unheard]


def find_names(sentence: str) -> list[str]:
    """Return the names and numbers of a sentence. Its first word is capitalised anyway and does not count as a
    name."""
    words = dict.fromkeys(_WORDS.findall(sentence)[1:])
    return [word for word in words if word[0].isupper() or word[0].isdigit()]
