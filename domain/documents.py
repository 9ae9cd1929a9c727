"""Documents, their chunks, and search results.

Two kinds of types live here. What is stored or computed with is a frozen dataclass. What travels in the graph's
state, in events and to clients is a `TypedDict` of plain JSON values, because checkpoints are read back with
msgpack in strict mode, years later, by other versions of this code.

Offsets (`start`, `end`) count characters (Python string indices, end exclusive) in the document's extracted text.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from domain.errors import AmbiguousName, InputError
from domain.library.metadata import Metadata
from domain.people.names import GROUP
from domain.scope import admits
from domain.text.blocks import plain_text


class Box(TypedDict):
    """A rectangle on a page, in percent (0-100) of the page's width and height, origin top left."""

    x: float
    y: float
    width: float
    height: float
    confidence: NotRequired[float]
    """How sure text recognition is of the line, 0-1; absent where the file has its text."""


class PageBox(Box):
    """A rectangle on one of several pages."""

    page: int
    """Counts from 1."""


@dataclass(frozen=True, slots=True)
class Line:
    """The position of a line of text on its page: `document.text[start:end]` is in `box` on `page`."""

    start: int
    end: int
    page: int
    """Counts from 1."""
    box: Box


@dataclass(frozen=True, slots=True)
class Section:
    """A run of text under one heading. `heading_path` goes from the outermost heading to the innermost."""

    start: int
    end: int
    heading_path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """A link: the words at `document.text[start:end]` lead to `address`, which may be relative, as the file has it."""

    start: int
    end: int
    address: str


@dataclass(frozen=True, slots=True)
class Unseen:
    """Words of a file that nobody sees, so that they are not in the document's text, and why: "in a hidden row"."""

    text: str
    """The words."""
    why: str
    """Where they are."""


UnreadKind = Literal[
    "attachment", "character", "chart", "comment", "deletion", "drawing", "equation", "field", "file", "font",
    "form field", "formula", "hidden word", "mail part", "nested table", "picture", "placeholder", "remark",
    "running line", "text box",
]  # fmt: skip
"""A character: of the file's own text, of which no rule says why it is missing. A field: one that only a program
computes. A file: one that this one includes, or a damaged one in it. A font: one that does not say which letters its
signs are. A nested table: its cells are read as one. A placeholder: of what a site generator or a wiki
fills in. A remark: a sentence on how the file was read, in `where`. A running line: one at the margins of pages."""


class Unread(TypedDict):
    """What of a file is not in its document's text."""

    kind: UnreadKind
    number: int
    """How many there are."""
    where: str
    """Such as "on slide 3"; empty where that is not known."""


def name_unread(unread: Sequence[Unread]) -> str:
    """Return what was not read as a list of words, such as "2 charts (on slide 3), 1 comment", without remarks; empty
    for nothing."""
    return ", ".join(
        f"{each['number']:,} {each['kind']}"
        f"{'' if each['number'] == 1 else 'es' if each['kind'].endswith('x') else 's'}"
        + (f" ({each['where']})" if each["where"] else "")
        for each in unread
        if each["kind"] != "remark"
    )


def tell_unread(unread: Sequence[Unread]) -> str:
    """Return remarks and what was not read in whole sentences; empty for nothing."""
    named = name_unread(unread)
    remarks = [each["where"] for each in unread if each["kind"] == "remark"]
    return " ".join([*remarks, *([f"Not read: {named}."] if named else [])])


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """The content of a file, as a reader extracts it. `text` is Markdown in the form that `domain/text/blocks.py`
    describes. `sections` cover `text` in order; `lines` is empty where the file
    has no pages."""

    title: str
    text: str
    media_type: str
    sections: tuple[Section, ...]
    lines: tuple[Line, ...] = ()
    pages: int | None = None
    metadata: Metadata = field(default_factory=dict)
    """Metadata that the file has in itself, such as front matter."""
    links: tuple[Link, ...] = ()
    unread: tuple[Unread, ...] = ()
    """What of the file is not in the text."""
    unseen: tuple[Unseen, ...] = ()
    """The first of the words that were left out because nobody sees them: hidden, white on white, off the page."""

    @property
    def unseen_words(self) -> int:
        """Return how many words were left out because nobody sees them."""
        return sum(each["number"] for each in self.unread if each["kind"] == "hidden word")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document small enough to embed, with where it stands.

    `content_hash` covers the text and everything that is embedded with it (title, heading path), so that equal
    hashes mean equal embeddings.
    """

    index: int
    text: str
    start: int
    end: int
    heading_path: tuple[str, ...]
    content_hash: str
    lines: tuple[Line, ...] = ()
    lead: str = ""
    """Text from further up that is embedded with the chunk: the lead-in of the list that it is cut from, caption and
    header of the table, or the fence of the code."""

    @property
    def page(self) -> int | None:
        """Return the page on which the chunk begins."""
        return self.lines[0].page if self.lines else None


def embedding_text(title: str, heading_path: tuple[str, ...], text: str, lead: str = "") -> str:
    """Return the text that is embedded and indexed for a chunk: title and headings on a line, then the lead, then the
    chunk's text, without the marks of Markdown."""
    parts = (name_place(title, heading_path), plain_text(lead), plain_text(text) or text)
    return "\n".join(part for part in parts if part)


