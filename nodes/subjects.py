"""Finds what a name means in the library: a document, or a section of one."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from domain.documents import Passage
from domain.profile import RetrievalKnobs
from domain.scope import Scope
from domain.text.terms import analyse
from nodes.context import Context
from nodes.retrieve import search
from nodes.summary import Section, join_sections

CHUNKS_READ = 200
"""Chunks of a document that are read."""

RANK = 5
"""A passage counts 1 / (RANK + its place in the search)."""

NAMED = 1.0
"""Worth of a document's name that holds all words of the subject. The search alone gives the document that holds the
ten best passages about 1.0 as well."""

_PART = re.compile(r"[/\\._-]+")
_SAYS_NOTHING = frozenset(
    analyse("guide page document file index readme slide section advice introduction md docx pdf")
)


@dataclass(frozen=True, slots=True)
class Subject:
    """A document, and the sections of it that are meant."""

    title: str
    sections: list[Section]


async def read_document(document_id: str, scope: Scope, context: Context) -> Subject | None:
    """Return a whole document. None where it is gone, or outside the scope."""
    passages = await context.library.read_outline(scope, document_id, CHUNKS_READ)
    return Subject(passages[0].title, join_sections(passages)) if passages else None


async def find_subject(name: str, scope: Scope, knobs: RetrievalKnobs, context: Context) -> Subject | None:
    """Return the document or the section that the name most likely means. None where the search finds nothing."""
    candidates = await search(name, "", scope, knobs, context)
    passages = await context.library.read_passages(scope, [candidate["chunk_id"] for candidate in candidates])
    if not passages:
        return None
    found = await read_document(_choose_document(name, passages), scope, context)
    if found is None or _cover(name, _name_document(passages[0])) == 1:
        return found
    return Subject(found.title, _choose_sections(name, found))


def _choose_document(name: str, passages: Sequence[Passage]) -> str:
    scores: Counter[str] = Counter()
    named: dict[str, float] = {}
    for place, passage in enumerate(passages):
        scores[passage.document_id] += 1 / (RANK + place)  # type: ignore[assignment]
        named[passage.document_id] = NAMED * _cover(name, _name_document(passage))
    return max(scores, key=lambda document_id: scores[document_id] + named[document_id])


def _choose_sections(name: str, subject: Subject) -> list[Section]:
    """Return the sections under the heading that holds all words of the name; all where none does."""
    for section in subject.sections:
        for depth in range(1, len(section.heading_path) + 1):
            path = section.heading_path[:depth]
            if path[-1] != subject.title and _cover(name, path[-1]) == 1:
                return [each for each in subject.sections if each.heading_path[:depth] == path]
    return subject.sections


def _name_document(passage: Passage) -> str:
    return " ".join([passage.title, *_PART.split(passage.source)])


def _cover(name: str, text: str) -> float:
    """Return the share of the name's meaningful words that the text holds, 0-1."""
    asked = set(analyse(name))
    asked = asked - _SAYS_NOTHING or asked
    return len(asked & set(analyse(text))) / len(asked) if asked else 0.0
