"""Documents as people see them: the file, pictures of its pages, its text in blocks, and where words stand."""

import asyncio
import re
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Sequence
from functools import partial
from itertools import islice
from pathlib import PurePath
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from app.api.asking.streams import GONE, work_while_connected
from app.api.dependencies import CallerDep, CallerScope, DocumentsDep, OriginalsDep, RendererDep, needs
from app.api.library.documents import RevisionQuery, find_document, find_revision, read_revision
from app.api.schema.openapi import answer_with, fail_with, list_of, respond_with_text
from app.api.schema.responses import BlocksBody, FoundWordsBody
from app.ingest.page_picture import PictureFormat, has_page_pictures
from domain.documents import Document, Line, Place
from domain.errors import InputError, MissingOriginal
from domain.library.citations import find_boxes
from domain.ports.documents import DocumentStore
from domain.ports.originals import read_whole
from domain.scope import Scope
from domain.text.blocks import open_section, plain_text, read_blocks
from nodes.sources.sourcing import make_line

DEFAULT_DPI, MIN_DPI, MAX_DPI = 110, 36, 220
"""Resolutions of page pictures. A page of A4 has 910 × 1290 pixels at 110 dpi."""

_LONGEST_NAME = 150
_MOST_FOUND = 200
_AROUND = 60
"""Characters that are shown on either side of words that were found."""

router = APIRouter(prefix="/api/documents", tags=["documents"], route_class=needs("ask"))


@router.get(
    "/{document_id}/file",
    response_class=Response,
    responses=respond_with_text("The file, of the document's media type.", "*/*") | fail_with(404),
)
async def get_file(
    request: Request,
    document_id: str,
    documents: DocumentsDep,
    originals: OriginalsDep,
    scope: CallerScope,
    revision: RevisionQuery = None,
) -> Response:
    """Return the file from which the document was read, to be saved and never shown as a page of this service."""
    document = await find_document(documents, scope, document_id)
    content_hash = await find_revision(documents, scope, document, revision)
    size = await originals.measure(scope.workspace_id, content_hash)
    if size is None:
        raise MissingOriginal
    headers = _protect(f'"{content_hash}"') | {
        "Content-Disposition": _name_attachment(document.source),
        "Content-Length": str(size),
        "Content-Encoding": "identity",  # who saves a file sees how much of it has come
    }
    if unchanged := _say_unchanged(request, headers):
        return unchanged
    content = originals.read(scope.workspace_id, content_hash)
    # Before the headers are sent: that the storage does not answer, or has lost the file, needs a status.
    first = await anext(content, None)
    if first is None and size:
        raise MissingOriginal
    return StreamingResponse(
        _go_on(first or b"", content), media_type=None, headers=headers | {"Content-Type": document.media_type}
    )


@router.get(
    "/{document_id}/pages/{number}.{kind}",
    response_class=Response,
    responses=respond_with_text("The page.", "image/png", "image/webp") | fail_with(404),
)
async def get_page(
    request: Request,
    document_id: str,
    number: Annotated[int, Path(ge=1, le=1_000_000, description="The page, from 1.")],
    kind: Annotated[PictureFormat, Path(description="The format of the picture.")],
    documents: DocumentsDep,
    originals: OriginalsDep,
    renderer: RendererDep,
    caller: CallerDep,
    scope: CallerScope,
    dpi: Annotated[int, Query(ge=MIN_DPI, le=MAX_DPI, description="Pixels an inch.")] = DEFAULT_DPI,
    revision: RevisionQuery = None,
) -> Response:
    """Return a page of a PDF, or a picture that was added, as a picture. A citation's `boxes` are in percent of it."""
    document = await find_document(documents, scope, document_id)
    if not has_page_pictures(document.media_type):
        raise MissingOriginal("Only pages of PDF files and pictures can be shown. See the document's file or text.")
    content_hash = await find_revision(documents, scope, document, revision)
    if content_hash == document.content_hash and number > (document.pages or 0):
        raise MissingOriginal(f"The document has {document.pages} pages; there is no page {number}.")
    headers = _protect(f'"{content_hash}-{number}-{dpi}-{kind}"')
    if unchanged := _say_unchanged(request, headers):
        return unchanged
    read = partial(read_whole, originals, scope.workspace_id, content_hash)
    picture = await work_while_connected(request, renderer.render(number, dpi, kind, read, caller.name))
    if picture is None:
        return Response(status_code=GONE)
    return Response(picture, media_type=f"image/{kind}", headers=headers)


@router.get("/{document_id}/text", **answer_with(BlocksBody, "The document's text.", 404))
async def get_blocks(
    request: Request, document_id: str, documents: DocumentsDep, scope: CallerScope, revision: RevisionQuery = None
) -> Any:
    """Return the document's text in blocks: headings, paragraphs, lists, steps, tables, code, quotes, definitions. A
    browser, which asks for `text/html`, gets it as plain text: whoever opens a citation's address wants to read.

    Offsets are those of citations. A block's page is that on which it begins; of an earlier revision none is known.
    """
    document = await find_document(documents, scope, document_id)
    text, places = await _read_places(documents, scope, document, revision)
    if "text/html" in request.headers.get("accept", ""):
        return PlainTextResponse(text, headers={"X-Content-Type-Options": "nosniff"})
    return {
        "document_id": document.id,
        "title": document.title,
        "characters": len(text),
        "blocks": _describe_blocks(text, places),
    }


