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
from nodes.reformulate import is_tried

_NAME = re.compile(r"\b[A-Z][\w'’-]{1,60}+(?: (?:(?:of|the|and|de|der|del|di|du|la|van|von) )*[A-Z][\w'’-]{1,60}+)+")
"""At least two capitalised words: a single one is as often the beginning of a sentence."""

NAMES = 2
"""Number of names that are added from the two best sources."""


@dataclass(frozen=True, slots=True)
class LocalReformulator:
    """Implements `QueryReformulator`. Where the sources hold none of the question's words, names from them lead
    nowhere."""

    async def reformulate(
        self, question: str, missing: Sequence[str], sources: Sequence[Source], tried: Sequence[str], background: str
    ) -> str | None:
        queries = (query + background for query in _propose(question, missing, sources, background))
        return next((query for query in queries if not is_tried(query, [question, *tried])), None)


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
