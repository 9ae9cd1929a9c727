"""Corrects the misspelt words of a question."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

from domain.text.terms import content_words

_WORD = re.compile(r"(?<![\w'’.@/-])[^\W\d_]+(?![\w@/]|[-.][^\W_]|['’](?!s\b)[^\W_])")
"""Words that stand alone. Parts of codes, hyphenated names, addresses and contractions are taken as right."""


async def correct(
    texts: Sequence[str], suggest: Callable[[Sequence[str], str | None], Awaitable[Mapping[str, str]]]
) -> list[str]:
    """Return the texts, with the replacements that `suggest` has for their words.

    `suggest` is given all words as `domain.text.terms.content_words` has them, and separately the last word of the
    first text where the text ends with it, because it may be unfinished.
    """
    found = [match for text in texts for match in _WORD.finditer(text)]
    spelt = {match.group(): content_words(match.group()) for match in found}
    # Capitals within a word mean an abbreviation or a deliberate spelling.
    words = {text: levelled[0] for text, levelled in spelt.items() if len(levelled) == 1 and text[1:].islower()}
    if not words:
        return list(texts)
    last = next((match for match in found if match.string is texts[0] and match.end() == len(texts[0])), None)
    meant = await suggest(list(dict.fromkeys(words.values())), words.get(last.group()) if last else None)
    return [_WORD.sub(lambda match: _write(match.group(), meant.get(words.get(match.group(), ""))), t) for t in texts]


def _write(text: str, meant: str | None) -> str:
    if meant is None:
        return text
    return meant.capitalize() if text[0].isupper() else meant
