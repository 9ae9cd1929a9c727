"""Measure a checkpoint: `python -m training.evaluate --reader FOLDER_OR_ONNX --data FOLDER --bench FOLDER`.

Prints span F1, areas under the ROC curve of answerability (within the paragraph a question was written for), and, on
held-out training documents, how often the best unit is right and a claim is judged right.
"""

import argparse
import gzip
import json
import random
import re
import string
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor

from training.data import NOT_SUPPORTED, Examples
from training.encoding import CLS, QUESTION, SEP
from training.export import INPUTS, OUTPUTS
from training.model import Reader, load_checkpoint
from training.train import collate

LONGEST_ANSWER = 40


@dataclass
class Reading:
    answerable: float
    """Logit."""
    begin: int
    end: int
    """Characters of the best answer in the passage."""
    span: float
    """How much better the best answer's logits are than those of no answer."""
    tokens: NDArray[np.float32]
    """Unit logits of the passage's tokens."""
    offsets: list[tuple[int, int]]
    entailment: NDArray[np.float32]

    def unit(self, start: int, end: int) -> float:
        inside = [n for n, (a, b) in enumerate(self.offsets) if a < end and start < b]
        return float(self.tokens[inside].mean()) if inside else -99.0


class Exported:
    """The exported file, called as the model is."""

    def __init__(self, path: Path) -> None:
        self.session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def __call__(self, ids: Tensor, types: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        feed = dict(zip(INPUTS, (ids.numpy(), types.numpy(), mask.numpy()), strict=True))
        tokens, pairs = self.session.run(OUTPUTS, feed)
        return torch.from_numpy(tokens), torch.from_numpy(pairs)


class Predictor:
    def __init__(self, model: Reader | Exported, tokenizer: Tokenizer, window: int = 320) -> None:
        self.model, self.tokenizer, self.window = model, tokenizer, window
        tokenizer.no_padding()
        tokenizer.no_truncation()

    @classmethod
    def load(cls, path: Path, tokenizer: Path) -> "Predictor":
        """Load an exported file, or the averaged weights of a run's folder."""
        if path.suffix == ".onnx":
            return cls(Exported(path), Tokenizer.from_file(str(tokenizer)))
        return cls(load_checkpoint(path), Tokenizer.from_file(str(tokenizer)))

    def read(self, pairs: Sequence[tuple[str, str]], titles: Sequence[str] = (), rows: int = 16) -> list[Reading]:
        """Read each (question, passage); of a long passage the first tokens that fit the window."""
        encoded = []
        for n, (question, passage) in enumerate(pairs):
            asked = self.tokenizer.encode(question, add_special_tokens=False).ids[:QUESTION]
            title = self.tokenizer.encode(titles[n], add_special_tokens=False).ids[:24] if titles and titles[n] else []
            text = self.tokenizer.encode(passage, add_special_tokens=False)
            room = self.window - len(asked) - len(title) - 3
            encoded.append((asked, title, text.ids[:room], text.offsets[:room]))
        order = sorted(range(len(pairs)), key=lambda n: len(encoded[n][2]))
        found: dict[int, Reading] = {}
        for first in range(0, len(order), rows):
            some = order[first : first + rows]
            longest = max(len(encoded[n][0]) + len(encoded[n][1]) + len(encoded[n][2]) + 3 for n in some)
            ids, types, mask = (torch.zeros(len(some), longest, dtype=torch.long) for _ in range(3))
            for row, n in enumerate(some):
                asked, title, text, _ = encoded[n]
                line = [CLS, *asked, SEP, *title, *text, SEP]
                ids[row, : len(line)] = torch.tensor(line)
                types[row, len(asked) + 2 : len(line)] = 1
                mask[row, : len(line)] = 1
            with torch.no_grad():
                tokens, answers = self.model(ids, types, mask)
            for row, n in enumerate(some):
                asked, title, text, offsets = encoded[n]
                at = len(asked) + 2 + len(title)
                logits = tokens[row].numpy()
                begins, ends = logits[at : at + len(text), 0], logits[at : at + len(text), 1]
                begin, end, score = best_span(begins, ends)
                null = float(logits[0, 0] + logits[0, 1])
                found[n] = Reading(
                    answerable=float(answers[row, 0]),
                    begin=offsets[begin][0] if offsets else 0,
                    end=offsets[end][1] if offsets else 0,
                    span=score - null,
                    tokens=logits[at : at + len(text), 2],
                    offsets=offsets,
                    entailment=answers[row, 1:].numpy(),
                )
        return [found[n] for n in range(len(pairs))]


def best_span(begins: NDArray[np.float32], ends: NDArray[np.float32]) -> tuple[int, int, float]:
    if not len(begins):
        return 0, 0, -99.0
    scores = begins[:, None] + ends[None, :]
    far = np.triu(np.ones_like(scores, dtype=bool)) & ~np.triu(np.ones_like(scores, dtype=bool), LONGEST_ANSWER)
    scores = np.where(far, scores, -1e9)
    begin, end = np.unravel_index(int(scores.argmax()), scores.shape)
    return int(begin), int(end), float(scores[begin, end])


def area(positive: Sequence[float], negative: Sequence[float]) -> float:
    """The area under the ROC curve: how often a positive is above a negative; ties count half."""
    p, n = np.array(positive)[:, None], np.array(negative)[None, :]
    return float(((p > n) + 0.5 * (p == n)).mean()) if p.size and n.size else float("nan")


def normal(text: str) -> list[str]:
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def overlap(said: str, right: str) -> float:
    a, b = normal(said), normal(right)
    same = sum((Counter(a) & Counter(b)).values())
    return 2 * same / (len(a) + len(b)) if same else 0.0


def read_lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def squad2(predictor: Predictor, bench: Path) -> dict[str, float]:
    texts = {row["id"]: row for row in read_lines(bench / "squad2" / "corpus.jsonl.gz")}
    queries = read_lines(bench / "squad2" / "queries.jsonl.gz")
    key = [q["source_doc"] for q in queries]
    readings = predictor.read([(q["question"], texts[k]["text"]) for q, k in zip(queries, key, strict=True)])
    f1, exact = [], []
    scores: dict[str, dict[bool, list[float]]] = {name: {True: [], False: []} for name in ("answerable", "span", "sum")}
    for query, document, reading in zip(queries, key, readings, strict=True):
        scores["answerable"][query["answerable"]].append(reading.answerable)
        scores["span"][query["answerable"]].append(reading.span)
        scores["sum"][query["answerable"]].append(reading.answerable + reading.span / 4)
        if query["answerable"]:
            said = texts[document]["text"][reading.begin : reading.end]
            f1.append(max(overlap(said, right) for right in query["answers"]))
            exact.append(max(normal(said) == normal(right) for right in query["answers"]))
    return {"span F1": float(np.mean(f1)), "exact": float(np.mean(exact))} | {
        f"AUC {name}": area(each[True], each[False]) for name, each in scores.items()
    }


def held_out(predictor: Predictor, data: Path, tokenizer: Path, most: int) -> dict[str, float]:
    examples = Examples(data, Tokenizer.from_file(str(tokenizer)), 7, held_out=True, limit=400).all()
    random.Random(3).shuffle(examples)
    said: dict[str, list[float]] = defaultdict(list)
    unit, claims, two = [], [], []
    for first in range(0, min(most, len(examples)), 16):
        some = examples[first : first + 16]
        batch = collate(some)
        with torch.no_grad():
            tokens, answers = predictor.model(batch["ids"], batch["types"], batch["mask"])
        scores = torch.bmm(batch["pool"], tokens[:, :, 2:])[:, :, 0]
        for n, example in enumerate(some):
            if example.answerable >= 0:
                said["+" if example.answerable else example.kind].append(float(answers[n, 0]))
                if example.good and len(example.units) > 1:
                    unit.append(int(scores[n, : len(example.units)].argmax()) in example.good)
            elif example.entailment == NOT_SUPPORTED:
                two.append(int(answers[n, 1:].argmax()) != 0)
            elif example.entailment >= 0:
                claims.append(int(answers[n, 1:].argmax()) == example.entailment)
    found = {f"AUC {kind}": area(said["+"], values) for kind, values in sorted(said.items()) if kind != "+"}
    found["AUC all"] = area(said["+"], [v for kind, values in said.items() if kind != "+" for v in values])
    return found | {
        "best unit": float(np.mean(unit)),
        "claims": float(np.mean(claims)),
        "not supported": float(np.mean(two)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reader", type=Path, required=True, help="a run's folder, or an exported file")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--bench", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, default=Path("app/adapters/data/minilm_tokenizer.json"))
    parser.add_argument("--most", type=int, default=1200, help="held-out examples")
    args = parser.parse_args()
    torch.set_num_threads(1)
    predictor = Predictor.load(args.reader, args.tokenizer)
    print(json.dumps({"squad2": squad2(predictor, args.bench)}, indent=1), flush=True)
    print(json.dumps({"held out": held_out(predictor, args.data, args.tokenizer, args.most)}, indent=1))


if __name__ == "__main__":
    main()
