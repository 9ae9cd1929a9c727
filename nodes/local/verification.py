"""Checks statements against the sources they cite, without a language model.

A statement is supported when the source has most of its words, says something close to it, and contradicts neither
its numbers, names and quantities nor its direction. That is a lower bar than entailment: what passes may still be a
wrong conclusion from the right words.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from domain.citations import find_markers, strip_markers
from domain.documents import Source, Verdict
from domain.errors import EmbedderUnavailable
from domain.ports import Embedder
from domain.sentences import split_sentences
from domain.terms import STOP_WORDS, analyse

SUPPORTED = 0.7
"""Score from which a claim counts as supported: the best common threshold of the public sets
(benchmarks/verification.py)."""

FUNCTION_WORD = 0.7
"""What a function word counts beside a content word's 1. Words like "his" or "because" give inventions away too."""

COVERAGE = 0.8
"""Share of the score that is word coverage; the rest is the similarity to the nearest sentence of the source."""

CONTRADICTED = 0.4
"""What is left of the score of a claim that the source contradicts in one point."""

_EMBEDDED = 4
"""Sentences of the sources that are embedded for each sentence of a claim; the lexically nearest."""

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
    r"(?P<currency>[$€£¥]\s?)?(?<![\w.])(?<![A-Za-z][/–-])(?P<value>\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
    rf"|\b(?:{'|'.join(_NUMBER_WORDS)})\b)(?P<percent>\s?%|\s+percent\b)?"
    r"(?:[\s-]?(?P<scale>hundred|thousand|million|billion|bn|k|m)\b)?(?:[\s-]+(?P<unit>[^\W\d_]+))?",
    re.IGNORECASE,
)
_ROUGHLY = re.compile(r"(?:about|around|approximately|nearly|almost|over|roughly|some|than|~)\s*[$€£]?$", re.IGNORECASE)
_FRAME = re.compile(
    r"^\W*(?:(?:yes|no|indeed|well|however|additionally|sorry)\b,?\s*|(?:according to|based on|in) the (?:\w+ )?"
    r"(?:passages?|documents?|texts?|sources?|context),?\s*)+",
    re.IGNORECASE,
)
"""Words round a statement that are the speaker's."""
_ABOUT_DOCUMENTS = re.compile(r"^(?:the|these|your) (?:provided )?(?:documents?|sources?|passages?)\b", re.IGNORECASE)
_ITEM = re.compile(r"^\s*(?:[-*•]\s+|\d{1,2}[.)]\s+)?(?:\*\*[^*]{1,80}\*\*:?\s*|\*\*)?")


@dataclass(frozen=True, slots=True)
class Check:
    """What the check of one claim said, with a reason that a reader of the answer understands."""

    verdict: Verdict
    reason: str
    score: float


@dataclass(frozen=True, slots=True)
class ClaimSpan:
    """A statement at `answer[start:end]`, markers included, and the sources that it cites."""

    start: int
    end: int
    markers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Number:
    value: float
    unit: str
    text: str
    roughly: bool


def split_claims(answer: str, chunk_ids: Sequence[str]) -> list[ClaimSpan]:
    """The answer's statements with their markers: those in or right behind the sentence, or, where it has none, those
    of the next sentence of the same paragraph that has. Questions, headings, lines that introduce a list and remarks
    about the documents as such are no statements. `chunk_ids` are those of the sources, in order."""
    markers = find_markers(answer, chunk_ids)
    claims: list[ClaimSpan] = []
    uncited: list[int] = []
    for start, end in split_sentences(answer):
        if claims and "\n" in answer[claims[-1].end : start]:
            uncited.clear()
        numbers = tuple(dict.fromkeys(n for span in markers if start <= span.start < end for n in span.numbers))
        sentence = strip_markers(answer[start:end]).strip()
        if not numbers and (not _is_statement(sentence) or _ABOUT_DOCUMENTS.match(sentence)):
            continue
        if numbers:
            for position in uncited:
                claims[position] = replace(claims[position], markers=numbers)
            uncited.clear()
        else:
            uncited.append(len(claims))
        claims.append(ClaimSpan(start, end, numbers))
    return claims


