"""Checks claims against the sources that they cite, without a language model.

A claim is supported when the sources have most of its words, have them close together, and contradict neither its
numbers, names and quantities nor its direction. That is a lower bar than entailment: a wrong conclusion from the right
words may pass. Alternatives and measurements: docs/decisions/11-quotes-and-verification.md.
"""

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
from domain.text.terms import STOP_WORDS, analyse
from nodes.local.verification.contradictions import find_contradiction
from nodes.local.verification.direction import find_opposition, read_axes
from nodes.local.verification.names import find_strange_name
from nodes.local.verification.numbers import SCALES, agree, read_numbers
from nodes.local.verification.scoring import Signals, average, compute_score
from nodes.local.verification.source_text import SourceText
from nodes.local.verification.words import ITEM_START, WORD, flatten, stem_of, stems_of, weigh

_COMPANY = 2
"""Weight of the mean of all claims when the verdict on one claim is found; its own signals weigh 1."""

_EMBEDDED = 4
"""Number of source sentences that are embedded for all claims together: the lexically nearest to each."""

_NEAREST = 4
"""Limit of such sentences for one claim."""

_FRAME = re.compile(
    rf"^\W*(?:(?:indeed|well|however|additionally|sorry)\b,?\s*|not sure\b,?\s*(?:but )?"
    rf"|(?:according to|based on|in) the (?:\w+ )?{DOCUMENT_NOUN},?\s*"
    rf"|{THE_DOCUMENTS} (?:(?:also|then|briefly|only) )*\w+s? (?:that )?)+",
    re.IGNORECASE,
)
"""Framing words that are the speaker's, at the start of a claim."""

_ADMISSION = re.compile(
    rf"^\W*(?:\w+, )?(?:{THE_DOCUMENTS}|i|we) "
    r"(?:do(?:es)? not|don['’]t|doesn['’]t|cannot|can['’]t|could not|couldn['’]t) "
    r"(?:\w+ly )?(?:have|know|find|say|tell|provide|contain|mention|specify|give|state|include|cover|address|offer)\b",
    re.IGNORECASE,
)
"""An admission that the documents do not say; words cannot check it."""


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
    each = max(1, min(_NEAREST, _EMBEDDED // len(unquoted)))
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
    given = {key for text in texts for key in text.keys}
    missing = [word for word in dict.fromkeys(WORD.findall(claim)) if analyse(word) and stem_of(word) not in given]
    if missing:
        return Check("unsupported", f"The source does not mention {_list(missing[:3])}.", score)
    return Check("unsupported", "The source has these words, but says something else.", score)


def _measure(claim: str, texts: Sequence[SourceText]) -> Signals | None:
    """Return the evidence that words give; None where nothing is claimed."""
    part = _FRAME.sub("", ITEM_START.sub("", claim))
    words = [stem_of(word) for word in WORD.findall(part)]
    content = [word for word in words if word not in STOP_WORDS]
    if not is_statement(claim) or _ADMISSION.match(claim) or not content:
        return None
    passages = [passage for text in texts for passage in text.passages]
    if not passages:
        return Signals(0.0, 0.0, 0.0)
    if any(flatten(claim) in text.flat for text in texts):
        return Signals(1.0, 1.0, 0.0, quoted=True)
    given = {key for text in texts for key in text.keys}
    known = [number for text in texts for number in text.numbers]
    for number in read_numbers(part):
        if any(agree(number, other) for other in known):
            given |= {key for key in stems_of(number.text) if key in SCALES or key[0].isdigit()}
    covered = _cover(content, given)
    nearest = sorted(passages, key=lambda passage: -weigh(set(words) & passage.keys))[:_NEAREST]
    contradiction = find_contradiction(part, nearest[0].text, texts, given)
    return Signals(
        coverage=weigh(set(words) & given) / weigh(set(words)),
        closeness=_find_closeness(content, texts) if len(set(content)) > 1 else covered,
        spread=covered - max(_cover(content, text.keys) for text in texts),
        contradictions=float(contradiction is not None),
        fault=contradiction or find_strange_name(part, texts, given) or "",
        part=part,
        near=[passage.text for passage in nearest],
    )


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
