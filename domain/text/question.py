"""Questions as they are typed, and with the words that they take from their conversation."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from domain.errors import QuestionError
from domain.state import MAX_QUESTION

LONGEST_QUERY = 1000
"""Characters of a query or passage that are searched for; the embedding model reads no more."""

_WHITE_SPACE = re.compile(r"\s+")
_CARRIED = re.compile(r"(?<=[?.!]) \(([^()]*)\)$")


def clean_question(text: str) -> str:
    """Return the question with white space folded and control characters removed.

    Raises `QuestionError` where nothing readable is left, or more than `MAX_QUESTION` characters are.
    """
    if not isinstance(text, str):
        raise QuestionError("The question must be text.")
    cleaned = fold_line(text)
    if not cleaned:
        raise QuestionError("The question is empty. Ask something.")
    if not any(c.isalnum() for c in cleaned):
        raise QuestionError("The question has no words in it. Ask something in words.")
    if len(cleaned) > MAX_QUESTION:
        raise QuestionError(
            f"The question has {len(cleaned):,} characters; at most {MAX_QUESTION:,} are allowed. Shorten it."
        )
    return cleaned


def fold_line(text: str) -> str:
    """Return the text on one line, with white space folded and control characters removed."""
    kept = text
    if not text.isprintable():
        kept = "".join(c for c in text if c.isspace() or unicodedata.category(c) not in ("Cc", "Cs", "Cn"))
    return _WHITE_SPACE.sub(" ", kept).strip()


def add_carried(question: str, words: Sequence[str]) -> str:
    """Return the question with words of its conversation behind it: "How long is it valid? (warranty Lindenhof W2)".
    A question without a final mark gets one, by which `split_carried` tells them from what was typed."""
    mark = "" if question.endswith(("?", ".", "!")) else "?"
    return f"{question}{mark} ({' '.join(words)})" if words else question


def split_carried(question: str) -> tuple[str, str]:
    """Return the question as typed, and the words that `add_carried` put behind it."""
    match = _CARRIED.search(question)
    return (question[: match.start()], match[1]) if match else (question, "")


def choose_untried(queries: Iterable[str], tried: Iterable[str]) -> list[str]:
    """Return the queries that a model wrote, each once and cut to `LONGEST_QUERY`, without those that equal one of
    those tried, apart from case, white space and final marks."""
    known = set(map(_level, tried))
    chosen = []
    for query in queries:
        line = fold_line(query)[:LONGEST_QUERY]
        if line and _level(line) not in known:
            known.add(_level(line))
            chosen.append(line)
    return chosen


def _level(query: str) -> str:
    return " ".join(query.casefold().split()).rstrip(" ?.!")