async def check(claim: str, cited: Sequence[Source], embedder: Embedder) -> Check:
    """Whether `cited` supports `claim`. Of several sentences the mean counts, and at most half may be contradicted.

    Where the embedder is down, the words that claim and sources share stand for their closeness.
    """
    claim = strip_markers(claim).strip()
    if not cited:
        return Check("unsupported", "It cites no source.", 0.0)
    texts = ["\n".join([source["title"], *source["heading_path"], strip_markers(source["text"])]) for source in cited]
    if any(_flatten(claim) in _flatten(text) for text in texts):
        return Check("supported", "The source says so in these words.", 1.0)
    sentences = [claim[start:end] for start, end in split_sentences(claim)]
    parts = [part for s in sentences if _is_statement(s) and _keys(part := _FRAME.sub("", s))]
    if not parts:
        return Check("supported", "It states nothing.", 1.0)
    given = {key for text in texts for key in _keys(text)}
    passages = [text[start:end] for text in texts for start, end in split_sentences(text)]
    pairs = [(part, sorted(passages, key=lambda passage: -_share(_keys(part), passage))[:_EMBEDDED]) for part in parts]
    coverages = [_weigh(_keys(part) & given) / _weigh(_keys(part)) for part, _ in pairs]
    try:
        similarities = await _compare(pairs, embedder)
    except EmbedderUnavailable:
        similarities = coverages
    total = sum(
        COVERAGE * coverage + (1 - COVERAGE) * max(0.0, similarity)
        for coverage, similarity in zip(coverages, similarities, strict=True)
    )
    mean = min(1.0, total / len(pairs))
    faults = [fault for part, near in pairs if (fault := _find_fault(part, near[0], texts, given))]
    score = mean * (1 - (1 - CONTRADICTED) * len(faults) / len(pairs))
    if mean >= SUPPORTED and len(faults) <= len(pairs) / 2:
        return Check("supported", "The source says so.", score)
    missing = [word for word in dict.fromkeys(_WORD.findall(claim)) if analyse(word) and _key(word) not in given]
    if faults:
        reason = faults[0]
    elif missing:
        reason = f"The source does not mention {_list(missing[:3])}."
    else:
        reason = "The source has these words, but says something else."
    return Check("unsupported", reason, score)


async def _compare(pairs: Sequence[tuple[str, Sequence[str]]], embedder: Embedder) -> list[float]:
    """The cosine similarity of each text and the closest of those beside it."""
    vectors = await embedder.embed_passages([text for part, near in pairs for text in (part, *near)])
    similarities, row = [], 0
    for _, near in pairs:
        similarities.append(float((vectors[row + 1 : row + 1 + len(near)] @ vectors[row]).max()))
        row += 1 + len(near)
    return similarities


def _is_statement(sentence: str) -> bool:
    """Whether it says something, rather than asks it, announces it or heads it."""
    return bool(analyse(sentence)) and not sentence.endswith(("?", ":")) and not sentence.startswith("#")


def _find_fault(part: str, nearest: str, texts: Sequence[str], given: set[str]) -> str | None:
    """What in this sentence the sources contradict or do not know, in a sentence for the reader."""
    return (
        _find_strange_number(part, nearest, texts)
        or _find_strange_name(part, texts, given)
        or _find_opposite(part, nearest)
        or _find_negation(part, nearest)
    )


def _find_strange_number(part: str, nearest: str, texts: Sequence[str]) -> str | None:
    known = [number for text in texts for number in _read_numbers(text)]
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
        yield _Number(value, unit, shown.strip(" -"), bool(_ROUGHLY.search(text[: match.start()])))


def _find_strange_name(part: str, texts: Sequence[str], given: set[str]) -> str | None:
    body = _ITEM.sub("", part)
    words = list(re.finditer(r"[^\W\d_][\w’'&-]*", body))
    if sum(word[0][0].isupper() for word in words) > len(words) / 2:
        return None  # a heading or a line of names: capitals tell nothing
    lowered = "\n".join(texts).lower()
    for word in words[1:]:
        name = word[0].removesuffix("'s").removesuffix("’s")
        opens = body[: word.start()].rstrip()[-1:] in '.:!?"“'
        if not name[0].isupper() or opens or name.lower() in STOP_WORDS or len(name) < 2:
            continue
        # "Belgian" is covered by "Belgium", and "UK" by "United Kingdom".
        if name.lower()[:5] in lowered or _keys(name) <= given or (name.isupper() and _spells(name, lowered)):
            continue
        return f"The source does not mention {name}."
    return None


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
    return sum(FUNCTION_WORD if key in STOP_WORDS else 1.0 for key in keys)


def _share(keys: set[str], text: str) -> float:
    return _weigh(keys & _keys(text)) / _weigh(keys)


def _list(words: Sequence[str]) -> str:
    quoted = [f"“{word}”" for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
