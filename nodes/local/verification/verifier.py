"""Checks statements against the sources they cite, without a language model.

A statement is supported when the sources have most of its words, have them together as it puts them, and contradict
neither its numbers, names and quantities nor its direction. That is a lower bar than entailment: what passes may still
be a wrong conclusion from the right words. What was tried and measured: docs/decisions/11-quotes-and-verification.md.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from domain.documents import Source
from domain.errors import EmbedderUnavailable
from domain.ports.embedding import Embedder
from domain.ports.judgement import SUPPORTED, Check
from domain.text.claims import DOCUMENT_NOUN, THE_DOCUMENTS, is_statement
from domain.text.markers import strip_markers
from domain.text.sentences import split_sentences
from domain.text.terms import STOP_WORDS, analyse
from nodes.local.verification.direction import find_opposition, read_axes

COVERED = 0.70
"""Share of a statement's words that the sources must have. This and the next two are the best common setting of the
public sets (benchmarks/verification.py)."""

TOGETHER = 0.59
"""Mean closeness, in the sources, of each two neighbouring words of a statement."""

SECOND_SOURCE = 6.0
"""What each share of the words that only a second source has adds to the closeness: an answer drawn from several
sources puts words side by side that none of them does."""

FUNCTION_WORD = 0.7
"""What a function word counts beside a content word's 1. Words like "his" or "because" give inventions away too."""

SPEAKER_WORD = 1.5
"""What "I", "my" or "you" counts: whoever speaks of himself does not speak from the sources."""

DECISIVE = 10.0
"""How soon words that fall short of those bars, or pass them, decide. The higher, the more is left to `OPPOSED`."""

OPPOSED = 4.0
"""What the opposition of a statement to the nearest sentence of its sources weighs."""

AGREED = 0.02
"""The usual opposition of a statement to the sentence that it comes from."""

CONTRADICTED = 0.4
"""What is left of the score of a claim that the source contradicts in one point, and of an answer where more than
`_CONTRADICTIONS` of its claims are."""

_CONTRADICTIONS = 0.5
_STEEPNESS = 6.0
"""Spreads the score over 0-1."""

_COMPANY = 2
"""Times that the mean of all statements counts beside a statement's own words when its verdict is found."""

_EMBEDDED = 4
"""Sentences of the sources that are embedded for all statements together: the lexically nearest to each."""
_NEAREST = 4
"""How many of them at most for one statement."""

_NEIGHBOURS = 3
"""Content words apart, in one sentence, up to which two words are together; in the same sentence they are half."""

_SAME_MATTER = 0.75
"""Share of a claim's words that a sentence must have before a difference between the two is a contradiction."""

_NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        str.split(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen twenty"
        )
    )
} | {"thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70", "eighty": "80", "ninety": "90"}