@router.get("/{document_id}/find", **answer_with(list_of("found", FoundWordsBody), "The places.", 404))
async def find_words(
    document_id: str,
    words: Annotated[str, Query(min_length=1, max_length=200, description="Words that stand one after the other.")],
    documents: DocumentsDep,
    scope: CallerScope,
    revision: RevisionQuery = None,
) -> dict[str, Any]:
    """Find words in the document's text, in capitals or not, whatever signs or line ends stand between them: the first
    200 places. Pages and boxes are known of the current revision alone."""
    document = await find_document(documents, scope, document_id)
    parts = re.findall(r"[^\W_]+", words)
    if not parts:
        raise InputError("`words` has no letters or digits.")
    text, places = await _read_places(documents, scope, document, revision)
    lines = [line for place in places for line in place.lines]
    return {"found": await asyncio.to_thread(_find, text, r"[\W_]+".join(map(re.escape, parts)), lines)}


async def _read_places(
    documents: DocumentStore, scope: Scope, document: Document, revision: int | None
) -> tuple[str, Sequence[Place]]:
    """Return the text of a revision, and where it stands on pages, which is known of the current one alone."""
    text = await read_revision(documents, scope, document, revision)
    is_current = revision in (None, document.revision)
    return text, await documents.get_places(scope.workspace_id, document.id) if is_current else []


def _find(text: str, pattern: str, lines: Sequence[Line]) -> list[dict[str, Any]]:
    starts, ends = [line.start for line in lines], [line.end for line in lines]
    found = []
    for match in islice(re.finditer(pattern, text, re.IGNORECASE), _MOST_FOUND):
        start, end = match.span()
        touched = list(map(make_line, lines[bisect_right(ends, start) : bisect_left(starts, end)]))
        boxes = find_boxes(text, 0, touched, [(start, end)])
        first, last = max(0, start - _AROUND), end + _AROUND
        around = plain_text(text[first:last]).split()
        # Words that the cut goes through are left out.
        around = around[first > 0 : len(around) - (last < len(text))]
        page = boxes[0]["page"] if boxes else None
        found.append({"start": start, "end": end, "text": " ".join(around), "page": page, "boxes": boxes})
    return found


async def _go_on(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for part in rest:
        yield part


def _describe_blocks(text: str, places: Sequence[Place]) -> list[dict[str, Any]]:
    starts = [place.start for place in places]
    lines = [line for place in places for line in place.lines]
    line_ends = [line.end for line in lines]
    headings: list[tuple[int, str]] = []
    described = []
    for block in read_blocks(text):
        content = text[block.start : block.end]
        if block.kind == "heading":
            headings = open_section(headings, content, content.lstrip("# "))
        # Before headings were marked in the text, only chunks said under which they stand.
        place = places[max(0, bisect_right(starts, block.start) - 1)] if places else None
        path = [heading for _, heading in headings] or ([] if place is None else list(place.heading_path))
        # A heading's mark stands before the line that it marks.
        line = lines[min(bisect_right(line_ends, block.start), len(lines) - 1)] if lines else None
        described.append(
            {
                "kind": block.kind,
                "start": block.start,
                "end": block.end,
                "heading_path": path,
                "page": None if line is None else line.page,
                "text": content,
            }
        )
    return described


def _protect(tag: str) -> dict[str, str]:
    """Headers with which a browser neither guesses the type nor runs what is in the file, and asks again before it uses
    a copy: the document may have changed."""
    return {
        "ETag": tag,
        "Cache-Control": "private, no-cache",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }


def _say_unchanged(request: Request, headers: dict[str, str]) -> Response | None:
    """Return the response to a browser that has this already; None to any other."""
    known = request.headers.get("if-none-match", "")
    if headers["ETag"] not in (tag.strip().removeprefix("W/") for tag in known.split(",")):
        return None
    return Response(status_code=304, headers={name: headers[name] for name in ("ETag", "Cache-Control")})


def _name_attachment(source: str) -> str:
    """Return a `Content-Disposition` (RFC 6266) that names the file as its source does, in ASCII for old clients."""
    bare = source.split("?")[0].split("#")[0] if "://" in source else source
    name = PurePath(bare.replace("\\", "/")).name
    name = "".join(character for character in name if character.isprintable() and character not in '"/\\')
    stem, suffix = PurePath(name).stem[:_LONGEST_NAME].lstrip(". "), PurePath(name).suffix[:20]
    name = f"{stem or 'document'}{suffix}"
    plain = name.encode("ascii", "replace").decode().replace("?", "_").replace(";", "_")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name.encode('utf-8', 'replace'), safe='')}"
