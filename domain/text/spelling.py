"""Which words of a question may be misspelt, and the question with others in their place."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

from domain.text.terms import content_words

_WORD = re.compile(r"(?<![\w'’.@/-])[^\W\d_]+(?![\w@/]|[-.][^\W_]|['’](?!s\b)[^\W_])")
"""Words that stand alone. Parts of codes, names with joints, addresses and contractions are right as they are."""


async def correct(
    texts: Sequence[str], suggest: Callable[[Sequence[str], str | None], Awaitable[Mapping[str, str]]]
) -> list[str]:
    """The texts, each with what `suggest` says its words mean in their place.

    `suggest` is given all their words as `domain.terms.content_words` has them, and the last one of the first text
    once more where this ends with it: it may be unfinished.
    """
    found = [match for text in texts for match in _WORD.finditer(text)]
    spelt = {match.group(): content_words(match.group()) for match in found}
    # What has capitals inside is an abbreviation, or a name that is spelt so on purpose.
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