def name_place(title: str, heading_path: Sequence[str]) -> str:
    """Return title and headings on one line; a title that is also the first heading appears once."""
    headings = list(heading_path)
    return " › ".join([title, *(headings[1:] if headings[:1] == [title] else headings)])


@dataclass(frozen=True, slots=True)
class Document:
    """A stored document, without its text."""

    id: str
    workspace_id: str
    source: str
    """The document's name: a path, a file name or an address. Whoever uploads it again replaces the document of this
    name that they may read; documents that are hidden from each other's readers may have the same."""
    title: str
    media_type: str
    content_hash: str
    pages: int | None
    characters: int
    chunks: int
    created_at: datetime
    updated_at: datetime
    metadata: Metadata = field(default_factory=dict)
    unread: tuple[Unread, ...] = ()
    """What of the file is not in the document's text."""
    revision: int = 1
    """Counts the contents that the document has had."""
    revised_at: datetime | None = None
    """When this content came; None where that is not known."""
    to_embed: int = 0
    """Chunks that are still to be embedded: until then only their words find them."""
    groups: tuple[str, ...] | None = ()
    """Whoever is in one of them may read the document; empty: whoever may enter the workspace. None: not known, so only
    those who may read everything."""


def pick_named(
    named: Sequence[Document], asking: frozenset[str] | None, groups: Collection[str] | None
) -> Document | None:
    """Return that of the documents of one name which a file of this name replaces, or None where it becomes a new one.
    Documents that whoever brings it may not read (with the groups `asking`; None: all) count for nothing. Raises
    `AmbiguousName` where several are left, and not one of them alone has the file's `groups`."""
    readable = [document for document in named if admits(document.groups, asking)]
    if len(readable) > 1 and groups is not None:
        readable = [each for each in readable if set(each.groups or ()) == set(groups)] or readable
    if len(readable) > 1:
        listed = ", ".join(f"{each.id} ({', '.join(each.groups or ()) or 'for everybody'})" for each in readable)
        raise AmbiguousName(f"Several documents have this name: {listed}. Say with groups which one, or delete one.")
    return readable[0] if readable else None


MAX_GROUPS = 50
"""Number of groups that a document may have."""


def check_groups(names: Sequence[str] | None) -> list[str] | None:
    """Return the groups without repetitions. Raises `InputError` for what is no name of a group."""
    for name in names or ():
        if not re.fullmatch(GROUP, name):
            raise InputError(f"{name[:100]!r} is no name of a group: letters, digits and . _ : @ / - are.")
    groups = None if names is None else sorted(set(names))
    if groups is not None and len(groups) > MAX_GROUPS:
        raise InputError(f"A document can have {MAX_GROUPS} groups; these are {len(groups)}.")
    return groups


@dataclass(frozen=True, slots=True)
class Revision:
    """A content that a document has or had."""

    revision: int
    """Its number, which no other content of the document gets."""
    content_hash: str
    title: str
    characters: int
    created_at: datetime
    superseded_at: datetime | None
    """None for the current one."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """The rank of a file by arrival. Of two files with one source, the later is kept, whichever is read first."""

    number: int
    attempt: int | None = None
    """That of the worker that reads the file from the queue. Once another worker has the file, this one can store
    nothing."""


@dataclass(frozen=True, slots=True)
class Match:
    """A row that one leg of a search found. `score` is a cosine similarity or a BM25 sum."""

    chunk_id: str
    document_id: str
    score: float


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk read from the library, with all that scoring, showing and citing it needs."""

    chunk_id: str
    chunk_index: int
    document_id: str
    title: str
    text: str
    start: int
    end: int
    heading_path: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()
    source: str = ""
    """The document's path as ingested, or its address; empty where it is not known."""
    revision: int = 0
    """The document's revision; 0 where it is not known."""
    updated_at: str = ""
    """When that revision came, in ISO 8601; empty where it is not known."""
    content_hash: str = ""
    """SHA-256 of the file that the revision was read from, in hex; empty where it is not known."""
    dated: str = ""
    """The date that the document gives itself; empty where it gives none."""
    lead: str = ""
    """What stands further up and belongs to it; see `Chunk.lead`."""

    @property
    def page(self) -> int | None:
        """Return the page on which the passage begins."""
        return self.lines[0].page if self.lines else None


