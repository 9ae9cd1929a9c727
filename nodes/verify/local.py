"""Checks claims against the sources that they cite, without a language model.

A claim is supported when the sources have most of its words, have them close together, and contradict neither its
figures nor what it affirms. That is a lower bar than entailment: a wrong conclusion from the right words may pass.
Alternatives and measurements: docs/decisions/11-quotes-and-verification.md.
"""

import math
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

import numpy as np

from domain.documents import Source
from domain.ports.judgement import SUPPORTED, Align, Check
from domain.text.claims import is_statement, read_documents
from domain.text.markers import strip_markers
from domain.text.terms import STOP_WORDS
from domain.text.words import read_keys, tokenize
from nodes.reading.contrast import denies, has_opposite, share_matter
from nodes.reading.units import split_units
from nodes.writing.claims import find_quoted
from nodes.writing.missing import find_names

COVERED, TOGETHER = 0.70, 0.60
"""Share of a claim's words that the sources must have, and mean closeness that neighbouring words must have there: the
best common setting for the public data sets (a88e208a:benchmarks/verification.py)."""

FUNCTION_WORD = 0.8
"""Weight of a function word; a content word has 1. Words like "his" or "because" give inventions away too."""

SECOND_SOURCE = 6.0
"""Weight, in the closeness, of the share of words that only a second source has: an answer drawn from several sources
puts words side by side that none of them does."""

CONTRADICTED = 0.4
"""Factor on the score of a claim that a source contradicts in a point, and of an answer most of whose claims are
contradicted."""

_LEAST = 0.35
"""Share of a statement's words below which a source is not looked at more closely: its score would be 0.25 at most."""

_COMPANY = 2
"""Weight of the score of all claims when the verdict on one claim is found; its own score weighs 1."""

_NEIGHBOURS = 3
"""Distance, in content words of one sentence, up to which two words stand together."""

_FIRST_PERSON = frozenset(str.split("i me my mine myself"))

_FRAME = re.compile(
    rf"^\W*(?:(?:indeed|well|however|additionally|sorry)\b,?\s*|not sure\b,?\s*(?:but )?"
    rf"|(?:according to|based on|in) the (?:\w+ )?(?:documents?|sources?|passages?|texts?|context|articles?),?\s*"
    rf"|{read_documents('en').pattern} (?:(?:also|then|briefly|only) )*\w+s? (?:that )?)+",
    re.IGNORECASE,
)
"""Framing words that are the speaker's, at the start of a claim."""


@dataclass(frozen=True, slots=True)
class LocalVerifier:
    """Implements `ClaimVerifier`.

    The score of a claim also depends on the other claims of the answer, because a single sentence can miss words by
    chance.
    """

    async def verify(self, claims: Sequence[tuple[str, Sequence[Source]]]) -> tuple[list[Check], float]:
        cited_once = {id(source): source for _, cited in claims for source in cited}
        read = {key: _SourceText.read(source) for key, source in cited_once.items()}
        stated = [strip_markers(claim).strip() for claim, _ in claims]
        texts = [[read[id(source)] for source in cited] for _, cited in claims]
        quoted = [bool(find_quoted(claim, cited)) for claim, cited in claims]
        weighed = [_weigh_evidence(*each) for each in zip(stated, texts, quoted, strict=True)]
        counted = [evidence for evidence in weighed if evidence is not None]
        whole = 0.0
        if counted:
            whole = _score(fmean(each.coverage for each in counted), fmean(each.closeness for each in counted))
        checks = [_judge(claim, its, one, whole) for claim, its, one in zip(stated, texts, weighed, strict=True)]
        faulty = sum(bool(each.fault) for each in counted) > len(counted) / 2
        return checks, whole * CONTRADICTED if faulty else whole

    def align(self, question: str, sources: Sequence[Source]) -> Align:
        asked = frozenset(read_keys(question)) - STOP_WORDS
        read = [(source, text) for source in sources if asked & (text := _SourceText.read(source)).keys]
        return lambda statement: {source["number"]: _align(statement, source, text) for source, text in read}


@dataclass(frozen=True, slots=True)
class _SourceText:
    """The words and units of a source, read once for all the claims that are compared with it."""

    keys: frozenset[str]
    sentences: Mapping[str, frozenset[str]]
    """The keys of each sentence."""
    places: Mapping[str, Sequence[tuple[int, int]]]
    """Places by content word: number of the sentence, and position among its content words."""

    place: frozenset[str]
    """The keys of its title and headings."""

    @classmethod
    def read(cls, source: Source) -> "_SourceText":
        units = split_units(source)
        headings = (source["text"][slice(*unit.heading)] for unit in units if unit.heading)
        place = "\n".join([source["title"], *source["heading_path"]])
        shown = (place, *source.get("computed", "").split("\n"), *headings, *(unit.whole for unit in units))
        sentences: dict[str, frozenset[str]] = {}
        places: dict[str, list[tuple[int, int]]] = {}
        for number, text in enumerate(dict.fromkeys(shown)):
            keys = read_keys(strip_markers(text))
            sentences[text] = frozenset(keys)
            for position, key in enumerate(key for key in keys if key not in STOP_WORDS):
                places.setdefault(key, []).append((number, position))
        return cls(frozenset[str]().union(*sentences.values()), sentences, places, sentences[place])

    def read_around(self, keys: Set[str]) -> frozenset[str]:
        """Return the keys of the sentence that has most of these, of those beside it, and of the headings."""
        own = list(self.sentences.values())
        best = max(range(len(own)), key=lambda number: _weigh(own[number] & keys))
        return self.place.union(*own[max(best - 1, 0) : best + 2])

    def find_closeness(self, one: str, other: str) -> float:
        """Return 1 where the two words stand together somewhere, 0.5 where some sentence has both, else 0."""
        gaps = [abs(i - j) for p, i in self.places.get(one, ()) for q, j in self.places.get(other, ()) if p == q]
        return 0.0 if not gaps else 1.0 if min(gaps) <= _NEIGHBOURS else 0.5


