"""The second hop: look up the documents whose titles the best passages mention.

"Where was the director of X born?" finds the document about X, which names the director; the document titled with that
name answers, although it shares no word with the question. Measured: docs/decisions/08-queries-and-retries.md.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from domain.documents import Candidate, Passage
from domain.errors import EmbedderUnavailable
from domain.scope import Scope
from nodes.context import Context

FROM = 3
"""Best passages whose mentions are followed; later ones led nowhere new. They stay ahead of the linked passages.
(docs/decisions/08-queries-and-retries.md)"""

LINKED = 2
"""The most linked passages that become sources. They must be at least as relevant as the least relevant candidate;
after a mention in passing ("United States") they usually are not. As many others follow behind the sources."""

_LONGEST = 8
"""The most words of a title that is recognised in a text. Chosen: few titles are longer."""

_WORD = re.compile(r"\w+(?:['’.&-]\w+)*")
_BREAK = re.compile(r"[;:!?()\n]")

Ranking = list[tuple[Passage, float]]
"""Passages with their relevance, best first."""


def find_names(text: str) -> Iterator[str]:
    """Yield every run of up to eight words that begins with a capital or a digit. Most are no titles; the library knows
    which are."""
    for part in _BREAK.split(text):
        spans = [word.span() for word in _WORD.finditer(part)]
        for first, (start, _) in enumerate(spans):
            if part[start].isupper() or part[start].isdigit():
                yield from (part[start:end] for _, end in spans[first : first + _LONGEST])


async def find_linked(
    question: str, scope: Scope, passages: Sequence[Passage], candidates: dict[str, Candidate], context: Context
) -> list[Passage]:
    """Return, for each title that the first `FROM` passages mention, that document's passage nearest to the question.

    New ones are added to `candidates`, last. Without the embedder, nothing is found.
    """
    best = passages[:FROM]
    titles = {passage.title for passage in best}
    names = {name for passage in best for name in find_names(passage.text)} - titles
    if not names:
        return []
    try:
        embedding = await context.embedder.embed_query(question, context.ledger)
    except EmbedderUnavailable:
        return []
    found = {match.chunk_id: match for match in await context.library.search_titled(scope, sorted(names), embedding)}
    if not found:
        return []
    linked = await context.library.read_passages(scope, list(found))
    linked = [passage for passage in linked if passage.title not in titles]
    lowest = min(candidate["score"] for candidate in candidates.values())
    for passage in linked:
        match = found[passage.chunk_id]
        new = Candidate(
            chunk_id=match.chunk_id, document_id=match.document_id, score=lowest, dense=match.score, lexical=None,
            relevance=None,
        )  # fmt: skip
        candidates.setdefault(match.chunk_id, new)
    return linked


def place_linked(ranked: Ranking, linked: Collection[str], keep: int) -> Ranking:
    """Move the passages of the chunks `linked` up the ranking; its first `keep` passages become sources.

    A linked passage shares few words with the question. Its relevance cannot be compared with that of the others, so
    places are reserved for it.
    """
    lowest = min((relevance for passage, relevance in ranked if passage.chunk_id not in linked), default=0.0)
    head, tail = ranked[:FROM], ranked[FROM:]
    found = [pair for pair in tail if pair[0].chunk_id in linked]
    others = [pair for pair in tail if pair[0].chunk_id not in linked]
    close = [pair for pair in found if pair[1] >= lowest][:LINKED]
    far = [pair for pair in found if pair not in close]
    rest = max(0, keep - FROM - len(close))
    return [*head, *close, *others[:rest], *far[:LINKED], *others[rest:], *far[LINKED:]]
