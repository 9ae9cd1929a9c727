"""Questions and passages that are about the matter and hold no answer, and questions as people type them."""

import math
import random
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

WORD = re.compile(r"[a-z0-9]+")
_WORDS = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))
STOP = frozenset(_WORDS["stop"])
NUMBER = re.compile(r"\b\d[\d,.]*\d\b|\b\d+\b")
NAME = re.compile(r"(?<=[a-z,] )(?:[A-Z][\w'’-]+)(?: (?:of |the )?[A-Z][\w'’-]+)*")


def words(text: str) -> list[str]:
    return [word for word in WORD.findall(text.lower()) if word not in STOP]


class Neighbours:
    """The passages of a document, the most similar to a question first (idf-weighted overlap)."""

    def __init__(self, contexts: list[str]) -> None:
        self.contexts = contexts
        self.words = [set(words(context)) for context in contexts]
        counts = Counter(word for each in self.words for word in each)
        self.weights = {word: math.log(1 + len(contexts) / count) for word, count in counts.items()}

    def like(self, question: str, most: int) -> list[str]:
        asked = set(words(question))
        scores = [(sum(self.weights[word] for word in asked & each), n) for n, each in enumerate(self.words)]
        return [self.contexts[n] for score, n in sorted(scores, reverse=True)[:most] if score > 0]


def exchange(question: str, passage: str, others: list[str], rng: random.Random) -> str | None:
    """The question about another name or number of the same document that `passage` lacks."""
    lower = passage.lower()
    for pattern in rng.sample([NUMBER, NAME], 2):
        found = [match for match in pattern.finditer(question) if match.group().lower() in lower]
        if not found:
            continue
        match = rng.choice(found)
        shape = len(match.group()) == 4 if pattern is NUMBER else len(match.group().split())
        pool = [
            new
            for other in rng.sample(others, min(8, len(others)))
            for new in pattern.findall(other)
            if new.lower() not in lower
        ]
        if pattern is NUMBER:
            pool = [new for new in pool if (len(new) == 4) == shape]
        else:
            pool = [new for new in pool if len(new.split()) == shape] or pool
        if pool:
            return question[: match.start()] + rng.choice(pool) + question[match.end() :]
    return None


class Opposites:
    def __init__(self) -> None:
        pairs = _WORDS["opposites"]
        self.of = dict(pairs) | {b: a for a, b in pairs}

    def exchange(self, question: str, rng: random.Random) -> str | None:
        found = [match for match in re.finditer(r"[a-z]+", question) if match.group() in self.of]
        if not found:
            return None
        match = rng.choice(found)
        return question[: match.start()] + self.of[match.group()] + question[match.end() :]


def as_typed(question: str, rng: random.Random) -> str:
    """The question as people type it, for one in three: lower case, keywords, a slip of the finger."""
    draw = rng.random()
    if draw < 0.14:
        return question.lower().rstrip("?").strip()
    if draw < 0.22:
        kept = [word for word in question.rstrip("?").split() if word.lower() not in STOP]
        return " ".join(kept) if len(kept) >= 2 else question
    if draw < 0.29:
        parts = question.split()
        long = [n for n, word in enumerate(parts) if len(word) > 4 and word.isalpha()]
        if long:
            n = rng.choice(long)
            at = rng.randrange(1, len(parts[n]) - 2)
            word = parts[n]
            parts[n] = rng.choice([word[:at] + word[at + 1 :], word[:at] + word[at + 1] + word[at] + word[at + 2 :]])
        return " ".join(parts)
    return question


_AUXILIARY = re.compile(
    r"((?:\S+ ){1,8}?)"
    r"(is|are|was|were|can|could|will|would|shall|should|may|must|(?:has|have|had)(?= (?:been|\w+ed)\b)) "
    r"((?:not )?)(.+?)[.\s]*"
)
_ARTICLE = re.compile(r"(?:The|A|An|This|These|There|It|He|She|They|All|Some|Many) ")


def ask_whether(claim: str, rng: random.Random) -> str | None:
    """The claim as a question for yes or no: its auxiliary verb comes first. None where it has none near its start.
    A "not" stays in every second question, because the same passage decides both."""
    if (match := _AUXILIARY.fullmatch(claim)) is None:
        return None
    subject, auxiliary, denial, rest = match.groups()
    if opening := _ARTICLE.match(subject):
        subject = opening[0].lower() + subject[opening.end() :]
    return f"{auxiliary.capitalize()} {subject}{denial if rng.random() < 0.5 else ''}{rest}?"


def holds(passage: list[str], answers: list[dict[str, Any]]) -> bool:
    text = " ".join(passage).lower()
    return any(answer["text"].lower() in text for answer in answers)