@dataclass(frozen=True, slots=True)
class ListedDocument:
    """A document as a list of the library names it."""

    id: str
    title: str
    source: str
    """Its path as ingested, or its address."""


@dataclass(frozen=True, slots=True)
class DocumentText(ListedDocument):
    """A document with its text, in which its chunks stand at their offsets."""

    text: str
    """Empty where nothing but the chunks is known."""


@dataclass(frozen=True, slots=True)
class DocumentList:
    """Some documents of a library, and how many there are in all."""

    documents: tuple[ListedDocument, ...]
    total: int


@dataclass(frozen=True, slots=True)
class PassageList:
    """Some passages that a text stands in, and how many there are in all."""

    passages: tuple[Passage, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where a chunk's part of a document's text stands: under which headings, and on which lines of which pages."""

    start: int
    end: int
    heading_path: tuple[str, ...]
    lines: tuple[Line, ...] = ()


class Candidate(TypedDict):
    """A chunk that retrieve found, by reference. Its text stays in the library until rerank has chosen."""

    chunk_id: str
    document_id: str
    score: float
    """The fused score; comparable within one retrieval only."""
    dense: float | None
    """Cosine similarity, or None where it is not known: only the lexical leg took part."""
    lexical: float | None
    """BM25, 0 where it shares no word with the query; None where it is not known."""
    relevance: float | None
    """Relevance from rerank, 0-1 and comparable between questions; None before rerank."""
    query: NotRequired[str]
    """The further query that found it; absent where it was found by the question or its last reformulation."""


class TextLine(TypedDict):
    """`Line` as the state holds it. Offsets are the document's."""

    start: int
    end: int
    page: int
    box: Box


class FoundSpan(TypedDict):
    """The place in the document of a chunk that the search found, and its relevance."""

    start: int
    end: int
    score: float
    query: NotRequired[str]
    """What it was searched for by, and its relevance is to, where that is not the question."""


class SectionStart(TypedDict):
    """The section that begins at `start`, or reaches into a source there. Offsets are the document's."""

    start: int
    heading_path: list[str]


class OutsideCall(TypedDict):
    """The call of a function of an MCP server, whose result is a source from outside the library."""

    server: str
    """The name that the deployment gave it."""
    function: str
    arguments: str
    """In JSON."""
    called_at: str
    """In ISO 8601, UTC."""


class CitedPlace(TypedDict):
    """The place of a chunk, or of a part of it."""

    document_id: str
    title: str
    source: NotRequired[str]
    """The document's path as ingested, or its address. Absent where it is not known."""
    revision: NotRequired[int]
    """The document's revision. With `updated_at` and `content_hash` absent where it is not known."""
    updated_at: NotRequired[str]
    """When that revision came, in ISO 8601."""
    content_hash: NotRequired[str]
    """SHA-256 of the file that the revision was read from, in hex."""
    outside: NotRequired[OutsideCall]
    """Where the text is the result of a call, and of no document: then `document_id` is empty."""
    chunk_id: str
    chunk_index: int
    page: int | None
    heading_path: list[str]
    start: int
    end: int
    text: str
    score: float
    """Relevance in 0-1 after rerank (after fusion where the mode does not rerank); the similarity where the search was
    dense alone and nothing reranked."""


class Source(CitedPlace):
    """A chunk that is shown to the model, numbered from 1. Whole, so that a saved state explains itself even after
    the document has changed."""

    number: int
    dated: NotRequired[str]
    """The date that the document gives itself. Absent where it gives none."""
    found: NotRequired[list[FoundSpan]]
    """The chunks that the source was widened from."""
    sections: NotRequired[list[SectionStart]]
    """The sections of its text, in order, where it was widened beyond the one of `heading_path`."""
    lead: NotRequired[str]
    """What the text cannot be read without, from further up: the header of a table that is too long to be shown."""
    computed: NotRequired[str]
    """The query that was computed from this text, and its result. Absent where nothing was."""
    sql: NotRequired[str]
    """The query, where it was made without a model and its result alone is `computed`."""
    fitted: NotRequired[bool]
    """True of a source that was shown to a model: it keeps its place. Absent before."""
    cut: NotRequired[bool]
    """True where the text goes on beyond it, and was left out for want of room."""
    lines: list[TextLine]
    dense: float | None
    lexical: float | None


def list_hashes(places: Iterable[CitedPlace]) -> dict[str, str]:
    """Return the hashes of the documents in which these places are, by id; empty where the hash is not known."""
    return {each["document_id"]: each.get("content_hash", "") for each in places if "outside" not in each}


Since = Literal["changed", "deleted"]
"""What became of a document since it was cited: it holds something else, or is not there any more."""


class CitedPassage(TypedDict):
    """What one marker of a citation rests on, as in the citation itself."""

    page: int | None
    boxes: list[PageBox]
    heading_path: list[str]
    start: int
    end: int
    text: str


class Citation(CitedPlace):
    """The place that supports a statement of the answer. `text` is what stands at `start`-`end` of the document; of a
    whole chunk, a snippet of that: what the answer's statements rest on. What is cited is the file of `content_hash`,
    whatever stands under the document's name by now."""

    marker: int
    since: NotRequired[Since]
    """Told where a stored answer is read: what became of what it cites. Absent where that is still so."""
    boxes: NotRequired[list[PageBox]]
    """Where `text` stands, a box a line; empty where the document has no pages."""
    passages: NotRequired[list[CitedPassage]]
    """What each of its markers rests on, in their order in the finished answer. Absent where that is the same."""


def name_cited(cited: Source | Citation) -> str:
    """Return title and headings of what is cited, on one line, and that it is from outside where it is."""
    place = name_place(cited["title"], cited["heading_path"])
    return f"{place} (from outside)" if "outside" in cited else place


Verdict = Literal["supported", "quoted", "unsupported"]
"""`quoted`: it is a passage of its source, and nothing judged whether it answers."""

ClaimKind = Literal["statement", "conclusion", "absence", "unchecked"]
"""What a claim rests on: a source that says so, facts that it follows from, or the silence of all sources."""


class Claim(TypedDict):
    """One statement of the answer, with the verdict of the check against its sources.

    Offsets are those of the answer that was checked. Where the verification's status is `reconciled`, that is the
    answer before its correction: what is unsupported here is no longer in it, and the rest may have moved.
    """

    text: str
    start: int
    end: int
    markers: list[int]
    """Numbers of the sources that it cites, or its block."""
    kind: ClaimKind
    """Without a judge `statement`. `unchecked` is the rest of an answer that has too many sentences to check."""
    sources: list[int]
    """Numbers of the sources that support it. Where a statement cites none of them, its markers are corrected."""
    verdict: Verdict
    reason: str
    """What is wrong with it, for the reader; of a judge's verdict empty where nothing is."""
    score: float
    """How well the cited sources support it by the local check, 0-1; support begins at 0.5."""


class Verification(TypedDict):
    """`skipped` where the mode does not verify or there was nothing to verify; `quoted` where the answer is made of
    passages and no model judged whether they answer."""

    status: Literal["skipped", "supported", "quoted", "unsupported", "reconciled"]
    claims: list[Claim]
    score: NotRequired[float]
    """How well the sources support the whole by the local check, 0-1; support begins at 0.5. Absent where nothing was
    checked."""


@dataclass(frozen=True, slots=True)
class DocumentReport:
    """The result of ingesting one file."""

    source: str
    status: Literal["added", "updated", "unchanged", "superseded", "failed", "cancelled"]
    """`superseded`: a later version of it was stored first, and stays. `cancelled`: it was given up on request."""
    document_id: str | None = None
    title: str | None = None
    pages: int | None = None
    chunks: int = 0
    """Chunks that the document now has."""
    embedded: int = 0
    """Chunks that had to be embedded and written; the others were already there."""
    error: str | None = None
    """The problem and its remedy, where status is ``failed``."""
    code: str | None = None
    """The error's stable name."""
    note: str | None = None
    """A further remark, such as that another document has the same content."""
    unread: tuple[Unread, ...] = ()
    """What of the file is not in the document's text."""


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The results of all files of one ingestion."""

    documents: list[DocumentReport] = field(default_factory=list)
    seconds: float = 0.0
    passed_over: list[Path] = field(default_factory=list)
    """Files in folders that are of no supported type."""

    @property
    def chunks(self) -> int:
        """Return the number of chunks written, over all documents."""
        return sum(d.embedded for d in self.documents)

    @property
    def failed(self) -> list[DocumentReport]:
        """Return the files that could not be loaded."""
        return [d for d in self.documents if d.status == "failed"]
