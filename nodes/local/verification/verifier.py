"""Checks claims against the sources that they cite, without a language model.

A claim is supported when the sources have most of its words, have them close together, and contradict neither its
figures nor its direction. That is a lower bar than entailment: a wrong conclusion from the right
words may pass. Alternatives and measurements: docs/decisions/11-quotes-and-verification.md.
"""

import math
import re
from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise

from domain.documents import Source
from domain.errors import EmbedderUnavailable
from domain.ports.embedding import Embedder
from domain.ports.judgement import SUPPORTED, Check
from domain.text.claims import DOCUMENT_NOUN, THE_DOCUMENTS, is_statement
from domain.text.markers import strip_markers
from domain.text.terms import STOP_WORDS
from nodes.local.contrast import denies, has_opposite, share_matter
from nodes.local.verification.direction import find_opposition, read_axes
from nodes.local.verification.scoring import Signals, average, compute_score
from nodes.local.verification.source_text import SourceText, flatten
from nodes.local.words import read_keys, read_words

_COMPANY = 2
"""Weight of the mean of all claims when the verdict on one claim is found; its own signals weigh 1."""

_NEAREST = 4
"""Number of source sentences that are embedded for all claims together: the lexically nearest to each."""

_FIRST_PERSON = frozenset(str.split("i me my mine myself"))

FUNCTION_WORD = 0.8
"""Weight of a function word; a content word has 1. Words like "his" or "because" give inventions away too."""

_ITEM_START = re.compile(r"^\s*(?:[-*•]\s+|\d{1,2}[.)]\s+)?(?:\*\*[^*]{1,80}\*\*:?\s*|\*\*)?")
"""The bullet, number or bold lead-in before an item of a list."""

_FRAME = re.compile(
    rf"^\W*(?:(?:indeed|well|however|additionally|sorry)\b,?\s*|not sure\b,?\s*(?:but )?"
    rf"|(?:according to|based on|in) the (?:\w+ )?{DOCUMENT_NOUN},?\s*"
    rf"|{THE_DOCUMENTS} (?:(?:also|then|briefly|only) )*\w+s? (?:that )?)+",
    re.IGNORECASE,
)
"""Framing words that are the speaker's, at the start of a claim."""


@dataclass(frozen=True, slots=True)
class LocalVerifier:
    """Implements `ClaimVerifier`.

    A claim is judged by its company too: in one sentence words are missing by chance more often than in all of them.
    Where the embedder is down, words alone judge.
    """

    embedder: Embedder

    async def verify(self, claims: Sequence[tuple[str, Sequence[Source]]]) -> tuple[list[Check], float]:
        cited_once = {id(source): source for _, cited in claims for source in cited}
        read = {key: SourceText.read(source) for key, source in cited_once.items()}
        stated = [strip_markers(claim).strip() for claim, _ in claims]
        texts = [[read[id(source)] for source in cited] for _, cited in claims]
        measured = [_measure(claim, its) for claim, its in zip(stated, texts, strict=True)]
        with suppress(EmbedderUnavailable):
            measured = await _add_oppositions(measured, self.embedder)
        counted = [signals for signals in measured if signals is not None]
        if not counted:
            return [Check("supported", "It states nothing.", 1.0) for _ in stated], 0.0
        whole = average(counted)
        checks = [_judge(claim, its, one, whole) for claim, its, one in zip(stated, texts, measured, strict=True)]
        return checks, compute_score(whole)

    async def prepare(self) -> None:
        await read_axes(self.embedder)


