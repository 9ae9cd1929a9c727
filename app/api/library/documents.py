"""Documents: add, list, read, delete."""

from functools import partial
from pathlib import PurePath
from time import perf_counter
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Query, Request, UploadFile
from fastapi.responses import JSONResponse
from starlette.responses import Response

from app.api.asking.streams import GONE, work_while_connected
from app.api.dependencies import (
    AnswersDep,
    CallerDep,
    CallerScope,
    DocumentsDep,
    DryRun,
    IngestionDep,
    IngestionsDep,
    OriginalsDep,
    SettingsDep,
    Workspace,
    needs,
    read_services,
    receives_files,
)
from app.api.schema.descriptions import (
    describe,
    describe_erasure,
    describe_ingest,
    describe_ingestion,
)
from app.api.schema.openapi import answer_with, fail_with, list_of, respond_with
from app.api.schema.responses import (
    AcceptedIngestBody,
    ErrorBody,
    IngestBody,
    UnseenBody,
)
from app.api.schema.schemas import GroupName, GroupsRequest, WhereQuery
from app.history.forgetting import count_deletion, find_deletable
from app.ingest.files import check_name
from app.ingest.formats import list_formats
from app.ingest.metadata.sidecars import read_metadata
from app.ingest.reading import check_file
from app.ingest.unseen import describe_unseen
from app.ingest.uploads import SMALL
from askgraph import models
from domain.documents import Document, DocumentReport, IngestReport, Revision, check_groups
from domain.errors import (
    DocumentError,
    Forbidden,
    OversizedDocument,
    Unavailable,
    UnknownDocument,
    UnreadableDocument,
)
from domain.library.ingestions import IngestionStatus
from domain.library.storage import Incoming
from domain.library.where import Where
from domain.people.names import spell_name
from domain.ports.documents import DocumentStore
from domain.scope import Scope
from domain.text.storable import make_storable

MAX_NAME = 255
"""Longest file name in characters, as on most file systems."""

RevisionQuery = Annotated[int | None, Query(ge=1, description="The text of this revision, which a citation names.")]

reading = APIRouter(prefix="/api/documents", tags=["documents"], route_class=needs("ask"))
writing = APIRouter(prefix="/api/documents", tags=["documents"], route_class=needs("ingest"))


