"""Tells which questions are worth an expensive step: those that ask for more than one fact, or through another one."""

import re

from domain.text.terms import content_words

LONG = 9
"""Number of content words from which any question counts as complex."""

_REASONING = re.compile(
    r"\b(?:why|compar\w+|contrast\w*|differ\w*|versus|vs|better|worse|explain\w*|summari[sz]e\w*|relat(?:ed|ion\w*)|both"
    r"|respectively|advantages?|disadvantages?|pros)\b",
    re.IGNORECASE,
)
_SECOND_QUESTION = re.compile(
    r"\?.*\?|\b(?:and|or|but)\s+(?:who|whom|whose|what|when|where|which|how|why)\b", re.IGNORECASE | re.DOTALL
)


_OPENING = re.compile(r"\W*(?:\w+\W+)?(?:who|whose|whom|what|which|where|when)\b", re.IGNORECASE)
"""The question word, which links nothing, perhaps after a preposition."""
_LINK = re.compile(r"\b(?:of|by|where|whose|who|whom|that|which|when)\b|(?<=\w)['’]s\b", re.IGNORECASE)
_DESCRIBED = re.compile(
    r"\b(?:the|an?)\s+(?:[\w-]+\s+){1,3}(?:in\s+which|where|whose|who|whom|that|which)\b", re.IGNORECASE
)


def is_nested(question: str) -> bool:
    """Return True where the question describes a thing by other facts about it, as in "the sister of the director of"
    or "the city where". The answer may then stand where none of the question's words do."""
    opening = _OPENING.match(question)
    rest = question[opening.end() :] if opening else question
    return bool(_DESCRIBED.search(rest)) or len(_LINK.findall(rest)) >= 2


def is_complex(question: str) -> bool:
    """Return True where the question compares, asks for reasons or a summary, asks two things, or is long."""
    return bool(
        _REASONING.search(question) or _SECOND_QUESTION.search(question) or len(content_words(question)) >= LONG
    )
