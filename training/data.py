"""Training examples from the public rows of /work/shared/training: real ones, and ones that are about the question's
subject and yet do not answer it.

A passage is a list of units (sentences or candidates). From an answerable row come, beside the row itself: the same
passage without the units that hold the answer; the most similar passage of the same document; the question with a name
or number exchanged for another of the document that the passage lacks; the question with a word exchanged for its
opposite. The last two are made only where the new question is not answered by chance (nothing to check it but that).
"""

import gzip
import hashlib
import json
import math
import random
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sentencex
from tokenizers import Tokenizer

LICENSED_READING = {
    "policyqa": 2500,
    "emanual": 300,
    "tatqa": 900,
    "covidqa": 1300,
    "squad2_train_part": 5000,
    "squad1_train_part": 1300,
    "squad1_paragraphs": 5000,
    "squadshifts_new_wiki": 8000,
    "qed_nq": 1400,
    "fairytaleqa": 1500,
}
"""Sets whose licence lets a model trained on them be shipped (MODEL_CARD.md), and the most answerable rows used."""

LICENSED_RELEVANCE = {"selqa": 2400, "medquad": 2000, "emanual": 701}
LICENSED_ENTAILMENT = {
    "contractnli": 3200,
    "fever_part": 5000,
    "fever_symmetric": 1100,
    "fool_me_twice": 2600,
    "check_covid": 700,
    "summedits": 1500,
    "wice": 1400,
    "bump": 300,
}

ENTAILMENT_LABELS = {"supported": 0, "refuted": 1, "unsupported": 2}
NOT_SUPPORTED = 3
"""Label of a row whose source tells only supported from not supported."""

NONE = -1
CLS, SEP = 101, 102
WINDOW = 256
QUESTION = 48
"""Most tokens of a pair, and of its question."""

HELD_OUT_OF = 25
"""One document in this many is held out."""

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


def read_rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def is_held_out(document: str) -> bool:
    return int(hashlib.sha256(document.encode()).hexdigest(), 16) % HELD_OUT_OF == 0


def split_units(text: str) -> list[tuple[int, int]]:
    """Spans of the sentences of `text`, without the white space around them."""
    spans = []
    for line in re.finditer(r"[^\n]+", text):
        at = line.start()
        for sentence in sentencex.segment("en", line.group()):
            start = text.find(sentence, at) if sentence else -1
            if start < 0:
                continue
            at = start + len(sentence)
            stripped = sentence.strip()
            if stripped:
                first = start + sentence.index(stripped)
                spans.append((first, first + len(stripped)))
    return spans


def read_passage(row: dict[str, Any], title: str) -> Passage | None:
    spans = split_units(row["context"])
    passage = Passage(title, [row["context"][start:end] for start, end in spans])
    if not row["answerable"]:
        return passage
    answer = row["answers"][0]
    begin, end = answer["start"], answer["start"] + len(answer["text"])
    touched = [n for n, (first, last) in enumerate(spans) if first < end and begin < last]
    if not touched:
        return None
    first, last = touched[0], touched[-1]
    passage.answer = (first, max(0, begin - spans[first][0]), last, min(end, spans[last][1]) - spans[last][0])
    passage.good = set(touched)
    return passage


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


def without_answer(passage: Passage) -> Passage | None:
    kept = [unit for n, unit in enumerate(passage.units) if n not in passage.good]
    return Passage(passage.title, kept) if len(kept) >= 2 else None


def among(passage: Passage, distractor: list[str], rng: random.Random) -> Passage:
    """`passage` before or after another paragraph of its document."""
    if rng.random() < 0.5:
        return Passage(passage.title, passage.units + distractor, passage.answer, passage.good)
    by = len(distractor)
    answer = passage.answer
    if answer is not None:
        answer = (answer[0] + by, answer[1], answer[2] + by, answer[3])
    return Passage(passage.title, distractor + passage.units, answer, {n + by for n in passage.good})