@writing.post(
    "",
    responses=respond_with(IngestBody, "At least one file was taken.")
    | respond_with(AcceptedIngestBody, "The files are read later.", 202)
    | fail_with(413)
    | respond_with(IngestBody | ErrorBody, "No file was taken.", 422),
)
@receives_files
async def add_documents(
    request: Request,
    settings: SettingsDep,
    documents: DocumentsDep,
    ingestion: IngestionDep,
    ingestions: IngestionsDep,
    caller: CallerDep,
    files: Annotated[list[UploadFile], File(min_length=1, description=f"Supported formats: {list_formats()}.")],
    workspace: Workspace,
    metadata: Annotated[
        str | None,
        Form(
            description='Metadata of every file, such as {"team": "legal", "year": 2024}. Unset: as before; {}: none.'
        ),
    ] = None,
    sidecar: Annotated[
        str | None,
        Form(description="What stands beside the files, a JSON object like `metadata`, below which it goes."),
    ] = None,
    groups: Annotated[
        list[GroupName] | None,
        Form(description="Only callers of one of these groups may read the files; repeatable. Unset: as before."),
    ] = None,
    wait: Annotated[bool, Query(description="False: return once the files are kept, to be read later.")] = True,
) -> JSONResponse:
    """Add files, or replace those of the same name that the caller may read. Each gets its own report; one that fails
    does not stop the others. 200 where at least one was taken, 422 where none was.

    With `wait=false`: 202, and an ingestion for each file that was taken, whose report is at `/api/ingestions/{id}`.
    """
    started = perf_counter()
    names = [spell_name(PurePath((file.filename or "").replace("\\", "/")).name) for file in files]
    request.state.targets = names
    scope, groups = Scope(workspace, groups=caller.groups), check_groups(groups)
    caller.check_groups(groups or ())
    limit = settings.max_document_mb * 1_000_000
    reports: list[DocumentReport] = []
    accepted: list[IngestionStatus] = []
    uploads, parsers = read_services(request).uploads, read_services(request).library.parsers
    # The name identifies the document, so the second of two would silently replace the first.
    taken: set[str] = set()
    given = None if metadata is None else read_metadata(metadata, "The field metadata")
    beside = None if sidecar is None else read_metadata(sidecar, "The field sidecar")
    # All files arrive now, however long the first takes: what another request brings meanwhile is newer.
    arrival = await documents.number_arrival(workspace) if wait else None
    for file, name in zip(files, names, strict=True):
        try:
            check_name(name, MAX_NAME)
            if name in taken:
                raise UnreadableDocument("Another file of this request has the same name. Send this one by itself.")
            taken.add(name)
            known = await documents.find(workspace, name, asking=scope.groups, groups=groups)
            if known is not None and groups is not None:
                caller.check_groups(groups, known.groups or ())
            if (size := file.size or 0) > limit:
                raise OversizedDocument(f"The file is larger than {settings.max_document_mb} MB. Split it.")
            if not wait:
                coming = Incoming(name, size, known.id if known else None, caller.name)
                await ingestion.check_room(workspace, coming)
                async with uploads.take_turn(workspace, size):
                    data = await file.read()
                    check = partial(check_file, name, data, media_type=file.content_type, max_bytes=limit)
                    await parsers.run(check, size, owner=workspace, is_short=True)
                    status = await ingestions.accept(
                        workspace, name, data, file.content_type, given, groups, scope.groups, beside,
                        brought_by=caller.name,
                    )  # fmt: skip
                    accepted.append(status)
                    del data, check
                continue
            async with uploads.take_turn(workspace, size):
                added = await ingestion.add(
                    workspace,
                    name,
                    await file.read(),
                    media_type=file.content_type,
                    metadata=given,
                    sidecar=beside,
                    groups=groups,
                    asking=scope.groups,
                    arrival=arrival,
                    brought_by=caller.name,
                    # Embedding takes minutes, for which the file need not stay in memory.
                    later=size > SMALL,
                )
            reports.append(await ingestion.embed_added(workspace, added) if size > SMALL else added)
        except (DocumentError, Forbidden, Unavailable) as error:
            # As a whole the request fails only while nothing of it is stored.
            if isinstance(error, Unavailable) and not accepted and all(each.status == "failed" for each in reports):
                raise
            shown = make_storable(name[:MAX_NAME])
            reports.append(DocumentReport(source=shown, status="failed", error=error.message, code=error.code))
    report = IngestReport(documents=reports, seconds=round(perf_counter() - started, 3))
    if accepted:
        body = describe_ingest(report) | {"ingestions": [describe_ingestion(status) for status in accepted]}
        [first, *others] = accepted
        address = f"/api/ingestions/{first.ingestion_id}?workspace={workspace}"
        return JSONResponse(body, 202, {} if others else {"Location": address})
    return JSONResponse(describe_ingest(report), 422 if len(report.failed) == len(reports) else 200)


@reading.get("", **answer_with(list_of("documents", models.Document), "The documents."))
async def list_documents(documents: DocumentsDep, scope: CallerScope, where: WhereQuery = None) -> dict[str, Any]:
    """List the workspace's documents that the caller may read, or those of them whose metadata passes a filter."""
    found = await documents.list(scope.workspace_id, Where.parse_option(where))
    return {"documents": [describe(document) for document in found if scope.admits(document.groups)]}


@reading.get("/{document_id}", **answer_with(models.Document, "The document.", 404))
async def get_document(
    document_id: str,
    documents: DocumentsDep,
    scope: CallerScope,
    revision: RevisionQuery = None,
) -> dict[str, Any]:
    """Return one document with its extracted text, to which the offsets of citations refer."""
    document = await find_document(documents, scope, document_id)
    return describe(document) | {"text": await read_revision(documents, scope, document, revision)}


@reading.get("/{document_id}/revisions", **answer_with(list_of("revisions", Revision), "The revisions.", 404))
async def list_revisions(document_id: str, documents: DocumentsDep, scope: CallerScope) -> dict[str, Any]:
    """List the document's contents, newest first: the current one, and earlier ones as long as an answer cites them."""
    await find_document(documents, scope, document_id)
    revisions = await documents.list_revisions(scope, document_id)
    return {"revisions": [describe(revision) for revision in revisions]}


