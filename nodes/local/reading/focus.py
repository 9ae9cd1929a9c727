"""Separates what a question asks from the subject that it asks about.

"How long is the warranty of the WS-400?" resembles every sentence about the WS-400. The question without its subject,
"is the warranty of the", does not resemble "The WS-400 is delivered within four weeks". See
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
"""The beginning of a question that asks for one property of its subject. "Does it" and "tell me about" may ask for
all."""

_AGAIN = re.compile(
    r"\W*(?:(?:and|or|but) (?:what about |how about )?|(?:what|how) about )(?:for |in |of |with )?(?:the|an?|my|our)\b",
    re.IGNORECASE,
)
"""The beginning of a question that repeats the last one for another subject."""

_LONGEST = 3
"""Limit of meaningful words in a focus. A question that asks more is about its subject and much else; its similarity as
a whole says enough."""

_MOST_NAMES = 2
"""Limit of words in a subject. A question with more speaks of several things, or of one at length, and its similarity
as a whole says enough."""

_COMPARED = 3
"""Number of statements that are compared with the focus. Embedding one takes about 5 ms, unless the answer needs it
anyway."""

_HELD = 0.25
"""Weight of sharing the words of the focus; a cosine of 1 has weight 1."""

_EXPECTED = 0.1
"""Weight of holding the expected kind of thing, for or against."""

_FAR, _NEAR = 0.25, 0.4
"""Nearness up to which nothing about the subject answers, and nearness from which something may."""

_MEASURE = re.compile(r"\bhow (?:long|many|much|often|far|old|big|large|high|fast)\b ?", re.IGNORECASE)
"""The measure, which is not what is asked for: of "How long is the warranty", that is the warranty."""

_PHRASE_END = re.compile(r"[,;:?!]$|['’]s?$")


@dataclass(frozen=True, slots=True)
class Focus:
    """A question, parted into its subject and what is asked of it."""

    question: str
    """The question as typed, without words of the conversation."""
    text: str
    """The question without its subject and measure."""
    terms: frozenset[str]
    """Terms of `text`."""
    subject: frozenset[str]
    """Terms of the names and codes in the question and in the words of the conversation."""


def find_focus(question: str, title: str) -> Focus | None:
    """Return the focus, or None where the question names no subject, does not ask for a property of it, or asks much.
    `title`, with headings, of the best source tells which words belong to a name: "the Seeblick pool"."""
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
    """Return True where the question repeats the last one for another subject: "And the WS-200?"."""
    return _AGAIN.match(question) is not None


def read_focus(question: str, title: str, typed: str, last: Turn | None) -> Focus | None:
    """Return the focus of a question that was `typed` after the `last` turn. Where it repeats the last question, that
    is the last question's focus with the new subject."""
    if last is None or typed == question or not asks_again(typed):
        return find_focus(question, title)
    focus = find_focus(last["standalone_question"] or last["question"], title)
    subject = frozenset(analyse(" ".join(_find_names(typed))))
    return replace(focus, subject=subject) if focus and subject else None


def choose_texts(focus: Focus, sources: Iterable[Source]) -> dict[str, float]:
    """Return the texts to compare with the focus, each with its own weight: of the statements about the subject, those
    that promise most; and the header of a table row by itself, because it says what the row holds. Empty where nothing
    speaks of the subject: names that no source holds are another sign."""
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
    """Return the ids of the documents whose sources name most of the subject."""
    texts: dict[str, set[str]] = {}
    for source in sources:
        texts.setdefault(source["document_id"], set()).update(analyse(read_whole(source)))
    named = {document_id: len(focus.subject & terms) for document_id, terms in texts.items()}
    most = max(named.values(), default=0)
    return {document_id for document_id, count in named.items() if most and count == most}


def measure_absence(weights: Iterable[float], similarities: Iterable[float]) -> float:
    """Return 0 where one of the texts comes near to the focus, 1 where all are far. `similarities` are the cosines of
    the texts with the focus, `weights` their own weights."""
    nearness = max(weight + similarity for weight, similarity in zip(weights, similarities, strict=True))
    return min(1.0, max(0.0, (_NEAR - nearness) / (_NEAR - _FAR)))


def share_terms(focus: Focus, statement: Statement) -> float:
    """Return the share of the focus's terms that the statement has, with its lead-in."""
    return len(focus.terms.intersection(analyse(statement.shown))) / len(focus.terms)


def _weigh(focus: Focus, statement: Statement) -> float:
    return _HELD * share_terms(focus, statement) + _EXPECTED * meet_expectation(focus.question, statement.shown)


def _read_around(statement: Statement) -> set[str]:
    """Return the terms of the statement, of its title and headings, and of its paragraph up to it; for a table row,
    only its own."""
    own = set(analyse(f"{statement.context} {statement.text}"))
    if statement.table is None:
        own.update(analyse(statement.source["text"][max(0, statement.block[1]) : statement.start]))
    return own


def _find_names(text: str) -> list[str]:
    """Return the capitalised words, except the first word of the text, and the words with digits."""
    words = re.findall(r"[^\W_]+(?:[-'’./][^\W_]+)*", text)
    return [word for place, word in enumerate(words) if (place and word[0].isupper()) or re.search(r"\d", word)]


def _split_phrases(words: Sequence[str]) -> list[list[int]]:
    """Return the positions of meaningful words, grouped by runs."""
    phrases: list[list[int]] = [[]]
    for place, word in enumerate(words):
        if analyse(word):
            phrases[-1].append(place)
        if not analyse(word) or _PHRASE_END.search(word):
            phrases.append([])
    return phrases