async def _add_oppositions(measured: Sequence[Signals | None], embedder: Embedder) -> list[Signals | None]:
    """Return the signals, each with the opposition between its claim and the most similar of its nearest sentences."""
    unquoted = [signals for signals in measured if signals and signals.near]
    if not unquoted:
        return list(measured)
    each = max(1, _NEAREST // len(unquoted))
    embedded = list(dict.fromkeys(text for signals in unquoted for text in (signals.part, *signals.near[:each])))
    axes = await read_axes(embedder)
    vectors = dict(zip(embedded, await embedder.embed_passages(embedded), strict=True))

    def oppose(signals: Signals) -> float:
        own, near = vectors[signals.part], [vectors[text] for text in signals.near[:each]]
        return find_opposition(own, max(near, key=lambda other: float(own @ other)), axes)

    return [replace(s, opposition=oppose(s)) if s and s.near else s for s in measured]


def _judge(claim: str, texts: Sequence[SourceText], signals: Signals | None, whole: Signals) -> Check:
    if signals is None:
        return Check("supported", "It states nothing.", 1.0)
    if not texts:
        return Check("unsupported", "It cites no source.", 0.0)
    if signals.quoted:
        return Check("supported", "The source says so in these words.", 1.0)
    pooled = average([signals, *[whole] * _COMPANY])
    score = compute_score(replace(pooled, contradictions=float(bool(signals.fault))))
    if score >= SUPPORTED:
        return Check("supported", "The source says so.", score)
    if signals.fault:
        return Check("unsupported", signals.fault, score)
    if missing := _find_missing(claim, _join(texts)):
        return Check("unsupported", f"The source does not mention {_list(missing[:3])}.", score)
    return Check("unsupported", "The source has these words, but says something else.", score)


def _measure(claim: str, texts: Sequence[SourceText]) -> Signals | None:
    """Return the evidence that words give; None where nothing is claimed."""
    part = _FRAME.sub("", _ITEM_START.sub("", claim))
    keys = read_keys(part)
    content = [key for key in keys if key not in STOP_WORDS]
    if not is_statement(claim) or not content:
        return None
    sentences = {sentence: own for text in texts for sentence, own in text.sentences.items()}
    if not sentences:
        return Signals(0.0, 0.0, 0.0)
    if any(flatten(claim) in text.flat for text in texts):
        return Signals(1.0, 1.0, 0.0, quoted=True)
    given = _join(texts)
    covered = _cover(content, given)
    nearest = sorted(sentences, key=lambda sentence: -_weigh(sentences[sentence].intersection(keys)))[:_NEAREST]
    fault = _find_contradiction(part, nearest[0], given)
    return Signals(
        coverage=_weigh(given.intersection(keys)) / _weigh(set(keys)),
        closeness=_find_closeness(content, texts) if len(set(content)) > 1 else covered,
        spread=covered - max(_cover(content, text.keys) for text in texts),
        contradictions=float(bool(fault)),
        fault=fault,
        part=part,
        near=nearest,
    )


def _find_contradiction(part: str, nearest: str, given: Set[str]) -> str:
    """Return a sentence for the reader about the first point that the sources contradict or cannot know; empty where
    there is none."""
    strange = [word for word in _find_missing(part, given) if word[0].isdigit()]
    if strange:
        return f"The source does not mention {strange[0]}."
    keys = set(read_keys(part))
    alike = share_matter(keys, set(read_keys(nearest)))
    if has_opposite(part, nearest) or (alike and (denies(part, nearest) or denies(nearest, part))):
        return "The source says the opposite."
    return "It speaks of the speaker, who is not the source." if keys & _FIRST_PERSON - given else ""


def _find_missing(text: str, given: Set[str]) -> list[str]:
    """Return the meaningful words of the text that are not given."""
    return [word for word, key in dict(read_words(text)).items() if key not in given | STOP_WORDS]


def _join(texts: Sequence[SourceText]) -> frozenset[str]:
    return frozenset[str]().union(*(text.keys for text in texts))


def _weigh(keys: Set[str]) -> float:
    """Return the sum of the words' weights."""
    # An exact sum does not depend on the order of the set, which differs between processes.
    return math.fsum(FUNCTION_WORD if key in STOP_WORDS else 1.0 for key in keys)


def _cover(words: Sequence[str], given: Set[str]) -> float:
    """Return the share of the words that is in `given`."""
    return sum(word in given for word in words) / len(words)


def _find_closeness(words: Sequence[str], texts: Sequence[SourceText]) -> float:
    """Return how close each word and the next stand in the sources: the mean, 0-1."""
    pairs = [pair for pair in pairwise(words) if pair[0] != pair[1]]
    return sum(max(text.find_closeness(*pair) for text in texts) for pair in pairs) / len(pairs)


def _list(words: Sequence[str]) -> str:
    quoted = [f"“{word}”" for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
