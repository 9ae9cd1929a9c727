"""Names and numbers of a question that no source mentions."""

import re
from collections.abc import Iterable

from domain.outcome import MissingWords, Reason
from domain.text.terms import content_words

_WORDS = re.compile(r"[^\W_]+(?:[-'’.][^\W_]+)*")


def list_missing(question: str, missing: Iterable[str]) -> list[Reason]:
    """Return the reason that lists the missing names and numbers of the question; empty where none is missing."""
    words = find_missing_names(question, missing)
    return [MissingWords(code="missing_words", words=words)] if words else []


def find_missing_names(question: str, missing: Iterable[str]) -> list[str]:
    """Return the names and numbers of the question among the `missing` words, as the question spells them.

    The first word of a question is capitalised anyway and does not count as a name.
    """
    unheard = set(missing)
    words = _WORDS.findall(question)
    named = [word for word in dict.fromkeys(words[1:]) if word[0].isupper() or word[0].isdigit()]
    return [word for word in named if set(content_words(word)) & unheard]
