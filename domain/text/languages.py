"""The languages that askgraph speaks, and their words without a meaning of their own.

Other languages can be searched and quoted as well; askgraph then speaks the nearest of these, or English.
"""

import tomllib
import unicodedata
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

Language = Literal["en", "de", "fr", "es"]
"""A language with a file in `domain/text/data` and in `nodes/catalogue`."""

LANGUAGES: tuple[Language, ...] = get_args(Language)

_DATA = Path(__file__).parent / "data"
_ACCENTS = str.maketrans("", "", "".join(map(chr, range(0x300, 0x370))))


@dataclass(frozen=True, slots=True)
class LanguageWords:
    """Words of one language, in lower case and without accents, as the analyser of `domain.text.terms` has them."""

    stop_words: frozenset[str]
    """Function words, question words, auxiliaries and light verbs."""
    meaningful_elsewhere: frozenset[str]
    """Those of them that are words of meaning in another of our languages, such as the English "die"."""
    question_words: frozenset[str]


@cache
def read_words(language: Language) -> LanguageWords:
    """Read the words of a language."""
    data = tomllib.loads((_DATA / f"{language}.toml").read_text(encoding="utf-8"))
    return LanguageWords(**{name: frozenset(fold(text).split()) for name, text in data.items()})


def fold(text: str) -> str:
    """Return the text in lower case, without accents and compatibility forms; "ß" becomes "ss"."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("‐", "-").replace("‑", "-")
    return text if text.isascii() else unicodedata.normalize("NFD", text).translate(_ACCENTS)