_SCALES = {"hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "m": 1e6, "billion": 1e9, "bn": 1e9}

_OPPOSITES = (
    ("increases rises rose grows grew higher improves", "decreases falls fell shrinks declines drops reduces lower"),
    ("more above exceeds", "less fewer below"),
    ("before", "after"),
    ("allowed permitted", "forbidden prohibited banned"),
    ("includes", "excludes"),
    ("maximum most largest highest", "minimum least smallest lowest"),
    ("required mandatory must", "optional voluntary"),
    ("possible able", "impossible unable"),
    ("positive", "negative"),
    ("accepts approves", "rejects refuses denies"),
    ("wins won", "loses lost"),
    ("open", "closed"),
    ("buys bought", "sells sold"),
    ("succeeds success", "fails failure"),
    ("safe", "dangerous unsafe"),
    ("activates enables promotes", "deactivates disables inhibits suppresses"),
    ("all every always each", "some sometimes few rarely several"),
)  # fmt: skip

_NEGATIONS = frozenset(str.split("not no never none neither nor without cannot nobody nothing lacks lack"))
_NEGATED_WORDS = 2
"""How many content words after a negation it is taken to govern."""

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’](?:t|s|re|ve|ll|d|m)\b)?")
_NUMBER = re.compile(
    r"(?P<currency>[$€£¥]\s?)?(?<![\w.])(?<![A-Za-z][/–-])(?<!\d/)(?P<value>\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
    rf"|\b(?:{'|'.join(_NUMBER_WORDS)})\b)(?P<percent>\s?%|\s+percent\b)?"
    r"(?:[\s-]?(?P<scale>hundred|thousand|million|billion|bn|k|m)\b)?(?:[\s-]+(?P<unit>[^\W\d_]+))?",
    re.IGNORECASE,
)
_ROUGHLY = re.compile(r"(?:about|around|approximately|nearly|almost|over|roughly|some|than|~)\s*[$€£]?$", re.IGNORECASE)
_ROUGHLY_WITHIN = 30
"""Characters before a number that are looked at."""
_FRAME = re.compile(
    rf"^\W*(?:(?:indeed|well|however|additionally|sorry)\b,?\s*|not sure\b,?\s*(?:but )?"
    rf"|(?:according to|based on|in) the (?:\w+ )?{DOCUMENT_NOUN},?\s*"
    rf"|{THE_DOCUMENTS} (?:(?:also|then|briefly|only) )*\w+s? (?:that )?)+",
    re.IGNORECASE,
)
"""Words round a statement that are the speaker's."""
_ADMISSION = re.compile(
    rf"^\W*(?:\w+, )?(?:{THE_DOCUMENTS}|i|we) "
    r"(?:do(?:es)? not|don['’]t|doesn['’]t|cannot|can['’]t|could not|couldn['’]t) "
    r"(?:\w+ly )?(?:have|know|find|say|tell|provide|contain|mention|specify|give|state|include|cover|address|offer)\b",
    re.IGNORECASE,
)
"""That the documents do not say; words cannot check it."""
_FUNCTION_WORDS = STOP_WORDS - {"yes", "no"}
"""Without those that agree or disagree with a question, which is not the sources' business."""
_FIRST_PERSON = frozenset(str.split("i me my mine myself"))
_SPEAKER = frozenset(str.split("i me my mine myself you your yours we us our ours"))
_ITEM = re.compile(r"^\s*(?:[-*•]\s+|\d{1,2}[.)]\s+)?(?:\*\*[^*]{1,80}\*\*:?\s*|\*\*)?")


@dataclass(frozen=True, slots=True)
class _Number:
    value: float
    unit: str
    text: str
    roughly: bool


@dataclass(frozen=True, slots=True)
class LocalVerifier:
    """Implements `ClaimVerifier`.

    A claim is judged by its company too: in one sentence words are missing by chance more often than in all of them.
    Where the embedder is down, words alone judge.
    """

    embedder: Embedder

    async def verify(self, claims: Sequence[tuple[str, Sequence[Source]]]) -> tuple[list[Check], float]:
        cited_once = {id(source): source for _, cited in claims for source in cited}
        read = {key: _Text.read(source) for key, source in cited_once.items()}
        stated = [strip_markers(claim).strip() for claim, _ in claims]
        texts = [[read[id(source)] for source in cited] for _, cited in claims]
        measured = [_measure(claim, its) for claim, its in zip(stated, texts, strict=True)]
        with suppress(EmbedderUnavailable):
            measured = await _add_oppositions(measured, self.embedder)
        counted = [signals for signals in measured if signals is not None]
        if not counted:
            return [Check("supported", "It states nothing.", 1.0) for _ in stated], 0.0
        whole = _average(counted)
        checks = [_judge(claim, its, one, whole) for claim, its, one in zip(stated, texts, measured, strict=True)]
        return checks, _score(whole)

    async def prepare(self) -> None:
        await read_axes(self.embedder)


