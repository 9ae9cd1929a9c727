"""Chooses the words that a follow-up takes over from its conversation.

Each word of the conversation is weighed by where it was said and how; the weights were learned from the rewrites that
people made of 4,980 questions (`a88e208a:benchmarks/carrying.py`).
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from math import log
from pathlib import Path

from domain.text.terms import analyse, content_words

_WEIGHTS: Mapping[str, float] = tomllib.loads((Path(__file__).parent / "carrying.toml").read_text(encoding="utf-8"))[
    "weights"
]
WORD = re.compile(r"\w[\w'’./-]*")
"""A word as it was written; marks at its end are cut off by those who read it."""
_END = re.compile(r"[.!?:\n]\s{0,3}$|^\s{0,3}$")

READ = 120
"""Words of an earlier answer that are read. Chosen: those of some eight sentences."""


def rank_words(question: str, turns: Sequence[tuple[str, str]], *, points_back: bool) -> list[str]:
    """Return the words of the conversation that the question lacks, as they were written: first the one that a person
    would most probably add. `turns` are earlier questions with their answers, oldest first; `points_back`: the question
    has a word that refers to them."""
    known = set(analyse(question))
    asked = len(set(content_words(question)))
    said: dict[str, tuple[str, dict[str, float]]] = {}
    for age, (earlier, answer) in enumerate(reversed(turns)):
        last = age == 0
        for place, text in (("question", earlier), ("answer", answer)):
            terms = _find_candidates(text)
            for number, (word, term, is_name) in enumerate(terms):
                if term in known:
                    continue
                _, features = said.setdefault(term, (word, {}))
                features[f"{'last' if last else 'earlier'}_{place}"] = 1.0
                features["mentions"] = features.get("mentions", 0.0) + 1.0
                if is_name:
                    features["name"] = 1.0
                if last and place == "answer":
                    features["short_answer"] = 1 / (1 + log(len(terms)))
                    features.setdefault("early", 1 - number / len(terms))
    weighed: list[tuple[float, str]] = []
    for word, features in said.values():
        features["mentions"] = log(features["mentions"])
        if word[0].isdigit():
            features["number"] = 1.0
        for name in ("name", "last_question", "last_answer"):
            if features.get(name) and points_back:
                features[f"{name}_pointed"] = 1.0
        if features.get("last_question"):
            features["last_question_short"] = 1 / (1 + asked)
        weighed.append((sum(_WEIGHTS[name] * value for name, value in features.items()), word))
    return [word for _, word in sorted(weighed, key=lambda pair: -pair[0])]


def _find_candidates(text: str) -> list[tuple[str, str, bool]]:
    """Return the meaningful words as written, with their term and True where they are written as a name."""
    read: list[tuple[str, str, bool]] = []
    for match in list(WORD.finditer(text))[:READ]:
        word = match[0].rstrip(".'’/-").removesuffix("'s").removesuffix("’s")
        if not content_words(word):
            continue
        opens = _END.search(text, max(0, match.start() - 3), match.start()) is not None
        read.append((word, analyse(word)[0], word[:1].isupper() and not opens))
    return read
