"""Draws a conclusion from a quoted sentence where that is safe: yes, no, or how many.

It is safe where the sentence has everything that is asked, in the same order and without conditions. Elsewhere the
quote stands alone and the reader concludes.
"""

import re
from itertools import takewhile

from domain.text.terms import STOP_WORDS, analyse

_CLOSED = re.compile(
    r"^\W*(?:is|are|was|were|do|does|did|can|could|may|must|should|has|have|had|will|would)\b(?!.*\bor\b)",
    re.IGNORECASE,
)
"""A question for yes or no; "is it A or B?" asks for one of the two."""

_HOW_MANY = re.compile(r"^\W*how many (?P<counted>[^\W\d_]+)", re.IGNORECASE)

_CONDITION = re.compile(
    r"\b(?:if|unless|except\w*|only|but|however|although|though|while|when|until|usually|often|sometimes|some|few|partly|"
    r"mostly|nearly|almost|up to|might|could|would|should|probably|perhaps|claim\w*|said|believe\w*|whether|either|"
    r"or)\b|[?;]|:$",
    re.IGNORECASE,
)
"""Words that make an answer depend on more than the words it shares with the question."""

_FIGURE = re.compile(
    r"(?<![\w.,$€£])(?:\d[\d.,]*|(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve))(?= )", re.IGNORECASE
)
_DENIAL = re.compile(r"(?:not|no|never|nor|neither|without|cannot|nobody|none)|.*n['’]t")
_MODALS = (
    {"can", "may", "allowed", "permitted", "could", "cannot"},
    {"must", "required", "need", "needs", "needed", "should"},
    {"will"},
)
_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")

_LONGEST = 25
"""Limit, in words, of a sentence; in longer ones the words of a question meet by chance."""


def conclude(question: str, sentence: str, place: str) -> str | None:
    """Return the answer in a word or two, or None. `place` is the title and the headings over the sentence."""
    if len(sentence.split()) > _LONGEST or _CONDITION.search(sentence) or "|" in sentence or "\n" in sentence:
        return None
    if match := _HOW_MANY.search(question):
        return _count(question, match["counted"], sentence, place)
    return _affirm(question, sentence, place) if _CLOSED.search(question) else None


def _affirm(question: str, sentence: str, place: str) -> str | None:
    asked, said = [_WORD.findall(text.lower()) for text in (question, sentence)]
    if any(modal.intersection(asked) and not modal.intersection(said) for modal in _MODALS):
        return None
    terms = [term for word in said for term in (*analyse(word), word)[:1]]
    above = set(analyse(place))
    wanted = [term for word in asked if word not in STOP_WORDS for term in analyse(word)[:1]]
    places = [terms.index(term) for term in wanted if term in terms]
    missing = [term for term in wanted if term not in terms and term not in above]
    if missing or len(places) < 2 or places != sorted(places):
        return None
    denials = [i for i, word in enumerate(said) if _DENIAL.fullmatch(word)]
    if any(_DENIAL.fullmatch(word) for word in asked) or len(denials) > 1:
        return None
    if not denials:
        return "Yes"
    return "No" if places[0] - 1 <= denials[0] < places[-1] else None


def _count(question: str, counted: str, sentence: str, place: str) -> str | None:
    noun, asked = analyse(counted), set(analyse(question))
    others = asked - set(noun)
    known = set(analyse(sentence)) | set(analyse(place))
    words = _WORD.findall(sentence.lower())
    if not noun or not others <= known or any(map(_DENIAL.fullmatch, words)):
        return None
    figures = []
    for match in _FIGURE.finditer(sentence):
        following = sentence[match.start() :].split()
        ends = [end for end, word in enumerate(following[:4]) if analyse(word) == noun]
        if ends:
            rest = takewhile(lambda word: asked.issuperset(analyse(word)) and analyse(word), following[ends[0] + 1 :])
            figures.append(" ".join([*following[: ends[0] + 1], *rest]).rstrip(".,:)"))
    return figures[0] if len(figures) == 1 else None