def _align(statement: str, source: Source, text: _SourceText) -> float:
    """Return how well one source alone supports a statement; 0 where it contradicts it in a point, or has its figures
    and names elsewhere."""
    stated = strip_markers(statement).strip()
    part = _FRAME.sub("", stated)
    keys = frozenset(read_keys(part))
    if _weigh(text.keys & keys) < _LEAST * _weigh(keys):
        return 0.0
    evidence = _weigh_evidence(stated, [text], bool(find_quoted(stated, [source])))
    named = {key for name in find_names(part) for key in read_keys(name) if key not in STOP_WORDS}
    if evidence is None or evidence.fault or not (evidence.quoted or named <= text.read_around(keys)):
        return 0.0
    return _score(evidence.coverage, evidence.closeness)


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What the sources have of a claim."""

    coverage: float
    """Share of its words, by weight, 0-1."""
    closeness: float
    """Mean closeness of its neighbouring words, 0-1, and more where a second source adds words."""
    fault: str = ""
    """A sentence for the reader: the point that a source contradicts."""
    quoted: bool = False
    """True where a source has the claim word for word."""


def _weigh_evidence(claim: str, texts: Sequence[_SourceText], quoted: bool) -> _Evidence | None:
    """Return the evidence for a claim; None where nothing is claimed."""
    part = _FRAME.sub("", claim)
    keys = read_keys(part)
    content = [key for key in keys if key not in STOP_WORDS]
    if not is_statement(claim) or not content:
        return None
    sentences = {sentence: own for text in texts for sentence, own in text.sentences.items()}
    if not sentences:
        return _Evidence(0.0, 0.0)
    if quoted:
        return _Evidence(1.0, 1.0, quoted=True)
    given = _join(texts)
    covered = _cover(content, given)
    spread = covered - max(_cover(content, text.keys) for text in texts)
    pairs = [pair for pair in pairwise(content) if pair[0] != pair[1]]
    together = fmean(max(text.find_closeness(*pair) for text in texts) for pair in pairs) if pairs else covered
    nearest = max(sentences, key=lambda sentence: _weigh(sentences[sentence].intersection(keys)))
    return _Evidence(
        coverage=_weigh(given.intersection(keys)) / _weigh(set(keys)),
        closeness=together + SECOND_SOURCE * spread,
        fault=_find_fault(part, nearest, given),
    )


def _find_fault(part: str, nearest: str, given: Set[str]) -> str:
    """Return a sentence for the reader about the first point that the sources contradict or cannot know; empty where
    there is none."""
    if strange := [word for word in _find_missing(part, given) if word[0].isdigit()]:
        return f"The source does not mention {strange[0]}."
    keys = set(read_keys(part))
    alike = share_matter(keys, set(read_keys(nearest)))
    if has_opposite(part, nearest) or (alike and (denies(part, nearest) or denies(nearest, part))):
        return "The source says the opposite."
    return "It speaks of the speaker, who is not the source." if keys & _FIRST_PERSON - given else ""


def _judge(claim: str, texts: Sequence[_SourceText], evidence: _Evidence | None, whole: float) -> Check:
    if evidence is None:
        return Check("supported", "It states nothing.", 1.0)
    if not texts:
        return Check("unsupported", "It cites no source.", 0.0)
    if evidence.quoted:
        return Check("supported", "The source says so in these words.", 1.0)
    score = (_score(evidence.coverage, evidence.closeness) + _COMPANY * whole) / (1 + _COMPANY)
    if evidence.fault:
        return Check("unsupported", evidence.fault, score * CONTRADICTED)
    if score >= SUPPORTED:
        return Check("supported", "The source says so.", score)
    if missing := _find_missing(claim, _join(texts)):
        return Check("unsupported", f"The source does not mention {_list(missing[:3])}.", score)
    return Check("unsupported", "The source has these words, but says something else.", score)


def _score(coverage: float, closeness: float) -> float:
    """Return the score, 0-1. Support begins at 0.5, where one of the two reaches its bar and the other has passed."""
    scaled = (np.interp(value, (0, bar, 1), (0, 0.5, 1)) for value, bar in ((coverage, COVERED), (closeness, TOGETHER)))
    return float(min(scaled))


def _find_missing(text: str, given: Set[str]) -> list[str]:
    """Return the meaningful words of the text that are not given."""
    return [word for word, key in dict(tokenize(text)).items() if key not in given | STOP_WORDS]


def _join(texts: Sequence[_SourceText]) -> frozenset[str]:
    return frozenset[str]().union(*(text.keys for text in texts))


def _weigh(keys: Set[str]) -> float:
    """Return the sum of the words' weights."""
    # An exact sum does not depend on the order of the set, which differs between processes.
    return math.fsum(FUNCTION_WORD if key in STOP_WORDS else 1.0 for key in keys)


def _cover(words: Sequence[str], given: Set[str]) -> float:
    """Return the share of the words that is in `given`."""
    return sum(word in given for word in words) / len(words)


def _list(words: Sequence[str]) -> str:
    quoted = [f"“{word}”" for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
