"""What a question asks of its subject, and whether a passage about the subject comes near to that.

"How long is the warranty of the WS-400?" resembles every sentence about the WS-400. The question without its subject,
"is the warranty of the", does not resemble "The WS-400 is delivered within four weeks".
docs/decisions/10-grading.md.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from domain.documents import Source
from domain.question import split_carried
from domain.state import Turn
from domain.text.terms import analyse
from nodes.local.reading.expectation import meet_expectation
from nodes.local.reading.statements import Statement, read_whole, split_statements

_ASKS = re.compile(
    r"\W*(?:(?:and|but|so|then)\s+)?(?:(?:at|by|in|on|for|from|to|with|of|since|until|under)\s+)?"
    r"(?:what|which|who|whom|whose|when|where|how)\b",
    re.IGNORECASE,
)
"""How a question begins that asks something of its subject. "Does it" and "tell me about" may be about all of it."""

_AGAIN = re.compile(
    r"\W*(?:(?:and|or|but) (?:what about |how about )?|(?:what|how) about )(?:for |in |of |with )?(?:the|an?|my|our)\b",
    re.IGNORECASE,
)
"""How a question begins that asks the last one of something else."""

_LONGEST = 3
"""Meaningful words of a focus. A question that asks more is about its subject and much else: its similarity as a whole
says enough."""

_MOST_NAMES = 2
"""Words of a subject. A question with more speaks of several things or of one at length, and the same goes for it."""

_COMPARED = 3
"""Statements that are compared with the focus, about 5 ms each where they are not embedded for the answer anyway."""

_HELD = 0.25
"""What having the words of the focus counts, beside a cosine of 1."""

_EXPECTED = 0.1
"""What holding the kind of thing asked for counts, for or against."""

_FAR, _NEAR = 0.25, 0.4
"""Nearness up to which nothing about the subject answers, and from which it may."""

_MEASURE = re.compile(r"\bhow (?:long|many|much|often|far|old|big|large|high|fast)\b ?", re.IGNORECASE)
"""Of "How long is the warranty" the warranty is asked for: "within two weeks" is near to the rest."""

_PHRASE_END = re.compile(r"[,;:?!]$|['’]s?$")


@dataclass(frozen=True, slots=True)
class Focus:
    """A question in two parts."""

    question: str
    """As typed, without what the conversation lent it."""
    text: str
    """It without its subject and measure."""
    terms: frozenset[str]
    """Of `text`."""
    subject: frozenset[str]
    """Terms of the names and codes that the question has, from the conversation too."""


def find_focus(question: str, title: str) -> Focus | None:
    """None where the question does not name its subject, does not ask something of it, or asks much. `title`, with
    headings, of the best source says which words belong to a name: "the Seeblick pool"."""
    typed, carried = split_carried(question)
    names = _find_names(typed)
    subject = frozenset(analyse(" ".join([*names, *_find_names(f"of {carried}")])))
    if not subject or len(names) > _MOST_NAMES or _ASKS.match(typed) is None:
        return None
    words = typed.split()
    known = set(analyse(title))
    named = {
        place
        for phrase in _split_phrases(words)
        if any(subject & set(analyse(words[place])) for place in phrase)
        for place in phrase
        if subject & set(analyse(words[place])) or known.issuperset(analyse(words[place]))
    }
    text = " ".join(word for place, word in enumerate(words) if place not in named)
    attribute = _MEASURE.sub("", text)
    text = attribute if analyse(attribute) else text
    terms = frozenset(analyse(text))
    return Focus(typed, text, terms, subject) if 0 < len(terms) <= _LONGEST else None


def asks_again(question: str) -> bool:
    """Whether it asks the question before it of something else: "And the WS-200?"."""
    return _AGAIN.match(question) is not None


def read_focus(question: str, title: str, typed: str, last: Turn | None) -> Focus | None:
    """The focus of a question that was `typed` as a follow-up to the `last` turn: that of the last question, where it
    is asked again."""
    if last is None or typed == question or not asks_again(typed):
        return find_focus(question, title)
    focus = find_focus(last["standalone_question"] or last["question"], title)
    subject = frozenset(analyse(" ".join(_find_names(typed))))
    return replace(focus, subject=subject) if focus and subject else None


def choose_texts(focus: Focus, sources: Iterable[Source]) -> dict[str, float]:
    """What is to be compared with the focus, and what each text counts besides: of the statements that speak of the
    subject, by themselves or by where they stand, those that promise most; the header of a row, which says what the
    row holds, once more by itself. None where nothing speaks of it: names that no source holds are another sign."""
    statements = [statement for source in sources for statement in split_statements(source)]
    named = [len(focus.subject & _read_around(statement)) for statement in statements]
    most = max(named, default=0)
    about = [(s, _weigh(focus, s)) for s, count in zip(statements, named, strict=True) if count == most] if most else []
    texts: dict[str, float] = {}
    for statement, weight in sorted(about, key=lambda pair: -pair[1])[:_COMPARED]:
        texts.setdefault(statement.shown, weight)
        if statement.table is not None and statement.lead is not None:
            texts.setdefault(statement.source["text"][slice(*statement.lead)], weight)
    return texts


def find_documents(focus: Focus, sources: Iterable[Source]) -> set[str]:
    """The documents whose sources name most of the subject."""
    texts: dict[str, set[str]] = {}
    for source in sources:
        texts.setdefault(source["document_id"], set()).update(analyse(read_whole(source)))
    named = {document_id: len(focus.subject & terms) for document_id, terms in texts.items()}
    most = max(named.values(), default=0)
    return {document_id for document_id, count in named.items() if most and count == most}


def measure_absence(weights: Iterable[float], similarities: Iterable[float]) -> float:
    """0 where one of the texts comes near to the focus, 1 where all are far; `similarities` are their cosines with
    it, `weights` what they count besides."""
    nearness = max(weight + similarity for weight, similarity in zip(weights, similarities, strict=True))
    return min(1.0, max(0.0, (_NEAR - nearness) / (_NEAR - _FAR)))


def share_terms(focus: Focus, statement: Statement) -> float:
    """The share of the terms of the focus that the statement has, with what it leans on."""
    return len(focus.terms.intersection(analyse(statement.shown))) / len(focus.terms)


def _weigh(focus: Focus, statement: Statement) -> float:
    return _HELD * share_terms(focus, statement) + _EXPECTED * meet_expectation(focus.question, statement.shown)


def _read_around(statement: Statement) -> set[str]:
    """The terms of the statement, its title and headings, and of its paragraph up to it; of a row, those of its own."""
    own = set(analyse(f"{statement.context} {statement.text}"))
    if statement.table is None:
        own.update(analyse(statement.source["text"][max(0, statement.block[1]) : statement.start]))
    return own


def _find_names(text: str) -> list[str]:
    """The words in capitals, but for the first, and those with figures."""
    words = re.findall(r"[^\W_]+(?:[-'’./][^\W_]+)*", text)
    return [word for place, word in enumerate(words) if (place and word[0].isupper()) or re.search(r"\d", word)]


def _split_phrases(words: Sequence[str]) -> list[list[int]]:
    """Places of meaningful words that stand side by side."""
    phrases: list[list[int]] = [[]]
    for place, word in enumerate(words):
        if analyse(word):
            phrases[-1].append(place)
        if not analyse(word) or _PHRASE_END.search(word):
            phrases.append([])
    return phrases