@writing.get("/{document_id}/unseen", **answer_with(UnseenBody, "The words.", 404))
async def get_unseen(
    request: Request, document_id: str, documents: DocumentsDep, originals: OriginalsDep, scope: CallerScope
) -> Any:
    """Return the words of the document's file that its text leaves out because nobody sees them, and where they are:
    the first 20,000 characters of them. The file is read anew for it."""
    document = await find_document(documents, scope, document_id)
    reading = describe_unseen(document, originals, read_services(request).library.parsers)
    return await work_while_connected(request, reading) or Response(status_code=GONE)


async def find_document(documents: DocumentStore, scope: Scope, document_id: str) -> Document:
    """Return the document. Raises `UnknownDocument` where there is none that the caller may read."""
    document = await documents.get(scope.workspace_id, document_id)
    if document is None or not scope.admits(document.groups):
        raise UnknownDocument(f"There is no document {document_id!r} in this workspace.")
    return document


async def find_revision(documents: DocumentStore, scope: Scope, document: Document, revision: int | None) -> str:
    """Return the hash of the document's content, or of an earlier revision's. Raises `UnknownDocument` where it is not
    kept, or the caller may not read it."""
    if revision is None or revision == document.revision:
        return document.content_hash
    for kept in await documents.list_revisions(scope, document.id):
        if kept.revision == revision:
            return kept.content_hash
    raise UnknownDocument(f"Revision {revision} of this document is not kept.")


async def read_revision(documents: DocumentStore, scope: Scope, document: Document, revision: int | None) -> str:
    """Return the document's text, or that of an earlier revision. Raises what `find_revision` raises."""
    await find_revision(documents, scope, document, revision)
    text = await documents.get_text(document.workspace_id, document.id, revision)
    if text is None:
        raise UnknownDocument(f"Revision {revision} of this document is not kept.")
    return text


@writing.patch("/{document_id}", **answer_with(models.Document, "The document.", 404))
async def set_groups(
    document_id: str,
    body: GroupsRequest,
    documents: DocumentsDep,
    answers: AnswersDep,
    caller: CallerDep,
    scope: CallerScope,
) -> dict[str, Any]:
    """Change who may read a document: callers of one of its groups; without groups, every caller of the workspace."""
    known = await find_document(documents, scope, document_id)
    groups = check_groups(body.groups) or []
    caller.check_groups(groups, known.groups or ())
    document = await documents.set_groups(scope.workspace_id, document_id, groups)
    if document is None:
        raise UnknownDocument(f"There is no document {document_id!r} in this workspace.")
    await answers.forget(scope.workspace_id)
    return describe(document)


@writing.delete(
    "/{document_id}",
    status_code=204,
    responses=respond_with(
        models.Erasure,
        "With `everywhere`: what was erased, and the proof. With `dry_run`: what would be.",
    )
    | {204: {"description": "The document is deleted."}}
    | fail_with(404),
)
async def delete_document(
    document_id: str,
    request: Request,
    documents: DocumentsDep,
    ingestion: IngestionDep,
    caller: CallerDep,
    scope: CallerScope,
    dry_run: DryRun,
    everywhere: Annotated[
        bool, Query(description="Erase it from conversations, tapes and caches too, and prove it.")
    ] = False,
) -> Response:
    """Delete a document, its chunks, and the answers cached from it. With `everywhere`, also erase what runs, saved
    states and tapes hold of it, and search every table for it afterwards, which needs the right `admin`."""
    workspace = scope.workspace_id
    if everywhere:
        caller.require("admin")
        forgetting = read_services(request).make_forgetting()
        erasure = await forgetting.forget_document(workspace, document_id, asking=scope.groups, dry_run=dry_run)
        return JSONResponse(describe_erasure(erasure))
    document = await find_deletable(documents, scope, document_id)
    if dry_run:
        return JSONResponse(describe_erasure(count_deletion(document)))
    await ingestion.delete(workspace, document_id)
    return Response(status_code=204)
