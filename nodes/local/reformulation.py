"""Rewrites a query, without a language model.

Two rewrites proved useful: abbreviations that the sources spell out and, for a nested question, names from the best
sources ("Who is the sister of the director of X?" finds X, which names the director). Measured and rejected, because
they lost more good sources than they found: such names for other questions, other words of the best sources, the
question's meaningful words alone, missing words, and parts of a nested question
(docs/decisions/08-second-hop-and-retries.md).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from domain.documents import Source
from domain.text.abbreviations import add_other_forms, find_abbreviations
from domain.text.complexity import is_nested
from domain.text.sentences import split_sentences
from domain.text.terms import analyse

_NAME = re.compile(r"\b[A-Z][\w'’-]{1,60}+(?: (?:(?:of|the|and|de|der|del|di|du|la|van|von) )*[A-Z][\w'’-]{1,60}+)+")
"""At least two capitalised words: a single one is as often the beginning of a sentence."""

NAMES = 2
"""Number of names that are added from the two best sources."""


@dataclass(frozen=True, slots=True)
class LocalReformulator:
    """Implements `QueryReformulator`."""

    async def reformulate(
        self, question: str, missing: Sequence[str], sources: Sequence[Source], tried: Sequence[str], background: str
    ) -> str | None:
        return reformulate(question, missing, sources, tried, background)


def reformulate(
    question: str, missing: Sequence[str], sources: Sequence[Source], tried: Sequence[str], background: str = ""
) -> str | None:
    """Return a query that is none of `tried`, or None where there is nothing new to try.

    `background` is what a follow-up's query took from its conversation; the new query ends with it too. `missing` are
    words of the question that no source holds: where all of its words are missing, names from the sources lead nowhere.
    """
    known = {_level(query) for query in (question, *tried)}
    for proposed in _propose(question, missing, sources, background):
        query = proposed + background
        if proposed and _level(query) not in known:
            return query
    return None


def _propose(question: str, missing: Sequence[str], sources: Sequence[Source], background: str) -> Iterator[str]:
    yield add_other_forms(question, find_abbreviations("\n".join(source["text"] for source in sources)))
    if is_nested(question) and set(analyse(question)) - set(analyse(" ".join(missing))):
        names = _pick_names(question + background, sources)
        yield f"{question} ({' '.join(names)})" if names else question


def _pick_names(question: str, sources: Sequence[Source]) -> list[str]:
    """Return names from the best sources, from the sentences nearest to the question first."""
    asked = set(analyse(question))
    found: list[tuple[int, str]] = []
    for source in sources[:2]:
        for start, end in split_sentences(source["text"]):
            sentence = source["text"][start:end]
            shared = len(asked & set(analyse(sentence)))
            found += [(shared, name) for name in _NAME.findall(sentence) if not _covers(source["title"], name)]
    names: list[str] = []
    for _, name in sorted(found, key=lambda pair: -pair[0]):
        if not any(_covers(known, name) or _covers(name, known) for known in (question, *names)):
            names.append(name)
    return names[:NAMES]


def _covers(text: str, name: str) -> bool:
    return set(analyse(name)) <= set(analyse(text))


def _level(query: str) -> str:
    return " ".join(query.casefold().split()).rstrip(" ?.!")
