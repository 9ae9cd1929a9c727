"""Tells which questions are worth an expensive step: those that ask for more than one fact."""

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


def is_complex(question: str) -> bool:
    """Return True where the question compares, asks for reasons or a summary, asks two things, or is long."""
    return bool(
        _REASONING.search(question) or _SECOND_QUESTION.search(question) or len(content_words(question)) >= LONG
    )
