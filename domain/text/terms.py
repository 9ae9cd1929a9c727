"""Turns text into terms, as lexical search and the local judges compare them.

Words that mean the same should give the same term: compatibility forms, case, accents and English inflection are
levelled. Words without a meaning of their own are dropped, among them the question words and auxiliaries that open most
questions. A compound with a digit (``IL-6``, ``covid-19``, ``v2.1``) gives its parts and the compound itself, so that a
code finds exactly itself and also texts that share a part with it.
"""

import re
import threading
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

import Stemmer

STOP_WORDS = frozenset(
    """
    a about above across after afterwards again against all almost along already also although always am among an and
    another any anybody anyhow anyone anything anyway are aren't around as at away be became because become becomes
    been before beforehand behind being below beside besides between beyond both but by can can't cannot could couldn't
    despite did didn't do does doesn't doing don't done down due during each either else elsewhere enough especially
    etc even ever every everybody everyone everything everywhere exactly except few for from further furthermore gave
    get gets getting give given gives giving go goes going got had hadn't has hasn't have haven't having he he'd he'll
    he's hence her here here's hereby hers herself him himself his how how's however i i'd i'll i'm i've if in indeed
    instead into is isn't it it'd it'll it's its itself just kind know known latter least less let let's like likely
    made mainly make makes making many may maybe me mean means meanwhile might mightn't mine more moreover most mostly
    much must mustn't my myself namely near need needn't neither never nevertheless next no nobody none nonetheless nor
    not nothing now nowhere of off often on once one one's ones only onto or other others otherwise ought our ours
    ourselves out over own particular per perhaps please possible possibly put quite rather really regarding said same
    say says see seem seemed seeming seems seen several shall shan't she she'd she'll she's should shouldn't show shown
    shows since so some somebody somehow someone something sometime sometimes somewhat somewhere still such sure take
    taken tell than that that'd that'll that's the their theirs them themselves then thence there there'd there'll
    there's thereafter thereby therefore therein these they they'd they'll they're they've thing things this those
    though through throughout thus to together too took toward towards under unless unlike until up upon use used uses
    using usually various very via want was wasn't way we we'd we'll we're we've well went were weren't what what'd
    what'll what're what's whatever when when's whenever where where'd where's whereas whereby wherein wherever whether
    which whichever while whilst who who'd who'll who's whoever whole whom whose why why's will with within without
    won't would wouldn't yes yet you you'd you'll you're you've your yours yourself yourselves
    """.split()  # noqa: SIM905 - a literal of 400 quoted words would be harder to read
)
"""Function words, question words, auxiliaries and light verbs. The list is long on purpose: on the public question sets
its length gained both quality and speed (docs/measurements/retrieval.md)."""

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
_COMBINING = re.compile(r"[\u0300-\u036f]")

_stemmers = threading.local()


@lru_cache(maxsize=200_000)
def _stem(word: str) -> str:
    # A Snowball stemmer keeps a buffer, so each thread has its own.
    if not hasattr(_stemmers, "english"):
        _stemmers.english = Stemmer.Stemmer("english")
    stem: str = _stemmers.english.stemWord(word)
    return stem


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("‐", "-").replace("‑", "-")
    return text if text.isascii() else _COMBINING.sub("", unicodedata.normalize("NFD", text))


@lru_cache(maxsize=200_000)
def _read_word(word: str) -> tuple[tuple[str, ...], ...]:
    """Return the terms of each meaningful part of a word, the whole first. Cached, because a few thousand words make up
    most of any text."""
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
    parts = tuple(p[:_LONGEST] for p in _PARTS.findall(word.removesuffix("'s")) if p not in STOP_WORDS)
    if _DIGIT.search(word):
        # Dots stay in a compound, because version 2.1 is not 21. Hyphens and the like go: IL-6 is IL6.
        return ((re.sub(r"[^\w.]|_", "", word)[:_LONGEST], *parts),)
    return tuple((part,) for part in parts)


def _split(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the terms of each word, the whole word first. Stop words are left out."""
    return chain.from_iterable(map(_read_word, _WORD.findall(_fold(text))))


def analyse(text: str) -> list[str]:
    """Return the text's index terms, stemmed, in order and with repeats. The same for passages and queries."""
    return [_stem(term) for terms in _split(text) for term in terms]


def content_words(text: str) -> list[str]:
    """Return the text's meaningful words, levelled but not stemmed, in order and with repeats. A compound with a digit
    is one word."""
    return [terms[0] for terms in _split(text)]
