"""Tells from its wording what a question asks for. The words are in `domain/languages`, in table `questions`."""

import re

from domain.text.languages import detect_language
from nodes.reading.phrases import read_patterns, read_phrases

SEVERAL = ("steps", "list", "comparison", "parts")
"""Kinds of questions whose answers are long."""

_OPENING = re.compile(r"^(?:the|a|an|der|die|das|dem|den|le|la|les|el|los|las)\s+", re.IGNORECASE)

_TAIL = re.compile(r"(?<!\s)\s*(?:[:,;?]|\s[-–—])\s+")


def read_pair(question: str) -> tuple[list[str], str]:
    """Return the names of the two things that the question compares, and what it goes on with; no names where it
    compares no two."""
    text = question.strip(" ?!.")
    if asks_for(question, "comparison"):
        for pattern in read_patterns(detect_language(question) or "en", "questions", "pair"):
            if match := pattern.search(text):
                one, two = (_OPENING.sub("", name.strip(" \"'`")) for name in match.groups())
                two, _, rest = _TAIL.sub("\0", two, count=1).partition("\0")
                command, _, option = one.rpartition(" ")
                if option[:1] == two[:1] == "-":  # "git reset --soft and --hard"
                    two = f"{command} {two}".strip()
                return [one, two], rest.strip()
    return [], ""


def asks_for(question: str, *kinds: str) -> bool:
    """Return True where the wording of the question, in its language, is that of one of the kinds."""
    patterns = read_phrases(detect_language(question) or "en", "questions")
    return any(patterns[kind].search(question) for kind in kinds)
