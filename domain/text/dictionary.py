"""The common words of our languages, which tell a misspelt word from a right one.

The lists are those of `pyspellchecker` (MIT): 86,000 to 339,000 forms of words a language, counted in film subtitles
and completed from dictionaries.
"""

import gzip
import re
from functools import cache
from importlib import resources
from itertools import chain

import numpy as np

from domain.text.languages import Language, fold, read_words

CORRECT_EVERYWHERE: Language = "en"
"""Its words are right in every language: names of products and loan words are mostly English."""

_WORD = re.compile(b'"([^"]*)"')
"""A word in the JSON of a list, which has no escapes."""


def is_word(word: str, language: Language) -> bool:
    """Return True for a form of a common word of the language. `word` is in lower case and without accents, as `fold`
    has it. The first call for a language reads its list, in 0.1 to 0.6 s of CPU time."""
    return any(_holds(each, hash(word)) for each in dict.fromkeys((language, CORRECT_EVERYWHERE)))


def _holds(language: Language, word: int) -> bool:
    words = read_dictionary(language)
    place = int(np.searchsorted(words, word))
    return place < len(words) and int(words[place]) == word


@cache
def read_dictionary(language: Language) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the sorted hashes of a language's words: 3 MB at most, where a set of the words takes 30."""
    data = (resources.files("spellchecker") / "resources" / f"{language}.json.gz").read_bytes()
    # One word after the other: of all at once, tens of megabytes would stay with this process.
    listed = (fold(word[1].decode()) for word in _WORD.finditer(gzip.decompress(data)))
    # Contractions are typed without their apostrophe: "whats".
    contractions = (word.replace("'", "") for word in read_words(language).stop_words)
    return np.unique(np.fromiter(map(hash, chain(listed, contractions)), np.int64))