async def _add_oppositions(measured: Sequence["_Signals | None"], embedder: Embedder) -> list["_Signals | None"]:
    """The signals with the opposition of each claim to the most similar of its nearest sentences."""
    unquoted = [signals for signals in measured if signals and signals.near]
    if not unquoted:
        return list(measured)
    each = max(1, min(_NEAREST, _EMBEDDED // len(unquoted)))
    embedded = list(dict.fromkeys(text for signals in unquoted for text in (signals.part, *signals.near[:each])))
    axes = await read_axes(embedder)
    vectors = dict(zip(embedded, await embedder.embed_passages(embedded), strict=True))

    def oppose(signals: _Signals) -> float:
        own, near = vectors[signals.part], [vectors[text] for text in signals.near[:each]]
        return find_opposition(own, max(near, key=lambda other: float(own @ other)), axes)

    return [replace(s, opposition=oppose(s)) if s and s.near else s for s in measured]


def _judge(claim: str, texts: Sequence["_Text"], signals: "_Signals | None", whole: "_Signals") -> Check:
    if signals is None:
        return Check("supported", "It states nothing.", 1.0)
    if not texts:
        return Check("unsupported", "It cites no source.", 0.0)
    if signals.quoted:
        return Check("supported", "The source says so in these words.", 1.0)
    pooled = _average([signals, *[whole] * _COMPANY])
    score = _score(replace(pooled, contradictions=float(bool(signals.fault))))
    if score >= SUPPORTED:
        return Check("supported", "The source says so.", score)
    if signals.fault:
        return Check("unsupported", signals.fault, score)
    given = {key for text in texts for key in text.keys}
    missing = [word for word in dict.fromkeys(_WORD.findall(claim)) if analyse(word) and _key(word) not in given]
    if missing:
        return Check("unsupported", f"The source does not mention {_list(missing[:3])}.", score)
    return Check("unsupported", "The source has these words, but says something else.", score)


def _measure(claim: str, texts: Sequence["_Text"]) -> "_Signals | None":
    """What is known of a claim by its words; None where it claims nothing."""
    part = _FRAME.sub("", _ITEM.sub("", claim))
    words = [_key(word) for word in _WORD.findall(part)]
    content = [word for word in words if word not in STOP_WORDS]
    if not is_statement(claim) or _ADMISSION.match(claim) or not content:
        return None
    passages = [passage for text in texts for passage in text.passages]
    if not passages:
        return _Signals(0.0, 0.0, 0.0)
    if any(_flatten(claim) in text.flat for text in texts):
        return _Signals(1.0, 1.0, 0.0, quoted=True)
    given = {key for text in texts for key in text.keys}
    known = [number for text in texts for number in text.numbers]
    for number in _read_numbers(part):
        if any(_agree(number, other) for other in known):
            given |= {key for key in _keys(number.text) if key in _SCALES or key[0].isdigit()}
    covered = _cover(content, given)
    nearest = sorted(passages, key=lambda passage: -_weigh(set(words) & passage.keys))[:_NEAREST]
    contradiction = _find_contradiction(part, nearest[0].text, texts, given)
    return _Signals(
        coverage=_weigh(set(words) & given) / _weigh(set(words)),
        closeness=_find_closeness(content, texts) if len(set(content)) > 1 else covered,
        spread=covered - max(_cover(content, text.keys) for text in texts),
        contradictions=float(contradiction is not None),
        fault=contradiction or _find_strange_name(part, texts, given) or "",
        part=part,
        near=[passage.text for passage in nearest],
    )


def _cover(words: Sequence[str], given: Set[str]) -> float:
    """The share of the words that is given."""
    return sum(word in given for word in words) / len(words)


def _find_closeness(words: Sequence[str], texts: Sequence["_Text"]) -> float:
    """How close each word and the next are in the sources, 0-1 on the mean."""
    pairs = [pair for pair in pairwise(words) if pair[0] != pair[1]]
    return sum(max(text.find_closeness(*pair) for text in texts) for pair in pairs) / len(pairs)


def _score(signals: "_Signals") -> float:
    """0.5 where support begins, 0 where there is none."""
    together = min(1.0, signals.closeness + SECOND_SOURCE * signals.spread)
    words = min(_scale(signals.coverage, COVERED), _scale(together, TOGETHER))
    evidence = math.tanh(DECISIVE * (words - 0.5)) / 2 - OPPOSED * (signals.opposition - AGREED)
    score = 1 / (1 + math.exp(-_STEEPNESS * evidence))
    return score * CONTRADICTED if signals.contradictions > _CONTRADICTIONS else score


def _scale(value: float, threshold: float) -> float:
    """0, `threshold` and 1 to 0, 0.5 and 1, straight between."""
    return 0.5 * value / threshold if value < threshold else 0.5 + 0.5 * (value - threshold) / (1 - threshold)


def _average(signals: Sequence["_Signals"]) -> "_Signals":
    count = len(signals)
    return _Signals(
        sum(each.coverage for each in signals) / count,
        sum(each.closeness for each in signals) / count,
        sum(each.spread for each in signals) / count,
        sum(each.contradictions for each in signals) / count,
        sum(each.opposition for each in signals) / count,
    )


@dataclass(frozen=True, slots=True)
class _Signals:
    """Shares, 0-1."""

    coverage: float
    """Of the words, by weight, that the sources have."""
    closeness: float
    spread: float
    """Of the content words that the sources have, but the best of them has not."""
    contradictions: float = 0.0
    """Of the claims that a source contradicts."""
    opposition: float = AGREED
    fault: str = ""
    """What the sources contradict or do not know of it, for the reader."""
    quoted: bool = False
    part: str = ""
    """The claim without what frames it."""
    near: Sequence[str] = ()
    """The sentences of the sources that share most words with it."""


@dataclass(frozen=True, slots=True)
class _Passage:
    """A sentence of a source."""

    text: str
    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Text:
    """A source, read once for all claims that cite it."""

    flat: str
    keys: frozenset[str]
    numbers: Sequence[_Number]
    passages: Sequence[_Passage]
    places: Mapping[str, Sequence[tuple[int, int]]]
    """Of each content word: number of the passage, and position among its content words."""

    @classmethod
    def read(cls, source: Source) -> "_Text":
        text = "\n".join([source["title"], *source["heading_path"], strip_markers(source["text"])])
        passages: list[_Passage] = []
        places: dict[str, list[tuple[int, int]]] = {}
        for number, (start, end) in enumerate(split_sentences(text)):
            words = [_key(word) for word in _WORD.findall(text[start:end])]
            passages.append(_Passage(text[start:end], frozenset(words)))
            for position, word in enumerate(word for word in words if word not in STOP_WORDS):
                places.setdefault(word, []).append((number, position))
        keys = frozenset(key for passage in passages for key in passage.keys)
        return cls(_flatten(text), keys, tuple(_read_numbers(text)), passages, places)

    def find_closeness(self, one: str, other: str) -> float:
        """1 where the two words stand together somewhere, 0.5 where some sentence has both, or else 0."""
        gaps = [abs(i - j) for p, i in self.places.get(one, ()) for q, j in self.places.get(other, ()) if p == q]
        return 0.0 if not gaps else 1.0 if min(gaps) <= _NEIGHBOURS else 0.5


def _find_contradiction(part: str, nearest: str, texts: Sequence["_Text"], given: Set[str]) -> str | None:
    """What in this sentence the sources contradict, or cannot know, in a sentence for the reader."""
    return (
        _find_strange_number(part, nearest, texts)
        or _find_opposite(part, nearest)
        or _find_negation(part, nearest)
        or _find_speaker(part, given)
    )


def _find_speaker(part: str, given: Set[str]) -> str | None:
    spoken = [word for word in _WORD.findall(part) if word.lower() in _FIRST_PERSON and word.lower() not in given]
    return f"“{spoken[0]}” is not the source." if spoken else None


def _find_strange_number(part: str, nearest: str, texts: Sequence["_Text"]) -> str | None:
    known = [number for text in texts for number in text.numbers]
    close = list(_read_numbers(nearest))
    for number in _read_numbers(_ITEM.sub("", part)):
        rival = next((n for n in close if n.unit and n.unit == number.unit and n.value != number.value), None)
        if any(_agree(number, other) for other in (close if rival else known)):
            continue
        if rival:
            return f"The source says {rival.text}, the answer says {number.text}."
        if re.search(r"\d", number.text):  # a spelt number may only count what the source lists
            return f"The source does not mention {number.text}."
    return None


def _agree(number: _Number, other: _Number) -> bool:
    # "from $220 to $249 billion" leaves the first scale out.
    if number.value == other.value or (number.value and other.value / number.value in _SCALES.values()):
        return True
    return (number.roughly or other.roughly) and abs(number.value - other.value) <= 0.1 * max(number.value, other.value)


def _read_numbers(text: str) -> Iterator[_Number]:
    for match in _NUMBER.finditer(text):
        plain = match["value"].replace(",", "")
        value = float(_NUMBER_WORDS.get(plain.lower(), plain)) * _SCALES.get((match["scale"] or "").lower(), 1)
        unit = "%" if match["percent"] else (match["currency"] or "").strip()
        noun = match["unit"] or ""
        if not unit and noun.lower() not in STOP_WORDS:
            unit = _key(noun)
        shown = match[0] if unit and unit not in "%$€£¥" else match[0].removesuffix(noun)
        before = text[max(0, match.start() - _ROUGHLY_WITHIN) : match.start()]
        yield _Number(value, unit, shown.strip(" -"), bool(_ROUGHLY.search(before)))


def _find_strange_name(part: str, texts: Sequence["_Text"], given: Set[str]) -> str | None:
    body = _ITEM.sub("", part)
    words = list(re.finditer(r"[^\W\d_][\w’'&-]*", body))
    if sum(word[0][0].isupper() for word in words) > len(words) / 2:
        return None  # a heading or a line of names: capitals tell nothing
    lowered = "\n".join(text.flat for text in texts)
    for word in words[1:]:
        name = word[0].removesuffix("'s").removesuffix("’s")
        opens = body[: word.start()].rstrip()[-1:] in '.:!?"“'
        if not name[0].isupper() or opens or name.lower() in STOP_WORDS or len(name) < 2:
            continue
        # "Belgian" is covered by "Belgium", and "UK" by "United Kingdom".
        if name.lower()[:5] in lowered or _keys(name) <= given or (name.isupper() and _spells(name, lowered)):
            continue
        if "-" in name and all(piece.lower()[:5] in lowered for piece in name.split("-") if piece[:1].isupper()):
            continue
        if _introduces(body, word):
            continue
        return f"The source does not mention {name}."
    return None


def _introduces(body: str, word: re.Match[str]) -> bool:
    """Whether the word is an abbreviation in brackets behind what it stands for."""
    return body[word.start() - 1] == "(" and body[word.end() : word.end() + 1] == ")"


def _spells(initials: str, text: str) -> bool:
    return re.search(r"[\s-]+".join(rf"\b{re.escape(letter)}\w*" for letter in initials.lower()), text) is not None


def _find_opposite(part: str, nearest: str) -> str | None:
    claimed, said = _keys(part), _keys(nearest)
    if not _same_matter(part, nearest):
        return None
    for side, other in _opposites():
        for ours, theirs in ((side, other), (other, side)):
            mine, yours = claimed & ours.keys(), said & theirs.keys()
            if mine and yours and not claimed & theirs.keys() and not said & ours.keys():
                return f"The source says “{theirs[min(yours)]}”, the answer says “{ours[min(mine)]}”."
    return None


@lru_cache(maxsize=1)
def _opposites() -> list[tuple[dict[str, str], dict[str, str]]]:
    """Each side as words by their key."""
    return [
        ({_key(word): word for word in side.split()}, {_key(word): word for word in other.split()})
        for side, other in _OPPOSITES
    ]


def _find_negation(part: str, nearest: str) -> str | None:
    if not _same_matter(part, nearest):
        return None
    claimed, said = _read_negated(part), _read_negated(nearest)
    both = _keys(part) & _keys(nearest)
    if claimed & both - said and not said:
        return "The answer denies what the source says."
    if said & both - claimed and not claimed:
        return "The source denies what the answer says."
    return None


def _read_negated(text: str) -> set[str]:
    """The content words that a negation governs."""
    negated: set[str] = set()
    left = 0
    for word in _WORD.findall(text.lower()):
        if word in _NEGATIONS or word.endswith(("n't", "n’t")):
            left = _NEGATED_WORDS
        elif left and analyse(word):
            negated.add(_key(word))
            left -= 1
    return negated


def _same_matter(part: str, nearest: str) -> bool:
    """Whether two sentences are so alike that a difference between them is a contradiction."""
    one, other = (keys - STOP_WORDS for keys in (_keys(part), _keys(nearest)))
    shared = len(one & other)
    return shared >= _SAME_MATTER * max(1, len(one)) and shared >= _SAME_MATTER / 2 * len(other)


def _flatten(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(" .!…")


@lru_cache(maxsize=50_000)
def _key(word: str) -> str:
    """What a word is compared by: its stem, or itself where it is a function word."""
    word = word.lower().replace("’", "'").replace(",", "")
    word = _NUMBER_WORDS.get(word, word)
    terms = analyse(word)
    return terms[0] if terms else word


def _keys(text: str) -> set[str]:
    return {_key(word) for word in _WORD.findall(text)}


def _weigh(keys: set[str]) -> float:
    # The exact sum does not depend on the set's order, which differs between processes and would break ties anew.
    return math.fsum(SPEAKER_WORD if k in _SPEAKER else FUNCTION_WORD if k in _FUNCTION_WORDS else 1.0 for k in keys)


def _list(words: Sequence[str]) -> str:
    quoted = [f"“{word}”" for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
