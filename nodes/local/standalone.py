"""Makes a follow-up question stand alone, without a language model."""

import re
from collections.abc import Sequence

from domain.state import Turn
from domain.terms import analyse, content_words

_POINTERS = re.compile(
    r"\b(?:it|its|it's|itself|they|them|their|theirs|he|him|his|she|her|hers|this|that|these|those|there|"
    r"the\s+(?:former|latter|same|other|others|first|second|third|last)(?:\s+one)?|one|ones|such|former|latter|"
    r"above|previous|mentioned|else|instead|other|another|both|same)\b",
    re.IGNORECASE,
)
_OPENERS = re.compile(
    r"^\W*(?:and|but|so|then|also|or|what\s+about|how\s+about|what\s+if|why(?:\s+not)?\s*\??$|how\s+so|really|"
    r"more|tell\s+me\s+more|explain|elaborate|go\s+on|continue|for\s+example|such\s+as|i\s+meant?|no,|yes,|correction|oops)\b",
    re.IGNORECASE,
)
_SHORT = 3
"""A question with fewer meaningful words than this does not say what it is about."""

_CONTEXT_WORDS = 8
"""How many words of the conversation are added at most: more would drown the question itself."""


def make_standalone(question: str, turns: Sequence[Turn]) -> str:
    """The question with what it takes from the conversation in brackets: "How long is it valid? (warranty Lindenhof
    W2)". A question that stands alone already is returned as it is."""
    turns = [turn for turn in turns if turn["route"] == "needs_retrieval"]
    if not turns or not _leans_on_conversation(question):
        return question
    known = set(analyse(question))
    context: list[str] = []
    for turn in reversed(turns):
        for word in _name_topics(turn["standalone_question"] or turn["question"]):
            terms = set(analyse(word))
            if terms and not terms <= known:
                known |= terms
                context.append(word)
        if context:
            break
    return f"{question} ({' '.join(context[:_CONTEXT_WORDS])})" if context else question


def _leans_on_conversation(question: str) -> bool:
    return (
        len(set(content_words(question))) < _SHORT
        or _OPENERS.search(question) is not None
        or _POINTERS.search(question) is not None
    )


def _name_topics(question: str) -> list[str]:
    """The meaningful words of a question as written, in order."""
    return [word for word in re.findall(r"[\w][\w'’./-]*", question) if content_words(word)]