def holds(passage: list[str], answers: list[dict[str, Any]]) -> bool:
    text = " ".join(passage).lower()
    return any(answer["text"].lower() in text for answer in answers)


class Examples:
    """Examples of the three kinds of rows. `held_out` yields those of the documents kept apart instead."""

    def __init__(
        self, data: Path, tokenizer: Tokenizer, seed: int, *, held_out: bool = False, limit: int | None = None
    ) -> None:
        self.data, self.encoder, self.held_out, self.limit = data, Encoder(tokenizer), held_out, limit
        self.rng = random.Random(seed)
        self.opposites = Opposites()

    def all(self) -> list[Example]:
        examples = [e for part in (self.reading(), self.relevance(), self.entailment()) for e in part if e is not None]
        self.rng.shuffle(examples)
        return examples

    def _rows(self, name: str, licensed: dict[str, int], document: Any) -> dict[str, list[dict[str, Any]]]:
        sets: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in read_rows(self.data / f"{name}.jsonl.gz"):
            if row["set"] in licensed and is_held_out(document(row)) == self.held_out:
                sets[row["set"]].append(row)
        for key, rows in sets.items():
            self.rng.shuffle(rows)
            if self.limit:
                sets[key] = rows[: self.limit]
        return dict(sorted(sets.items()))

    def reading(self) -> Iterator[Example | None]:
        for name, rows in self._rows(
            "reading", LICENSED_READING, lambda row: row.get("title") or row["context"]
        ).items():
            documents: dict[str, list[str]] = defaultdict(list)
            for context, title in dict.fromkeys((row["context"], row.get("title") or "") for row in rows):
                documents[title].append(context)
            neighbours = {title: Neighbours(contexts) for title, contexts in documents.items()}
            positives = 0
            for row in rows:
                if row["answerable"]:
                    positives += 1
                    if positives > LICENSED_READING[name]:
                        continue
                elif row.get("made") and self.rng.random() < 0.6:
                    continue
                title = row.get("title") or ""
                yield from self._read(name, row, documents[title], neighbours[title])

    def _read(
        self, name: str, row: dict[str, Any], contexts: list[str], neighbours: Neighbours
    ) -> Iterator[Example | None]:
        rng, question = self.rng, row["question"]
        title = row.get("title") or ""
        title = title if title and rng.random() < 0.5 and name not in ("policyqa", "covidqa") else ""
        title = title.replace("_", " ")
        passage = read_passage(row, title)
        if passage is None or not passage.units:
            return

        def made(kind: str, new: Passage, asked: str = question, **labels: Any) -> Example | None:
            example = self.encoder.encode(as_typed(asked, rng), new, rng, spans=True, source=name, kind=kind, **labels)
            if example is not None and not example.answerable:
                example.begin, example.end, example.good = 0, 0, []
            return example

        def other() -> list[str] | None:
            near = [context for context in neighbours.like(question, 5) if context != row["context"]]
            drawn = rng.choice(near[:3] or contexts)
            units = [drawn[a:b] for a, b in split_units(drawn)]
            return None if drawn == row["context"] or holds(units, row["answers"]) else units

        near = other()
        short = sum(map(len, passage.units)) < 700
        shown = among(passage, near, rng) if near and short and rng.random() < 0.35 else passage
        if not row["answerable"]:
            for _ in range(1 if row.get("made") else 3):
                yield made("made" if row.get("made") else "judged", shown, answerable=0)
            return
        yield made("answer", shown, answerable=1)
        if rng.random() < (0.5 if name == "policyqa" else 0.4):
            removed = without_answer(passage)
            if removed is not None and not holds(removed.units, row["answers"]):
                if near and rng.random() < 0.4:
                    removed = among(removed, near, rng)
                yield made("removed", removed, answerable=0)
        if near and name != "policyqa" and rng.random() < 0.35:
            yield made("neighbour", Passage(title, near), answerable=0)
        if name != "policyqa" and len(contexts) > 3 and rng.random() < 0.5:
            asked = exchange(question, " ".join(passage.units), contexts, rng)
            if asked is not None:
                yield made("exchanged", passage, asked, answerable=0)
        if rng.random() < 0.4:
            asked = self.opposites.exchange(question, rng)
            if asked is not None:
                yield made("opposite", passage, asked, answerable=0)

    def relevance(self) -> Iterator[Example | None]:
        rng = self.rng
        for name, rows in self._rows("relevance", LICENSED_RELEVANCE, lambda row: row["candidates"][0]["text"]).items():
            for row in rows[: LICENSED_RELEVANCE[name]]:
                candidates = [(text.strip(), c["label"]) for c in row["candidates"] if (text := c["text"]).strip()]
                if name == "selqa":
                    passage = Passage(
                        "", [text for text, _ in candidates], good={n for n, (_, good) in enumerate(candidates) if good}
                    )
                    if not passage.units:
                        continue
                    yield self._relevance(name, "sentences", row["question"], passage, int(bool(passage.good)))
                    removed = without_answer(passage)
                    if removed is not None and rng.random() < 0.6:
                        yield self._relevance(name, "removed", row["question"], removed, 0)
                    continue
                for label in (1, 0):
                    some = [text for text, good in candidates if good == label]
                    if not some:
                        continue
                    text = re.sub(r"^[^.?!\n]{5,120}\?\s+", "", rng.choice(some))
                    units = [text[a:b] for a, b in split_units(text)]
                    if units:
                        yield self._relevance(name, "passage", row["question"], Passage("", units), label)

    def _relevance(self, name: str, kind: str, question: str, passage: Passage, answerable: int) -> Example | None:
        example = self.encoder.encode(
            as_typed(question, self.rng), passage, self.rng, spans=False, source=name, kind=kind
        )
        if example is None:
            return None
        example.answerable = answerable
        if answerable and not example.good:
            example.units = []
        return example

    def entailment(self) -> Iterator[Example | None]:
        rng = self.rng
        sets = self._rows("entailment", LICENSED_ENTAILMENT, lambda row: row["evidence"])
        for name, rows in sets.items():
            for row in rows[: LICENSED_ENTAILMENT[name]]:
                label = ENTAILMENT_LABELS[row["label"]]
                if row.get("binary") and label == ENTAILMENT_LABELS["unsupported"]:
                    label = NOT_SUPPORTED
                yield self._entailment(name, "claim", row["claim"], row["evidence"], label)
        # Evidence about the claim's subject that does not settle it, which the fact-checking sets lack.
        facts = sets.get("fever_part", [])
        about: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in facts:
            about[" ".join(row["claim"].split()[:2])].append(row)
        for row in facts[: LICENSED_ENTAILMENT["fever_part"] // 2]:
            rest = [
                r
                for r in about[" ".join(row["claim"].split()[:2])]
                if r["evidence"] != row["evidence"] and r["claim"] != row["claim"]
            ]
            if rest:
                yield self._entailment(
                    "fever_part",
                    "exchanged",
                    row["claim"],
                    rng.choice(rest)["evidence"],
                    ENTAILMENT_LABELS["unsupported"],
                )

    def _entailment(self, name: str, kind: str, claim: str, evidence: str, label: int) -> Example | None:
        units = [evidence[a:b] for a, b in split_units(evidence)]
        if not units:
            return None
        # Long evidence is cut round the sentence that shares most words with the claim, as the service does.
        asked = set(words(claim))
        best = max(range(len(units)), key=lambda n: len(asked & set(words(units[n]))))
        example = self.encoder.encode(
            claim, Passage("", units, good={best}), self.rng, spans=False, source=name, kind=kind
        )
        if example is None:
            return None
        example.units, example.good, example.entailment = [], [], label
        return example
