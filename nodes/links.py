"""The second hop: what the best passages mention by title is looked up too.

"Where was the director of X born?" finds the document about X, which names the director; the document titled with that
name answers, although it shares no word with the question. Measured: docs/decisions/08-second-hop-and-retries.md.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from domain.documents import Candidate, Passage
from domain.errors import EmbedderUnavailable
from domain.scope import Scope
from nodes.context import Context

FROM = 3
"""Mentions are followed from so many of the best passages; later ones led nowhere new. As many keep their places ahead
of what was found so."""

LINKED = 2
"""So many linked passages become sources behind those, at most: those that are as relevant as the least relevant
candidate. A mention in passing ("United States") is not, on most questions. As many others follow the sources."""

_LONGEST = 8
"""Words of a title that is recognised in a text."""

_WORD = re.compile(r"\w+(?:['’.&-]\w+)*")
_BREAK = re.compile(r"[;:!?()\n]")

Ranking = list[tuple[Passage, float]]
"""Passages with their relevance, best first."""


def find_names(text: str) -> list[str]:
    """Every run of up to eight words that begins with a capital or a digit and may be a title, once, in order. Most of
    them are none: the library knows."""
    return list(dict.fromkeys(_cut_names(text)))


def _cut_names(text: str) -> Iterator[str]:
    words = list(_WORD.finditer(text))
    for first, word in enumerate(words):
        if not (word.group()[0].isupper() or word.group()[0].isdigit()):
            continue
        for last in range(first, min(first + _LONGEST, len(words))):
            if last > first and _BREAK.search(text, words[last - 1].end(), words[last].start()):
                break
            yield text[word.start() : words[last].end()]


async def find_linked(
    question: str, scope: Scope, passages: Sequence[Passage], candidates: dict[str, Candidate], context: Context
) -> list[Passage]:
    """For each title that the first `FROM` passages mention, the passage of such a document that is nearest to the
    question. Those that are no candidates yet are added to `candidates`, last. Without the embedder, nothing."""
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
    """The ranking of passages with their relevance, with those of the chunks `linked` where they help most: the first
    `keep` become sources.

    A linked passage shares few words with the question, so that its relevance says little beside that of the others:
    places are kept free for it.
    """
    lowest = min((relevance for passage, relevance in ranked if passage.chunk_id not in linked), default=0.0)
    head, tail = ranked[:FROM], ranked[FROM:]
    found = [pair for pair in tail if pair[0].chunk_id in linked]
    others = [pair for pair in tail if pair[0].chunk_id not in linked]
    close = [pair for pair in found if pair[1] >= lowest][:LINKED]
    far = [pair for pair in found if pair not in close]
    rest = max(0, keep - FROM - len(close))
    return [*head, *close, *others[:rest], *far[:LINKED], *others[rest:], *far[LINKED:]]
