"""Turns text into terms, as lexical search and the local judges compare them.

Words that mean the same should give the same term: compatibility forms, case, accents and English inflection are
levelled. Words without a meaning of their own are dropped, among them the question words and auxiliaries that open most
questions, in each of our languages. A compound with a digit (``IL-6``, ``covid-19``, ``v2.1``) gives its parts and the
compound itself, so that a code finds exactly itself and also texts that share a part with it.
"""

import re
import threading
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, repeat

import Stemmer

from domain.text.days import spell_days
from domain.text.languages import LANGUAGES, Language, fold, read_words

STOP_WORDS = read_words("en").stop_words.union(
    word
    for words in map(read_words, LANGUAGES)
    for word in words.stop_words - words.meaningful_elsewhere
    if len(word) > 2
)
"""Function words, question words, auxiliaries and light verbs of all our languages, because texts are analysed without
knowing their language. Words that mean something in another of them are kept, and so are foreign words of two letters:
they are as often part of a code, such as IL-6."""

_LONGEST = 64
"""Limit, in characters, of a word. Longer runs are encoded data, and the limit keeps the index bounded."""

_WORD = re.compile(
    r"""
    (?:[^\W\d_]\.){2,}                                  # initials: u.s. e.g.
    | \d{1,3}(?:,\d{3})+(?:\.\d+)?                      # 1,234,567.89
    | [^\W_]+ (?: ['\-–./:_+] [^\W_]+ )*                # a word, contraction or compound
    """,
    re.VERBOSE,
)
_PARTS = re.compile(r"[^\W_]+")
_DIGIT = re.compile(r"\d")
_DECIMAL = re.compile(r"\d+\.\d+")
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_SIGN = re.compile(r"(?<!\w)v(?=\d+\.\d)")

_REMEMBERED = 50_000
"""Strings whose terms are kept, because a few thousand make up most of any text: 15 MB at most."""

_ADDRESS = re.compile(r"\w@\w+[.-]\w")

_OTHER_FORM = 0.5
"""How much a form of a day counts that the query does not have. Chosen."""

_stemmers = threading.local()


def _stem(word: str, language: Language = "en") -> str:
    # A Snowball stemmer keeps a buffer, so each thread has its own.
    if not hasattr(_stemmers, language):
        setattr(_stemmers, language, Stemmer.Stemmer(language))
    stem: str = getattr(_stemmers, language).stemWord(word)
    return stem


def _read_word(word: str) -> tuple[tuple[str, ...], ...]:
    """Return the terms of each meaningful part of a word, the whole first."""
    if word.isalnum():
        return () if word in STOP_WORDS else ((word[:_LONGEST],),)
    if "'" in word and word in STOP_WORDS:
        return ()
    if word.endswith("."):
        return ((word.replace(".", "")[:_LONGEST],),)
    if "," in word:
        return ((word.replace(",", "")[:_LONGEST],),)
    if _DECIMAL.fullmatch(word):
        return ((word[:_LONGEST],),)
    word = word.removesuffix("'s")
    parts = tuple(p[:_LONGEST] for p in _PARTS.findall(word) if p not in STOP_WORDS)
    if _DIGIT.search(word):
        # Dots stay in a compound, because version 2.1 is not 21. Hyphens and the like go: IL-6 is IL6.
        return ((re.sub(r"[^\w.]|_", "", word)[:_LONGEST], *parts),)
    return tuple((part,) for part in parts)


def is_version(term: str) -> bool:
    """Return True for numbers between dots, such as 1.6.2."""
    return _VERSION.fullmatch(term) is not None


def drop_version_sign(text: str) -> str:
    """Return a text in lower case without the letter before a version, which some write and others do not."""
    return _SIGN.sub("", text)


def _split(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the terms of each word, the whole word first. Stop words are left out."""
    return chain.from_iterable(map(_read_word, _WORD.findall(drop_version_sign(fold(text)))))


@lru_cache(maxsize=_REMEMBERED)
def _analyse_string(folded: str) -> tuple[str, ...]:
    """Return the index terms of a string without white space, which no word spans."""
    return tuple(_stem(term) for word in _WORD.findall(folded) for terms in _read_word(word) for term in terms)


def analyse(text: str) -> list[str]:
    """Return the text's index terms, stemmed, in order and with repeats. The same for passages and queries of any
    language, because an index is asked in all of them."""
    return list(chain.from_iterable(map(_analyse_string, fold(text).split())))


def weigh_query_terms(query: str, language: Language = "en") -> dict[str, float]:
    """Return how much each term of a query counts: one for each mention of its word. The terms of a compound share the
    one, because else a code such as WS-400, which is three terms, outweighs the words beside it. Of a version only the
    whole counts: the 1 of 1.6.2 stands everywhere. A day is looked for in all forms. Those of English are those of the
    index."""
    weights: dict[str, float] = {}
    for terms in _split(query):
        counted = terms[:1] if is_version(terms[0]) else terms
        for term in counted:
            if term not in read_words(language).stop_words:
                stem = _stem(term, language)
                weights[stem] = weights.get(stem, 0.0) + 1 / len(counted)
    for terms in _split(" ".join(spell_days(query, language))):
        weights.setdefault(_stem(terms[0], language), _OTHER_FORM)
    return weights


@lru_cache(maxsize=_REMEMBERED)
def _analyse_string_in(language: Language, folded: str) -> tuple[str, ...]:
    stop_words = read_words(language).stop_words
    terms = (term for word in _WORD.findall(drop_version_sign(folded)) for terms in _read_word(word) for term in terms)
    return tuple(_stem(term, language) for term in terms if term not in stop_words)


def analyse_in(language: Language, text: str) -> list[str]:
    """Return the text's terms as `analyse` does, but stemmed as words of `language`, and without all of its function
    words. To compare a question with texts that are read at the time of the question."""
    return list(chain.from_iterable(map(_analyse_string_in, repeat(language), fold(text).split())))


@lru_cache(maxsize=2048)
def find_terms(text: str, language: Language | None = None) -> frozenset[str]:
    """Return the text's terms without order: those of the index, or as `analyse_in` has them, those of its days in
    other forms, and what a mail address is called. Cached, because the steps of a turn read the same sentences."""
    called = read_words(language or "en").mail if has_address(text) else ()
    text = "\n".join((text, *spell_days(text, language or "en"), *called))
    return frozenset(analyse(text) if language is None else analyse_in(language, text))


def has_address(text: str) -> bool:
    """Return True where the text has a mail address."""
    return _ADDRESS.search(text) is not None


def content_words(text: str) -> list[str]:
    """Return the text's meaningful words, levelled but not stemmed, in order and with repeats. A compound with a digit
    is one word."""
    return [terms[0] for terms in _split(text)]
