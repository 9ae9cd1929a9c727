"""The languages that askgraph speaks: one folder each in `domain/languages`, and nothing else names them.

Other languages can be searched and quoted as well; askgraph then speaks the nearest of these, or English.
"""

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

FOLDER = Path(__file__).parents[1] / "languages"

LANGUAGES = ("en", *sorted(each.name for each in FOLDER.iterdir() if each.is_dir() and each.name != "en"))
"""English first: it stands in where no language is told."""

if TYPE_CHECKING:
    Language = str
else:
    Language = Literal[LANGUAGES]

_ACCENTS = re.compile("[\u0300-\u036f]+")


@dataclass(frozen=True, slots=True)
class LanguageWords:
    """Words of one language, in lower case and without accents, as the analyser of `domain.text.terms` has them."""

    stop_words: frozenset[str]
    """Function words, question words, auxiliaries and light verbs."""
    meaningful_elsewhere: frozenset[str]
    """Those of them that are words of meaning in another of our languages, such as the English "die"."""
    telling_words: frozenset[str]
    """Further words that tell the language of a short text, such as greetings."""
    kinds: frozenset[str]
    """Kinds of documents and their parts, such as "guide" and "page"."""
    pages: frozenset[str]
    """Words before a page's number."""
    mail: frozenset[str]
    """What a mail address is called."""
    months: tuple[str, ...]
    """The names of the months, in order."""
    tongues: frozenset[str]
    """What our languages are called in this one."""
    letters: frozenset[str]
    """Letters and marks that none of our other languages has."""


@cache
def read_file(language: Language, name: str) -> Mapping[str, Any]:
    """Read a file of a language: `reading`, by which questions are understood, or `notices`, which answers say."""
    return tomllib.loads((FOLDER / language / f"{name}.toml").read_text(encoding="utf-8"))


@cache
def read_words(language: Language) -> LanguageWords:
    """Read the words of a language."""
    texts = dict(read_file(language, "reading")["words"])
    letters, months = frozenset(texts.pop("letters")), tuple(fold(texts.pop("months")).split())
    words = {name: frozenset(fold(text).split()) for name, text in texts.items()}
    return LanguageWords(**words, months=months, letters=letters)


def fold(text: str) -> str:
    """Return the text in lower case, without accents and compatibility forms; "ß" becomes "ss"."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("‐", "-").replace("‑", "-")
    return text if text.isascii() else _ACCENTS.sub("", unicodedata.normalize("NFD", text))


LETTER = 0.7
"""Weight of a letter that tells the language; a word that only one language has weighs 1."""

AMBIGUOUS = 1 / 3
"""Weight of a word that is one of meaning in another of our languages, such as the French "car": one alone tells no
language, two do."""

LEAD = 0.4
"""Lead that a language needs over the next. Of the 211 questions of the practical set, 201 are then told rightly, none
wrongly, and 10 not at all; py3langid, at 100 MB of memory, tells 209 rightly and 2 wrongly."""

READ = 2000
"""Characters of a text that are read."""

SURE = 1 / 3
"""Share of a question's words that are function words of its language. Questions in ours have at least .43, those in
Italian, Dutch, Danish and others that look like ours at most .25."""

_CAPITALS = re.compile(r"\b[A-ZÀ-Þ]{2,}\b")
_LETTERS = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


def detect_language(text: str) -> Language | None:
    """Return the language in which most function words and letters of the beginning of the text are; None where no
    language leads."""
    return _detect(text[:READ])


def is_in_other_script(text: str) -> bool:
    """Return True where most letters are none of the Latin ones, in which all of our languages are written."""
    letters = [unicodedata.name(letter, "").startswith("LATIN") for letter in text if letter.isalpha()]
    return 2 * sum(letters) < len(letters)


def is_in_other_language(text: str, question: str) -> bool:
    """Return True where it is sure that the text is in another language than the question, which names none. Languages
    that are none of ours are told by their script alone."""
    if is_in_other_script(question):
        return not any(letter.isalpha() and "LATIN" not in unicodedata.name(letter, "") for letter in text)
    words, told = _LETTERS.findall(fold(question)), detect_language(question)
    known = sum(told in _count_languages().get(word, ()) for word in words)
    if told is None or known < SURE * len(words) or not _list_tongues().isdisjoint(words):
        return False
    return is_in_other_script(text) or detect_language(text) not in (told, None)


# Cached, because several steps of a turn read the same sources.
@lru_cache(maxsize=1024)
def _detect(text: str) -> Language | None:
    marks = _count_languages()
    scores: dict[Language, float] = dict.fromkeys(LANGUAGES, 0.0)
    # In capitals among other letters stand codes: "Lancaster County, NE" is not French.
    said = text if text.isupper() else _CAPITALS.sub(" ", text)
    for word in _LETTERS.findall(fold(said)):
        known = marks.get(word, ())
        for language in known:
            is_ambiguous = word in read_words(language).meaningful_elsewhere
            scores[language] += (AMBIGUOUS if is_ambiguous else 1) / len(known)
    written = set(text.lower())
    for language in LANGUAGES:
        scores[language] += LETTER * len(written & read_words(language).letters)
    (second, _), (score, best) = sorted((score, language) for language, score in scores.items())[-2:]
    return best if score - second >= LEAD else None


@cache
def _count_languages() -> dict[str, list[Language]]:
    """Return the languages of each function word."""
    marks: dict[str, list[Language]] = {}
    for language in LANGUAGES:
        words = read_words(language)
        for word in words.stop_words | words.telling_words:
            marks.setdefault(word, []).append(language)
    return marks


@cache
def _list_tongues() -> frozenset[str]:
    return frozenset[str]().union(*(read_words(language).tongues for language in LANGUAGES))
