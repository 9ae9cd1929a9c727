"""Makes a follow-up question stand alone, and widens its query, without a language model."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from domain.ports.judgement import Rewrite
from domain.question import add_carried
from domain.state import Turn
from domain.text.terms import analyse, content_words

_POINTERS = re.compile(
    r"""\b(?:this|these|those|former|latter|above|previous|mentioned|else|instead
        |the\s+(?:former|latter|same|others?|first|second|third|last)(?:\s+one)?|other\s+ones?|another\s+one)\b
      | (?:^|\b(?:is|was|are|were|does|did|do|about|of|for|like|with|in|than|after|before|why|how|when)\s+)that\b
        (?!\s+(?:the|an?|i|you|we|they)\b)
      | (?<!\bis\ )(?<!\bare\ )(?<!\bwas\ )(?<!\bwere\ )\bthere\b(?!\s+(?:is|are|was|were|an?|any)\b)""",
    re.VERBOSE | re.IGNORECASE,
)
"""Words that refer to the conversation, but neither "that" as a conjunction nor "there is"."""

_PRONOUNS = re.compile(
    r"\b(?:it|its|it's|itself|they|them|their|theirs|he|him|his|she|her|hers)\b"
    r"(?!\s+(?:is\s+)?(?:possible|necessary|allowed|true|legal|important|worth|safe|better)\b)",
    re.IGNORECASE,
)
_OPENERS = re.compile(
    r"^\W*(?:and|but|so|then|also|or|what\s+about|how\s+about|what\s+if|why(?:\s+not)?\s*\??$|how\s+so|really|"
    r"more|tell\s+me\s+more|explain|elaborate|go\s+on|continue|for\s+example|such\s+as|i\s+meant?|no,|yes,|"
    r"correction|oops)\b",
    re.IGNORECASE,
)
_WHOLE = re.compile(
    r"^\W*(?:what|who|whom|whose|when|where|why|how|which|is|are|was|were|do|does|did|can|could|should|would|will|has|"
    r"have|had|may|must|am)\b",
    re.IGNORECASE,
)
"""The first words of a whole question; anything else may be a fragment."""

OWN_WORDS = 3
"""With fewer meaningful words before it, a pronoun refers to the conversation; with fewer in all, a fragment does not
say what it is about (benchmarks/standalone.py)."""

CONTEXT_WORDS = 6
"""Limit of words added from the conversation; more would drown the question (benchmarks/standalone.py)."""


BACKGROUND_TURNS = 2
BACKGROUND_WORDS = 8
"""Limits of what a query takes along: words, from this many earlier questions (docs/decisions/09-queries.md)."""


@dataclass(frozen=True, slots=True)
class LocalRewriter:
    """Implements `FollowUpRewriter` by words."""

    async def rewrite(self, question: str, turns: Sequence[Turn]) -> Rewrite:
        return Rewrite(make_standalone(question, turns), add_background(question, turns))


def make_standalone(question: str, turns: Sequence[Turn]) -> str:
    """Return the question with words of the conversation in brackets: "How long is it valid? (warranty Lindenhof W2)".
    A question that stands alone already is returned unchanged."""
    searched = [turn for turn in turns if turn["route"] == "needs_retrieval"]
    if not _leans_on_conversation(question):
        return question
    for turn in reversed(searched):
        extended = _extend(question, [turn["standalone_question"] or turn["question"]], CONTEXT_WORDS)
        if extended != question:
            return extended
    return question


def add_background(question: str, turns: Sequence[Turn]) -> str:
    """Return the question with words of earlier questions in brackets, even where it stands alone, because most
    conversations keep their subject. Only for searching, where added words count half; never for answering."""
    searched = [turn["question"] for turn in turns if turn["route"] == "needs_retrieval"]
    return _extend(question, searched[: -BACKGROUND_TURNS - 1 : -1], BACKGROUND_WORDS)


def _extend(question: str, others: Sequence[str], most: int) -> str:
    known = set(analyse(question))
    added: list[str] = []
    for word in (word for other in others for word in _name_topics(other)):
        terms = set(analyse(word))
        if not terms <= known and len(added) < most:
            known |= terms
            added.append(word)
    return add_carried(question, added)


def _leans_on_conversation(question: str) -> bool:
    if _OPENERS.search(question) or _POINTERS.search(question):
        return True
    if any(_count_words(question[: pronoun.start()]) < OWN_WORDS for pronoun in _PRONOUNS.finditer(question)):
        return True
    return _count_words(question) < (1 if _WHOLE.search(question) else OWN_WORDS)


def _count_words(text: str) -> int:
    return len(set(content_words(text)))


def _name_topics(question: str) -> list[str]:
    """Return the meaningful words of a question as written, in order."""
    # The measure ("how long", "how many") belongs to the earlier question only.
    question = re.sub(
        r"\bhow\s+(?:long|many|much|often|far|old|big|large|high|fast)\b", "", question, flags=re.IGNORECASE
    )
    words = (word.rstrip(".'’/-") for word in re.findall(r"\w[\w'’./-]*", question))
    return [word for word in words if content_words(word)]
