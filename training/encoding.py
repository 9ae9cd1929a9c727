"""Pairs of a question and a passage as tokens, with what they teach."""

import random
from dataclasses import dataclass, field
from typing import Any

from tokenizers import Tokenizer

NONE = -1
CLS, SEP = 101, 102
WINDOW = 256
QUESTION = 48
"""Most tokens of a pair, and of its question."""

Span = tuple[int, int, int, int]
"""First unit, character in it, last unit, character in it where the answer ends."""


@dataclass
class Passage:
    title: str
    units: list[str]
    answer: Span | None = None
    good: set[int] = field(default_factory=set)
    """Units that hold the answer."""


@dataclass
class Example:
    """One pair, as token ids. `NONE` where a row says nothing about an answer."""

    ids: list[int]
    passage_start: int
    begin: int = NONE
    end: int = NONE
    """Tokens of the answer; 0 = no answer here."""
    units: list[tuple[int, int]] = field(default_factory=list)
    good: list[int] = field(default_factory=list)
    answerable: int = NONE
    entailment: int = NONE
    source: str = ""
    kind: str = ""


class Encoder:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()

    def encode(
        self, question: str, passage: Passage, rng: random.Random, *, spans: bool, **labels: Any
    ) -> Example | None:
        """The pair as tokens, cut to a window round the answer. None if the answer does not fit."""
        asked = self.tokenizer.encode(question, add_special_tokens=False).ids[:QUESTION]
        title = self.tokenizer.encode(passage.title, add_special_tokens=False).ids[:24] if passage.title else []
        bulleted = rng.random() < 0.06
        encodings = [self.tokenizer.encode(unit, add_special_tokens=False) for unit in passage.units]
        mark = self.tokenizer.encode("-", add_special_tokens=False).ids if bulleted else []
        room = WINDOW - len(asked) - len(title) - 3
        lengths = [len(encoding.ids) + len(mark) for encoding in encodings]
        first, last = 0, len(encodings)
        if sum(lengths) > room:
            first, last = self._window(lengths, passage, room, rng)
            if first is None or last is None:
                return None
        ids = [CLS, *asked, SEP, *title]
        example = Example(ids, len(asked) + 2, **labels)
        begin = end = 0
        for n in range(first, last):
            ids += mark
            at = len(ids)
            encoding = encodings[n]
            ids += encoding.ids
            if len(ids) == at:
                continue
            if n in passage.good:
                example.good.append(len(example.units))
            example.units.append((at, len(ids)))
            if passage.answer is not None:
                a, a_off, b, b_off = passage.answer
                if n == a:
                    begin = next((at + t for t, (_, stop) in enumerate(encoding.offsets) if stop > a_off), at)
                if n == b:
                    end = max((at + t for t, (start, _) in enumerate(encoding.offsets) if start < b_off), default=at)
        del ids[WINDOW - 1 :]
        ids.append(SEP)
        example.units = [(a, min(b, len(ids) - 1)) for a, b in example.units if a < len(ids) - 1]
        example.good = [g for g in example.good if g < len(example.units)]
        if spans:
            if passage.answer is not None and not (0 < begin <= end < len(ids) - 1):
                return None
            example.begin, example.end = begin, end
        if passage.good and not example.good:
            return None
        return example

    @staticmethod
    def _window(lengths: list[int], passage: Passage, room: int, rng: random.Random) -> tuple[int | None, int | None]:
        """A run of units within `room` tokens that holds the answer, at a random place in it."""
        if passage.answer is not None:
            first, last = passage.answer[0], passage.answer[2] + 1
        elif passage.good:
            first = min(passage.good)
            last = first + 1
        else:
            first = rng.randrange(len(lengths))
            last = first + 1
        used = sum(lengths[first:last])
        if used > room and passage.answer is not None:
            return None, None
        while True:
            ways = []
            if first > 0 and used + lengths[first - 1] <= room:
                ways.append(-1)
            if last < len(lengths) and used + lengths[last] <= room:
                ways.append(1)
            if not ways:
                return first, last
            if rng.choice(ways) < 0:
                first -= 1
                used += lengths[first]
            else:
                used += lengths[last]
                last += 1
