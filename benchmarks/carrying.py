"""Learn which words follow-ups take over from their conversation, and measure it on conversations left out.

    python benchmarks/carrying.py TRAINING [--write]

Reads `rewrites.jsonl.gz` of TRAINING: 4,980 questions with the rewrites that people made. A word counts as taken over
where the rewrite has it and the question has not. `--write` replaces nodes/route/local/carrying.toml.
"""

import gzip
import json
import sys
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from domain.text.terms import analyse
from nodes.reading.phrases import read_phrases
from nodes.route.local.carrying import describe_words
from nodes.route.local.standalone import CONTEXT_WORDS, leans_on_conversation, name_topics

TARGET = Path(__file__).parents[1] / "nodes" / "route" / "local" / "carrying.toml"
FEATURES = (
    "last_question", "last_answer", "earlier_question", "earlier_answer", "mentions", "name", "number", "short_answer",
    "early", "name_pointed", "last_question_pointed", "last_answer_pointed", "last_question_short",
)  # fmt: skip


def pair_turns(history: list[dict[str, str]]) -> list[tuple[str, str]]:
    turns: list[tuple[str, str]] = []
    for message in history:
        if message["role"] == "user":
            turns.append((message["text"], ""))
        elif turns:
            turns[-1] = (turns[-1][0], message["text"])
    return turns


def fit_logistic(rows: np.ndarray, labels: np.ndarray, *, ridge: float) -> np.ndarray:
    """Return the weights of a logistic regression, by Newton's method. `ridge` keeps them small."""
    weights = np.zeros(rows.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-rows @ weights))
        gradient = rows.T @ (labels - p) - ridge * weights
        hessian = (rows * (p * (1 - p))[:, None]).T @ rows + ridge * np.eye(rows.shape[1])
        step = np.linalg.solve(hessian, gradient)
        weights += step
        if np.abs(step).max() < 1e-6:
            break
    return weights


def main() -> None:
    phrases = read_phrases("en", "followup")
    data: list[tuple[bool, set[str], list[tuple[str, dict[str, float]]], str, list[tuple[str, str]]]] = []
    with gzip.open(Path(sys.argv[1]) / "rewrites.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            turns = pair_turns(row["history"])
            if not turns:
                continue
            held_out = crc32((str(row.get("topic")) or row["id"]).encode()) % 3 == 0
            taken = set(analyse(row["standalone"])) - set(analyse(row["question"]))
            points = bool(phrases["pronouns"].search(row["question"]) or phrases["pointers"].search(row["question"]))
            words = describe_words(row["question"], turns, points_back=points)
            data.append((held_out, taken, words, row["question"], turns))

    def matrix(words: list[tuple[str, dict[str, float]]]) -> np.ndarray:
        return np.array([[1.0, *(features.get(name, 0.0) for name in FEATURES)] for _, features in words])

    kept = [d for d in data if not d[0] and d[2]]
    rows = np.concatenate([matrix(words) for _, _, words, _, _ in kept])
    labels = np.array([analyse(word)[0] in taken for _, taken, words, _, _ in kept for word, _ in words], float)
    weights = fit_logistic(rows, labels, ridge=0.5)
    for name, weight in zip(("bias", *FEATURES), weights, strict=True):
        print(f"{name:24s} {weight:6.2f}")

    def report(name: str, choose: Any) -> None:
        hits = chosen = wanted = 0
        for held_out, taken, words, question, turns in data:
            if held_out and leans_on_conversation(question, phrases):
                picked = {analyse(word)[0] for word in choose(words, question, turns)}
                hits, chosen, wanted = hits + len(picked & taken), chosen + len(picked), wanted + len(taken)
        precision, recall = hits / chosen, hits / wanted
        f1 = 2 * precision * recall / (precision + recall)
        print(f"{name:36s} precision {precision:.3f}  recall {recall:.3f}  F1 {f1:.3f}")

    def last_question(words: Any, question: str, turns: list[tuple[str, str]]) -> list[str]:
        known = set(analyse(question))
        return [word for word in name_topics(turns[-1][0]) if not set(analyse(word)) <= known][:CONTEXT_WORDS]

    report("words of the last question", last_question)
    for least in (0.0, 0.05, 0.08, 0.1, 0.12, 0.15, 0.2, 0.3):

        def learned(words: Any, question: str, turns: Any, least: float = least) -> list[str]:
            if not words:
                return []
            scores = 1 / (1 + np.exp(-matrix(words) @ weights))
            order = np.argsort(-scores)[:CONTEXT_WORDS]
            return [words[place][0] for place in order if scores[place] >= least]

        report(f"learned, from {least}", learned)
    if "--write" in sys.argv:
        lines_ = [f"{name} = {weight:.3f}" for name, weight in zip(("bias", *FEATURES), weights, strict=True)]
        TARGET.write_text("# Written by benchmarks/carrying.py; do not edit.\n\n[weights]\n" + "\n".join(lines_) + "\n")


if __name__ == "__main__":
    main()
