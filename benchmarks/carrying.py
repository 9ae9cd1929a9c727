"""Measure which words of their conversation follow-ups are given, against the rewrites that people made.

    python benchmarks/carrying.py TRAINING

Reads `rewrites.jsonl.gz` of TRAINING: 4,980 questions with rewrites. A word counts as taken over where the rewrite has
it and the question has not. Asks only about questions that lean on their conversation.
"""

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path

from domain.text.terms import analyse
from nodes.local.phrases import read_phrases
from nodes.local.standalone import CARRYING_TURNS, CONTEXT_WORDS, find_said, leans_on_conversation, name_topics

Turns = list[tuple[str, str]]


def pair_turns(history: list[dict[str, str]]) -> Turns:
    turns: Turns = []
    for message in history:
        if message["role"] == "user":
            turns.append((message["text"], ""))
        elif turns:
            turns[-1] = (turns[-1][0], message["text"])
    return turns


def take_last_question(question: str, turns: Turns) -> list[str]:
    known = set(analyse(question))
    return [word for word in name_topics(turns[-1][0]) if not set(analyse(word)) <= known]


def take_said(question: str, turns: Turns) -> list[str]:
    return find_said(question, (text for turn in reversed(turns[-CARRYING_TURNS:]) for text in turn))


def main() -> None:
    phrases = read_phrases("en", "followup")
    data: list[tuple[str, Turns, set[str]]] = []
    with gzip.open(Path(sys.argv[1]) / "rewrites.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            turns, question = pair_turns(row["history"]), row["question"]
            if turns and leans_on_conversation(question, phrases):
                data.append((question, turns, set(analyse(row["standalone"])) - set(analyse(question))))
    ways: dict[str, Callable[[str, Turns], list[str]]] = {
        "words of the last question": take_last_question,
        "words said most": take_said,
    }
    for name, take in ways.items():
        hits = chosen = wanted = 0
        for question, turns, taken in data:
            picked = {analyse(word)[0] for word in take(question, turns)[:CONTEXT_WORDS]}
            hits, chosen, wanted = hits + len(picked & taken), chosen + len(picked), wanted + len(taken)
        precision, recall = hits / chosen, hits / wanted
        f1 = 2 * precision * recall / (precision + recall)
        print(f"{name:28s} precision {precision:.3f}  recall {recall:.3f}  F1 {f1:.3f}  ({len(data)} questions)")


if __name__ == "__main__":
    main()
