"""Finds what a name means in the library: a document, or a section of one."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from domain.documents import ListedDocument, Passage
from domain.outcome import Choice
from domain.profile import RetrievalKnobs
from domain.scope import Scope
from domain.text.languages import LANGUAGES, read_words
from domain.text.terms import analyse
from nodes.context import Context
from nodes.describe.summary import Section, join_sections
from nodes.sources.search import search

CHUNKS_QUOTED, CHUNKS_WRITTEN = 200, 3000
"""Chunks of a document that are read, for quotes, and for a model that writes. Chosen: some forty pages, more than a
summary has quotes of; and six hundred, of which the model sees the outline and parts."""

DOCUMENTS_READ = 1000
"""Documents whose names are compared; of more, those that the search finds are compared as well.
Chosen: to bound what one question reads."""

RANK = 5
"""A passage counts 1 / (RANK + its place in the search). Chosen: so a document with several good passages wins over one
with the best alone."""

BEST = 10
"""Passages that count. Chosen: half of a search's candidates."""

NAMED = 2.0
"""Worth of a document's name that holds all words of the subject. Chosen above the 1.2 that the
search gives a document with all the best passages."""

ALIKE = 0.6
"""Share of a word that must stand, in one piece, within a word of the name for the two to be alike: the German
Bundesurlaubsgesetz and Mindesturlaubsgesetz. Chosen: the shared end of that pair is .68 and .65 of the words. The same
share of a name's words makes the name the document's, and a heading the section's."""
_SHORTEST = 6
"""Letters of such a piece, at least. Chosen: shorter ones are endings, such as -ungen."""

_PART = re.compile(r"[/\\._-]+")
_SAYS_NOTHING = frozenset(stem for each in LANGUAGES for word in read_words(each).kinds for stem in analyse(word))
"""Words of a name that tell no document from another."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A document, and the sections of it that are meant."""

    title: str
    sections: list[Section]


async def read_document(document_id: str, scope: Scope, context: Context, chunks: int) -> Subject | None:
    """Return a document, of which at most so many chunks. None where it is gone, or outside the scope."""
    passages = await context.library.read_outline(scope, document_id, chunks)
    return Subject(passages[0].title, join_sections(passages)) if passages else None


async def find_subject(
    name: str, scope: Scope, knobs: RetrievalKnobs, context: Context, chunks: int
) -> tuple[Subject | None, list[Choice]]:
    """Return the document or the section that the name most likely means, or several documents to choose from, where a
    single word names them all alike. Neither where none is called so: a summary of another one would mislead."""
    listed = (await context.library.list_documents(scope, DOCUMENTS_READ)).documents
    if choices := find_namesakes(name, listed):
        return None, choices
    candidates = await search(name, "", scope, knobs, context)
    passages = await context.library.read_passages(scope, [candidate["chunk_id"] for candidate in candidates])
    chosen = _choose_document(name, passages, listed)
    found = await read_document(chosen, scope, context, chunks) if chosen else None
    if found is None or _cover(name, _list_names(found)) < ALIKE:
        return None, []
    return Subject(found.title, _choose_sections(name, found)), []


def find_namesakes(name: str, listed: Sequence[ListedDocument]) -> list[Choice]:
    """Return the documents to choose from where the name is a single word, several titles hold it and none is it."""
    asked = set(analyse(name))
    if len(name.split()) != 1 or len(asked) != 1:
        return []
    named = [document for document in listed if asked <= set(analyse(document.title))]
    exact = [document for document in named if _read_name(document.title) == asked]
    if exact or len(named) < 2:
        return []
    return [Choice(label=document.title, document_id=document.id) for document in named]


def _choose_document(name: str, passages: Sequence[Passage], listed: Iterable[ListedDocument]) -> str | None:
    scores: defaultdict[str, float] = defaultdict(float)
    names = {document.id: _name_document(document) for document in listed}
    # What only resembles the name is no match for what says it.
    saying = [passage for passage in passages if _read_name(name) <= set(analyse(passage.text))]
    for place, passage in enumerate(saying or passages):
        scores[passage.document_id] += 1 / (RANK + place) if place < BEST else 0.0
        names.setdefault(passage.document_id, _name_document(passage))
    for document_id, text in names.items():
        # A name that shares only a part of the words is no evidence: the search weighs words by how rare they are.
        if (share := _cover(name, text)) >= ALIKE:
            scores[document_id] += NAMED * share
    return max(scores, key=lambda document_id: scores[document_id], default=None)


def _choose_sections(name: str, subject: Subject) -> list[Section]:
    """Return the sections under the heading that holds most of the words of the name that the document's own name does
    not; all sections where no heading holds enough, or no word is left."""
    # Folders are passed over: a folder "security" says nothing of a section's words.
    file = subject.sections[0].passage.source.rpartition("/")[2]
    left = _read_name(name) - set(analyse(f"{subject.title} {_PART.sub(' ', file)}"))
    if not left:
        return subject.sections
    paths = [
        section.heading_path[:depth]
        for section in subject.sections
        for depth in range(1, len(section.heading_path) + 1)
    ]
    shares = {path: len(left & set(analyse(path[-1]))) / len(left) for path in paths}
    best = max(paths, key=lambda path: shares[path], default=())
    if not best or shares[best] < ALIKE:
        return subject.sections
    return [section for section in subject.sections if section.heading_path[: len(best)] == best]


def _list_names(subject: Subject) -> str:
    """Return the names of a document and of its sections."""
    headings = (heading for section in subject.sections for heading in section.heading_path)
    return " ".join([_name_document(subject.sections[0].passage), *headings])


def _name_document(document: Passage | ListedDocument) -> str:
    return " ".join([document.title, *_PART.split(document.source)])


def _cover(name: str, text: str) -> float:
    """Return the share of the name's meaningful words that the text holds, 0-1. A word that is only alike counts by
    the part that is."""
    asked, terms = _read_name(name), set(analyse(text))
    return sum(1.0 if term in terms else _resemble(term, terms) for term in asked) / len(asked) if asked else 0.0


def _read_name(name: str) -> set[str]:
    asked = set(analyse(name))
    return asked - _SAYS_NOTHING or asked


def _resemble(term: str, others: Iterable[str]) -> float:
    """Return the longest share of the term that stands within one of the others; 0 below `ALIKE`."""
    if len(term) < _SHORTEST / ALIKE:
        return 0.0
    longest = max(
        (SequenceMatcher(None, term, other, autojunk=False).find_longest_match().size for other in others
         if len(other) >= _SHORTEST),
        default=0,
    )  # fmt: skip
    share = longest / len(term)
    return share if longest >= _SHORTEST and share >= ALIKE else 0.0
