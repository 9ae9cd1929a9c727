"""The tools that read: `read` a part of a document, its `outline`, and `list_documents`."""

from collections.abc import Sequence
from itertools import takewhile

from pydantic import BaseModel, Field

from domain.documents import Passage, name_place
from domain.scope import Scope
from nodes.context import Context
from nodes.prompting.messages import shorten_path
from nodes.sources.neighbours import join_passages
from nodes.use_tool.documents import FILTER, filter_scope, find_documents
from nodes.use_tool.tool import Finding, ResearchTool, ToolProblem

_MOST_CHUNKS = 3000
"""Chunks of a document that are looked through: about 1.5 million characters."""

_MOST_READ = 8000
"""Characters that one call reads: four pages."""

_MOST_LINES = 150
"""Lines of an outline or a list of documents."""


class ReadArguments(BaseModel):
    """What to read."""

    document: str = Field(description="The document's title or path, as shown.")
    section: str = Field(
        "", max_length=300, description="Words of the heading to begin at, or of its number; empty: the beginning."
    )
    page: int | None = Field(None, ge=1, description="The page to begin at, where the document has pages.")
    skip: int = Field(0, ge=0, description="Characters to skip from there, to go on where an earlier call ended.")


async def _read(arguments: ReadArguments, scope: Scope, context: Context) -> Finding:
    passages = await _read_document(arguments.document, scope, context)
    passages = passages[_find_beginning(passages, arguments) :]
    start = passages[0].start
    # Chunks are read whole.
    rest = [passage for passage in passages if passage.start >= start + arguments.skip]
    if not rest:
        raise ToolProblem("The document ends before that.")
    read = rest[:1] + [passage for passage in rest[1:] if passage.end - rest[0].start <= _MOST_READ]
    ends = len(read) == len(rest)
    said = "That is the end of the document." if ends else f"It goes on: skip={read[-1].end - start} reads on."
    return Finding(said, join_passages(read))


def _find_beginning(passages: Sequence[Passage], arguments: ReadArguments) -> int:
    """Return the place of the first passage of the section or page. Raises `ToolProblem`."""
    wanted = arguments.section.casefold().strip()
    for place, passage in enumerate(passages):
        if arguments.page is not None and (passage.page or 0) < arguments.page:
            continue
        if not wanted or wanted in " > ".join(passage.heading_path).casefold():
            return place
    raise ToolProblem("The document has no such section or page. outline names its sections.")


class OutlineArguments(BaseModel):
    """The document to outline."""

    document: str = Field(description="The document's title or path, as shown.")


async def _outline(arguments: OutlineArguments, scope: Scope, context: Context) -> Finding:
    passages = await _read_document(arguments.document, scope, context)
    sizes: dict[tuple[str, ...], int] = {}
    pages: dict[tuple[str, ...], int | None] = {}
    for passage in passages:
        sizes[passage.heading_path] = sizes.get(passage.heading_path, 0) + len(passage.text)
        pages.setdefault(passage.heading_path, passage.page)
    lines: list[str] = []
    above: tuple[str, ...] = ()
    for path, size in sizes.items():
        # Headings without text of their own have no passage; they are named where they change.
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(above, path[:-1], strict=False)))
        lines += [f"{'  ' * level}{path[level]}" for level in range(shared, len(path) - 1)]
        page = f", page {pages[path]}" if pages[path] else ""
        lines.append(f"{'  ' * (len(path) - 1)}{path[-1] if path else passages[0].title} ({size} characters{page})")
        above = path
    return Finding("\n".join(_cut(lines, len(lines))), listed=[passages[0].document_id])


class ListArguments(BaseModel):
    """Which documents to list."""

    filter: str = Field("", max_length=1000, description=FILTER)


async def _list(arguments: ListArguments, scope: Scope, context: Context) -> Finding:
    listed = await context.library.list_documents(filter_scope(scope, arguments.filter), _MOST_LINES)
    lines = [f"{each.title} ({shorten_path(each.source)})" for each in listed.documents]
    return Finding("\n".join(_cut(lines, listed.total)), listed=[each.id for each in listed.documents])


def _cut(lines: Sequence[str], total: int) -> list[str]:
    """Return the lines that are shown, and how many there are besides."""
    shown = list(lines[:_MOST_LINES])
    return [*shown, f"... and {total - len(shown)} more"] if total > len(shown) else shown or ["There are none."]


async def _read_document(name: str, scope: Scope, context: Context) -> list[Passage]:
    """Return the chunks of a document, in order. Raises `ToolProblem` where there is none, or several are called so."""
    found = await find_documents([name], scope, context)
    if len(found) > 1:
        paths = ", ".join(shorten_path(document.source) for document in found[:10])
        raise ToolProblem(
            f"{len(found)} documents are called {name!r}; name one by its path: {paths}.", [each.id for each in found]
        )
    passages = await context.library.read_outline(scope, found[0].id, _MOST_CHUNKS)
    if not passages:
        raise ToolProblem(f"{name_place(found[0].title, [])} holds no text.")
    return passages


READ = ResearchTool(
    name="read",
    description="Read a part of a document in full, up to four pages, from a section, a page or the beginning on.",
    arguments=ReadArguments,
    run=_read,
)
OUTLINE = ResearchTool(
    name="outline",
    description="List the sections of a document, with their sizes and pages.",
    arguments=OutlineArguments,
    run=_outline,
)
LIST_DOCUMENTS = ResearchTool(
    name="list_documents",
    description="List the documents, by title and path.",
    arguments=ListArguments,
    run=_list,
)
