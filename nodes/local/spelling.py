"""Which words of a query may be misspelt, and the query with others in their place."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

from domain.terms import content_words

_WORD = re.compile(r"(?<![\w'’.@/-])[^\W\d_]+(?![\w@/]|[-.][^\W_]|['’](?!s\b)[^\W_])")
"""Words that stand alone. Parts of codes, names with joints, addresses and contractions are right as they are."""


async def correct(query: str, suggest: Callable[[Sequence[str], str | None], Awaitable[Mapping[str, str]]]) -> str:
    """The query with what `suggest` says its words mean in their place.

    `suggest` is given the words as `domain.terms.content_words` has them, and the last of them once more where the
    query ends with it: it may be unfinished.
    """
    spelt = {match.group(): content_words(match.group()) for match in _WORD.finditer(query)}
    # What is written in capitals is an abbreviation.
    words = {text: found[0] for text, found in spelt.items() if len(found) == 1 and not text.isupper()}
    if not words:
        return query
    last = list(_WORD.finditer(query))[-1]
    unfinished = words.get(last.group()) if last.end() == len(query) else None
    meant = await suggest(list(dict.fromkeys(words.values())), unfinished)
    return _WORD.sub(lambda match: _write(match.group(), meant.get(words.get(match.group(), ""))), query)


def _write(text: str, meant: str | None) -> str:
    if meant is None:
        return text
    return meant.capitalize() if text[0].isupper() else meant
