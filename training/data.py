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
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sentencex
from tokenizers import Tokenizer

from training.encoding import Encoder, Example, Passage
from training.made import NAME, Neighbours, Opposites, as_typed, ask_whether, exchange, holds, words
from training.tables import make_tables

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

TABLES = 2000
"""Made tables; a tenth of them where documents are held out."""

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

WHETHER = {"contractnli": 3200, "fever_part": 4000, "fever_symmetric": 1100, "fool_me_twice": 2600, "check_covid": 700}
"""Sets whose claims are asked as questions for yes or no, and the most claims used."""

ENTAILMENT_LABELS = {"supported": 0, "refuted": 1, "unsupported": 2}
NOT_SUPPORTED = 3
"""Label of a row whose source tells only supported from not supported."""

HELD_OUT_OF = 25
"""One document in this many is held out."""


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


def group_by_subject(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The rows by the first two words of their claim, which mostly name its subject."""
    about: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        about[find_subject(row)].append(row)
    return about


def find_subject(row: dict[str, Any]) -> str:
    return " ".join(row["claim"].split()[:2])


def draw_other_evidence(row: dict[str, Any], about: dict[str, list[dict[str, Any]]], rng: random.Random) -> str | None:
    """The evidence of another claim about the subject of `row`; None where there is none."""
    others = [
        other
        for other in about[find_subject(row)]
        if other["evidence"] != row["evidence"] and other["claim"] != row["claim"]
    ]
    return rng.choice(others)["evidence"] if others else None


class Examples:
    """Examples of the three kinds of rows. `held_out` yields those of the documents kept apart instead."""

    def __init__(
        self, data: Path, tokenizer: Tokenizer, seed: int, *, held_out: bool = False, limit: int | None = None
    ) -> None:
        self.data, self.encoder, self.held_out, self.limit = data, Encoder(tokenizer), held_out, limit
        self.rng = random.Random(seed)
        self.opposites = Opposites()

    def all(self) -> list[Example]:
        examples = [
            e
            for part in (self.reading(), self.tables(), self.relevance(), self.whether(), self.entailment())
            for e in part
            if e is not None
        ]
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
        if near and name != "policyqa" and rng.random() < 0.5:
            yield made("neighbour", Passage(title, near), answerable=0)
        if name != "policyqa" and len(contexts) > 3 and rng.random() < 0.4:
            asked = exchange(question, " ".join(passage.units), contexts, rng)
            if asked is not None:
                yield made("exchanged", passage, asked, answerable=0)
        if rng.random() < 0.4:
            asked = self.opposites.exchange(question, rng)
            if asked is not None:
                yield made("opposite", passage, asked, answerable=0)

    def tables(self) -> Iterator[Example | None]:
        names = set()
        for rows in self._rows("reading", {"squadshifts_new_wiki": 0}, lambda row: row["title"]).values():
            names = {name for row in rows for name in NAME.findall(row["context"]) if len(name) < 30}
        if len(names) < 100:
            return
        most = min(TABLES // 10 if self.held_out else TABLES, self.limit or TABLES)
        for made in make_tables(sorted(names), most, self.rng):
            passage = Passage(made.title, made.units)
            if made.row is not None:
                passage.answer, passage.good = (made.row, made.cell[0], made.row, made.cell[1]), {made.row}
            yield self.encoder.encode(
                as_typed(made.question, self.rng),
                passage,
                self.rng,
                spans=True,
                source="tables",
                kind="table" if passage.good else "other table",
                answerable=int(bool(passage.good)),
            )

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
                for label in (1, 0, 0) if name == "emanual" else (1, 0):
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

    def whether(self) -> Iterator[Example | None]:
        """Claims asked as questions for yes or no. Evidence that supports or refutes the claim answers, and that of
        another claim about the same subject does not."""
        rng = self.rng
        for name, rows in self._rows("entailment", WHETHER, lambda row: row["evidence"]).items():
            about = group_by_subject(rows)
            for row in rows[: WHETHER[name]]:
                asked = ask_whether(row["claim"], rng)
                if asked is None:
                    continue
                yield self._whether(name, asked, row["evidence"], int(row["label"] != "unsupported"))
                if name != "contractnli" and (evidence := draw_other_evidence(row, about, rng)) is not None:
                    yield self._whether(name, asked, evidence, 0)

    def _whether(self, name: str, asked: str, evidence: str, answerable: int) -> Example | None:
        passage = Passage("", [evidence[a:b] for a, b in split_units(evidence)])
        if not passage.units:
            return None
        example = self.encoder.encode(
            as_typed(asked, self.rng),
            passage,
            self.rng,
            spans=False,
            source=name,
            kind="whether",
            answerable=answerable,
        )
        if example is not None:
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
        about = group_by_subject(facts)
        for row in facts[: LICENSED_ENTAILMENT["fever_part"] // 2]:
            if (evidence := draw_other_evidence(row, about, rng)) is not None:
                yield self._entailment(
                    "fever_part", "exchanged", row["claim"], evidence, ENTAILMENT_LABELS["unsupported"]
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
